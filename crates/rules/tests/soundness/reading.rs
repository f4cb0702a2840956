//! What `rules` make of a log: asked once for each log and head, since the answer cannot differ.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use rules::branch::{Branch, active_branch};
use rules::log::{LogEvent, LogEventKind};
use rules::tripwire::{KnownExempt, unexplained};

use crate::log::{Entry, EventId, FORK_BASE, Ids, Kind, for_rules, id_of, name};

/// Readings kept at a time.
const MAX_KEPT: usize = 100_000;

/// The approval id of what waits, if anything does.
type Identity = Option<Rc<str>>;

/// The branch as the rules read it.
pub(crate) struct Reading {
    events: Vec<LogEvent>,
    leaf: Option<String>,
    pub(crate) pending: Vec<EventId>,
    pub(crate) batch: Vec<EventId>,
    pub(crate) safe_points: Vec<EventId>,
    pub(crate) turns: Vec<EventId>,
    on_branch: Vec<EventId>,
    /// Whether the tripwire speaks, by the accepts that were sent, and in the fork.
    trips: RefCell<HashMap<(u128, bool), bool>>,
    /// Approval ids that were derived for this head, by session and server start.
    approvals: RefCell<HashMap<(usize, u8), Identity>>,
}

impl Reading {
    fn new(events: Vec<LogEvent>, leaf: Option<EventId>) -> Self {
        let leaf = leaf.map(name);
        let ids = |events: Vec<&LogEvent>| events.iter().filter_map(|event| id_of(&event.event_id)).collect();
        let branch = active_branch(&events, leaf.as_deref()).expect("the server's own log has a branch");
        let (pending, batch, safe_points) = (ids(branch.pending()), ids(branch.batch()), ids(branch.safe_points()));
        let on_branch = ids(branch.events().to_vec());
        let turns = branch.rewind_choices().iter().filter_map(|choice| id_of(&choice.event_id)).collect();
        Self {
            leaf,
            pending,
            batch,
            safe_points,
            turns,
            on_branch,
            events,
            trips: RefCell::default(),
            approvals: RefCell::default(),
        }
    }

    pub(crate) fn branch(&self) -> Branch<'_> {
        active_branch(&self.events, self.leaf.as_deref()).expect("read before")
    }

    /// Whether something ran that these accepts do not explain, asked once. What was copied into a fork is not asked about.
    pub(crate) fn trips(&self, sent: Ids, in_fork: bool) -> bool {
        *self.trips.borrow_mut().entry((sent.0, in_fork)).or_insert_with(|| {
            let ids = self.events.iter().map(|event| &event.event_id);
            let copied = ids.filter(|id| in_fork && id_of(id).is_some_and(|id| id < FORK_BASE));
            let baseline: BTreeSet<String> = copied.cloned().collect();
            !unexplained(&self.events, &baseline, &sent.names(), &mut KnownExempt::default()).is_empty()
        })
    }

    /// The approval id of what waits, derived once.
    pub(crate) fn approval(&self, at: usize, start: u8, derive: impl FnOnce() -> Identity) -> Identity {
        self.approvals.borrow_mut().entry((at, start)).or_insert_with(derive).clone()
    }

    /// On the branch, and answered there.
    pub(crate) fn is_answered(&self, id: EventId) -> bool {
        self.on_branch.contains(&id) && !self.pending.contains(&id)
    }
}

thread_local! {
    static KEPT: RefCell<HashMap<Vec<u8>, Rc<Reading>>> = RefCell::new(HashMap::new());
}

/// The reading of this log with this head. With the `naive` matcher, an action whose call id any error of the log names
/// counts as answered.
pub(crate) fn read(log: &[Entry], leaf: Option<EventId>, naive: bool) -> Rc<Reading> {
    let mut key = Vec::with_capacity(log.len() * 4 + 2);
    key.extend_from_slice(&[u8::from(naive), leaf.unwrap_or(u8::MAX)]);
    log.iter().for_each(|entry| entry.encode(&mut key));
    KEPT.with_borrow_mut(|kept| {
        if let Some(reading) = kept.get(&key) {
            return Rc::clone(reading);
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let mut events = for_rules(log);
        if naive {
            overlook(log, &mut events);
        }
        let reading = Rc::new(Reading::new(events, leaf));
        kept.insert(key, Rc::clone(&reading));
        reading
    })
}

fn overlook(log: &[Entry], events: &mut [LogEvent]) {
    let is_error = |wanted: u8| log.iter().any(|entry| matches!(entry.kind, Kind::Error(call) if call == wanted));
    for (entry, event) in log.iter().zip(events) {
        if let (Kind::Action { call, .. }, LogEventKind::Action(record)) = (entry.kind, &mut event.kind)
            && is_error(call)
        {
            record.action = None;
        }
    }
}
