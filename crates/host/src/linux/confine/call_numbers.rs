//! The numbers of the system calls that a policy may name.

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// A call of the architecture that this was built for.
    Is(i64),
    /// A call that only other architectures have.
    OfAnotherArchitecture,
    /// No call that this table knows.
    Unknown,
}

macro_rules! numbers {
    ($($constant:ident)*) => { &[$((stringify!($constant), libc::$constant)),*] };
}

/// Those of every architecture.
const CALLS: &[(&str, libc::c_long)] = numbers![
    SYS_acct SYS_add_key SYS_adjtimex SYS_bpf SYS_chroot SYS_clock_adjtime SYS_clock_settime SYS_clone SYS_clone3
    SYS_delete_module SYS_fanotify_init SYS_finit_module SYS_fsconfig SYS_fsmount SYS_fsopen SYS_fspick SYS_init_module
    SYS_io_uring_enter SYS_io_uring_register SYS_io_uring_setup SYS_ioctl SYS_kexec_file_load SYS_kexec_load SYS_keyctl
    SYS_mount SYS_mount_setattr SYS_move_mount SYS_open_by_handle_at SYS_open_tree SYS_perf_event_open SYS_pidfd_getfd
    SYS_pivot_root SYS_prlimit64 SYS_process_vm_readv SYS_process_vm_writev SYS_quotactl SYS_quotactl_fd SYS_reboot
    SYS_request_key SYS_setdomainname SYS_sethostname SYS_setns SYS_settimeofday SYS_socket SYS_swapoff SYS_swapon
    SYS_syslog SYS_umount2 SYS_unshare SYS_userfaultfd SYS_vhangup
];

/// Newer than the list of the C library's crate; the same number everywhere, as all new calls.
const NEW_CALLS: &[(&str, libc::c_long)] = &[("SYS_open_tree_attr", 467)];

/// Those of x86-64 only.
#[cfg(target_arch = "x86_64")]
const OWN_CALLS: &[(&str, libc::c_long)] = numbers![SYS_ioperm SYS_iopl];
#[cfg(not(target_arch = "x86_64"))]
const OWN_CALLS: &[(&str, libc::c_long)] = &[];
const CALLS_OF_SOME: &[&str] = &["ioperm", "iopl"];

pub(super) fn number_of(name: &str) -> Number {
    let known = [CALLS, NEW_CALLS, OWN_CALLS].into_iter().flatten();
    let mut found = known.filter(|(constant, _)| constant.strip_prefix("SYS_") == Some(name));
    match found.next() {
        Some((_, number)) => Number::Is(*number),
        None if CALLS_OF_SOME.contains(&name) => Number::OfAnotherArchitecture,
        None => Number::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_others_are_unknown() {
        assert_eq!(number_of("mount"), Number::Is(libc::SYS_mount));
        assert_eq!(number_of("open_tree_attr"), Number::Is(467));
        for name in ["", "moun", "SYS_mount", "read", "Mount"] {
            assert_eq!(number_of(name), Number::Unknown, "{name}");
        }
        let of_x86 = number_of("iopl");
        assert_eq!(of_x86 == Number::OfAnotherArchitecture, !cfg!(target_arch = "x86_64"));
        assert_ne!(of_x86, Number::Unknown);
    }
}
