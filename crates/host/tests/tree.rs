//! Ending what a child left behind, and nothing else.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{As, Output, in_own_process, runs, shell, wait_until};
use host::child::{ChildProcess, ExitStatus};
use host::hygiene::become_subreaper;
use host::spawn::Spawner;
use host::tree::{EndReport, descendants_of, end_descendants, end_tree};

const BUDGET: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_millis(200);

/// A server that starts what servers' shells start: a plain child, one in a session of its own, one that ignores every
/// polite signal, one whose parent is gone at once, and one that was stopped. Prints each number.
const SERVER: &str = "
    sleep 60 & echo $!
    setsid sleep 60 & echo $!
    (trap '' TERM HUP INT; exec sleep 60) & echo $!
    (setsid sh -c 'echo $$; exec sleep 60' &)
    sleep 60 & kill -STOP $!; echo $!
    wait; wait; exec sleep 60";

fn start_server(spawner: &Spawner) -> (ChildProcess, Vec<u32>) {
    let (spec, output) = shell(SERVER);
    let server = spawner.spawn(spec).unwrap();
    let pids = numbers(&output, 5);
    (server, pids)
}

fn numbers(output: &Output, count: usize) -> Vec<u32> {
    let text = output.wait_for(|text| text.ends_with('\n') && text.lines().count() == count);
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn assert_gone(pids: &[u32]) {
    for pid in pids {
        assert!(common::stat_fields(*pid).is_none(), "process {pid} is still there");
    }
}

fn end_one_of_two_servers() {
    become_subreaper().unwrap();
    let spawner = Spawner::start().unwrap();
    let (first, of_first) = start_server(&spawner);
    let (second, of_second) = start_server(&spawner);
    // An orphan of a living server stays below it, so that it can be told from the other's.
    wait_until("the orphan to fall to its server", || {
        let listed = descendants_of(first.pid()).unwrap();
        of_first.iter().all(|pid| listed.iter().any(|process| process.pid == *pid)).then_some(())
    });
    let report = end_tree(&first, GRACE, &[], BUDGET).unwrap();
    assert_eq!(report.left, [0; 0]);
    assert!(report.killed >= 2, "{report:?}");
    assert_gone(&of_first);
    assert_gone(&[first.pid()]);
    for pid in &of_second {
        assert!(runs(*pid), "process {pid} of the other server was killed");
    }
    assert!(first.try_wait().unwrap().is_some());
    assert_eq!(second.try_wait().unwrap(), None);
    let report = end_tree(&second, GRACE, &[], BUDGET).unwrap();
    assert_eq!(report.left, [0; 0]);
    assert_gone(&of_second);
    assert_eq!(descendants_of(std::process::id()).unwrap(), []);
    // Ended already: nothing to do, and no error.
    assert_eq!(end_tree(&second, GRACE, &[], BUDGET).unwrap(), EndReport::default());
}

#[test]
fn a_tree_ends_whole_and_the_one_beside_it_lives() {
    in_own_process("a_tree_ends_whole_and_the_one_beside_it_lives", As::SameUser, end_one_of_two_servers);
}

#[test]
fn a_tree_ends_whole_for_an_unprivileged_user() {
    in_own_process("a_tree_ends_whole_for_an_unprivileged_user", As::Unprivileged, end_one_of_two_servers);
}

#[test]
fn what_a_crashed_server_left_is_ended() {
    in_own_process("what_a_crashed_server_left_is_ended", As::Unprivileged, || {
        become_subreaper().unwrap();
        let spawner = Spawner::start().unwrap();
        let (server, left) = start_server(&spawner);
        server.signal(host::child::Signal::Kill).unwrap();
        assert_eq!(server.wait_exit(BUDGET).unwrap(), Some(ExitStatus::Signal(libc::SIGKILL)));
        assert!(left.iter().all(|pid| runs(*pid)));
        let report = end_descendants(&[], BUDGET).unwrap();
        assert_eq!(report, EndReport { killed: 5, left: vec![] });
        assert_gone(&left);
    });
}

#[test]
fn without_any_time_it_still_kills_and_says_what_is_left() {
    in_own_process("without_any_time_it_still_kills_and_says_what_is_left", As::Unprivileged, || {
        become_subreaper().unwrap();
        let spawner = Spawner::start().unwrap();
        let (spec, output) = shell("setsid sleep 60 & echo $!");
        let server = spawner.spawn(spec).unwrap();
        let pid = numbers(&output, 1)[0];
        server.wait_exit(BUDGET).unwrap();
        let report = end_descendants(&[], Duration::ZERO).unwrap();
        // It may have ended before the look at whether it has.
        assert!(report == EndReport { killed: 0, left: vec![pid] } || report == EndReport { killed: 1, left: vec![] });
        wait_until("the end of what was killed", || (!runs(pid)).then_some(()));
        assert_eq!(end_descendants(&[], BUDGET).unwrap().left, [0; 0]);
        assert_gone(&[pid]);
    });
}

#[test]
fn a_polite_server_is_not_killed() {
    in_own_process("a_polite_server_is_not_killed", As::SameUser, || {
        become_subreaper().unwrap();
        let spawner = Spawner::start().unwrap();
        let (spec, output) = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
        let server = spawner.spawn(spec).unwrap();
        output.wait_for(|text| text == "ready\n");
        let report = end_tree(&server, Duration::from_secs(10), &[], BUDGET).unwrap();
        assert_eq!(report, EndReport::default());
        assert_eq!(server.try_wait().unwrap(), Some(ExitStatus::Code(7)));
    });
}

#[test]
fn children_of_other_makers_and_held_children_are_spared() {
    in_own_process("children_of_other_makers_and_held_children_are_spared", As::SameUser, || {
        become_subreaper().unwrap();
        let spawner = Spawner::start().unwrap();
        let (spec, _output) = shell("exec sleep 60");
        let held = spawner.spawn(spec).unwrap();
        let mut exempt = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut ended = std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let known = [exempt.id(), ended.id()];
        wait_until("the end of a child", || (!runs(ended.id())).then_some(()));
        // A child that is given up counts as an orphan.
        let (spec, _output) = shell("exec sleep 60");
        let given_up = spawner.spawn(spec).unwrap();
        let given_up_pid = given_up.pid();
        drop(given_up);

        let report = end_descendants(&known, BUDGET).unwrap();
        assert_eq!(report, EndReport { killed: 1, left: vec![] });
        assert_gone(&[given_up_pid]);
        assert_eq!(ended.wait().unwrap().code(), Some(3), "a status that someone waits for was taken");
        assert!(runs(exempt.id()) && runs(held.pid()));
        exempt.kill().unwrap();
        exempt.wait().unwrap();
        end_tree(&held, GRACE, &[], BUDGET).unwrap();
    });
}

#[test]
fn without_being_the_subreaper_nothing_is_claimed() {
    in_own_process("without_being_the_subreaper_nothing_is_claimed", As::SameUser, || {
        let error = end_descendants(&[], BUDGET).unwrap_err();
        assert!(error.to_string().contains("become_subreaper"), "{error}");
        become_subreaper().unwrap();
        assert_eq!(end_descendants(&[], BUDGET).unwrap(), EndReport::default());
    });
}

/// Processes that keep forking and ending, so that the numbers never stay the same. Says when there are many, and ends
/// by itself after 30 seconds.
fn fork_bomb(kind: &str) -> ! {
    let (start, first) = (Instant::now(), std::process::id());
    let (mut forks, mut is_told) = (0, false);
    // SAFETY: ended children are to vanish at once, or they would use up the limit.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    while start.elapsed() < Duration::from_secs(30) {
        // SAFETY: this test process has one purpose; the children only make system calls.
        let pid = unsafe { libc::fork() };
        forks += 1;
        let are_many = if kind == "hopping" { forks == 20 } else { pid < 0 };
        if are_many && !is_told && std::process::id() == first {
            println!("{MANY}");
            is_told = true;
        }
        let make_room = match kind {
            // Every parent ends once it has a child: one process that is always another.
            "hopping" => pid > 0,
            // Everyone forks. At the limit some make room, so that new ones can come.
            _ => pid < 0 && start.elapsed().subsec_nanos().is_multiple_of(16),
        };
        if pid == 0 {
            // SAFETY: as above.
            unsafe { libc::setsid() };
        } else if make_room && std::process::id() != first {
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        } else if kind == "hopping" && std::process::id() == first {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // SAFETY: as above.
    unsafe { libc::_exit(0) }
}

const BOMB: &str = "HOST_TEST_BOMB";
const MANY: &str = "there are many now";

fn end_a_fork_bomb(test: &str, kind: &str) {
    become_subreaper().unwrap();
    let spawner = Spawner::start().unwrap();
    let (mut spec, output) = shell("unused");
    spec.program = std::env::current_exe().unwrap();
    spec.args = ["--exact", test, "--nocapture", "--test-threads=1"].map(Into::into).to_vec();
    spec.env = vec![(BOMB.into(), kind.into())];
    let server = spawner.spawn(spec).unwrap();
    output.wait_for(|text| text.contains(MANY));
    // A tree that has grown for a while is deep, and no generation is the bigger part of it.
    std::thread::sleep(Duration::from_secs(1));
    let report = end_tree(&server, Duration::ZERO, &[], BUDGET).unwrap();
    assert_eq!(report.left, [0; 0]);
    assert!(report.killed > 0, "{report:?}");
    for _ in 0..50 {
        assert_eq!(descendants_of(std::process::id()).unwrap(), []);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn explode_if_told() {
    if let Ok(kind) = std::env::var(BOMB) {
        let limit = rustix::process::Rlimit { current: Some(300), maximum: Some(300) };
        rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).unwrap();
        fork_bomb(&kind);
    }
}

#[test]
fn a_fork_bomb_is_ended() {
    explode_if_told();
    in_own_process("a_fork_bomb_is_ended", As::Unprivileged, || end_a_fork_bomb("a_fork_bomb_is_ended", "growing"));
}

#[test]
fn processes_that_are_always_others_are_ended() {
    const NAME: &str = "processes_that_are_always_others_are_ended";
    explode_if_told();
    in_own_process(NAME, As::Unprivileged, || end_a_fork_bomb(NAME, "hopping"));
}
