//! What the agent's processes may do: the reviewed policy, and the plan that says for whom it is.
//!
//! The policy is data (`config/confinement/`), the same for every server. A plan names the directories of one server;
//! both together give the grants that the confinement wrapper hands to the kernel. Nothing here touches a file.

mod calls;
mod files;
mod further;
mod level;
mod plan;
mod profile;
#[cfg(test)]
mod profile_tests;
mod seatbelt;
#[cfg(test)]
mod tests;

pub use calls::{CallPolicy, CallRule, Comparison, Condition, Errno, Test, Value};
pub use files::{Access, FilePolicy, FileRule, Grant, Links};
pub use further::{Further, Kept, check_further};
pub use level::{Level, Outcome, Probe, Reached};
pub use plan::{Identity, MAX_PLAN_BYTES, Plan, PlanFaults};
pub use profile::{MAX_PROFILE_BYTES, Placed, ProfileError};
pub use seatbelt::SeatbeltPolicy;

const SECCOMP: &str = include_str!("../../../config/confinement/seccomp.json");
const FILES: &str = include_str!("../../../config/confinement/files.json");
/// The layout of the policy files and of the plan that this code reads.
const FORMAT: u32 = 1;

/// The reviewed policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// System calls that are refused.
    pub calls: CallPolicy,
    /// Files that may be reached; all others may not.
    pub files: FilePolicy,
}

/// A policy file that is not fit for use. It is built into the binary, so only a wrong build shows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the confinement policy {file} is not fit for use: {what}")]
pub struct PolicyError {
    file: &'static str,
    what: String,
}

impl Policy {
    /// The policy that is built into the binary.
    ///
    /// # Errors
    /// The first fault of the embedded data.
    pub fn reviewed() -> Result<Self, PolicyError> {
        let error = |file| move |what| PolicyError { file, what };
        Ok(Self {
            calls: CallPolicy::parse(SECCOMP).map_err(error("seccomp.json"))?,
            files: FilePolicy::parse(FILES).map_err(error("files.json"))?,
        })
    }
}

fn check_format(version: u32) -> Result<(), String> {
    if version == FORMAT { Ok(()) } else { Err(format!("v {version} is not {FORMAT}")) }
}

fn check_reason(reason: &str) -> Result<(), String> {
    if reason.trim().is_empty() { Err("a rule has no reason".to_owned()) } else { Ok(()) }
}
