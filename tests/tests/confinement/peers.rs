//! Who may speak at the daemon's socket from within a confinement that is not of this daemon's making.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use api_types::Status;
use gatepost_tests::{LIMIT, typed, wait_until};
use host::hygiene::is_root;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testkit::daemon::{Daemon, Home, Setup};

use crate::stage::{Stage, UNUSED_UID};

/// Asks once, when it is told to, with the owner's token in hand, and writes down how many bytes came back and who its parent is.
const CLIENT: &str = r#"
import os, socket, sys, time
path, token, name = sys.argv[1:]
while not os.path.exists(name + ".go"):
    time.sleep(0.01)
received = b""
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    try:
        connection.sendall(f"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        while piece := connection.recv(65536):
            received += piece
    except ConnectionError:
        pass
with open(name + ".part", "w") as file:
    file.write(f"{len(received)} {received[9:12].decode()}")
os.rename(name + ".part", name)
"#;

/// A daemon without a server, as the user that the stage's programs run as.
pub(crate) fn home() -> Home {
    home_with(|_setup| {})
}

pub(crate) fn home_with(change: impl FnOnce(&mut Setup)) -> Home {
    let mut setup = Setup::without_server();
    setup.user = is_root().then_some(UNUSED_UID);
    change(&mut setup);
    Home::new(setup).unwrap()
}

struct Asking<'a> {
    stage: &'a Stage,
    name: &'static str,
    wrapped: crate::stage::Wrapped,
}

impl<'a> Asking<'a> {
    fn new(stage: &'a Stage, home: &Home, name: &'static str) -> Self {
        let (socket, token) = (home.socket(), home.owner_token().unwrap());
        let file = stage.path("workspace").join(name);
        let arguments = ["python3", "-c", CLIENT, socket.to_str().unwrap(), &token, file.to_str().unwrap()];
        Self { stage, name, wrapped: stage.wrapped("/usr/bin/python3", &arguments) }
    }

    fn file(&self) -> PathBuf {
        self.stage.path("workspace").join(self.name)
    }

    /// Started in this way, by a shell that is gone before it asks.
    fn orphaned(&self, session: &str) {
        let command = &self.wrapped.command;
        let mut shell = self.stage.bare("/bin/sh");
        shell.args(["-c", &format!("{session} \"$@\" &"), "sh"]).arg(command.get_program()).args(command.get_args());
        assert!(shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    }

    /// Started by a shell that does `first` and stays its parent. The shell leads its session: the one that the tests are in
    /// may have begun where a daemon cannot see it, as outside a container, and then proves nothing.
    fn below_a_shell(&self, first: &str) -> Child {
        let command = &self.wrapped.command;
        let mut shell = self.stage.bare("setsid");
        shell.args(["/bin/sh", "-c", &format!("{first}; \"$@\"; exit $?"), "sh"]);
        shell.arg(command.get_program()).args(command.get_args()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Lets it ask. How many bytes came back, and the status in them.
    fn asks(&self) -> (usize, String) {
        self.stage.write(&format!("workspace/{}.go", self.name), "");
        let said = wait_until("what the client was answered", LIMIT, || fs::read_to_string(self.file()).ok());
        let (bytes, status) = said.split_once(' ').unwrap();
        (bytes.parse().unwrap(), status.to_owned())
    }
}

/// Allows this process and what it starts core files, and says whether they now are: only the powerful may raise a hard limit.
fn allow_core_files() -> bool {
    let unlimited = Rlimit { current: Some(0), maximum: None };
    getrlimit(Resource::Core).maximum != Some(0) || setrlimit(Resource::Core, unlimited).is_ok()
}

pub(crate) fn status(daemon: &Daemon) -> Status {
    typed(&daemon.client().get("/v1/status").unwrap(), &[200])
}

/// What a killed daemon's commands left is not answered by the next one, in whatever session it is and with a token too.
/// Another confined program, whose parent is there and in its session, is.
#[test]
fn what_an_earlier_daemon_left_is_refused_and_a_confined_client_with_a_parent_is_not() {
    let (stage, home) = (Stage::new(), home());
    let mut daemon = home.serve().unwrap();
    let left: Vec<Asking<'_>> = [("left", ""), ("left-apart", "setsid")]
        .map(|(name, session)| {
            let asking = Asking::new(&stage, &home, name);
            asking.orphaned(session);
            asking
        })
        .into();
    daemon.kill().unwrap();
    daemon = home.serve().unwrap();
    assert_eq!(status(&daemon).refused_peers, api_types::RefusedPeers::default());

    // Somebody else's confinement, below a program that may have core files; where all here are forbidden them, and nobody
    // may allow them again, nothing tells it from what is left.
    let allowed = allow_core_files();
    let outsider = Asking::new(&stage, &home, "outsider");
    let mut child = outsider.below_a_shell(":");
    let (bytes, answer) = outsider.asks();
    let refused = status(&daemon).refused_peers;
    let expected = if allowed { (true, "200") } else { (false, "") };
    assert_eq!((bytes > 0, answer.as_str()), expected, "core files allowed: {allowed}; {refused:?}");
    assert!(child.wait().unwrap().success());

    // One whose parent is forbidden them is refused, though that parent is there and in its session.
    let alike = Asking::new(&stage, &home, "alike");
    let mut child = alike.below_a_shell("ulimit -c 0");
    assert_eq!(alike.asks(), (0, String::new()));
    assert!(child.wait().unwrap().success());

    let before = if allowed { 1 } else { 2 };
    for (number, asking) in (before + 1..).zip(&left) {
        assert_eq!(asking.asks(), (0, String::new()), "{}", asking.name);
        let refused = status(&daemon).refused_peers;
        assert_eq!((refused.count, refused.last_code.as_deref()), (number, Some("ancestry_lost")));
        assert!(refused.last_at.is_some());
    }
    let log = daemon.log().unwrap();
    let lines = log.lines().filter(|line| line.contains("a peer was refused unread")).count();
    assert_eq!(lines, 1, "one line for all, since they came within moments:\n{log}");
    let shown = home.run(&["status"]).unwrap();
    let told = format!("connections refused unread: {}, the last at ", before + left.len() as u64);
    assert!(shown.stdout.contains(&told), "{shown:?}");
    assert!(shown.stdout.contains("(ancestry_lost)"), "{shown:?}");
    daemon.stop().unwrap();
}
