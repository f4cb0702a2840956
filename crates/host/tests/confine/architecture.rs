//! Calls under the numbers of another architecture, where no rule would match them.

#![cfg(target_arch = "x86_64")]

use crate::common::{As, in_own_process};
use crate::stage::{call, confined};

/// `__X32_SYSCALL_BIT`.
const X32_BIT: i64 = 0x4000_0000;

/// `getpid` as a program of 32 bits calls it.
fn call_of_32_bits() -> i32 {
    let answer: i32;
    // SAFETY: the call reads and writes no memory, and changes no register but the one of the answer.
    unsafe { std::arch::asm!("int 0x80", inlateout("eax") 20 => answer) };
    i32::from(answer < 0)
}

/// Forks, runs `body` in the child, and returns how it ended as `waitpid(2)` says. `body` returns its exit code.
fn in_fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child makes system calls only, and ends without unwinding.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let code = body();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made, and writes to a variable of ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn ended_by_the_filter(status: i32) -> bool {
    libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS
}

#[test]
fn calls_of_other_architectures_end_the_process() {
    in_own_process("architecture::calls_of_other_architectures_end_the_process", As::Unprivileged, || {
        let x32 = || in_fork(|| i32::from(call(X32_BIT | libc::SYS_getpid, [0; 6]).is_err()));
        let old = || in_fork(call_of_32_bits);
        assert!(!ended_by_the_filter(x32()));
        assert!(!ended_by_the_filter(old()));
        confined(&[], &process::confine::denied_calls(&rules::confinement::Policy::reviewed().unwrap()), || {
            assert!(ended_by_the_filter(x32()), "x32");
            assert!(ended_by_the_filter(old()), "32 bits");
            // No call at all is an ordinary question.
            assert_eq!(call(-1, [0; 6]), Err(libc::ENOSYS));
            assert_eq!(in_fork(|| i32::from(call(libc::SYS_getpid, [0; 6]).is_err())), 0);
        });
    });
}
