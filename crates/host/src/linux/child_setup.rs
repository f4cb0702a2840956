//! From `fork` to `exec`.
//!
//! `std::process::Command` is not used: its error pipe may get the very number that a descriptor must have in the
//! child, and a failed `exec` would then look like a success. Here the pipe stands above every wanted number, and the
//! step that failed is known.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use libc::{c_char, c_int};

use super::{pidfd, procfs, registry};
use crate::child::{ChildProcess, Signal};
use crate::spawn::SpawnSpec;

/// Smallest number a descriptor may be given in the child; below are standard input, output and error.
const FIRST_TARGET: RawFd = 3;
/// Largest number a descriptor may be given in the child.
const LAST_TARGET: RawFd = 255;
/// How long a child may take to reach `exec`; a slow network file system is the only reason to take any time.
const EXEC_TIMEOUT: Duration = Duration::from_secs(20);
/// Signal numbers to put back to their defaults: all there are on Linux.
const LAST_SIGNAL: c_int = 64;
/// Size of the kernel's signal set: a bit a signal.
const SIGNAL_SET_BYTES: usize = 8;

/// The steps of the child, as sent over the error pipe.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Session = 1,
    DeathSignal,
    ParentGone,
    Subreaper,
    CloseOnExec,
    Descriptor,
    Directory,
    Mask,
    Exec,
    Cgroup,
}

impl Step {
    fn describe(byte: u8) -> &'static str {
        const NAMES: [(Step, &str); 10] = [
            (Step::Session, "making a session"),
            (Step::DeathSignal, "tying it to this process"),
            (Step::ParentGone, "finding its parent"),
            (Step::Subreaper, "making it the subreaper of its tree"),
            (Step::CloseOnExec, "closing other descriptors"),
            (Step::Descriptor, "passing a descriptor"),
            (Step::Directory, "entering its directory"),
            (Step::Mask, "unblocking signals"),
            (Step::Exec, "executing it"),
            (Step::Cgroup, "entering its cgroup"),
        ];
        NAMES.iter().find(|(step, _)| *step as u8 == byte).map_or("an unknown step", |(_, name)| name)
    }
}

/// Everything the child needs, allocated before `fork`: afterwards nothing may allocate.
struct Plan {
    program: CString,
    cwd: CString,
    /// NULL-terminated; point into `_argv_text` and `_envp_text`.
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// Every source stands above every target, so no copy can overwrite a source.
    moves: Vec<(RawFd, RawFd)>,
    parent: libc::pid_t,
    /// Whether orphans of its tree fall to it; otherwise to the nearest above that took this on.
    subreaper: bool,
    /// `cgroup.procs` of the cgroup that it enters.
    cgroup: Option<OwnedFd>,
    _argv_text: Vec<CString>,
    _envp_text: Vec<CString>,
    _sources: Vec<OwnedFd>,
}

/// Keeps signal handlers from ever running on the spawning thread: between `fork` and `exec` they would run in the
/// child, and write into pipes it shares with us. Also undoes an inherited ignoring of SIGCHLD, with which the kernel
/// would reap every child itself and no exit status would ever be seen.
pub(crate) fn prepare_thread() {
    // SAFETY: plain calls on a local value; all arguments are valid.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        let mut present: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut present) == 0 && present.sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Starts the process. Must run on the thread of the [`crate::spawn::Spawner`].
pub(crate) fn start(spec: SpawnSpec) -> io::Result<ChildProcess> {
    start_in(spec, true, None)
}

/// The same, with what the plan says of subreaper and cgroup. The thread's end is the child's.
pub(crate) fn start_in(spec: SpawnSpec, subreaper: bool, cgroup: Option<OwnedFd>) -> io::Result<ChildProcess> {
    let program = spec.program.clone();
    let named = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("cannot start {}: {what}: {error}", program.display()))
    };
    let plan = Plan::new(spec, subreaper, cgroup).map_err(|error| named("preparing it", error))?;
    let (outcome, error_pipe) = error_pipe().map_err(|error| named("preparing it", error))?;
    let forked = registry::fork_recorded(|| {
        // SAFETY: the child runs `become_program` only, which does nothing but async-signal-safe calls and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: we are the child of a fork and `plan` was prepared before it.
            unsafe { become_program(&plan, error_pipe.as_raw_fd()) }
        }
        u32::try_from(pid).map_err(|_| io::Error::last_os_error())
    });
    let pid = forked.map_err(|error| named("forking", error))?;
    drop(error_pipe);
    let child = hold(pid).map_err(|error| named("holding on to it", error))?;
    match failure(outcome) {
        Ok(None) => Ok(child),
        Ok(Some((step, error))) => {
            child.wait_exit(EXEC_TIMEOUT)?;
            Err(named(Step::describe(step), error))
        }
        Err(error) => {
            child.signal(Signal::Kill).ok();
            child.wait_exit(EXEC_TIMEOUT)?;
            Err(named("waiting for it", error))
        }
    }
}

/// Opens the descriptor of a child that was just forked and cannot be reaped by anyone else.
pub(crate) fn hold(pid: u32) -> io::Result<ChildProcess> {
    let opened = pidfd::open(pid).and_then(|fd| Ok((fd, procfs::stat(pid)?.start_time_ticks)));
    match opened {
        Ok((fd, start_time_ticks)) => Ok(ChildProcess::new(pid, start_time_ticks, fd)),
        Err(error) => {
            if let Ok(raw) = libc::pid_t::try_from(pid) {
                // SAFETY: `pid` is our own unreaped child, so the number cannot mean another process.
                unsafe { libc::kill(raw, libc::SIGKILL) };
            }
            // It is an orphan now, for the next `reap_orphans`.
            registry::give_up(pid);
            Err(error)
        }
    }
}

/// What the child reported: nothing (the pipe closed at `exec`), or a step and its error.
fn failure(outcome: OwnedFd) -> io::Result<Option<(u8, io::Error)>> {
    if !crate::io_util::wait_readable(outcome.as_fd(), EXEC_TIMEOUT)? {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not get to run its program in time"));
    }
    let mut report = Vec::with_capacity(5);
    File::from(outcome).take(5).read_to_end(&mut report)?;
    match report.as_slice() {
        [] => Ok(None),
        [step, number @ ..] => {
            let number = <[u8; 4]>::try_from(number).map(i32::from_ne_bytes).unwrap_or(libc::EIO);
            Ok(Some((*step, io::Error::from_raw_os_error(number))))
        }
    }
}

/// The read end, and a write end above every number a descriptor may get in the child.
fn error_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let write = above_targets(write.as_fd())?;
    Ok((read, write))
}

fn above_targets(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, LAST_TARGET + 1)?)
}

impl Plan {
    fn new(spec: SpawnSpec, subreaper: bool, cgroup: Option<OwnedFd>) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if !spec.program.is_absolute() {
            return Err(invalid("the program must be named by an absolute path".to_owned()));
        }
        let mut taken = std::collections::BTreeSet::new();
        for (_, target) in &spec.fds {
            if !(FIRST_TARGET..=LAST_TARGET).contains(target) || !taken.insert(*target) {
                return Err(invalid(format!("descriptor number {target} is used twice or not within 3 to 255")));
            }
        }
        let mut argv_text = vec![c_path(&spec.program)?];
        for argument in spec.args {
            argv_text.push(c_text(argument.into_vec())?);
        }
        let envp_text = spec.env.iter().map(|(name, value)| c_variable(name, value)).collect::<io::Result<Vec<_>>>()?;
        let null = OwnedFd::from(File::open("/dev/null")?);
        let mut wanted = vec![(null, 0), (spec.stdout, 1), (spec.stderr, 2)];
        wanted.extend(spec.fds);
        let mut moves = Vec::with_capacity(wanted.len());
        let mut sources = Vec::with_capacity(wanted.len());
        for (fd, target) in wanted {
            let source = above_targets(fd.as_fd())?;
            moves.push((source.as_raw_fd(), target));
            sources.push(source);
        }
        Ok(Self {
            program: c_path(&spec.program)?,
            cwd: c_path(&spec.cwd)?,
            argv: pointers(&argv_text),
            envp: pointers(&envp_text),
            moves,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            subreaper,
            cgroup,
            _argv_text: argv_text,
            _envp_text: envp_text,
            _sources: sources,
        })
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    c_text(path.as_os_str().as_bytes().to_vec())
}

fn c_text(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text holds a NUL byte"))
}

fn c_variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no name of a variable: {name:?}")));
    }
    c_text([name.as_bytes(), b"=", value.as_bytes()].concat())
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// What the child does. Every call is async-signal-safe, nothing allocates, locks or panics.
///
/// # Safety
/// Only in the child of a fork, with a plan prepared before it.
unsafe fn become_program(plan: &Plan, error_pipe: RawFd) -> ! {
    // SAFETY: system calls on values prepared before the fork; every pointer in `plan` points to text that `plan` owns,
    // both arrays end with NULL, and every source descriptor is open.
    unsafe {
        let step = run_steps(plan);
        let number = *libc::__errno_location();
        let [a, b, c, d] = number.to_ne_bytes();
        let report = [step as u8, a, b, c, d];
        libc::write(error_pipe, report.as_ptr().cast(), report.len());
        libc::_exit(127)
    }
}

/// Returns the step that failed, with `errno` set; on success it does not return.
///
/// # Safety
/// As [`become_program`].
unsafe fn run_steps(plan: &Plan) -> Step {
    // SAFETY: as in `become_program`.
    unsafe {
        if libc::setsid() == -1 {
            return Step::Session;
        }
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Step::DeathSignal;
        }
        // The parent may have died before the line above; then nobody would ever kill us.
        if libc::getppid() != plan.parent {
            *libc::__errno_location() = libc::ESRCH;
            return Step::ParentGone;
        }
        if plan.subreaper && libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) == -1 {
            return Step::Subreaper;
        }
        if let Some(procs) = &plan.cgroup {
            // 0 is whoever writes it.
            if libc::write(procs.as_raw_fd(), b"0".as_ptr().cast(), 1) == -1 {
                return Step::Cgroup;
            }
        }
        // Descriptors that some library opened without close-on-exec must not leak either.
        let (first, last, flags) = (FIRST_TARGET as libc::c_uint, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if libc::syscall(libc::SYS_close_range, first, last, flags) == -1 {
            return Step::CloseOnExec;
        }
        for (source, target) in &plan.moves {
            // The copy is not close-on-exec.
            if libc::dup2(*source, *target) == -1 {
                return Step::Descriptor;
            }
        }
        // The kernel's own call: the C library's refuses its two internal signals, which its `posix_spawn` leaves ignored.
        // All zeroes is the default action however the structure is laid out. Fails for SIGKILL and SIGSTOP, as it must.
        let default_action = [0_u64; 4];
        for signal in 1..=LAST_SIGNAL {
            let no_old = std::ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default_action.as_ptr(), no_old, SIGNAL_SET_BYTES);
        }
        if libc::chdir(plan.cwd.as_ptr()) == -1 {
            return Step::Directory;
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        if libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) == -1 {
            return Step::Mask;
        }
        libc::execve(plan.program.as_ptr(), plan.argv.as_ptr(), plan.envp.as_ptr());
        Step::Exec
    }
}
