//! Every rule about system calls, one call and one value of a condition at a time.

use std::collections::BTreeSet;

use host::confine::DeniedCall;
use rules::confinement::{CallRule, Policy, Test, Value};

use crate::common::{As, in_own_process};
use crate::stage::{call, confined};

/// No call of the kernel fails with it, so it shows that the filter answered, whatever the user may do otherwise.
const MARK: i32 = 4000;
const NONE: u64 = 0;
/// An invalid descriptor, an unknown flag or an unknown command.
const BAD: u64 = u64::MAX;

/// Arguments with which the call does nothing, even where it is allowed.
fn harmless(name: &str) -> (i64, [u64; 6]) {
    let itself = u64::from(std::process::id());
    let (number, first): (i64, [u64; 3]) = match name {
        "process_vm_readv" => (libc::SYS_process_vm_readv, [itself, NONE, NONE]),
        "process_vm_writev" => (libc::SYS_process_vm_writev, [itself, NONE, NONE]),
        "pidfd_getfd" => (libc::SYS_pidfd_getfd, [BAD, BAD, NONE]),
        "perf_event_open" => (libc::SYS_perf_event_open, [NONE, NONE, NONE]),
        "bpf" => (libc::SYS_bpf, [BAD, NONE, NONE]),
        "userfaultfd" => (libc::SYS_userfaultfd, [BAD, NONE, NONE]),
        "io_uring_setup" => (libc::SYS_io_uring_setup, [NONE, NONE, NONE]),
        "io_uring_enter" => (libc::SYS_io_uring_enter, [BAD, NONE, NONE]),
        "io_uring_register" => (libc::SYS_io_uring_register, [BAD, BAD, NONE]),
        "add_key" => (libc::SYS_add_key, [NONE, NONE, NONE]),
        "request_key" => (libc::SYS_request_key, [NONE, NONE, NONE]),
        "keyctl" => (libc::SYS_keyctl, [BAD, NONE, NONE]),
        "mount" => (libc::SYS_mount, [NONE, NONE, NONE]),
        "umount2" => (libc::SYS_umount2, [NONE, NONE, NONE]),
        "pivot_root" => (libc::SYS_pivot_root, [NONE, NONE, NONE]),
        "chroot" => (libc::SYS_chroot, [NONE, NONE, NONE]),
        "open_tree" => (libc::SYS_open_tree, [BAD, NONE, NONE]),
        "open_tree_attr" => (467, [BAD, NONE, NONE]),
        "move_mount" => (libc::SYS_move_mount, [BAD, NONE, BAD]),
        "fsopen" => (libc::SYS_fsopen, [NONE, BAD, NONE]),
        "fsconfig" => (libc::SYS_fsconfig, [BAD, BAD, NONE]),
        "fsmount" => (libc::SYS_fsmount, [BAD, NONE, NONE]),
        "fspick" => (libc::SYS_fspick, [BAD, NONE, BAD]),
        "mount_setattr" => (libc::SYS_mount_setattr, [BAD, NONE, BAD]),
        "swapon" => (libc::SYS_swapon, [NONE, NONE, NONE]),
        "swapoff" => (libc::SYS_swapoff, [NONE, NONE, NONE]),
        "unshare" => (libc::SYS_unshare, [NONE, NONE, NONE]),
        "setns" => (libc::SYS_setns, [BAD, NONE, NONE]),
        "clone3" => (libc::SYS_clone3, [NONE, NONE, NONE]),
        "init_module" => (libc::SYS_init_module, [NONE, NONE, NONE]),
        "finit_module" => (libc::SYS_finit_module, [BAD, NONE, BAD]),
        "delete_module" => (libc::SYS_delete_module, [NONE, NONE, NONE]),
        "kexec_load" => (libc::SYS_kexec_load, [NONE, BAD, NONE]),
        "kexec_file_load" => (libc::SYS_kexec_file_load, [BAD, BAD, NONE]),
        "reboot" => (libc::SYS_reboot, [NONE, NONE, NONE]),
        "clock_settime" => (libc::SYS_clock_settime, [NONE, NONE, NONE]),
        "clock_adjtime" => (libc::SYS_clock_adjtime, [NONE, NONE, NONE]),
        "settimeofday" => (libc::SYS_settimeofday, [NONE, NONE, NONE]),
        "adjtimex" => (libc::SYS_adjtimex, [NONE, NONE, NONE]),
        "sethostname" => (libc::SYS_sethostname, [NONE, BAD, NONE]),
        "setdomainname" => (libc::SYS_setdomainname, [NONE, BAD, NONE]),
        "acct" => (libc::SYS_acct, [1, NONE, NONE]),
        "quotactl" => (libc::SYS_quotactl, [BAD, NONE, NONE]),
        "quotactl_fd" => (libc::SYS_quotactl_fd, [BAD, BAD, NONE]),
        "syslog" => (libc::SYS_syslog, [BAD, NONE, NONE]),
        "vhangup" => (libc::SYS_vhangup, [NONE, NONE, NONE]),
        #[cfg(target_arch = "x86_64")]
        "iopl" => (libc::SYS_iopl, [NONE, NONE, NONE]),
        #[cfg(target_arch = "x86_64")]
        "ioperm" => (libc::SYS_ioperm, [NONE, NONE, NONE]),
        "fanotify_init" => (libc::SYS_fanotify_init, [BAD, NONE, NONE]),
        "open_by_handle_at" => (libc::SYS_open_by_handle_at, [BAD, NONE, NONE]),
        // A thread of a process shares its signals: without that flag the call is refused before anything is made.
        "clone" => (libc::SYS_clone, [libc::CLONE_THREAD as u64, NONE, NONE]),
        "prlimit64" => (libc::SYS_prlimit64, [NONE, u64::from(libc::RLIMIT_NOFILE), NONE]),
        "ioctl" => (libc::SYS_ioctl, [BAD, libc::FIONREAD, NONE]),
        "socket" => (libc::SYS_socket, [libc::AF_UNIX as u64, BAD, NONE]),
        other => panic!("no check for {other}: say here how it is called without harm"),
    };
    (number, [first[0], first[1], first[2], NONE, NONE, NONE])
}

/// Which values of the argument are refused, and which are not. The upper half of an argument makes no difference.
fn values_tried(test: &Test, values: &[u32]) -> (Vec<u64>, Vec<u64>) {
    let both = |values: Vec<u64>| values.iter().flat_map(|value| [*value, *value | 1 << 32]).collect();
    let own = values.iter().copied().map(u64::from).collect::<Vec<u64>>();
    match test {
        Test::HasAnyOf(_) | Test::IsAnyOf(_) => (both(own), vec![]),
        // A process, or families that are on most kernels: packet, ALG, vsock.
        Test::IsNoneOf(_) => (both(vec![17, 38, 40]), own),
    }
}

/// The attempts for one call of a rule: the arguments, and whether they are to be refused.
fn attempts(rule: &CallRule, name: &str) -> Vec<(i64, [u64; 6], bool)> {
    let (number, arguments) = harmless(name);
    let Some(condition) = &rule.when else { return vec![(number, arguments, true)] };
    let numbers: Vec<u32> = values(&condition.test).iter().map(|value| value.number().unwrap()).collect();
    let (refused, allowed) = values_tried(&condition.test, &numbers);
    let index = usize::from(condition.argument);
    let with = |value: u64| {
        let mut changed = arguments;
        // The bits of clone stand beside the one that makes it harmless.
        changed[index] = if name == "clone" { arguments[index] | value } else { value };
        changed
    };
    let mut all = vec![(number, arguments, false)];
    all.extend(refused.into_iter().map(|value| (number, with(value), true)));
    all.extend(allowed.into_iter().map(|value| (number, with(value), false)));
    all
}

fn values(test: &Test) -> &Vec<Value> {
    match test {
        Test::HasAnyOf(values) | Test::IsAnyOf(values) | Test::IsNoneOf(values) => values,
    }
}

fn marked(policy: &Policy) -> Vec<DeniedCall> {
    process::confine::denied_calls(policy).into_iter().map(|call| DeniedCall { errno: MARK, ..call }).collect()
}

/// Whether this architecture has the call.
fn exists(name: &str) -> bool {
    cfg!(target_arch = "x86_64") || !["iopl", "ioperm"].contains(&name)
}

fn each_call(policy: &Policy) -> Vec<(usize, CallRule, String)> {
    let calls = |(index, rule): (usize, &CallRule)| {
        let all = rule.calls.iter().filter(|name| exists(name));
        all.map(|name| (index, rule.clone(), name.clone())).collect::<Vec<_>>()
    };
    policy.calls.rules.iter().enumerate().flat_map(calls).collect()
}

#[test]
fn each_call_fails_with_the_error_of_its_rule() {
    in_own_process("calls::each_call_fails_with_the_error_of_its_rule", As::Unprivileged, || {
        let policy = Policy::reviewed().unwrap();
        let mut checked = BTreeSet::new();
        confined(&[], &process::confine::denied_calls(&policy), || {
            for (_, rule, name) in each_call(&policy) {
                for (number, arguments, refused) in attempts(&rule, &name) {
                    let answer = call(number, arguments);
                    if refused {
                        assert_eq!(answer, Err(rule.errno.number()), "{name} {arguments:x?}");
                        checked.insert(name.clone());
                    }
                }
            }
        });
        assert_eq!(checked.len(), each_call(&policy).len(), "a rule has no check");
    });
}

#[test]
fn the_filter_answers_where_a_rule_says_so_and_nowhere_else() {
    let name = "calls::the_filter_answers_where_a_rule_says_so_and_nowhere_else";
    in_own_process(name, As::Unprivileged, || {
        let policy = Policy::reviewed().unwrap();
        confined(&[], &marked(&policy), || {
            for (_, rule, name) in each_call(&policy) {
                for (number, arguments, refused) in attempts(&rule, &name) {
                    let answered = call(number, arguments) == Err(MARK);
                    assert_eq!(answered, refused, "{name} {arguments:x?}");
                }
            }
        });
    });
}

#[test]
fn each_call_taken_out_of_its_rule_is_answered_by_the_kernel() {
    let name = "calls::each_call_taken_out_of_its_rule_is_answered_by_the_kernel";
    in_own_process(name, As::Unprivileged, || {
        let policy = Policy::reviewed().unwrap();
        for (index, rule, name) in each_call(&policy) {
            let mut without = policy.clone();
            without.calls.rules[index].calls.retain(|other| *other != name);
            confined(&[], &marked(&without), || {
                for (number, arguments, _) in attempts(&rule, &name) {
                    assert_ne!(call(number, arguments), Err(MARK), "{name} {arguments:x?}");
                }
            });
        }
    });
}

#[test]
fn each_value_taken_out_of_its_condition_changes_the_answer() {
    let name = "calls::each_value_taken_out_of_its_condition_changes_the_answer";
    in_own_process(name, As::Unprivileged, || {
        let policy = Policy::reviewed().unwrap();
        let mut tried = 0;
        for (index, rule, name) in each_call(&policy) {
            let Some(condition) = &rule.when else { continue };
            for value in values(&condition.test) {
                let mut without = policy.clone();
                let test = &mut without.calls.rules[index].when.as_mut().unwrap().test;
                let (Test::HasAnyOf(left) | Test::IsAnyOf(left) | Test::IsNoneOf(left)) = test;
                left.retain(|other| other != value);
                if left.is_empty() {
                    // Of nothing, none is anything: the whole call is refused then, which the policy's parser forbids.
                    continue;
                }
                let changed = confined(&[], &marked(&without), || {
                    let answers = attempts(&rule, &name).into_iter();
                    answers
                        .filter(|(number, arguments, refused)| (call(*number, *arguments) == Err(MARK)) != *refused)
                        .count()
                });
                assert!(changed > 0, "{name} {value:?}");
                tried += 1;
            }
        }
        assert!(tried >= 13, "{tried}");
    });
}

#[test]
fn names_and_errors_mean_what_the_kernels_headers_say() {
    use rules::confinement::Errno;
    for (errno, number) in
        [(Errno::Eperm, libc::EPERM), (Errno::Enosys, libc::ENOSYS), (Errno::Eafnosupport, libc::EAFNOSUPPORT)]
    {
        assert_eq!(errno.number(), number);
    }
    for (name, number) in [
        ("CLONE_NEWNS", libc::CLONE_NEWNS as u64),
        ("CLONE_NEWCGROUP", libc::CLONE_NEWCGROUP as u64),
        ("CLONE_NEWUTS", libc::CLONE_NEWUTS as u64),
        ("CLONE_NEWIPC", libc::CLONE_NEWIPC as u64),
        ("CLONE_NEWUSER", libc::CLONE_NEWUSER as u64),
        ("CLONE_NEWPID", libc::CLONE_NEWPID as u64),
        ("CLONE_NEWNET", libc::CLONE_NEWNET as u64),
        ("TIOCSTI", libc::TIOCSTI),
        ("TIOCLINUX", libc::TIOCLINUX),
        ("AF_UNIX", libc::AF_UNIX as u64),
        ("AF_INET", libc::AF_INET as u64),
        ("AF_INET6", libc::AF_INET6 as u64),
        ("AF_NETLINK", libc::AF_NETLINK as u64),
    ] {
        assert_eq!(Value::Name(name.to_owned()).number().map(u64::from), Some(number), "{name}");
    }
}
