//! Reaping orphans that fell to this process, one by one and by number.

use std::io;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{procfs, registry};

/// Reaps every ended child of this process that is neither held by a [`crate::child::ChildProcess`] nor named in
/// `known` (children started in other ways, whose statuses someone waits for). Never waits. Returns how many.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reap_orphans(known: &[u32]) -> io::Result<usize> {
    let mut reaped = 0;
    // The common case costs one system call: nothing has ended, or only orphans have.
    while let Some(pid) = peek_ended()? {
        if is_known(pid, known) {
            // The kernel would show this one again and again; look past it.
            return Ok(reaped + reap_scanned(known)?);
        }
        reaped += usize::from(reap_one(pid));
    }
    Ok(reaped)
}

fn is_known(pid: u32, known: &[u32]) -> bool {
    known.contains(&pid) || registry::snapshot().contains(&pid)
}

fn reap_scanned(known: &[u32]) -> io::Result<usize> {
    let own = std::process::id();
    let ended = procfs::all()?.into_iter().filter(|stat| stat.parent_pid == own && stat.is_zombie());
    Ok(ended.filter(|stat| !is_known(stat.pid, known) && reap_one(stat.pid)).count())
}

/// Some ended child, left as it is.
fn peek_ended() -> io::Result<Option<u32>> {
    loop {
        // SAFETY: all zeroes is a valid `siginfo_t`.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is valid for writing.
        let answer = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, options) };
        if answer == 0 {
            // SAFETY: after a successful `waitid` the field is set, or still zero when nothing has ended.
            let pid = unsafe { info.si_pid() };
            return Ok(u32::try_from(pid).ok().filter(|pid| *pid > 0));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            Some(_) | None => return Err(error),
        }
    }
}

/// Reaps one ended child that nobody waits for; false when it is not there (any more).
pub(super) fn reap_one(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    matches!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_)))
}
