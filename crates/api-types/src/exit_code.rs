//! The exit codes of the command line: every one of them, and which reply leads to which.
//!
//! | code | means |
//! |---|---|
//! | 0 | done, or ready |
//! | 1 | the operation was rejected or failed |
//! | 2 | usage: the command line or a value in it is wrong |
//! | 3 | the daemon is not running |
//! | 4 | degraded or blocked: a canary failed |
//! | 5 | not permitted |
//! | 6 | stale or conflicting: look again, then decide again |
//! | 7 | the outcome is unknown, or the wait timed out |

use crate::action::{Receipt, ReceiptState};
use crate::audit::AuditVerification;
use crate::problem::Problem;
use crate::status::{OverallState, Probe, Readiness, Status};

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Done, or ready.
    Done = 0,
    /// The operation was rejected or failed.
    Failed = 1,
    /// The command line or a value in it is wrong.
    Usage = 2,
    /// Nothing answers on the daemon's socket.
    DaemonNotRunning = 3,
    /// A canary failed: some or all sessions take no step.
    Blocked = 4,
    /// The caller may not do this.
    NotPermitted = 5,
    /// What the caller decided on is no longer so.
    Conflict = 6,
    /// It may or may not have happened, or the wait was over before it was known.
    Unknown = 7,
}

impl ExitCode {
    /// Every code, in order.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::DaemonNotRunning,
        Self::Blocked,
        Self::NotPermitted,
        Self::Conflict,
        Self::Unknown,
    ];

    /// The number given to the operating system.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What it means, in words for help texts.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done, or ready",
            Self::Failed => "the operation was rejected or failed",
            Self::Usage => "usage: the command line or a value in it is wrong",
            Self::DaemonNotRunning => "the daemon is not running",
            Self::Blocked => "degraded or blocked: a canary failed",
            Self::NotPermitted => "not permitted",
            Self::Conflict => "stale or conflicting: look again, then decide again",
            Self::Unknown => "the outcome is unknown, or the wait timed out",
        }
    }

    /// From a problem the daemon answered.
    #[must_use]
    pub fn of_problem(problem: &Problem) -> Self {
        Self::of_refusal(&problem.code, problem.status)
    }

    /// From a refusal's code and HTTP status. The code decides where it is known, else the status.
    #[must_use]
    pub fn of_refusal(code: &str, status: u16) -> Self {
        if let Some(exit) = Self::of_code(code) {
            return exit;
        }
        match status {
            400 | 405 | 406 | 411 | 413 | 414 | 415 | 417 | 431 => Self::Usage,
            401 | 403 => Self::NotPermitted,
            409 | 410 | 412 => Self::Conflict,
            408 | 504 => Self::Unknown,
            _ => Self::Failed,
        }
    }

    /// From a receipt. A recorded rejection is a failure, unless a canary is behind it. `queued` is done: the daemon holds the prompt durably and will deliver it.
    #[must_use]
    pub fn of_receipt(receipt: &Receipt) -> Self {
        match receipt.state {
            ReceiptState::Applied | ReceiptState::Queued => Self::Done,
            ReceiptState::InFlight | ReceiptState::OutcomeUnknown => Self::Unknown,
            ReceiptState::Rejected => match receipt.code.as_deref().and_then(Self::of_code) {
                Some(Self::Blocked) => Self::Blocked,
                Some(_) | None => Self::Failed,
            },
        }
    }

    /// From one look at everything.
    #[must_use]
    pub const fn of_status(status: &Status) -> Self {
        Self::of_overall(status.state)
    }

    /// From the overall state.
    #[must_use]
    pub const fn of_overall(state: OverallState) -> Self {
        match state {
            OverallState::Ready => Self::Done,
            OverallState::Degraded | OverallState::Blocked | OverallState::Starting | OverallState::Stopping => {
                Self::Blocked
            }
        }
    }

    /// From the readiness reply.
    #[must_use]
    pub const fn of_readiness(readiness: &Readiness) -> Self {
        if readiness.ready { Self::Done } else { Self::Blocked }
    }

    /// From a verification of the chain of receipts.
    #[must_use]
    pub const fn of_verification(verification: &AuditVerification) -> Self {
        if verification.intact { Self::Done } else { Self::Blocked }
    }

    /// From the probe reply.
    #[must_use]
    pub const fn of_probe(probe: &Probe) -> Self {
        if probe.available { Self::Done } else { Self::Blocked }
    }

    /// Codes whose meaning their HTTP status alone does not tell.
    fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "unknown_operation"
            | "unknown_field"
            | "missing_field"
            | "generation_missing"
            | "wrong_type"
            | "too_long"
            | "empty"
            | "invalid_value"
            | "workspace_not_found" => Self::Usage,
            "canary_failed"
            | "version_mismatch"
            | "listener_not_inherited"
            | "startup_module_missing"
            | "authentication_open"
            | "init_open"
            | "installation_altered"
            | "policy_weak"
            | "agent_kind_refused"
            | "tool_not_configured"
            | "hooks_present"
            | "mcp_present"
            | "plugins_present"
            | "profile_mismatch"
            | "workspace_content"
            | "workspace_outside_roots"
            | "workspace_not_local"
            | "workspace_mismatch"
            | "unreviewed_action"
            | "confinement_too_weak"
            | "session_blocked"
            | "branch_unreadable"
            | "server_not_installed"
            | "server_start_failed"
            | "server_crash_looping"
            | "server_unavailable"
            | "configuration_invalid"
            | "records_checking"
            | "ledger_damaged"
            | "disk_full"
            | "records_read_only" => Self::Blocked,
            "client_action_id_reused" | "not_a_safe_point" => Self::Conflict,
            // Known to have had no effect, or not the wanted one: nothing to look at again.
            "interrupted" | "stopped_before_step" => Self::Failed,
            _ => return None,
        })
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(exit: ExitCode) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(state: ReceiptState, code: Option<&str>) -> Receipt {
        Receipt {
            client_action_id: "a".into(),
            session_id: None,
            operation_id: "session.fork".into(),
            state,
            code: code.map(Into::into),
            detail: None,
            steps: vec![],
            result: serde_json::Value::Null,
            created_at: String::new(),
            updated_at: String::new(),
            request_id: None,
            replayed: false,
        }
    }

    #[test]
    fn numbers_are_the_documented_ones() {
        let numbers: Vec<u8> = ExitCode::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
        let table = include_str!("exit_code.rs");
        for exit in ExitCode::ALL {
            let row = format!("//! | {} | {} |", exit.code(), exit.meaning());
            assert!(table.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_code_decides_before_the_status() {
        for (code, status, exit) in [
            ("client_action_id_reused", 422, ExitCode::Conflict),
            ("canary_failed", 409, ExitCode::Blocked),
            ("session_blocked", 409, ExitCode::Blocked),
            ("generation_stale", 409, ExitCode::Conflict),
            ("approval_expired", 410, ExitCode::Conflict),
            ("approval_holds_secret", 409, ExitCode::Conflict),
            ("not_permitted", 403, ExitCode::NotPermitted),
            ("unauthenticated", 401, ExitCode::NotPermitted),
            ("session_not_found", 404, ExitCode::Failed),
            ("too_long", 422, ExitCode::Usage),
            ("model_not_reviewed", 422, ExitCode::Failed),
            ("server_limit", 503, ExitCode::Failed),
            ("upstream_timeout", 504, ExitCode::Unknown),
            ("a_code_of_tomorrow", 400, ExitCode::Usage),
            ("a_code_of_tomorrow", 500, ExitCode::Failed),
            ("a_code_of_tomorrow", 504, ExitCode::Unknown),
        ] {
            assert_eq!(ExitCode::of_refusal(code, status), exit, "{code} {status}");
        }
    }

    #[test]
    fn receipts_map_by_state_then_code() {
        for (state, code, exit) in [
            (ReceiptState::Applied, None, ExitCode::Done),
            (ReceiptState::Queued, None, ExitCode::Done),
            (ReceiptState::InFlight, None, ExitCode::Unknown),
            (ReceiptState::OutcomeUnknown, Some("upstream_refused"), ExitCode::Unknown),
            (ReceiptState::Rejected, None, ExitCode::Failed),
            (ReceiptState::Rejected, Some("interrupted"), ExitCode::Failed),
            (ReceiptState::Rejected, Some("canary_failed"), ExitCode::Blocked),
            (ReceiptState::Rejected, Some("upstream_refused"), ExitCode::Failed),
        ] {
            assert_eq!(ExitCode::of_receipt(&receipt(state, code)), exit, "{state:?} {code:?}");
        }
    }

    #[test]
    fn anything_but_ready_is_blocked() {
        assert_eq!(ExitCode::of_overall(OverallState::Ready), ExitCode::Done);
        assert_eq!(ExitCode::of_overall(OverallState::Degraded), ExitCode::Blocked);
        assert_eq!(ExitCode::of_overall(OverallState::Blocked), ExitCode::Blocked);
        assert_eq!(ExitCode::of_readiness(&Readiness { ready: false, reasons: vec![] }), ExitCode::Blocked);
    }
}
