//! A small file system of its own, in a mount namespace of its own: one that can be filled and made read-only.

#![expect(clippy::unwrap_used, reason = "what cannot be set up ends the test")]

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use testkit::daemon::Home;

/// Says in the inner process which test it plays.
const INNER: &str = "GATEPOST_TEST_IN_OWN_MOUNTS";
/// What a full file system gives out last.
const PAGE_BYTES: u64 = 4096;
const SIZE: &str = "24m";

/// Plays a test in a mount namespace of its own, in a process of its own. As an ordinary user it is one of a user
/// namespace too, in which the test is root.
///
/// # Panics
/// When the test fails, or there is no such namespace: it is never passed over.
pub fn in_own_mounts(test: &str, play: impl FnOnce()) {
    if std::env::var(INNER).is_ok_and(|inner| inner == test) {
        return play();
    }
    // What the inner process leaves behind its mounts goes with this one.
    let directory = tempfile::Builder::new().prefix("gp-").tempdir().unwrap();
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--propagation", "private", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    let output = command.env(INNER, test).env("TMPDIR", directory.path()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test} did not pass in a mount namespace of its own; it needs `unshare`, and root or user namespaces:\n{said}"
    );
}

/// A file system of 24 MiB. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Where the state of a daemon, and its log, are from now on.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[must_use]
    pub fn under_state_of(home: &Home) -> Self {
        assert!(std::env::var(INNER).is_ok(), "nothing is mounted outside a namespace of the test's own");
        let disk = Self { at: home.state() };
        disk.mount(&format!("size={SIZE},mode=0700"));
        symlink(disk.at.join("daemon.log"), home.path().join("daemon.log")).unwrap();
        disk
    }

    fn mount(&self, options: &str) {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(&self.at).status().unwrap();
        assert!(mounted.success(), "{options}: {mounted}");
    }

    /// Leaves room for this many pages of 4096 bytes and no more.
    ///
    /// # Panics
    /// When it cannot be filled.
    pub fn leave_pages(&self, pages: u64) {
        let mut file = File::options().create(true).append(true).open(self.filler()).unwrap();
        for size in [1 << 20, 1 << 16, PAGE_BYTES] {
            let chunk = vec![0xf1; usize::try_from(size).unwrap()];
            while !is_full(file.write_all(&chunk)) {}
        }
        let length = file.metadata().unwrap().len() / PAGE_BYTES * PAGE_BYTES;
        file.set_len(length.checked_sub(pages * PAGE_BYTES).unwrap()).unwrap();
    }

    /// Leaves no room.
    ///
    /// # Panics
    /// When it cannot be filled.
    pub fn fill(&self) {
        self.leave_pages(0);
    }

    /// Makes room again.
    ///
    /// # Panics
    /// When that is not possible.
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Lets nobody write any more, root neither; or lets them again.
    ///
    /// # Panics
    /// When that is not possible.
    pub fn set_read_only(&self, read_only: bool) {
        self.mount(if read_only { "remount,ro" } else { "remount,rw" });
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.at).status());
    }
}

/// Whether a write found no room.
fn is_full(written: std::io::Result<()>) -> bool {
    match written {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
            true
        }
    }
}
