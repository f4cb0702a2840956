//! What happens when something happens: pure, so that every order of keys, replies and drawings can be tried.

mod decide;
mod typed;

use api_types::{EventKind, EventPage, ReceiptState};

use super::model::{Batch, Effect, Link, Look, Message, Open, Pane, Shown, State, Trouble, Waits};
use super::view::layout;

/// Takes a message.
pub(super) fn update(state: &mut State, message: Message) -> Vec<Effect> {
    match message {
        Message::Typed { input, stage } => typed::typed(state, input, stage),
        Message::Resized(size) => {
            state.size = size;
            if let Some(batch) = state.batch_mut() {
                batch.broken_anew();
            }
            // It may have been asked on a screen that showed it otherwise.
            decide::withdraw(state);
            Vec::new()
        }
        Message::Drawn(shown) => {
            drawn(state, &shown);
            Vec::new()
        }
        Message::Listed(listed) => self::listed(state, listed),
        Message::Page { opening, page } => on_open(state, opening, |state| self::page(state, page)),
        Message::LookDue { opening } => on_open(state, opening, |state| {
            // Something else may have asked for a look meanwhile.
            let due = state.open.as_ref().is_some_and(|open| matches!(open.looked, Link::Lost(_)));
            if due { look(state) } else { Vec::new() }
        }),
        Message::Looked { opening, look } => on_open(state, opening, |state| looked(state, look)),
        Message::Outcome { opening, operation, receipt } => {
            let ended = receipt.as_ref().map_or(true, |receipt| receipt.state.is_final());
            // Also what was asked in an earlier opening is told; it says nothing of the one that is open.
            if decide::told(state, operation, receipt) {
                on_open(state, opening, |state| {
                    decide::undecided(state);
                    Vec::new()
                });
            }
            if ended { on_open(state, opening, look) } else { Vec::new() }
        }
    }
}

fn on_open(state: &mut State, opening: u64, then: impl FnOnce(&mut State) -> Vec<Effect>) -> Vec<Effect> {
    let is_open = state.open.as_ref().is_some_and(|open| open.opening == opening);
    if is_open { then(state) } else { Vec::new() }
}

/// Opens a session: its events and what waits in it.
pub(super) fn open(state: &mut State, session_id: String) -> Vec<Effect> {
    let opening = state.open.as_ref().map_or(1, |before| before.opening + 1);
    state.open = Some(Open {
        session_id: session_id.clone(),
        opening,
        snapshot: None,
        following: Link::Connecting,
        looked: Link::Connecting,
        failed_looks: 0,
        events: Default::default(),
        batch: None,
        looking: false,
        look_again: false,
    });
    decide::withdraw(state);
    decide::next_stage(state);
    let mut effects = vec![Effect::Follow { opening, session_id }];
    effects.extend(look(state));
    effects
}

/// Looks at the open session, or again once the look under way has ended.
fn look(state: &mut State) -> Vec<Effect> {
    let Some(open) = &mut state.open else { return Vec::new() };
    if open.looking {
        open.look_again = true;
        return Vec::new();
    }
    open.looking = true;
    let known = open.batch.as_ref().map(|batch| batch.generation);
    vec![Effect::Look { opening: open.opening, session_id: open.session_id.clone(), known }]
}

fn drawn(state: &mut State, shown: &Shown) {
    let read = match (shown.batch, state.batch_mut()) {
        (Some(rows), Some(batch)) => batch.shown(rows),
        (_, Some(_) | None) => false,
    };
    if read {
        decide::next_stage(state);
    }
}

fn listed(state: &mut State, listed: Result<Vec<api_types::SessionSummary>, Trouble>) -> Vec<Effect> {
    match listed {
        Ok(sessions) => {
            let was_lost = matches!(state.daemon, Link::Lost(_));
            state.daemon = Link::Live;
            let moved = |sessions: &[api_types::SessionSummary], id: &str| {
                let found = sessions.iter().find(|session| session.session_id == id);
                found.map(|session| (session.status.clone(), session.pending_actions, session.blocked_reason.clone()))
            };
            let id = state.open.as_ref().map(|open| open.session_id.clone()).unwrap_or_default();
            let before = moved(&state.sessions, &id);
            state.set_sessions(sessions);
            if was_lost || before != moved(&state.sessions, &id) { look(state) } else { Vec::new() }
        }
        Err(trouble) => {
            state.daemon = Link::Lost(trouble.words);
            Vec::new()
        }
    }
}

fn page(state: &mut State, page: Result<EventPage, Trouble>) -> Vec<Effect> {
    let columns = layout::events_columns(state);
    let Some(open) = &mut state.open else { return Vec::new() };
    match page {
        Ok(page) => {
            open.following = Link::Live;
            let tells = page.resync.is_some() || page.events.iter().any(|event| event.kind != EventKind::Usage);
            open.events.take(page, columns);
            if tells { look(state) } else { Vec::new() }
        }
        Err(trouble) => {
            open.following = Link::Lost(trouble.words);
            Vec::new()
        }
    }
}

fn looked(state: &mut State, result: Result<Box<Look>, Trouble>) -> Vec<Effect> {
    let Some(open) = &mut state.open else { return Vec::new() };
    open.looking = false;
    let again = std::mem::take(&mut open.look_again);
    match result {
        Ok(found) => {
            let generation = found.snapshot.capability_generation;
            (open.looked, open.failed_looks) = (Link::Live, 0);
            open.snapshot = Some(found.snapshot);
            waits(state, generation, found.waits);
        }
        Err(trouble) => {
            let (opening, failed_looks) = (open.opening, open.failed_looks.saturating_add(1));
            open.failed_looks = failed_looks;
            open.looked = Link::Lost(trouble.words.clone());
            let next = if trouble.passes { ", trying again" } else { "" };
            state.warn(format!("the session cannot be looked at{next}: {}", trouble.words));
            if trouble.passes {
                // At once would be again and again: what asked for this look is still there after the pause.
                return vec![Effect::LookLater { opening, failed_looks }];
            }
        }
    }
    if again { look(state) } else { Vec::new() }
}

fn waits(state: &mut State, generation: u64, waits: Waits) {
    let Some(open) = &mut state.open else { return };
    match waits {
        Waits::AsKnown => {}
        Waits::Nothing => match open.batch.take() {
            // What came of the decision says more.
            Some(batch) if batch.decided => gone(state, None),
            Some(_) => gone(state, Some("the batch does not wait any more")),
            None => {}
        },
        Waits::Batch { approval, in_full } => match &mut open.batch {
            Some(batch) if batch.is_same(&approval, in_full) => {
                batch.generation = generation;
                gone_question(state, "the session has moved on: look again");
            }
            known => {
                let other = known.is_some();
                *known = Some(Batch::new(*approval, generation, in_full));
                if other {
                    gone(state, Some("another batch waits now: read it from the beginning"));
                } else {
                    gone(state, Some("a batch waits for a decision"));
                }
            }
        },
    }
}

/// What waits has changed: nothing that was asked or read of it counts any more.
fn gone(state: &mut State, words: Option<&str>) {
    decide::withdraw_decision(state);
    decide::next_stage(state);
    if state.batch().is_none() && state.pane == Pane::Batch {
        state.pane = Pane::Events;
    }
    if let Some(words) = words {
        state.say(words);
    }
}

fn gone_question(state: &mut State, words: &str) {
    if decide::withdraw_decision(state) {
        state.say(words);
    }
}

/// The words for where a receipt stands.
fn standing(receipt: ReceiptState) -> &'static str {
    match receipt {
        ReceiptState::Queued => "waits its turn",
        ReceiptState::InFlight => "is being carried out",
        ReceiptState::Applied => "is done",
        ReceiptState::Rejected => "was not done",
        ReceiptState::OutcomeUnknown => "may or may not have been done, and is never sent again: look at the events",
    }
}
