//! Bodies of the API: what the daemon answers and what its clients send, with the exit codes of the command line.
//!
//! Requests refuse unknown fields. In replies a field without a value is `null`, never absent, unless its description
//! says otherwise; a client must ignore reply fields it does not know.

pub mod action;
pub mod approval;
pub mod attestation;
pub mod audit;
pub mod catalog;
pub mod event;
pub mod exit_code;
pub mod problem;
pub mod session;
pub mod status;
pub mod token;

pub use action::{ActionRequest, Receipt, ReceiptState, ReceiptStep};
pub use approval::{Approval, ApprovalList, BackgroundProcess, NamedFile, PendingAction};
pub use attestation::Attestation;
pub use audit::{AuditEntry, AuditHead, AuditPage, AuditVerification, BrokenLink};
pub use catalog::{Catalog, CatalogEntry, InputField};
pub use event::{Event, EventKind, EventPage, Resync};
pub use exit_code::ExitCode;
pub use problem::{Problem, Reason};
pub use session::{
    AdvertisedOperation, AttachSessionRequest, BlockChoice, Choices, Closed, CreateSessionRequest, RewindChoice,
    SessionList, SessionSnapshot, SessionState, SessionSummary,
};
pub use status::{
    Canary, CanaryState, Finding, Health, OverallState, Probe, Readiness, RefusedPeers, Server, ServerState,
    SetupAction, Spare, SpareState, Status,
};
pub use token::{CreateTokenRequest, CreatedToken, Token, TokenList};
