//! The filters of system calls. A call that no rule names is allowed.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::call_numbers::{Number, number_of};
use crate::confine::{ArgumentIs, Comparison, ConfineError, DeniedCall};

const STEP: &str = "the filter of system calls";

/// One filter for each error, since a filter has one answer, and one against the calls of x32. Each ends a process that
/// calls the kernel as another architecture: numbers mean other calls there.
pub(super) fn compile(calls: &[DeniedCall]) -> Result<Vec<BpfProgram>, ConfineError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| ConfineError::Unsupported("the filter of system calls"))?;
    let mut by_errno: BTreeMap<i32, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
    for call in calls {
        match number_of(&call.name) {
            Number::Is(number) => {
                let rules = by_errno.entry(call.errno).or_default();
                if rules.insert(number, alternatives(call).map_err(ConfineError::step(STEP))?).is_some() {
                    return Err(ConfineError::step(STEP)(format!("{} stands twice", call.name)));
                }
            }
            Number::OfAnotherArchitecture => {}
            Number::Unknown => return Err(ConfineError::UnknownCall(call.name.clone())),
        }
    }
    let mut programs = Vec::from(x32::refusal());
    for (errno, rules) in by_errno {
        let errno = u32::try_from(errno).map_err(ConfineError::step(STEP))?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)
            .map_err(ConfineError::step(STEP))?;
        programs.push(BpfProgram::try_from(filter).map_err(ConfineError::step(STEP))?);
    }
    Ok(programs)
}

/// None of them: whatever the arguments.
fn alternatives(call: &DeniedCall) -> Result<Vec<SeccompRule>, BackendError> {
    let rule = |all: &Vec<ArgumentIs>| {
        SeccompRule::new(all.iter().map(condition).collect::<Result<Vec<SeccompCondition>, BackendError>>()?)
    };
    call.alternatives.iter().map(rule).collect()
}

fn condition(is: &ArgumentIs) -> Result<SeccompCondition, BackendError> {
    let (operator, value) = match is.comparison {
        Comparison::Equal(value) => (SeccompCmpOp::Eq, value),
        Comparison::NotEqual(value) => (SeccompCmpOp::Ne, value),
        Comparison::AllSet(bits) => (SeccompCmpOp::MaskedEq(u64::from(bits)), bits),
    };
    SeccompCondition::new(is.argument, SeccompCmpArgLen::Dword, operator, u64::from(value))
}

/// The x32 calls come with the architecture of x86-64 and numbers of their own, so that no rule would match them.
#[cfg(target_arch = "x86_64")]
mod x32 {
    use seccompiler::{BpfProgram, sock_filter};

    const fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> sock_filter {
        sock_filter { code: code as u16, jt: jump_true, jf: jump_false, k: value }
    }

    pub(super) fn refusal() -> [BpfProgram; 1] {
        /// `__X32_SYSCALL_BIT` of the kernel's headers.
        const X32_BIT: u32 = 0x4000_0000;
        /// -1 is no call: it fails with `ENOSYS`, and programs use it to ask for just that.
        const NO_CALL: u32 = u32::MAX;
        const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
        const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
        // The number of the call is the first field of `struct seccomp_data`.
        [vec![
            instruction(LOAD, 0, 0, 0),
            instruction(IF_EQUAL, 1, 0, NO_CALL),
            instruction(IF_AT_LEAST, 1, 0, X32_BIT),
            instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
            instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        ]]
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x32 {
    pub(super) fn refusal() -> [seccompiler::BpfProgram; 0] {
        []
    }
}
