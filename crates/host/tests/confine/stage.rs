//! What the tests share: directories for a plan, raw system calls, and threads that are confined.

use std::io;
use std::path::{Path, PathBuf};

use host::confine::{Confinement, DeniedCall, FileGrant, Missing, missing};
use rules::confinement::{Plan, Policy};

/// Directories that stand for those of a server, and one that is granted to nobody.
pub(crate) struct Stage {
    root: tempfile::TempDir,
    pub(crate) plan: Plan,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let root = tempfile::TempDir::new().unwrap();
        // Resolved, as plans are.
        let base = root.path().canonicalize().unwrap();
        let at = |name: &str| {
            let path = base.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let mut plan = Plan::new(at("workspace"), at("tmp"), at("home"));
        plan.writable = vec![at("cache")];
        plan.readable = vec![at("tools")];
        plan.environment = vec![at("environment")];
        at("outside");
        Self { root, plan }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    pub(crate) fn grants(&self) -> Vec<FileGrant> {
        process::confine::file_grants(&Policy::reviewed().unwrap(), &self.plan)
    }
}

/// Runs `body` in a thread that is confined to this.
pub(crate) fn confined<T: Send>(files: &[FileGrant], calls: &[DeniedCall], body: impl FnOnce() -> T + Send) -> T {
    let confinement = Confinement::prepare(files, calls).unwrap();
    let confined = || {
        confinement.enforce().unwrap();
        body()
    };
    std::thread::scope(|scope| scope.spawn(confined).join().unwrap())
}

/// Runs `body` in a thread that is confined by the whole reviewed policy.
pub(crate) fn confined_by_policy<T: Send>(stage: &Stage, body: impl FnOnce() -> T + Send) -> T {
    let calls = process::confine::denied_calls(&Policy::reviewed().unwrap());
    confined(&stage.grants(), &calls, body)
}

/// Whether the running kernel knows this part. What is said to be missing is expected to be, not passed over.
pub(crate) fn known(part: Missing) -> bool {
    !missing(host::kernel::landlock_abi()).contains(&part)
}

/// The error number that is expected where the part is known, and success where it is missing.
pub(crate) fn refused_if_known(part: Missing, errno: i32) -> Option<i32> {
    known(part).then_some(errno)
}

/// Makes the call; `Err` with its error number.
pub(crate) fn call(number: i64, arguments: [u64; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the tests pass numbers, null pointers and invalid descriptors, with which no call reaches memory.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer == -1 { Err(errno(&io::Error::last_os_error())) } else { Ok(answer) }
}

pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap()
}

/// The error number that an attempt failed with; `None` when it did not fail.
pub(crate) fn failure<T>(attempt: io::Result<T>) -> Option<i32> {
    attempt.err().map(|error| errno(&error))
}

/// A file with this content.
pub(crate) fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}
