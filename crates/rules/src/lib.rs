//! Pure decisions: what may happen now, and why not.
//!
//! Nothing here reads a clock, a file, the network or the environment: time and identifiers are arguments, so that
//! every order of events can be tried in a test. Decisions return a grant or a [`refusal::Refusal`], never a `bool`.

pub mod approval;
pub mod branch;
pub mod canary;
pub mod catalog;
pub mod confinement;
pub mod display;
pub mod evidence;
pub mod gate;
pub mod guard;
pub mod jcs;
pub mod lifecycle;
pub mod log;
pub mod operation;
pub mod passage;
pub mod peer;
pub mod quiet;
pub mod receipt;
pub mod reconcile;
pub mod redact;
pub mod refusal;
pub mod request_id;
pub mod resting;
pub mod role;
pub mod scripts;
pub mod standing;
#[cfg(test)]
mod testing;
pub mod token;
pub mod tripwire;
pub mod workspace;
