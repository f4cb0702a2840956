//! Noticing that something ran which nobody accepted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::branch::{LogIndex, is_lone_exempt};
use crate::jcs;
use crate::log::{LogEvent, LogEventKind};
use crate::refusal::{Refusal, RefusalCode};

/// Version of the digest's content.
const BLOCK_VERSION: u32 = 1;

/// Observations after the baseline that no sent accept explains, in log order.
///
/// `events` is the whole log; `baseline` holds the ids of the events that stood in it when it was taken up (at attach, or
/// a fork's copied prefix); `sent` holds the ids of every action whose accept was sent. An action observed a second time is
/// unexplained even if it was accepted: an accept is good for one run. A finish or think that was pending alone needs none,
/// however often a crash in the middle makes the server run it.
pub fn unexplained<'a>(
    events: &'a [LogEvent],
    baseline: &BTreeSet<String>,
    sent: &BTreeSet<String>,
) -> Vec<&'a LogEvent> {
    let index = LogIndex::new(events).ok();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        let LogEventKind::Observation { action_id } = &event.kind else { continue };
        let count = runs.entry(action_id).or_default();
        *count += 1;
        if baseline.contains(&event.event_id) {
            continue;
        }
        let explained = (*count == 1 && sent.contains(action_id))
            || index.as_ref().is_some_and(|index| ran_alone_and_exempt(index, event, action_id));
        if !explained {
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
fn ran_alone_and_exempt(index: &LogIndex<'_>, observation: &LogEvent, action_id: &str) -> bool {
    let Some(parent_id) = observation.parent_id.as_deref() else { return false };
    let Ok(branch) = index.branch(parent_id) else { return false };
    // It may be answered already: a malformed call of the same reply, under the same call id, leaves its error first.
    let action: Vec<&LogEvent> = branch.events().iter().copied().filter(|event| event.event_id == action_id).collect();
    is_lone_exempt(&action) && branch.pending().iter().all(|event| event.event_id == action_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::ExemptKind;
    use crate::testing::{Log, action, error, exempt, malformed, observation, user};

    fn ids(events: &[&LogEvent]) -> Vec<String> {
        events.iter().map(|event| event.event_id.clone()).collect()
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
