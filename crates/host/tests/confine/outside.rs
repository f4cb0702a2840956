//! Processes and sockets outside, of the same user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

use host::confine::Missing;

use crate::common::{As, in_own_process};
use crate::stage::{Stage, call, confined_by_policy, failure, known, refused_if_known};

/// A process that does nothing, and is ended with the value.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        let mut command = Command::new("/bin/sleep");
        Self(command.arg("300").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn answer(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What one process of a user may do to another of the same user.
fn attempts(pid: i32) -> Vec<(&'static str, io::Result<()>)> {
    let read = |name: &str| {
        let mut byte = [0];
        File::open(format!("/proc/{pid}/{name}")).and_then(|mut file| file.read(&mut byte)).map(drop)
    };
    let limit = [libc::RLIM_INFINITY; 2];
    // SAFETY: none of the calls reaches memory of this process but `limit`, which is read.
    let (signal, group, queued, traced, limited) = unsafe {
        let pid_long = libc::c_long::from(pid);
        (
            answer(libc::kill(pid, 0).into()),
            answer(libc::kill(pid, libc::SIGCONT).into()),
            answer(libc::syscall(libc::SYS_tgkill, pid_long, pid_long, 0)),
            answer(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0))
                .and_then(|()| answer(libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0)))
                .and_then(|()| answer(libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL).into()))
                .and_then(|()| answer(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0))),
            answer(libc::syscall(libc::SYS_prlimit64, pid_long, libc::RLIMIT_CPU, limit.as_ptr(), 0)),
        )
    };
    vec![
        ("probing by signal", signal),
        ("signalling", group),
        ("signalling a thread", queued),
        ("tracing", traced),
        ("limiting", limited),
        ("reading the environment", read("environ")),
        ("reading the map of memory", read("maps")),
        ("opening the memory", OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).map(drop)),
        ("looking at a descriptor", fs::read_link(format!("/proc/{pid}/fd/0")).map(drop)),
        ("looking at its directory", fs::read_link(format!("/proc/{pid}/cwd")).map(drop)),
    ]
}

#[test]
fn processes_outside_are_out_of_reach_and_own_ones_are_not() {
    in_own_process("outside::processes_outside_are_out_of_reach_and_own_ones_are_not", As::Unprivileged, || {
        let (stage, outside) = (Stage::new(), Sleeper::new());
        for (what, attempt) in attempts(outside.pid()) {
            assert_eq!(failure(attempt), None, "{what}, not confined");
        }
        confined_by_policy(&stage, || {
            for (what, attempt) in attempts(outside.pid()) {
                let error = failure(attempt);
                let refused = matches!(error, Some(libc::EPERM | libc::EACCES));
                assert_eq!(refused, !what.contains("signal") || known(Missing::SignalScope), "{what}: {error:?}");
            }
            let own = Sleeper::new();
            for (what, attempt) in attempts(own.pid()) {
                // Changing another process's limits and memory file is given up for own ones as well.
                let given_up = ["limiting", "opening the memory"].contains(&what);
                assert_eq!(failure(attempt).is_some(), given_up, "{what}, of the own process");
            }
        });
    });
}

#[test]
fn a_deadly_signal_ends_nothing_outside() {
    in_own_process("outside::a_deadly_signal_ends_nothing_outside", As::Unprivileged, || {
        let (stage, mut outside) = (Stage::new(), Sleeper::new());
        let error = confined_by_policy(&stage, || {
            // SAFETY: sends a signal to a process of this test, and reads no memory.
            failure(answer(unsafe { libc::kill(outside.pid(), libc::SIGKILL) }.into()))
        });
        assert_eq!(error, refused_if_known(Missing::SignalScope, libc::EPERM));
        if known(Missing::SignalScope) {
            assert_eq!(outside.0.try_wait().unwrap(), None, "it was ended");
        }
    });
}

#[test]
fn abstract_sockets_outside_are_refused_and_own_ones_are_not() {
    in_own_process("outside::abstract_sockets_outside_are_refused_and_own_ones_are_not", As::Unprivileged, || {
        let stage = Stage::new();
        let address = |name: &str| {
            SocketAddr::from_abstract_name(format!("gatepost-test-{}-{name}", std::process::id())).unwrap()
        };
        let _outside = UnixListener::bind_addr(&address("outside")).unwrap();
        assert_eq!(failure(UnixStream::connect_addr(&address("outside"))), None);
        confined_by_policy(&stage, || {
            let refused = refused_if_known(Missing::AbstractSocketScope, libc::EPERM);
            assert_eq!(failure(UnixStream::connect_addr(&address("outside"))), refused);
            let _own = UnixListener::bind_addr(&address("own")).unwrap();
            assert_eq!(failure(UnixStream::connect_addr(&address("own"))), None);
        });
    });
}

/// Before the kernel that knows better, these are reached, as the documentation says.
#[test]
fn sockets_outside_are_reached_by_their_path_until_the_kernel_knows_better() {
    let name = "outside::sockets_outside_are_reached_by_their_path_until_the_kernel_knows_better";
    in_own_process(name, As::Unprivileged, || {
        let stage = Stage::new();
        let (outside, own) = (stage.outside().join("socket"), stage.plan.tmp.join("socket"));
        let _outside = UnixListener::bind(&outside).unwrap();
        confined_by_policy(&stage, || {
            let refused = refused_if_known(Missing::PathSocketScope, libc::EACCES);
            assert_eq!(failure(UnixStream::connect(&outside)), refused);
            let _own = UnixListener::bind(&own).unwrap();
            assert_eq!(failure(UnixStream::connect(&own)), None);
        });
    });
}

#[test]
fn new_namespaces_and_mounts_are_refused() {
    in_own_process("outside::new_namespaces_and_mounts_are_refused", As::Unprivileged, || {
        let stage = Stage::new();
        confined_by_policy(&stage, || {
            assert_eq!(call(libc::SYS_unshare, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), Err(libc::EPERM));
            assert_eq!(call(libc::SYS_mount, [0; 6]), Err(libc::EPERM));
            let status = Command::new("/usr/bin/unshare").args(["--user", "true"]).stderr(Stdio::null()).status();
            assert!(!status.unwrap().success());
        });
    });
}
