//! What changes the whole process: hardening, the file mode mask, orphans, and being nobody.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{As, in_own_process, runs, shell, wait_until};
use host::hygiene::{become_subreaper, harden_self, is_dumpable, is_subreaper};
use host::reap::reap_orphans;
use host::secure_fs::{self, SecureFsError};
use host::spawn::Spawner;

const WAIT: Duration = Duration::from_secs(20);

#[test]
fn a_hardened_process_is_hidden_from_its_own_user_and_still_works() {
    in_own_process("a_hardened_process_is_hidden_from_its_own_user_and_still_works", As::Unprivileged, || {
        let environment = format!("/proc/{}/environ", std::process::id());
        let others_can_read = || Command::new("/bin/cat").arg(&environment).output().unwrap().status.success();
        assert!(is_dumpable().unwrap() && others_can_read());
        harden_self().unwrap();
        assert!(!is_dumpable().unwrap() && !others_can_read());
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_ascii_whitespace().skip(4).collect::<Vec<_>>(), ["0", "0", "bytes"]);

        // Its files in memory can be read by number, by itself and by the child that gets one; the child is a process
        // like any other again.
        let file = host::memfile::memfile("config", b"content").unwrap();
        assert_eq!(std::fs::read(format!("/dev/fd/{}", file.as_raw_fd())).unwrap(), b"content");
        let (mut spec, output) = shell("cat /dev/fd/9; cat /dev/fd/9; cat /proc/$$/environ | tr '\\0' '\\n'");
        spec.fds = vec![(file, 9)];
        let child = Spawner::start().map(|spawner| (spawner.spawn(spec).unwrap(), spawner)).unwrap();
        assert!(child.0.wait_exit(WAIT).unwrap().is_some());
        assert_eq!(output.text(), "contentcontentPATH=/usr/bin:/bin\n");
    });
}

#[test]
fn the_file_mode_mask_changes_nothing() {
    in_own_process("the_file_mode_mask_changes_nothing", As::Unprivileged, || {
        for mask in [0o000, 0o777] {
            let directory = tempfile::tempdir().unwrap();
            let private = directory.path().join("private");
            let previous = rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
            secure_fs::ensure_private_dir(&private).unwrap();
            secure_fs::write_private_new(&private.join("new"), b"content").unwrap();
            secure_fs::write_private_atomic(&private.join("replaced"), b"content").unwrap();
            let socket = (mask == 0).then(|| host::socket::bind_private_unix(&private, "socket").unwrap());
            rustix::process::umask(previous);
            let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode(&private), 0o700);
            assert_eq!(mode(&private.join("new")), 0o600);
            assert_eq!(mode(&private.join("replaced")), 0o600);
            if let Some(socket) = socket {
                assert_eq!(mode(socket.path()), 0o600);
            }
        }
    });
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    in_own_process("what_belongs_to_another_user_is_refused", As::Unprivileged, || {
        let ours = rustix::process::geteuid().as_raw();
        // Readable for everyone on every system, and never ours here.
        let error = secure_fs::read_private(Path::new("/etc/passwd"), 1 << 20).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongOwner { found: 0, wanted, .. } if wanted == ours), "{error}");
        let error = secure_fs::ensure_private_dir(Path::new("/etc")).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongOwner { found: 0, .. }), "{error}");
        assert!(error.to_string().contains(&format!("chown {ours} /etc")), "{error}");
        // A directory that cannot even be opened is told as what it is.
        let error = secure_fs::ensure_private_dir(Path::new("/root")).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongOwner { found: 0, .. }), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let sealed = directory.path().join("sealed");
        secure_fs::ensure_private_dir(&sealed).unwrap();
        std::fs::set_permissions(&sealed, std::fs::Permissions::from_mode(0o000)).unwrap();
        let error = secure_fs::ensure_private_dir(&sealed).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongMode { found: 0, wanted: 0o700, .. }), "{error}");
        // Sealed, it could not be removed.
        std::fs::set_permissions(&sealed, std::fs::Permissions::from_mode(0o700)).unwrap();
        directory.close().unwrap();
    });
}

#[test]
fn orphans_are_reaped_and_the_statuses_of_others_are_left() {
    in_own_process("orphans_are_reaped_and_the_statuses_of_others_are_left", As::SameUser, || {
        assert!(!is_subreaper().unwrap());
        become_subreaper().unwrap();
        assert!(is_subreaper().unwrap());
        assert_eq!(reap_orphans(&[]).unwrap(), 0);
        // The one that someone waits for ends first, so that it is what the kernel shows first.
        let mut known = Command::new("/bin/sh").args(["-c", "exit 9"]).spawn().unwrap();
        let spawner = Spawner::start().unwrap();
        let (spec, _output) = shell("exit 8");
        let held = spawner.spawn(spec).unwrap();
        wait_until("the end of two children", || {
            (!runs(known.id()) && held.has_ended(Duration::ZERO).unwrap()).then_some(())
        });
        let (spec, output) = shell("for i in 1 2 3; do (sh -c 'echo $$' &) ; done");
        let parent = spawner.spawn(spec).unwrap();
        let text = output.wait_for(|text| text.lines().count() == 3);
        parent.wait_exit(WAIT).unwrap();
        let orphans: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        let mut reaped = 0;
        wait_until("the orphans to be reaped", || {
            reaped += reap_orphans(&[known.id()]).unwrap();
            orphans.iter().all(|pid| common::stat_fields(*pid).is_none()).then_some(())
        });
        assert!(reaped <= 3);
        assert_eq!(known.wait().unwrap().code(), Some(9));
        assert_eq!(held.wait_exit(WAIT).unwrap(), Some(host::child::ExitStatus::Code(8)));
        assert_eq!(reap_orphans(&[]).unwrap(), 0);
    });
}

#[test]
fn a_lock_ends_with_its_holder_however_that_ends() {
    in_own_process("a_lock_ends_with_its_holder_however_that_ends", As::Unprivileged, || {
        use host::lock::{FileLock, LockError};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        // SAFETY: the child takes a lock and waits for its end; this process has no other thread that matters to it.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _held = FileLock::acquire_within(&path, WAIT);
            std::thread::sleep(WAIT);
            // SAFETY: ends the child only.
            unsafe { libc::_exit(0) };
        }
        wait_until("the child to hold the lock", || match FileLock::try_acquire(&path) {
            Err(LockError::Held { holder, .. }) => (holder == u32::try_from(child).ok()).then_some(()),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        });
        // SAFETY: `child` is our own unreaped child.
        unsafe { libc::kill(child, libc::SIGKILL) };
        let lock = FileLock::acquire_within(&path, WAIT).unwrap();
        assert_eq!(reap_orphans(&[]).unwrap(), 1);
        drop(lock);
    });
}

#[test]
fn a_secret_that_cannot_be_locked_is_kept_and_counted() {
    in_own_process("a_secret_that_cannot_be_locked_is_kept_and_counted", As::Unprivileged, || {
        let locked = host::Secret::new("first".to_owned());
        assert_eq!(host::secret::unlocked_secrets(), 0);
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Memlock, none).unwrap();
        let unlocked = host::Secret::new("second".to_owned());
        assert_eq!(host::secret::unlocked_secrets(), 1);
        assert_eq!((locked.expose(), unlocked.expose()), ("first", "second"));
        drop(unlocked);
        assert_eq!(host::secret::unlocked_secrets(), 0);
    });
}
