//! Handing the reviewed confinement to the kernel: what `rules` decided, in the words of `host`.

#[cfg(target_os = "linux")]
use std::path::Path;

use host::confine as kernel;
#[cfg(target_os = "linux")]
use host::confine::{ConfineError, Confinement, Parts};
use rules::confinement::{Access, CallRule, Comparison, Condition, Grant, Links, Plan, Policy};

/// The confinement of the processes of one server, ready to be enforced.
///
/// # Errors
/// What of it cannot be enforced here.
#[cfg(target_os = "linux")]
pub fn prepare(policy: &Policy, plan: &Plan) -> Result<Confinement, ConfineError> {
    prepare_with(policy, plan, None, Parts::ALL)
}

/// The same, with a program that may be executed besides, and some parts only.
///
/// # Errors
/// As [`prepare`].
#[cfg(target_os = "linux")]
pub fn prepare_with(
    policy: &Policy,
    plan: &Plan,
    program: Option<&Path>,
    parts: Parts,
) -> Result<Confinement, ConfineError> {
    let program = program.map(|path| kernel::FileGrant {
        path: path.to_path_buf(),
        access: kernel::Access::Read,
        links: kernel::Links::Followed,
        identity: None,
    });
    let files: Vec<kernel::FileGrant> = file_grants(policy, plan).into_iter().chain(program).collect();
    Confinement::prepare_parts(&files, &denied_calls(policy), parts)
}

/// What a server's processes may reach, for the kernel.
#[must_use]
pub fn file_grants(policy: &Policy, plan: &Plan) -> Vec<kernel::FileGrant> {
    policy.files.grants(plan).into_iter().map(file_grant).collect()
}

/// What they may not call, for the kernel.
#[must_use]
pub fn denied_calls(policy: &Policy) -> Vec<kernel::DeniedCall> {
    policy.calls.rules.iter().flat_map(calls_of).collect()
}

pub(crate) fn file_grant(grant: Grant) -> kernel::FileGrant {
    kernel::FileGrant {
        path: grant.path,
        access: match grant.access {
            Access::Read => kernel::Access::Read,
            Access::Write => kernel::Access::Write,
            Access::Device => kernel::Access::Device,
        },
        links: match grant.links {
            Links::Followed => kernel::Links::Followed,
            Links::Refused => kernel::Links::Refused,
            Links::Skipped => kernel::Links::Skipped,
        },
        identity: grant.identity.map(|identity| (identity.device, identity.inode)),
    }
}

fn calls_of(rule: &CallRule) -> impl Iterator<Item = kernel::DeniedCall> {
    let alternatives = rule.when.as_ref().map(alternatives).unwrap_or_default();
    let errno = rule.errno.number();
    rule.calls.iter().map(move |name| kernel::DeniedCall {
        name: name.clone(),
        errno,
        alternatives: alternatives.clone(),
    })
}

fn alternatives(condition: &Condition) -> Vec<Vec<kernel::ArgumentIs>> {
    let argument = condition.argument;
    let one = |comparison| kernel::ArgumentIs {
        argument,
        comparison: match comparison {
            Comparison::Equal(value) => kernel::Comparison::Equal(value),
            Comparison::NotEqual(value) => kernel::Comparison::NotEqual(value),
            Comparison::AllSet(bits) => kernel::Comparison::AllSet(bits),
        },
    };
    condition.alternatives().into_iter().map(|all| all.into_iter().map(one).collect()).collect()
}
