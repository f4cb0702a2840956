//! Records of the journal.

/// An event to be journaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Unique within the session: the server's, or ours for what the server does not log.
    pub event_id: String,
    /// Time as the source gave it.
    pub at: String,
    /// Kind word, as readers see it.
    pub kind: String,
    /// Redacted content, JSON.
    pub payload_json: String,
    /// The stream left it out: it is numbered behind its place in the server's log.
    pub is_late: bool,
}

/// A journaled event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The session.
    pub session_id: String,
    /// The epoch its number belongs to, from 1.
    pub epoch: u64,
    /// Its number, gapless within the epoch, from 1.
    pub seq: u64,
    /// Unique within the session.
    pub event_id: String,
    /// Time as the source gave it.
    pub at: String,
    /// Kind word.
    pub kind: String,
    /// Redacted content, JSON.
    pub payload_json: String,
}

/// Where the journal of a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The present epoch, from 1.
    pub epoch: u64,
    /// Number of the newest event of the epoch; 0 while there is none.
    pub seq: u64,
    /// Number of the oldest event that can still be read; `seq + 1` when none can.
    pub first_seq: u64,
    /// Why the epoch was raised; `None` in the first.
    pub raised_because: Option<String>,
}

/// A row of the journal without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its number.
    pub seq: u64,
    /// Unique within the session.
    pub event_id: String,
    /// Kind word; empty when the event was emptied because it was old.
    pub kind: String,
    /// Whether it is numbered behind its place in the server's log.
    pub is_late: bool,
}

/// An event of a new epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// The one that had this number, as it is.
    Kept(u64),
    /// A new one, or another content of one that was there.
    New(NewEvent),
}
