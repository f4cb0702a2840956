//! What a run leaves for its judge: what clients were told, and what the server's own files and log say. Plain data.

use std::collections::{BTreeMap, BTreeSet};

/// What a client was told of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A receipt in this state.
    Receipt(String),
    /// A problem with this code: no receipt.
    Refused(String),
    /// Nothing: the connection was lost.
    Lost,
}

/// A receipt as it was found when everything was over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) state: String,
    pub(crate) code: Option<String>,
    /// Names and states of its steps.
    pub(crate) steps: Vec<(String, String)>,
}

impl Receipt {
    pub(crate) fn is_final(&self) -> bool {
        is_final(&self.state)
    }
}

/// Whether a receipt in this state never changes again.
pub(crate) fn is_final(state: &str) -> bool {
    matches!(state, "applied" | "rejected" | "outcome_unknown")
}

/// One operation under its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keyed {
    /// The key. It stands in the text of a prompt and is the title that a fork or a title operation asks for.
    pub(crate) key: String,
    pub(crate) session: String,
    pub(crate) kind: String,
    /// The actions that an acceptance names, as the client was shown them.
    pub(crate) event_ids: Vec<String>,
    pub(crate) answers: Vec<Answer>,
    /// `None` when there is no such receipt.
    pub(crate) receipt: Option<Receipt>,
}

/// A conversation as the server's files hold it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) title: Option<String>,
    /// The file of it that the server itself can read no more: it writes in place, so a kill may leave half of it.
    pub(crate) broken: Option<String>,
    /// Event ids in the order in which the server appended them.
    pub(crate) events: Vec<String>,
    /// Messages of the user, by event id.
    pub(crate) messages: BTreeMap<String, String>,
}

/// One event as a reader got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) seq: u64,
    pub(crate) event_id: String,
    /// Whether gatepost itself wrote it: it stands in no server's log.
    pub(crate) own: bool,
}

/// Everything that a reader got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) reader: String,
    pub(crate) session: String,
    /// One list for each time it was told to start over.
    pub(crate) epochs: Vec<Vec<Seen>>,
    /// The session was closed under it, so that the end of the log may be missing.
    pub(crate) cut_short: bool,
}

/// The whole of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) keyed: Vec<Keyed>,
    /// By id, with its dashes.
    pub(crate) conversations: BTreeMap<String, Conversation>,
    /// How often the server's log names a request, by conversation and kind of mutation.
    pub(crate) requests: BTreeMap<(String, String), u64>,
    /// How often a session was asked to be closed: each may interrupt it.
    pub(crate) closes: BTreeMap<String, u64>,
    pub(crate) views: Vec<View>,
    /// Sessions and events that the daemon's journal has as left out by the server's stream: numbered behind their place.
    pub(crate) late: BTreeSet<(String, String)>,
}
