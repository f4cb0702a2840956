//! Who is at the socket: descendants are always found, others never taken for them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{As, in_own_process, inner_command, shell};
use host::hygiene::{become_subreaper, harden_self};
use host::peer::{Descent, peer_descends_from, peer_of};
use host::socket::bind_private_unix;
use host::spawn::Spawner;

const SOCKET: &str = "HOST_TEST_SOCKET";
const WAIT: Duration = Duration::from_secs(20);
/// Connections from each side.
const ROUNDS: usize = 150;

/// The byte a client says about itself, so that the answer can be compared. `e` and `o` hold on until they are
/// answered; the others end at once.
fn connect_as(label: u8, path: &Path) {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(&[label]).unwrap();
    if matches!(label, b'D' | b'O') {
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn a_process_is_no_descendant_of_itself_and_says_who_it_is() {
    in_own_process("a_process_is_no_descendant_of_itself_and_says_who_it_is", As::Unprivileged, || {
        // Not dumpable, as the daemon is: its own descriptors stay readable to itself.
        harden_self().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let socket = bind_private_unix(&directory.path().join("run"), "s").unwrap();
        let _client = UnixStream::connect(socket.path()).unwrap();
        let (accepted, _) = socket.listener().accept().unwrap();
        let peer = peer_of(&accepted).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
        assert_eq!(peer.descends_from(&[std::process::id(), 1]), Descent::NotDescendant);
        // Not a Unix socket: refused, not guessed.
        let (tcp, _) = host::listener::bind_loopback().unwrap();
        assert!(peer_of(&tcp).is_err());
    });
}

/// The client: a process of this binary that connects as it is told.
fn client_if_told() -> bool {
    let Some(told) = std::env::var_os(SOCKET) else { return false };
    let told = told.into_string().unwrap();
    let (label, path) = told.split_once(':').unwrap();
    connect_as(label.as_bytes()[0], Path::new(path));
    true
}

const CLIENT_ARGS: [&str; 4] = ["--exact", "a_client", "--nocapture", "--test-threads=1"];

/// Only does something in the processes that the test below starts.
#[test]
fn a_client() {
    if client_if_told() {
        return;
    }
    // Run by itself: connecting where nobody listens fails, which is what a client must notice.
    assert!(UnixStream::connect("/nonexistent/socket").is_err());
}

#[test]
fn racing_descendants_are_found_and_outsiders_are_not_refused() {
    const NAME: &str = "racing_descendants_are_found_and_outsiders_are_not_refused";
    if common::is_inner() {
        daemon();
        return;
    }
    // The outer process is the outsider; the inner one is the daemon with its server.
    let mut daemon = inner_command(NAME, As::Unprivileged).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(daemon.stdout.take().unwrap()));
    let path = lines.find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix("socket ")?))).unwrap();
    let program = std::env::current_exe().unwrap();
    for round in 0..ROUNDS {
        // From a process that lives until it is answered, and below a shell that is gone before that.
        let told = format!("O:{}", path.display());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", if round % 2 == 0 { "(\"$0\" \"$@\" &)" } else { "\"$0\" \"$@\"; exit $?" }]);
        shell.arg(&program).args(CLIENT_ARGS).env(SOCKET, told).stdout(Stdio::null()).stderr(Stdio::null());
        if common::is_root() {
            std::os::unix::process::CommandExt::uid(&mut shell, common::UNUSED_UID);
        }
        assert!(shell.status().unwrap().success());
    }
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let status = daemon.wait().unwrap();
    let mut errors = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(status.success(), "{rest:?}\n{errors}");
    assert!(rest.iter().any(|line| line == "all answered"), "{rest:?}");
}

/// Accepts from outsiders and from its own server's tree at once, and judges each.
fn daemon() {
    harden_self().unwrap();
    become_subreaper().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let socket = bind_private_unix(&directory.path().join("run"), "s").unwrap();
    let spawner = Spawner::start().unwrap();
    // Descendants in every way: directly, below a shell that is gone, in a session of their own; half do not wait for
    // an answer, so that they are ending while they are looked at.
    let script = format!(
        "i=0; while [ $i -lt {ROUNDS} ]; do i=$((i+1)); \
         case $((i % 4)) in \
         0) {SOCKET}=D:{path} \"$0\" \"$@\" ;; \
         1) ({SOCKET}=d:{path} setsid \"$0\" \"$@\" &) ;; \
         2) ({SOCKET}=D:{path} \"$0\" \"$@\" &) ;; \
         3) {SOCKET}=d:{path} \"$0\" \"$@\" ;; \
         esac; done; wait; sleep 60",
        path = socket.path().display()
    );
    let (mut spec, output) = shell(&script);
    spec.args.push(std::env::current_exe().unwrap().into());
    spec.args.extend(CLIENT_ARGS.map(Into::into));
    let server = spawner.spawn(spec).unwrap();
    println!("\nsocket {}", socket.path().display());
    std::io::stdout().flush().unwrap();
    let mut counts = [0_usize; 2];
    while counts[0] < ROUNDS || counts[1] < ROUNDS {
        let label = judge_next(socket.listener(), server.pid(), &output);
        counts[usize::from(label == b'O')] += 1;
    }
    println!("all answered");
    let report = host::tree::end_tree(&server, Duration::ZERO, &[], WAIT).unwrap();
    assert_eq!(report.left, [0; 0]);
}

fn judge_next(listener: &UnixListener, server: u32, output: &common::Output) -> u8 {
    listener.set_nonblocking(true).unwrap();
    let mut stream = common::wait_until("a connection", || listener.accept().ok()).0;
    let verdict = peer_descends_from(&stream, &[server, std::process::id()]);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    let mut label = [0];
    stream.read_exact(&mut label).unwrap_or_else(|error| panic!("{error}: {}", output.text()));
    match label[0] {
        // Alive until answered: the answer is exact.
        b'D' => assert!(matches!(verdict, Ok(Descent::Descendant(_))), "a descendant: {verdict:?}"),
        b'O' => assert!(matches!(verdict, Ok(Descent::NotDescendant)), "an outsider: {verdict:?}"),
        // Ending meanwhile: it may not be told any more, but is never taken for an outsider.
        b'd' => assert!(!matches!(verdict, Ok(Descent::NotDescendant)), "a descendant: {verdict:?}"),
        other => panic!("a client says {other}"),
    }
    // Those that do not wait may be gone.
    stream.write_all(b".").ok();
    label[0]
}
