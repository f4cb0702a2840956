//! A domain of signals: what stays in it, what one signal to all of it reaches, and when that signal is refused.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Child, Command, Stdio};

use common::{As, in_own_process, inner_command, is_root, runs, wait_until};
use host::guard::{Outsider, Reach, enter_signal_domain, kill_domain};

/// Set for a process whose parent is of the same user, and outside the domain that it will enter.
const WITHIN: &str = "HOST_TEST_WITHIN";
/// What the one within could not end itself.
const OUTSIDE: &str = "outside: ";
const REACHED: &str = "everything of the domain was reached";

/// A bystander, then a process that enters a domain, does `step` there, and says that it is through.
fn beside_a_bystander(test: &'static str, step: fn()) {
    if std::env::var_os(WITHIN).is_some() {
        step();
        println!("{REACHED}");
        return;
    }
    let mut bystander = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let mut within = inner_command(test, As::SameUser);
    within.env(WITHIN, bystander.id().to_string());
    let output = within.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(REACHED), "{said}");
    assert_eq!(bystander.try_wait().unwrap(), None, "the bystander was ended");
    for pid in said.lines().find_map(|line| line.split_once(OUTSIDE)).map_or("", |(_, pids)| pids).split(' ') {
        if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

fn bystander() -> u32 {
    std::env::var(WITHIN).unwrap().parse().unwrap()
}

/// A shell with one child that left its session and one that left its parent too; the numbers of all.
fn tree() -> (Child, Vec<u32>) {
    const SCRIPT: &str =
        "setsid nohup sleep 60 & echo $!; (setsid sh -c 'echo $$; exec sleep 60' &); echo $$; exec sleep 60";
    let mut shell =
        Command::new("/bin/sh").args(["-c", SCRIPT]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines().take(3);
    (shell, lines.map(|line| line.unwrap().parse().unwrap()).collect())
}

fn reach_all_of_it() {
    let parent = Outsider::parent().unwrap();
    assert_eq!(parent.reach(), Reach::Open);
    let (mut outside, of_outside) = tree();
    enter_signal_domain(false).unwrap();
    assert_eq!(parent.reach(), Reach::Refused);
    let (mut shell, pids) = tree();
    assert!(kill_domain(&parent).unwrap());
    wait_until("the domain to end", || pids.iter().all(|pid| !runs(*pid)).then_some(()));
    shell.wait().unwrap();
    // What was started before stands outside, whoever started it; so does the parent.
    assert!(of_outside.iter().all(|pid| runs(*pid)) && runs(bystander()));
    assert!(outside.kill().is_err(), "a signal left the domain");
    println!("{OUTSIDE}{}", of_outside.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
}

#[test]
fn one_signal_reaches_all_of_the_domain_and_nothing_else() {
    const NAME: &str = "one_signal_reaches_all_of_the_domain_and_nothing_else";
    if std::env::var_os(WITHIN).is_some() {
        return beside_a_bystander(NAME, reach_all_of_it);
    }
    in_own_process(NAME, As::Unprivileged, || beside_a_bystander(NAME, reach_all_of_it));
}

/// Nothing was entered, so the signal would go to everything of the user's.
fn refuse_without_a_domain() {
    let parent = Outsider::parent().unwrap();
    assert_eq!(parent.reach(), Reach::Open);
    assert_eq!(kill_domain(&parent).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(runs(bystander()));
}

#[test]
fn without_a_domain_nothing_is_signalled() {
    const NAME: &str = "without_a_domain_nothing_is_signalled";
    if std::env::var_os(WITHIN).is_some() {
        return beside_a_bystander(NAME, refuse_without_a_domain);
    }
    in_own_process(NAME, As::Unprivileged, || beside_a_bystander(NAME, refuse_without_a_domain));
}

const NOT_ROOT: u32 = 65_534;

/// Within a domain, so that only the refusal is tried, and nothing outside is at stake.
fn refuse_root() {
    let parent = Outsider::parent().unwrap();
    enter_signal_domain(false).unwrap();
    assert_eq!(parent.reach(), Reach::Refused);
    let (mut shell, pids) = tree();
    if is_root() {
        // Root by one of its two user ids is root too; the third lets it be so by the other next.
        for (real, effective) in [(0, NOT_ROOT), (NOT_ROOT, 0), (0, 0)] {
            // SAFETY: the whole process changes its user ids; it has no other thread that relies on them.
            assert_eq!(unsafe { libc::setresuid(real, effective, 0) }, 0);
            let refused = kill_domain(&parent).unwrap_err();
            assert_eq!(refused.to_string(), "root never signals everything", "{real} {effective}");
            assert!(pids.iter().all(|pid| runs(*pid)), "root signalled everything");
        }
        for pid in &pids {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    } else {
        assert!(kill_domain(&parent).unwrap());
    }
    shell.wait().unwrap();
}

#[test]
fn root_is_refused_and_anyone_else_is_not() {
    const NAME: &str = "root_is_refused_and_anyone_else_is_not";
    if std::env::var_os(WITHIN).is_some() {
        return beside_a_bystander(NAME, refuse_root);
    }
    in_own_process(NAME, As::SameUser, || beside_a_bystander(NAME, refuse_root));
}

/// A hard link between directories, below the domain and one that handles files and grants everything.
fn link(grants_links: Option<bool>) -> std::io::Result<()> {
    use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
    // A domain is the thread's.
    let linking = std::thread::spawn(move || {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("a")).unwrap();
        std::fs::create_dir(path("b")).unwrap();
        std::fs::write(path("a/file"), "text").unwrap();
        if let Some(grants_links) = grants_links {
            enter_signal_domain(grants_links).unwrap();
        }
        let everything = AccessFs::from_all(ABI::V3);
        let ruleset = Ruleset::default().handle_access(everything).unwrap().create().unwrap();
        let everywhere = PathBeneath::new(PathFd::new("/").unwrap(), everything);
        ruleset.add_rule(everywhere).unwrap().restrict_self().unwrap();
        std::fs::hard_link(path("a/file"), path("b/file"))
    });
    linking.join().unwrap()
}

#[test]
fn links_between_directories_need_a_domain_that_grants_them() {
    in_own_process("links_between_directories_need_a_domain_that_grants_them", As::Unprivileged, || {
        link(None).unwrap();
        link(Some(true)).unwrap();
        assert_eq!(link(Some(false)).unwrap_err().kind(), ErrorKind::CrossesDevices);
    });
}
