//! What the console knows: a value without clock, terminal or socket.

mod batch;
mod events;
mod prompt;
mod question;

use api_types::{Approval, EventPage, ExitCode, Receipt, SessionSnapshot, SessionSummary};
use serde_json::Value;

pub(super) use batch::Batch;
pub(super) use events::EventLog;
pub(super) use prompt::PromptLine;
pub(super) use question::{Answer, Question, Subject};

use super::input::Input;

/// Most sessions that are listed.
pub(super) const MAX_SESSIONS: usize = 500;

/// A part of the screen that takes keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Sessions,
    Events,
    /// The pending batch.
    Batch,
    Prompt,
    /// A question that stands over everything.
    Question,
}

impl Pane {
    /// Its name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Events => "events",
            Self::Batch => "pending",
            Self::Prompt => "prompt",
            Self::Question => "question",
        }
    }
}

/// Columns and rows of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl Size {
    /// Below this there is a plain message instead of the panes.
    pub(super) const LEAST: Self = Self { columns: 80, rows: 24 };

    pub(super) fn is_enough(self) -> bool {
        self.columns >= Self::LEAST.columns && self.rows >= Self::LEAST.rows
    }
}

/// Whether something is heard of, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    Connecting,
    Live,
    /// Why, in words; it is tried again by itself.
    Lost(String),
}

/// What the last thing asked for came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) words: String,
    /// Somebody should look at it.
    pub(super) grave: bool,
}

/// The session that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session_id: String,
    /// Which opening this is: what is heard for an earlier one is dropped.
    pub(super) opening: u64,
    pub(super) snapshot: Option<SessionSnapshot>,
    pub(super) following: Link,
    /// Whether the last look succeeded.
    pub(super) looked: Link,
    /// Looks that failed in a row, and are tried again.
    pub(super) failed_looks: u32,
    pub(super) events: EventLog,
    pub(super) batch: Option<Batch>,
    /// A look is under way.
    pub(super) looking: bool,
    /// Something happened since the look under way began.
    pub(super) look_again: bool,
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    pub(super) size: Size,
    pub(super) color: bool,
    pub(super) daemon: Link,
    pub(super) sessions: Vec<SessionSummary>,
    /// Row of the marked session.
    pub(super) marked: usize,
    pub(super) open: Option<Open>,
    pub(super) pane: Pane,
    pub(super) prompt: PromptLine,
    pub(super) question: Option<Question>,
    /// The keys are shown instead of the panes.
    pub(super) help: bool,
    pub(super) notice: Option<Notice>,
    /// Number of what stands on the screen as far as decisions go: a batch, whether it was read, a question. A key decides only
    /// if it was pressed when this very stage stood on the screen.
    pub(super) stage: u64,
}

impl State {
    pub(super) fn new(size: Size, color: bool, sessions: Vec<SessionSummary>) -> Self {
        let mut state = Self {
            size,
            color,
            daemon: Link::Live,
            sessions: Vec::new(),
            marked: 0,
            open: None,
            pane: Pane::Sessions,
            prompt: PromptLine::default(),
            question: None,
            help: false,
            notice: None,
            stage: 1,
        };
        state.set_sessions(sessions);
        state
    }

    /// Takes a new list; the mark stays on its session.
    pub(super) fn set_sessions(&mut self, mut sessions: Vec<SessionSummary>) {
        sessions.truncate(MAX_SESSIONS);
        let marked = self.sessions.get(self.marked).map(|session| session.session_id.clone());
        self.sessions = sessions;
        let found = self.sessions.iter().position(|session| Some(&session.session_id) == marked.as_ref());
        self.marked = found.unwrap_or(self.marked).min(self.sessions.len().saturating_sub(1));
    }

    pub(super) fn batch(&self) -> Option<&Batch> {
        self.open.as_ref().and_then(|open| open.batch.as_ref())
    }

    pub(super) fn batch_mut(&mut self) -> Option<&mut Batch> {
        self.open.as_mut().and_then(|open| open.batch.as_mut())
    }

    /// The pane that takes keys now.
    pub(super) fn listening(&self) -> Pane {
        match (&self.question, self.pane) {
            (Some(_), _) => Pane::Question,
            (None, Pane::Batch) if self.batch().is_none() => Pane::Events,
            (None, pane) => pane,
        }
    }

    pub(super) fn say(&mut self, words: impl Into<String>) {
        self.notice = Some(Notice { words: words.into(), grave: false });
    }

    pub(super) fn warn(&mut self, words: impl Into<String>) {
        self.notice = Some(Notice { words: words.into(), grave: true });
    }
}

/// What was drawn, as far as decisions go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Rows of the pending batch that stood on the screen.
    pub(super) batch: Option<BatchRows>,
}

/// Rows of a batch: from `first` to before `end`, of `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchRows {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) total: usize,
}

/// A look at a session: the snapshot, and what waits.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) snapshot: SessionSnapshot,
    pub(super) waits: Waits,
}

/// What a look found waiting.
#[derive(Debug)]
pub(super) enum Waits {
    Nothing,
    /// The generation is that of the batch that is known: it was not read again.
    AsKnown,
    /// This batch; `in_full` when it was fetched to be decided on.
    Batch {
        approval: Box<Approval>,
        in_full: bool,
    },
}

/// Something went wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) exit: ExitCode,
    pub(super) words: String,
    /// The same may succeed later, without anything being done about it.
    pub(super) passes: bool,
}

/// An operation to be asked for once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) opening: u64,
    pub(super) session_id: String,
    pub(super) operation: &'static str,
    pub(super) input: Value,
    pub(super) generation: Option<u64>,
}

/// What happens to the console.
#[derive(Debug)]
pub(super) enum Message {
    /// A person did something while this stage stood on the screen.
    Typed {
        input: Input,
        stage: u64,
    },
    Resized(Size),
    /// The screen stands as it was last drawn.
    Drawn(Shown),
    Listed(Result<Vec<SessionSummary>, Trouble>),
    Page {
        opening: u64,
        page: Result<EventPage, Trouble>,
    },
    Looked {
        opening: u64,
        look: Result<Box<Look>, Trouble>,
    },
    /// The pause after a failed look is over.
    LookDue {
        opening: u64,
    },
    /// What an operation came to, or stands at.
    Outcome {
        opening: u64,
        operation: &'static str,
        receipt: Result<Box<Receipt>, Trouble>,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// Follow the events of a session instead of those of the one before.
    Follow {
        opening: u64,
        session_id: String,
    },
    /// Read a session and what waits; `known` is the generation of the batch that is known.
    Look {
        opening: u64,
        session_id: String,
        known: Option<u64>,
    },
    /// Say after a pause that it is time to look again; the longer, the more looks failed in a row.
    LookLater {
        opening: u64,
        failed_looks: u32,
    },
    /// Ask for an operation, once.
    Act(Asked),
    Leave,
}
