//! What a started process gets, and what becomes of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use common::{As, in_own_process, shell, stat_fields, wait_until};
use host::child::{ExitStatus, Signal};
use host::spawn::{SpawnSpec, Spawner};

const WAIT: Duration = Duration::from_secs(20);

#[test]
fn a_child_gets_exactly_what_it_is_given() {
    in_own_process("a_child_gets_exactly_what_it_is_given", As::SameUser, || {
        let spawner = Spawner::start().unwrap();
        let (mut spec, output) = shell("unused");
        spec.program = PathBuf::from("/usr/bin/env");
        spec.args = vec![];
        spec.env = vec![("ONE".into(), "a b".into()), ("TWO".into(), "".into())];
        let child = spawner.spawn(spec).unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(0)));
        assert_eq!(output.text(), "ONE=a b\nTWO=\n");

        let (mut spec, output) = shell("pwd; printf '%s|' \"$0\" \"$@\"; readlink /proc/self/fd/0");
        spec.args.extend(["name".into(), "x y".into(), "".into()]);
        spec.cwd = PathBuf::from("/usr/bin");
        let child = spawner.spawn(spec).unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(0)));
        let pwd = std::fs::canonicalize("/usr/bin").unwrap();
        assert_eq!(output.text(), format!("{}\nname|x y||/dev/null\n", pwd.display()));
    });
}

#[test]
fn descriptors_get_their_numbers_even_where_they_collide_and_no_other_leaks() {
    in_own_process("descriptors_get_their_numbers_even_where_they_collide_and_no_other_leaks", As::SameUser, || {
        let spawner = Spawner::start().unwrap();
        // Open without close-on-exec: a library that is careless.
        let careless = std::fs::File::open("/dev/zero").unwrap();
        rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).unwrap();
        // Each of three files is wanted at the number that another has here.
        let files: Vec<OwnedFd> = ["first", "second", "third"]
            .iter()
            .map(|text| host::memfile::memfile("f", text.as_bytes()).unwrap())
            .collect();
        let mut targets: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
        targets.rotate_left(1);
        let script = format!(
            "cat <&{} ; cat <&{} ; cat <&{} ; echo; ls /proc/$$/fd; exit 0",
            targets[0], targets[1], targets[2]
        );
        let (mut spec, output) = shell(&script);
        spec.fds = files.into_iter().zip(targets.clone()).collect();
        let child = spawner.spawn(spec).unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(0)));
        let text = output.text();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("firstsecondthird"));
        let mut open: Vec<i32> = lines.map(|line| line.parse().unwrap()).collect();
        open.sort_unstable();
        let mut wanted = vec![0, 1, 2];
        wanted.extend(targets);
        wanted.sort_unstable();
        assert_eq!(open, wanted);
        drop(careless);
    });
}

#[test]
fn a_child_leads_its_session_and_has_no_signal_state_of_ours() {
    in_own_process("a_child_leads_its_session_and_has_no_signal_state_of_ours", As::SameUser, || {
        // SAFETY: ignoring a signal and blocking one, in a process of this test alone.
        unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            let mut set = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGUSR1);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        let spawner = Spawner::start().unwrap();
        let (mut spec, output) = shell("unused");
        spec.program = PathBuf::from("/bin/cat");
        spec.args = vec!["/proc/self/status".into(), "/proc/self/stat".into()];
        let child = spawner.spawn(spec).unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(0)));
        let text = output.text();
        for name in ["SigBlk", "SigIgn", "SigCgt"] {
            assert!(text.contains(&format!("{name}:\t0000000000000000\n")), "{name} in {text}");
        }
        let (_, fields) = text.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = fields.split(' ').collect();
        let pid = child.pid().to_string();
        assert_eq!(fields[2..4], [pid.as_str(), pid.as_str()]);
        assert_eq!(fields[19], child.start_time_ticks().to_string());
    });
}

#[test]
fn a_failed_start_names_the_program_and_the_step_and_leaves_nothing() {
    in_own_process("a_failed_start_names_the_program_and_the_step_and_leaves_nothing", As::Unprivileged, || {
        let spawner = Spawner::start().unwrap();
        let refused = |change: &dyn Fn(&mut SpawnSpec)| {
            let (mut spec, _output) = shell("true");
            change(&mut spec);
            let error = spawner.spawn(spec).unwrap_err();
            (error.kind(), error.to_string())
        };
        let (kind, text) = refused(&|spec| spec.program = PathBuf::from("/nonexistent/program"));
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(text.starts_with("cannot start /nonexistent/program: executing it: "), "{text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let (kind, text) = refused(&|spec| spec.program = file.path().to_path_buf());
        assert_eq!(kind, ErrorKind::PermissionDenied, "{text}");
        let (kind, text) = refused(&|spec| spec.cwd = PathBuf::from("/nonexistent"));
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(text.contains("/bin/sh: entering its directory: "), "{text}");
        let changes: [&dyn Fn(&mut SpawnSpec); 6] = [
            &|spec| spec.program = PathBuf::from("sh"),
            &|spec| spec.args.push("a\0b".into()),
            &|spec| spec.env.push(("A=B".into(), "c".into())),
            &|spec| spec.fds = vec![(null(), 2)],
            &|spec| spec.fds = vec![(null(), 256)],
            &|spec| spec.fds = vec![(null(), 7), (null(), 7)],
        ];
        for change in changes {
            let (kind, text) = refused(change);
            assert_eq!(kind, ErrorKind::InvalidInput, "{text}");
        }
        // Whatever numbers are wanted, the report of a failure does not land in one of them.
        for first in 3..40 {
            let (kind, text) = refused(&|spec| {
                spec.program = PathBuf::from("/nonexistent/program");
                spec.fds = (first..first + 5).map(|target| (null(), target)).collect();
            });
            assert_eq!(kind, ErrorKind::NotFound, "{text}");
        }
        assert_eq!(host::tree::descendants_of(std::process::id()).unwrap(), []);
        assert_eq!(std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id())).unwrap(), "");
    });
}

fn null() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

#[test]
fn no_exit_status_is_lost() {
    in_own_process("no_exit_status_is_lost", As::SameUser, || {
        let spawner = Spawner::start().unwrap();
        let waiting: Vec<_> = (0..4)
            .map(|worker| {
                let spawner = spawner.clone();
                std::thread::spawn(move || {
                    for code in (worker * 16)..(worker * 16 + 16) {
                        let (spec, _output) = shell(&format!("exit {code}"));
                        let child = spawner.spawn(spec).unwrap();
                        // An orphan hunt beside it takes nothing that is held.
                        host::reap::reap_orphans(&[]).unwrap();
                        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(code)));
                        assert_eq!(child.try_wait().unwrap(), Some(ExitStatus::Code(code)));
                    }
                })
            })
            .collect();
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn statuses_are_seen_although_the_parent_ignored_them() {
    in_own_process("statuses_are_seen_although_the_parent_ignored_them", As::SameUser, || {
        // SAFETY: what a process may inherit, in a process of this test alone.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let spawner = Spawner::start().unwrap();
        let (spec, _output) = shell("exit 5");
        assert_eq!(spawner.spawn(spec).unwrap().wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(5)));
    });
}

#[test]
fn waiting_is_bounded_and_signals_reach_the_process_or_its_group() {
    in_own_process("waiting_is_bounded_and_signals_reach_the_process_or_its_group", As::Unprivileged, || {
        let spawner = Spawner::start().unwrap();
        let (spec, _output) = shell("exec sleep 60");
        let child = spawner.spawn(spec).unwrap();
        assert_eq!(child.wait_exit(Duration::from_millis(30)).unwrap(), None);
        assert_eq!(child.try_wait().unwrap(), None);
        child.signal(Signal::Terminate).unwrap();
        assert!(child.has_ended(WAIT).unwrap());
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Signal(libc::SIGTERM)));
        assert_eq!(child.signal(Signal::Kill).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(child.signal_group(Signal::Kill).unwrap_err().kind(), ErrorKind::NotFound);

        let (spec, output) = shell("sleep 60 & echo $!; trap '' TERM; wait; wait");
        let child = spawner.spawn(spec).unwrap();
        let other: u32 = output.wait_for(|text| text.ends_with('\n')).trim().parse().unwrap();
        assert_eq!(stat_fields(other).unwrap()[2], child.pid().to_string());
        child.signal_group(Signal::Kill).unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Signal(libc::SIGKILL)));
        wait_until("the end of the group", || (!common::runs(other)).then_some(()));

        // A group outlives its leader, whose number nobody keeps once it was reaped.
        let (spec, output) = shell("sleep 60 & echo $!");
        let child = spawner.spawn(spec).unwrap();
        let other: i32 = output.wait_for(|text| text.ends_with('\n')).trim().parse().unwrap();
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Code(0)));
        assert_eq!(child.signal_group(Signal::Kill).unwrap_err().kind(), ErrorKind::NotFound);
        let other = rustix::process::Pid::from_raw(other).unwrap();
        rustix::process::kill_process(other, rustix::process::Signal::KILL).unwrap();
    });
}

#[test]
fn children_die_with_the_spawner() {
    in_own_process("children_die_with_the_spawner", As::SameUser, || {
        let spawner = Spawner::start().unwrap();
        let (spec, _output) = shell("exec sleep 60");
        let child = spawner.spawn(spec).unwrap();
        let clone = spawner.clone();
        drop(spawner);
        assert!(!child.has_ended(Duration::from_millis(50)).unwrap());
        drop(clone);
        assert_eq!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Signal(libc::SIGKILL)));
    });
}

#[test]
fn children_die_with_a_killed_daemon() {
    if common::is_inner() {
        let spawner = Spawner::start().unwrap();
        let (spec, output) = shell("exec sleep 60");
        let child = spawner.spawn(spec).unwrap();
        // A killed process removes nothing.
        drop(output);
        println!("\nchild {}", child.pid());
        std::io::stdout().flush().unwrap();
        // Until the outer process kills this one.
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let mut daemon = common::inner_command("children_die_with_a_killed_daemon", As::Unprivileged).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(daemon.stdout.take().unwrap()));
    let child: u32 = lines.find_map(|line| line.unwrap().strip_prefix("child ")?.parse().ok()).unwrap();
    assert!(common::runs(child));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    wait_until("the end of the child", || (!common::runs(child)).then_some(()));
}

/// A daemon that is begun by a command sent into a container: its own group has no number there.
#[test]
fn a_group_is_signalled_where_our_own_group_cannot_be_seen() {
    const NAME: &str = "a_group_is_signalled_where_our_own_group_cannot_be_seen";
    const INSIDE: &str = "HOST_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        // SAFETY: changes nothing.
        assert_eq!(unsafe { libc::getpgrp() }, 0, "the group is visible, so nothing is shown");
        let (spec, _output) = shell("sleep 60");
        let child = Spawner::start().unwrap().spawn(spec).unwrap();
        child.signal_group(Signal::Kill).unwrap();
        assert!(matches!(child.wait_exit(WAIT).unwrap(), Some(ExitStatus::Signal(_))));
        println!("the signal arrived");
        return;
    }
    let mut namespaced = std::process::Command::new("unshare");
    if !common::is_root() {
        namespaced.arg("--map-root-user");
    }
    namespaced.args(["--pid", "--fork", "--mount-proc"]).arg(std::env::current_exe().unwrap());
    namespaced.args(["--exact", NAME, "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    let output = namespaced.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("the signal arrived"), "{output:?}");
}
