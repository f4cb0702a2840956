//! Who is at the socket: descendants are always found, others never taken for them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
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
const ROUNDS: usize = 3000;
/// Processes of one side at a time.
const AT_ONCE: usize = 16;

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

/// What a swarm does, told by the environment: `D` (descendants) or `O` (outsiders), a colon, and the socket.
fn swarm_if_told() -> bool {
    let Some(told) = std::env::var_os(SOCKET) else { return false };
    let told = told.into_string().unwrap();
    let (label, path) = told.split_once(':').unwrap();
    swarm(label.as_bytes()[0], Path::new(path));
    true
}

const SWARM_ARGS: [&str; 4] = ["--exact", "a_swarm", "--nocapture", "--test-threads=1"];

/// Only does something in the processes that the tests below start.
#[test]
fn a_swarm() {
    if swarm_if_told() {
        return;
    }
    // Run by itself: connecting where nobody listens fails, which is what a client must notice.
    assert!(UnixStream::connect("/nonexistent/socket").is_err());
}

/// Starts processes that connect: directly, below a parent that is gone, in a session of their own. Half of them hold on
/// until they are answered; the others, in small letters, end at once, so that they are ending while they are looked at.
fn swarm(label: u8, path: &Path) {
    let address = Address::of(path);
    for round in 0..ROUNDS {
        let (holds, is_orphan) = (round % 2 == 0, round / 2 % 2 == 0);
        let says = if holds { label } else { label.to_ascii_lowercase() };
        let client = || address.connect_and_say(says, holds);
        fork(|| {
            if is_orphan {
                fork(|| {
                    // SAFETY: no memory is involved.
                    unsafe { libc::setsid() };
                    client();
                });
            } else {
                client();
            }
        });
        // Orphans fall to the server's shell, or to process 1.
        reap(AT_ONCE);
    }
    reap(0);
}

/// Reaps ended children until at most this many are left.
fn reap(left: usize) {
    let children = || {
        let own = format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero());
        std::fs::read_to_string(own).unwrap().split_whitespace().count()
    };
    while children() > left {
        // SAFETY: a null status is not written.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::__WNOTHREAD) };
    }
}

/// Runs `body` in a child, which ends afterwards. It must only make system calls: other threads' locks stay as they are.
fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child makes system calls alone, and ends without running anything else.
    match unsafe { libc::fork() } {
        0 => {
            body();
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            pid
        }
    }
}

/// A socket's address, made ahead of any fork.
struct Address(libc::sockaddr_un);

impl Address {
    fn of(path: &Path) -> Self {
        // SAFETY: all zeroes is a value of it.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = *from as libc::c_char;
        }
        Self(address)
    }

    fn connect(&self, socket: i32) {
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: the address is valid for reading, and that long.
        unsafe { libc::connect(socket, std::ptr::from_ref(&self.0).cast(), length) };
    }

    fn connect_and_say(&self, says: u8, holds: bool) {
        let mut answer = 0_u8;
        // SAFETY: both buffers are one byte of this frame.
        unsafe {
            let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            self.connect(socket);
            libc::write(socket, std::ptr::from_ref(&says).cast(), 1);
            if holds {
                libc::read(socket, std::ptr::from_mut(&mut answer).cast(), 1);
            }
        }
    }
}

#[test]
fn racing_descendants_are_found_and_outsiders_are_not_refused() {
    const NAME: &str = "racing_descendants_are_found_and_outsiders_are_not_refused";
    if common::is_inner() {
        daemon();
        return;
    }
    // The outer process starts the outsiders; the inner one is the daemon with its server.
    let mut daemon = inner_command(NAME, As::Unprivileged).spawn().unwrap();
    let mut lines = BufRead::lines(BufReader::new(daemon.stdout.take().unwrap()));
    let path = lines.find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix("socket ")?))).unwrap();
    let mut outsiders = Command::new(std::env::current_exe().unwrap());
    outsiders.args(SWARM_ARGS).env(SOCKET, format!("O:{}", path.display())).stdout(Stdio::null());
    if common::is_root() {
        std::os::unix::process::CommandExt::uid(&mut outsiders, common::UNUSED_UID);
    }
    assert!(outsiders.status().unwrap().success());
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
    let (mut spec, output) = shell("\"$0\" \"$@\"; sleep 60");
    spec.env.push((SOCKET.into(), format!("D:{}", socket.path().display()).into()));
    spec.args.push(std::env::current_exe().unwrap().into());
    spec.args.extend(SWARM_ARGS.map(Into::into));
    let server = spawner.spawn(spec).unwrap();
    println!("\nsocket {}", socket.path().display());
    std::io::stdout().flush().unwrap();
    let mut counts = [0_usize; 2];
    while counts[0] < ROUNDS || counts[1] < ROUNDS {
        let label = judge_next(socket.listener(), server.pid(), &output);
        counts[usize::from(label.eq_ignore_ascii_case(&b'O'))] += 1;
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
        // Ending meanwhile: it may not be told any more, but is never taken for the other.
        b'd' => assert!(!matches!(verdict, Ok(Descent::NotDescendant)), "a descendant: {verdict:?}"),
        b'o' => assert!(!matches!(verdict, Ok(Descent::Descendant(_))), "an outsider: {verdict:?}"),
        other => panic!("a client says {other}"),
    }
    // Those that do not wait may be gone.
    stream.write_all(b".").ok();
    label[0]
}

/// Rounds in which a number is used again.
const REUSES: usize = 50;

/// In a process namespace whose next number can be chosen, an outsider is given the number of a descendant that connected
/// and ended. What only looks at the number is fooled each time.
#[test]
fn a_number_that_is_used_again_fools_nobody() {
    const NAME: &str = "a_number_that_is_used_again_fools_nobody";
    if std::env::var_os(SOCKET).is_some() {
        for round in 0..REUSES {
            reuse(round);
        }
        println!("all reused");
        return;
    }
    let mut namespaced = Command::new("unshare");
    if !common::is_root() {
        namespaced.arg("--map-root-user");
    }
    namespaced.args(["--pid", "--fork", "--mount-proc"]).arg(std::env::current_exe().unwrap());
    namespaced.args(["--exact", NAME, "--nocapture", "--test-threads=1"]).env(SOCKET, "reuse").stdin(Stdio::null());
    let output = namespaced.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("all reused"), "{output:?}");
}

fn reuse(round: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let address = Address::of(&path);
    let (mut told, tell) = std::io::pipe().unwrap();
    // The descendant connects a socket that its parent, the server, holds on to.
    let server = fork(|| {
        // SAFETY: no memory but a number of this frame is involved.
        unsafe {
            let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            let client = fork(|| address.connect(socket));
            libc::waitpid(client, std::ptr::null_mut(), 0);
            libc::write(tell.as_raw_fd(), std::ptr::from_ref(&client).cast(), size_of::<i32>());
            libc::pause();
        }
    });
    let mut client = [0; size_of::<i32>()];
    told.read_exact(&mut client).unwrap();
    let client = i32::from_ne_bytes(client);
    std::fs::write("/proc/sys/kernel/ns_last_pid", (client - 1).to_string()).unwrap();
    // SAFETY: no memory is involved.
    let outsider = fork(|| unsafe {
        libc::pause();
    });
    assert_eq!(outsider, client, "round {round}: the number was not used again");

    let (accepted, _) = listener.accept().unwrap();
    let named = rustix::net::sockopt::socket_peercred(&accepted).unwrap().pid.as_raw_nonzero().get();
    assert_eq!(named, outsider);
    let mut at = named;
    while at != server && at > 1 {
        at = common::stat_fields(at.unsigned_abs()).unwrap()[1].parse().unwrap();
    }
    assert_eq!(at, 1, "round {round}: a walk from the number alone is not fooled, so this shows nothing");
    let verdict = peer_descends_from(&accepted, &[server.unsigned_abs()]);
    assert!(matches!(verdict, Err(_) | Ok(Descent::Unknown)), "round {round}: {verdict:?}");
    for pid in [outsider, server] {
        // SAFETY: both are children that were not reaped yet.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}
