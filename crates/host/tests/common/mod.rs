//! Running the body of a test in a process of its own: what is tried here changes the whole process (subreaper, not
//! dumpable, signals, umask) or may kill every child of it.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::spawn::SpawnSpec;

const INNER: &str = "HOST_TEST_INNER";
const DONE: &str = "the inner process is done";
const INNER_TIMEOUT: Duration = Duration::from_secs(90);
/// No account has it; nothing else runs under it.
pub(crate) const UNUSED_UID: u32 = 61_234;

/// Who runs the body.
#[derive(Clone, Copy)]
pub(crate) enum As {
    /// The user of the test.
    SameUser,
    /// An unprivileged user id that nobody has, if the test runs as root; otherwise the user is unprivileged already.
    Unprivileged,
}

/// Runs `body` in a new process of this binary, as the test called `name` alone, and fails as it fails.
pub(crate) fn in_own_process(name: &str, user: As, body: fn()) {
    if std::env::var_os(INNER).is_some() {
        body();
        println!("{DONE}");
        return;
    }
    let mut inner = inner_command(name, user).spawn().unwrap();
    let output = finish(&mut inner, INNER_TIMEOUT);
    assert!(output.contains(DONE), "the inner process failed:\n{output}");
}

/// True in the process that [`inner_command`] starts.
pub(crate) fn is_inner() -> bool {
    std::env::var_os(INNER).is_some()
}

/// This binary again, running the test `name` only, with its output in pipes.
pub(crate) fn inner_command(name: &str, user: As) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(INNER, name).env_remove("RUST_BACKTRACE");
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match user {
        As::Unprivileged if is_root() => {
            command.uid(UNUSED_UID).gid(UNUSED_UID);
        }
        As::Unprivileged | As::SameUser => {}
    }
    command
}

/// Waits for the end, kills after `timeout`, and returns everything it said.
pub(crate) fn finish(child: &mut Child, timeout: Duration) -> String {
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let errors = std::thread::spawn(move || read_all(&mut stderr));
    let lines = std::thread::spawn(move || read_all(&mut stdout));
    let deadline = Instant::now() + timeout;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    format!("{status}\n{}{}", lines.join().unwrap(), errors.join().unwrap())
}

fn read_all(from: &mut impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).ok();
    text
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A shell that runs `script`, with nothing in its environment but PATH, its output in the returned file.
pub(crate) fn shell(script: &str) -> (SpawnSpec, Output) {
    let output = Output::new();
    let spec = SpawnSpec {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: PathBuf::from("/"),
        fds: Vec::new(),
        stdout: output.writer(),
        stderr: output.writer(),
    };
    (spec, output)
}

/// A temporary file that a child writes to.
pub(crate) struct Output(tempfile::NamedTempFile);

impl Output {
    pub(crate) fn new() -> Self {
        Self(tempfile::NamedTempFile::new().unwrap())
    }

    pub(crate) fn writer(&self) -> OwnedFd {
        std::fs::OpenOptions::new().append(true).open(self.0.path()).unwrap().into()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.0.path()).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Waits until the text satisfies `wanted`.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&str) -> bool) -> String {
        wait_until("the output of a child", || {
            let text = self.text();
            wanted(&text).then_some(text)
        })
    }
}

/// Asks again until there is an answer, for at most 60 seconds.
pub(crate) fn wait_until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The fields of `/proc/<pid>/stat` after the name: state, parent, group, session, …
pub(crate) fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Whether a process of that number runs (one that ended and was not reaped does not).
pub(crate) fn runs(pid: u32) -> bool {
    stat_fields(pid).is_some_and(|fields| !matches!(fields[0].as_str(), "Z" | "X"))
}
