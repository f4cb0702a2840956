//! The active branch of a conversation: what is pending on it, and where it may be cut.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::log::{ActionRecord, LogEvent, LogEventKind, ROOT_PARENT_ID};
use crate::refusal::{Refusal, RefusalCode};

/// Most characters of a prompt that a rewind choice carries.
pub const REWIND_TEXT_CHARS: usize = 120;

/// Why a log gives no branch. Nothing is decided on such a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    /// Two events have one id.
    #[error("two events of the log have the id {0}; restart the server or start a new session")]
    DuplicateEvent(String),
    /// The head is not in the log.
    #[error("the branch's head {0} is not in the log; read the log again")]
    UnknownLeaf(String),
    /// The server names no head although there are events.
    #[error("the server names no head although the log has events; start a new session")]
    NoLeaf,
    /// An event hangs off one that is not in the log.
    #[error("event {event_id} hangs off {parent_id}, which is not in the log; read the log again")]
    MissingParent {
        /// The child.
        event_id: String,
        /// The parent it names.
        parent_id: String,
    },
    /// An event in the middle of the log names no parent.
    #[error("event {0} names no parent although it is not the first; start a new session")]
    NoParent(String),
    /// The parents of this head go round in a circle.
    #[error("the parents of the branch's head {0} form a circle; start a new session")]
    Cycle(String),
}

impl From<BranchError> for Refusal {
    fn from(error: BranchError) -> Self {
        Self::new(RefusalCode::BranchUnreadable, error.to_string())
    }
}

/// A user turn that the session can be taken back to the end of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindChoice {
    /// One-based number of the user turn on the branch.
    pub turn: u32,
    /// The last safe point of the turn; becomes the head.
    pub event_id: String,
    /// First characters of the turn's prompt, at most [`REWIND_TEXT_CHARS`].
    pub text: String,
}

/// How an action was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It was rejected, so it did not run.
    Rejected,
    /// An error stands for it: it ran in part, or not at all, or a restart cut it off.
    Failed,
    /// It ran, and its observation stands.
    Observed,
}

impl Answer {
    /// The word for it in receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Failed => "error",
            Self::Observed => "observed",
        }
    }
}

/// The path from the root to the head.
#[derive(Debug, Clone)]
pub struct Branch<'a> {
    events: Vec<&'a LogEvent>,
    leaf: Option<&'a str>,
}

/// Follows the parents from `leaf` to the root.
///
/// `events` is the whole log in append order; `leaf` is the server's head, `None` for a conversation without events.
///
/// # Errors
/// Whenever the path is not certain: an unknown head, a missing parent, a cycle, an id that occurs twice.
pub fn active_branch<'a>(events: &'a [LogEvent], leaf: Option<&str>) -> Result<Branch<'a>, BranchError> {
    let index = LogIndex::new(events)?;
    match leaf {
        Some(leaf) => index.branch(leaf),
        None if events.iter().all(LogEvent::is_state_update) => Ok(Branch { events: Vec::new(), leaf: None }),
        None => Err(BranchError::NoLeaf),
    }
}

/// A log whose events can be found by id.
pub(crate) struct LogIndex<'a> {
    events: &'a [LogEvent],
    positions: HashMap<&'a str, usize>,
}

impl<'a> LogIndex<'a> {
    pub(crate) fn new(events: &'a [LogEvent]) -> Result<Self, BranchError> {
        let mut positions = HashMap::with_capacity(events.len());
        for (position, event) in events.iter().enumerate() {
            if positions.insert(event.event_id.as_str(), position).is_some() {
                return Err(BranchError::DuplicateEvent(event.event_id.clone()));
            }
        }
        Ok(Self { events, positions })
    }

    pub(crate) fn branch(&self, leaf: &str) -> Result<Branch<'a>, BranchError> {
        self.branch_behind(leaf, |_event_id| false)
    }

    /// The end of the branch: what stands behind the last event of which `stop` says so, the whole branch without one.
    pub(crate) fn branch_behind(&self, leaf: &str, stop: impl Fn(&str) -> bool) -> Result<Branch<'a>, BranchError> {
        let position = |event_id: &str| self.positions.get(event_id).copied();
        let mut at = position(leaf).ok_or_else(|| BranchError::UnknownLeaf(leaf.to_owned()))?;
        let mut path = Vec::new();
        loop {
            let event = &self.events[at];
            // A path longer than the log meets some event twice.
            if path.len() == self.events.len() {
                return Err(BranchError::Cycle(leaf.to_owned()));
            }
            if stop(&event.event_id) {
                break;
            }
            path.push(event);
            match event.parent_id.as_deref() {
                Some(ROOT_PARENT_ID) => break,
                Some(parent_id) => {
                    at = position(parent_id).ok_or_else(|| BranchError::MissingParent {
                        event_id: event.event_id.clone(),
                        parent_id: parent_id.to_owned(),
                    })?;
                }
                None if at == 0 => break,
                // The server would take the event before it in the log for its parent. No such log is ours.
                None => return Err(BranchError::NoParent(event.event_id.clone())),
            }
        }
        path.reverse();
        let leaf = path.last().map(|event| event.event_id.as_str());
        Ok(Branch { events: path, leaf })
    }
}

impl<'a> Branch<'a> {
    /// Root first, head last.
    pub fn events(&self) -> &[&'a LogEvent] {
        &self.events
    }

    /// The head's event id.
    pub fn leaf(&self) -> Option<&'a str> {
        self.leaf
    }

    /// Whether an event of that id stands on the branch.
    pub fn contains(&self, event_id: &str) -> bool {
        self.events.iter().any(|event| event.event_id == event_id)
    }

    /// Every executable action that nothing after it on the branch answers, in order: what a step would run.
    pub fn pending(&self) -> Vec<&'a LogEvent> {
        // Backwards, so that only what stands after an action can answer it.
        let mut answered_ids = HashSet::new();
        let mut answered_calls = HashSet::new();
        let mut pending = Vec::new();
        for event in self.events.iter().rev() {
            match &event.kind {
                LogEventKind::Observation { action_id } | LogEventKind::UserReject { action_id } => {
                    answered_ids.insert(action_id.as_str());
                }
                LogEventKind::AgentError { tool_call_id } => {
                    answered_calls.insert(tool_call_id.as_str());
                }
                LogEventKind::Action(record) => {
                    if record.action.is_some()
                        && !answered_ids.contains(event.event_id.as_str())
                        && !answered_calls.contains(record.tool_call_id.as_str())
                    {
                        pending.push(*event);
                    }
                }
                LogEventKind::UserMessage { .. }
                | LogEventKind::AgentMessage { .. }
                | LogEventKind::Status(_)
                | LogEventKind::StateUpdate
                | LogEventKind::Other => {}
            }
        }
        pending.reverse();
        pending
    }

    /// How what stands after an action on the branch answers it; of several answers the one that says most. `None` for an
    /// action that is pending, and for what is no executable action of the branch.
    pub fn answer(&self, action_event_id: &str) -> Option<Answer> {
        let mut from_it_on = self.events.iter().skip_while(|event| event.event_id != action_event_id);
        let (record, _) = from_it_on.next()?.executable()?;
        let answers = from_it_on.filter_map(|event| match &event.kind {
            LogEventKind::Observation { action_id } => (action_id == action_event_id).then_some(Answer::Observed),
            LogEventKind::UserReject { action_id } => (action_id == action_event_id).then_some(Answer::Rejected),
            LogEventKind::AgentError { tool_call_id } => {
                (*tool_call_id == record.tool_call_id).then_some(Answer::Failed)
            }
            LogEventKind::Action(_)
            | LogEventKind::UserMessage { .. }
            | LogEventKind::AgentMessage { .. }
            | LogEventKind::Status(_)
            | LogEventKind::StateUpdate
            | LogEventKind::Other => None,
        });
        answers.max()
    }

    /// The batch that waits for a decision: everything pending, or nothing when a finish or think is pending alone.
    pub fn batch(&self) -> Vec<&'a LogEvent> {
        let pending = self.pending();
        if is_lone_exempt(&pending) { Vec::new() } else { pending }
    }

    /// The finish or think that is pending alone, if that is the case.
    pub fn pending_exempt(&self) -> Option<&'a LogEvent> {
        let pending = self.pending();
        if is_lone_exempt(&pending) { pending.first().copied() } else { None }
    }

    /// Events that are no action, with every action up to them answered up to them, in order.
    pub fn safe_points(&self) -> Vec<&'a LogEvent> {
        let mut open: BTreeMap<&str, &str> = BTreeMap::new();
        let mut safe = Vec::new();
        for event in &self.events {
            match &event.kind {
                LogEventKind::Action(record) => {
                    if record.action.is_some() {
                        open.insert(&event.event_id, &record.tool_call_id);
                    }
                    continue;
                }
                LogEventKind::Observation { action_id } | LogEventKind::UserReject { action_id } => {
                    open.remove(action_id.as_str());
                }
                LogEventKind::AgentError { tool_call_id } => open.retain(|_, call| call != tool_call_id),
                LogEventKind::UserMessage { .. }
                | LogEventKind::AgentMessage { .. }
                | LogEventKind::Status(_)
                | LogEventKind::StateUpdate
                | LogEventKind::Other => {}
            }
            if open.is_empty() {
                safe.push(*event);
            }
        }
        safe
    }

    /// Where a fork is taken.
    pub fn last_safe_point(&self) -> Option<&'a LogEvent> {
        self.safe_points().pop()
    }

    /// For every user turn, the last safe point before the next turn begins, oldest turn first.
    pub fn rewind_choices(&self) -> Vec<RewindChoice> {
        let safe: HashSet<&str> = self.safe_points().iter().map(|event| event.event_id.as_str()).collect();
        let mut choices: Vec<RewindChoice> = Vec::new();
        let mut turn = 0;
        let mut prompt = None;
        for event in &self.events {
            if let LogEventKind::UserMessage { text } = &event.kind {
                turn += 1;
                prompt = Some(text);
            }
            let Some(text) = prompt else { continue };
            if !safe.contains(event.event_id.as_str()) {
                continue;
            }
            match choices.last_mut() {
                Some(choice) if choice.turn == turn => choice.event_id.clone_from(&event.event_id),
                Some(_) | None => choices.push(RewindChoice {
                    turn,
                    event_id: event.event_id.clone(),
                    text: text.chars().take(REWIND_TEXT_CHARS).collect(),
                }),
            }
        }
        choices
    }
}

/// Whether this is one action alone, and it touches nothing outside the conversation.
pub(crate) fn is_lone_exempt(pending: &[&LogEvent]) -> bool {
    match pending {
        [only] => match &only.kind {
            LogEventKind::Action(ActionRecord { exempt_kind, .. }) => exempt_kind.is_some(),
            LogEventKind::Observation { .. }
            | LogEventKind::UserReject { .. }
            | LogEventKind::AgentError { .. }
            | LogEventKind::UserMessage { .. }
            | LogEventKind::AgentMessage { .. }
            | LogEventKind::Status(_)
            | LogEventKind::StateUpdate
            | LogEventKind::Other => false,
        },
        [] | [_, ..] => false,
    }
}

#[cfg(test)]
mod tests;
