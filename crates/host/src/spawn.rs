//! Starting a process with exactly what it is given.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::child::{ChildProcess, Signal};
use crate::platform::child_setup;

/// Requests that may wait for the spawning thread; further callers block.
const QUEUE_LENGTH: usize = 8;
/// How long a caller waits for an answer: the queue ahead, and the time to `exec` (bounded in `child_setup`).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// What to start. The child gets this and nothing else: no other environment, no other descriptor, no signal state.
#[derive(Debug)]
pub struct SpawnSpec {
    /// Absolute path of the program; PATH is not searched.
    pub program: PathBuf,
    /// Arguments after the program's own name.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Directory to start in.
    pub cwd: PathBuf,
    /// Descriptors and the numbers (3 to 255, each once) they have in the child.
    pub fds: Vec<(OwnedFd, i32)>,
    /// Standard output; standard input is `/dev/null`.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

struct Request {
    spec: SpawnSpec,
    answer: SyncSender<io::Result<ChildProcess>>,
}

/// The one thread that starts processes. Cheap to clone.
///
/// The kernel kills a child when the *thread* that started it ends (`PR_SET_PDEATHSIG`), so that thread lives until the
/// last clone is dropped. Dropping the last clone therefore kills every child, as the death of the process does.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: SyncSender<Request>,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start() -> io::Result<Self> {
        let (requests, queue) = sync_channel(QUEUE_LENGTH);
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || serve(&queue))?;
        Ok(Self { requests })
    }

    /// Starts a process and returns once it runs the program. Blocks for milliseconds, at most a minute.
    ///
    /// The child leads a new session and group, is killed when this process ends, and is the subreaper of its tree, so
    /// that as long as it lives everything it started is below it. (Orphans of its tree that end stay zombies below it if
    /// it does not reap them; they are gone with it.)
    ///
    /// # Errors
    /// Names the program and the step that failed: a missing program, a missing directory, a descriptor number out of
    /// range or used twice, a NUL byte.
    pub fn spawn(&self, spec: SpawnSpec) -> io::Result<ChildProcess> {
        let (answer, answered) = sync_channel(1);
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the spawning thread has ended");
        self.requests.send(Request { spec, answer }).map_err(|_| gone())?;
        answered.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            std::sync::mpsc::RecvTimeoutError::Timeout => {
                io::Error::new(io::ErrorKind::TimedOut, "the process did not start within a minute")
            }
            std::sync::mpsc::RecvTimeoutError::Disconnected => gone(),
        })?
    }
}

fn serve(queue: &Receiver<Request>) {
    child_setup::prepare_thread();
    while let Ok(Request { spec, answer }) = queue.recv() {
        let started = child_setup::start(spec);
        if let Err(unwanted) = answer.send(started) {
            // Nobody waits any more: what was started must not stay.
            if let Ok(child) = unwanted.0 {
                child.signal_group(Signal::Kill).ok();
                child.wait_exit(Duration::from_secs(5)).ok();
            }
        }
    }
}
