//! Records of the ledger: plain data, as it is stored.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// An enumeration stored as one fixed word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// The stored word.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The value of a stored word; `None` for any other.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.as_str()))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let word = value.as_str()?;
                Self::parse(word).ok_or_else(|| FromSqlError::Other(format!("unknown word {word:?}").into()))
            }
        }
    };
}

words! {
    /// Where a receipt stands.
    ReceiptState {
        /// Waits for its turn.
        Queued = "queued",
        /// Its steps are being sent.
        InFlight = "in_flight",
        /// Done, with evidence. Final.
        Applied = "applied",
        /// Refused, or stopped before it took effect. Final.
        Rejected = "rejected",
        /// Nobody can say. Final.
        OutcomeUnknown = "outcome_unknown",
    }
}

impl ReceiptState {
    /// Whether a receipt in this state never changes again.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::InFlight => false,
            Self::Applied | Self::Rejected | Self::OutcomeUnknown => true,
        }
    }
}

words! {
    /// Where one upstream mutation of a receipt stands.
    StepState {
        /// About to be sent, or sent without a known answer.
        Intent = "intent",
        /// Answered well.
        Done = "done",
        /// Answered with a refusal.
        Failed = "failed",
        /// Sent, and no evidence says what came of it.
        Unknown = "unknown",
        /// Proved never to have left.
        NotSent = "not_sent",
    }
}

impl StepState {
    /// Whether a step may go from this state to `next`: a known outcome is never taken back.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Intent => true,
            Self::Unknown => matches!(next, Self::Unknown | Self::Done | Self::Failed),
            Self::Done | Self::Failed | Self::NotSent => self == next,
        }
    }
}

words! {
    /// How a session came to be.
    SessionOrigin {
        /// By a client's request for a new one.
        Created = "created",
        /// By taking up a conversation that the server had.
        Attached = "attached",
        /// By a fork of another session.
        Forked = "forked",
    }
}

words! {
    /// Where the accept of one action stands.
    AcceptState {
        /// Recorded before it was sent; no answer seen yet.
        Sent = "sent",
        /// Its observation, rejection or error was seen.
        Answered = "answered",
        /// Without an answer after a crash or an interrupt: only rejectable.
        InDoubt = "in_doubt",
    }
}

/// One upstream mutation of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// Name of the upstream call.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// Stable code of a failure.
    pub code: Option<String>,
    /// The same for people.
    pub detail: Option<String>,
}

/// What was asked and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRecord {
    /// The caller's key, unique over all sessions.
    pub client_action_id: String,
    /// The session, for operations that have one.
    pub session_id: Option<String>,
    /// The operation.
    pub operation_id: String,
    /// Digest of session, operation and input.
    pub fingerprint: String,
    /// Who asked.
    pub caller: String,
    /// Where it stands.
    pub state: ReceiptState,
    /// Stable code of a rejection or doubt.
    pub code: Option<String>,
    /// The same for people.
    pub detail: Option<String>,
    /// Canonical input, JSON.
    pub input_json: String,
    /// What the operation returned, JSON.
    pub result_json: Option<String>,
    /// Upstream mutations, in the order they were begun.
    pub steps: Vec<StepRecord>,
    /// Milliseconds since 1970, UTC.
    pub created_at_ms: i64,
    /// Milliseconds since 1970, UTC.
    pub updated_at_ms: i64,
    /// The request that it was made for; `None` in records of before there were ids.
    pub request_id: Option<String>,
}

/// A session that gatepost knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Canonical UUID, the same as the server's conversation id.
    pub session_id: String,
    /// Resolved directory its agent works in.
    pub workspace: String,
    /// Title, when one was given.
    pub title: Option<String>,
    /// How it came to be.
    pub origin: SessionOrigin,
    /// The session it was forked from.
    pub parent_session_id: Option<String>,
    /// Last event that was there before gatepost watched.
    pub baseline_event_id: Option<String>,
    /// Milliseconds since 1970, UTC.
    pub created_at_ms: i64,
    /// Milliseconds since 1970, UTC; `None` while it is open.
    pub closed_at_ms: Option<i64>,
    /// Who asked for the last change.
    pub changed_by: String,
    /// When it was made; milliseconds since 1970, UTC.
    pub changed_at_ms: i64,
}

/// A client's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its name, which no other token ever gets.
    pub name: String,
    /// SHA-256 of the token, 64 lower-case hexadecimal digits. The token itself is nowhere.
    pub token_sha256: String,
    /// Names of its roles joined by `+`.
    pub roles: String,
    /// Milliseconds since 1970, UTC.
    pub created_at_ms: i64,
    /// Milliseconds since 1970, UTC; `None` while it is good.
    pub revoked_at_ms: Option<i64>,
}

/// The accept of one action, recorded before it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptRecord {
    /// The session.
    pub session_id: String,
    /// The action's event id.
    pub event_id: String,
    /// Digest of the batch that was approved.
    pub approval_id: String,
    /// Where it stands.
    pub state: AcceptState,
    /// Milliseconds since 1970, UTC.
    pub sent_at_ms: i64,
    /// Milliseconds since 1970, UTC.
    pub updated_at_ms: i64,
}
