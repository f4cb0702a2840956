//! The spare server, as status shows it.

use rules::refusal::Refusal;
use rules::standing::SpareStanding;

/// The one spare.
#[derive(Debug, Clone)]
pub struct SpareView {
    /// Where it stands.
    pub state: SpareStanding,
    /// Process id of one that waits, for people.
    pub pid: Option<u32>,
    /// Why the last one failed; `None` unless it is `failed`.
    pub reason: Option<Refusal>,
    /// RFC 3339 time from which on another is made; `None` unless the last one failed, and when none is made any more.
    pub next_try_at: Option<String>,
}
