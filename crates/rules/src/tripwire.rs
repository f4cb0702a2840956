//! Noticing that something ran which nobody accepted.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::branch::{Branch, LogIndex, is_lone_exempt};
use crate::jcs;
use crate::log::{LogEvent, LogEventKind};
use crate::refusal::{Refusal, RefusalCode};

/// Version of the digest's content.
const BLOCK_VERSION: u32 = 1;

/// Observations of a finish or think that was found to have been pending alone. What stands before an event never changes,
/// so each is looked at once, and from each only back to the one before it, where nothing was pending any more: to look
/// at the whole branch each time would take the square of the log's length.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KnownExempt(HashSet<String>);

/// Observations after the baseline that no sent accept explains, in log order.
///
/// `events` is the whole log; `baseline` holds the ids of the events that stood in it when it was taken up (at attach, or
/// a fork's copied prefix); `sent` holds the ids of every action whose accept was sent. An action observed a second time is
/// unexplained even if it was accepted: an accept is good for one run. A finish or think that was pending alone needs none,
/// however often a crash in the middle makes the server run it. `known` is of this log and no other.
pub fn unexplained<'a>(
    events: &'a [LogEvent],
    baseline: &BTreeSet<String>,
    sent: &BTreeSet<String>,
    known: &mut KnownExempt,
) -> Vec<&'a LogEvent> {
    let mut index = None;
    let mut runs: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for event in events {
        let LogEventKind::Observation { action_id } = &event.kind else { continue };
        let count = runs.entry(action_id).or_default();
        *count += 1;
        if baseline.contains(&event.event_id) || (*count == 1 && sent.contains(action_id)) {
            continue;
        }
        if known.0.contains(&event.event_id) {
            continue;
        }
        let index = index.get_or_insert_with(|| LogIndex::new(events).ok());
        if index.as_ref().is_some_and(|index| ran_alone_and_exempt(index, event, action_id, known)) {
            known.0.insert(event.event_id.clone());
        } else {
            found.push(event);
        }
    }
    found
}

/// Names what an owner acknowledges: these very observations of this session. 64 lower-case hexadecimal digits.
pub fn block_id(session_id: &str, observation_ids: &[String]) -> String {
    jcs::digest(&json!({"v": BLOCK_VERSION, "session_id": session_id, "observations": observation_ids}))
}

/// Whether an acknowledgement that names `block_id` is about what blocks the session now.
///
/// # Errors
/// `not_advertised` when nothing does, `approval_superseded` when more was observed since.
pub fn check_acknowledge(block_id: &str, current: Option<&str>) -> Result<(), Refusal> {
    match current {
        Some(current) if current == block_id => Ok(()),
        Some(current) => Err(Refusal::new(
            RefusalCode::ApprovalSuperseded,
            format!("another block stands: look at what was observed and acknowledge {current}"),
        )),
        None => Err(Refusal::new(RefusalCode::NotAdvertised, "no action that nobody accepted blocks the session")),
    }
}

/// Whether the action is of an exempt kind, and no other was pending where its observation was appended.
fn ran_alone_and_exempt(index: &LogIndex<'_>, observation: &LogEvent, action_id: &str, known: &KnownExempt) -> bool {
    let Some(parent_id) = observation.parent_id.as_deref() else { return false };
    // Behind an observation that is known nothing older is pending: it answered all that was.
    let Ok(end) = index.branch_behind(parent_id, |event_id| known.0.contains(event_id)) else { return false };
    if alone_and_exempt(&end, action_id) {
        return true;
    }
    // The action may stand before it, run again after a crash.
    let is_there = end.events().iter().any(|event| event.event_id == action_id);
    !is_there && index.branch(parent_id).is_ok_and(|branch| alone_and_exempt(&branch, action_id))
}

fn alone_and_exempt(branch: &Branch<'_>, action_id: &str) -> bool {
    // It may be answered already: a malformed call of the same reply, under the same call id, leaves its error first.
    let action: Vec<&LogEvent> = branch.events().iter().copied().filter(|event| event.event_id == action_id).collect();
    is_lone_exempt(&action) && branch.pending().iter().all(|event| event.event_id == action_id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::ExemptKind;
    use crate::testing::{Log, action, error, exempt, malformed, observation, user};

    fn ids(events: &[&LogEvent]) -> Vec<String> {
        events.iter().map(|event| event.event_id.clone()).collect()
    }

    /// What is unexplained, looked at after each event, as a whole, and without remembering anything.
    #[track_caller]
    fn unexplained<'a>(
        events: &'a [LogEvent],
        baseline: &BTreeSet<String>,
        sent: &BTreeSet<String>,
    ) -> Vec<&'a LogEvent> {
        let mut known = KnownExempt::default();
        let whole = super::unexplained(events, baseline, sent, &mut KnownExempt::default());
        assert_eq!(whole, looked_at_one_by_one(events, baseline, sent));
        for upto in 0..events.len() {
            super::unexplained(&events[..upto], baseline, sent, &mut known);
        }
        assert_eq!(super::unexplained(events, baseline, sent, &mut known), whole);
        whole
    }

    fn looked_at_one_by_one<'a>(
        events: &'a [LogEvent],
        baseline: &BTreeSet<String>,
        sent: &BTreeSet<String>,
    ) -> Vec<&'a LogEvent> {
        let index = LogIndex::new(events).unwrap();
        let mut runs: Vec<String> = Vec::new();
        let is_unexplained = |event: &&LogEvent| {
            let LogEventKind::Observation { action_id } = &event.kind else { return false };
            let is_first = !runs.contains(action_id);
            runs.push(action_id.clone());
            !(baseline.contains(&event.event_id)
                || is_first && sent.contains(action_id)
                || ran_alone_and_exempt(&index, event, action_id, &KnownExempt::default()))
        };
        events.iter().filter(is_unexplained).collect()
    }

    /// An event of a random log: its kind, the action it is about, and its parent, counted back from the one before.
    fn events() -> impl Strategy<Value = Vec<LogEvent>> {
        prop::collection::vec((0..8_u8, 0..4_usize, 0..12_usize), 1..24).prop_map(|drawn| {
            let mut log = Log::line(&[]);
            let mut actions: Vec<String> = Vec::new();
            let mut ids: Vec<String> = Vec::new();
            for (number, (kind, back, hop)) in drawn.into_iter().enumerate() {
                let id = format!("e{number}");
                let about = actions.len().checked_sub(back + 1).map_or("none", |at| actions[at].as_str()).to_owned();
                let call = format!("call-{}", number % 3);
                let event = match kind {
                    0 => user("go on"),
                    1 => action(&call),
                    2 => error(&call),
                    3 | 4 => exempt(&call, ExemptKind::Finish),
                    _ => observation(&about),
                };
                if matches!(kind, 1 | 3 | 4) {
                    actions.push(id.clone());
                }
                // Mostly the event before; sometimes a branch from further back.
                let parent = ids.len().checked_sub(if hop < 10 { 1 } else { 1 + back }).map(|at| ids[at].clone());
                log.push(&id, if number == 0 { None } else { parent.as_deref().or(Some("e0")) }, event);
                ids.push(id);
            }
            log.events().to_vec()
        })
    }

    proptest! {
        #[test]
        fn remembering_changes_nothing(events in events(), accepted in prop::collection::vec(0..24_usize, 0..4)) {
            let sent = accepted.into_iter().map(|number| format!("e{number}")).collect();
            unexplained(&events, &BTreeSet::new(), &sent);
        }
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn an_observation_without_an_accept_is_found() {
        let log = Log::line(&[("u", user("hi")), ("a", action("c1")), ("o", observation("a"))]);
        assert_eq!(ids(&unexplained(log.events(), &set(&[]), &set(&[]))), ["o"]);
        assert!(unexplained(log.events(), &set(&[]), &set(&["a"])).is_empty());
    }

    #[test]
    fn what_stood_before_is_not_ours() {
        let log =
            Log::line(&[("a", action("c1")), ("o", observation("a")), ("b", action("c2")), ("p", observation("b"))]);
        assert_eq!(ids(&unexplained(log.events(), &set(&["a", "o", "b"]), &set(&[]))), ["p"]);
    }

    #[test]
    fn one_accept_explains_one_run() {
        let mut log = Log::line(&[("u", user("hi")), ("a", action("c1")), ("o", observation("a"))]);
        log.push("again", Some("a"), observation("a"));
        assert_eq!(ids(&unexplained(log.events(), &set(&[]), &set(&["a"]))), ["again"]);
        assert_eq!(ids(&unexplained(log.events(), &set(&["u", "a", "o"]), &set(&["a"]))), ["again"]);
    }

    #[test]
    fn a_finish_alone_needs_no_accept_but_one_in_a_batch_does() {
        let alone = Log::line(&[("f", exempt("c1", ExemptKind::Finish)), ("o", observation("f"))]);
        assert!(unexplained(alone.events(), &set(&[]), &set(&[])).is_empty());
        let batch = Log::line(&[("a", action("c1")), ("f", exempt("c2", ExemptKind::Think)), ("o", observation("f"))]);
        assert_eq!(ids(&unexplained(batch.events(), &set(&[]), &set(&[]))), ["o"]);
        assert_eq!(ids(&unexplained(batch.events(), &set(&[]), &set(&["a"]))), ["o"]);
    }

    #[test]
    fn a_think_that_a_crash_made_run_twice_needs_no_accept() {
        let mut log = Log::line(&[("t", exempt("c", ExemptKind::Think)), ("o", observation("t"))]);
        log.push("again", Some("t"), observation("t"));
        assert!(unexplained(log.events(), &set(&[]), &set(&[])).is_empty());
    }

    #[test]
    fn a_think_whose_call_id_a_malformed_neighbour_shares_needs_no_accept() {
        let reply = [("t", exempt("c", ExemptKind::Think)), ("m", malformed("c")), ("e", error("c"))];
        let mut log = Log::line(&reply);
        log.push("o", Some("e"), observation("t"));
        assert!(unexplained(log.events(), &set(&[]), &set(&[])).is_empty());
        let mut beside = Log::line(&[("a", action("c1")), reply[0].clone(), reply[1].clone(), reply[2].clone()]);
        beside.push("o", Some("e"), observation("t"));
        assert_eq!(ids(&unexplained(beside.events(), &set(&[]), &set(&[]))), ["o"]);
        let mut elsewhere = Log::line(&[("u", user("hi"))]);
        elsewhere.push("t", Some("u"), exempt("c", ExemptKind::Think));
        elsewhere.push("o", Some("u"), observation("t"));
        assert_eq!(ids(&unexplained(elsewhere.events(), &set(&[]), &set(&[]))), ["o"]);
    }

    #[test]
    fn rejections_and_errors_are_no_runs() {
        let log = Log::line(&[("a", action("c1")), ("e", error("c1"))]);
        assert!(unexplained(log.events(), &set(&[]), &set(&[])).is_empty());
    }

    #[test]
    fn an_observation_of_an_unknown_action_is_found() {
        let log = Log::line(&[("u", user("hi")), ("o", observation("ghost"))]);
        assert_eq!(ids(&unexplained(log.events(), &set(&[]), &set(&[]))), ["o"]);
    }

    #[test]
    fn an_acknowledgement_is_of_what_was_looked_at() {
        let one = block_id("s", &["o".to_owned()]);
        let more = block_id("s", &["o".to_owned(), "p".to_owned()]);
        assert!(one != more && one != block_id("t", &["o".to_owned()]) && one.len() == 64);
        assert!(check_acknowledge(&one, Some(&one)).is_ok());
        assert_eq!(check_acknowledge(&one, Some(&more)).unwrap_err().code, RefusalCode::ApprovalSuperseded);
        assert_eq!(check_acknowledge(&one, None).unwrap_err().code, RefusalCode::NotAdvertised);
    }
}
