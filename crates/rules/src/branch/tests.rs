use super::*;
use crate::log::{ExecutionStatus, ExemptKind};
use crate::testing::{Log, action, error, exempt, malformed, observation, reject, user};
use proptest::prelude::*;

fn ids(events: &[&LogEvent]) -> Vec<String> {
    events.iter().map(|event| event.event_id.clone()).collect()
}

fn pending(log: &Log, leaf: &str) -> Vec<String> {
    ids(&active_branch(log.events(), Some(leaf)).unwrap().pending())
}

#[test]
fn an_empty_log_has_an_empty_branch() {
    let branch = active_branch(&[], None).unwrap();
    assert!(branch.events().is_empty() && branch.pending().is_empty() && branch.last_safe_point().is_none());
    assert_eq!(branch.leaf(), None);
    let states = Log::line(&[("s", LogEventKind::Status(ExecutionStatus::Idle)), ("t", LogEventKind::StateUpdate)]);
    assert!(active_branch(states.events(), None).unwrap().events().is_empty());
}

#[test]
fn whatever_is_not_certain_is_an_error() {
    let line = Log::line(&[("r", LogEventKind::Other), ("u", user("hi"))]);
    assert_eq!(active_branch(line.events(), None).unwrap_err(), BranchError::NoLeaf);
    assert_eq!(active_branch(line.events(), Some("x")).unwrap_err(), BranchError::UnknownLeaf("x".into()));
    assert_eq!(active_branch(&[], Some("x")).unwrap_err(), BranchError::UnknownLeaf("x".into()));

    let mut orphan = Log::line(&[("r", LogEventKind::Other)]);
    orphan.push("u", Some("gone"), user("hi"));
    let missing = BranchError::MissingParent { event_id: "u".into(), parent_id: "gone".into() };
    assert_eq!(active_branch(orphan.events(), Some("u")).unwrap_err(), missing);
    assert!(active_branch(orphan.events(), Some("r")).is_ok());

    let mut legacy = Log::line(&[("r", LogEventKind::Other)]);
    legacy.push("u", None, user("hi"));
    assert_eq!(active_branch(legacy.events(), Some("u")).unwrap_err(), BranchError::NoParent("u".into()));

    let mut circle = Log::line(&[("r", LogEventKind::Other)]);
    circle.push("a", Some("b"), user("1"));
    circle.push("b", Some("a"), user("2"));
    assert!(matches!(active_branch(circle.events(), Some("a")).unwrap_err(), BranchError::Cycle(_)));
    circle.push("self", Some("self"), user("3"));
    assert!(matches!(active_branch(circle.events(), Some("self")).unwrap_err(), BranchError::Cycle(_)));

    let mut twice = Log::line(&[("r", LogEventKind::Other), ("u", user("hi"))]);
    twice.push("u", Some("r"), user("ho"));
    let refusal = Refusal::from(active_branch(twice.events(), Some("r")).unwrap_err());
    assert_eq!(refusal.code, RefusalCode::BranchUnreadable);
}

#[test]
fn a_further_root_is_a_root() {
    let mut log = Log::line(&[("r", LogEventKind::Other), ("a", action("c"))]);
    log.push("new", Some(ROOT_PARENT_ID), user("hi"));
    let branch = active_branch(log.events(), Some("new")).unwrap();
    assert_eq!((ids(branch.events()), branch.leaf()), (vec!["new".to_owned()], Some("new")));
    assert!(pending(&log, "new").is_empty());
}

#[test]
fn answers_count_only_after_the_action_and_on_its_branch() {
    assert_eq!(pending(&Log::line(&[("a", action("c"))]), "a"), ["a"]);
    for answer in [observation("a"), reject("a"), error("c")] {
        assert!(pending(&Log::line(&[("a", action("c")), ("x", answer)]), "x").is_empty());
    }
    // A reused id of an earlier error, and answers that stand before what they name.
    for early in [error("c"), observation("a"), reject("a")] {
        assert_eq!(pending(&Log::line(&[("x", early), ("a", action("c"))]), "a"), ["a"]);
    }
    // The wrong id, and the right word of the wrong kind.
    for other in [observation("b"), reject("c"), error("a"), LogEventKind::Other, user("a")] {
        assert_eq!(pending(&Log::line(&[("a", action("c")), ("x", other)]), "x"), ["a"]);
    }
    // An answer on another branch.
    let mut log = Log::line(&[("r", LogEventKind::Other), ("a", action("c")), ("o", observation("a"))]);
    log.push("u", Some("a"), user("hi"));
    assert_eq!(pending(&log, "u"), ["a"]);
    assert_eq!(pending(&log, "a"), ["a"]);
    assert!(pending(&log, "o").is_empty());
    // State updates beside the branch change nothing.
    log.push("s", Some("a"), LogEventKind::Status(ExecutionStatus::Finished));
    assert_eq!(pending(&log, "u"), ["a"]);
}

#[test]
fn one_error_answers_only_the_calls_before_it() {
    let log = Log::line(&[("a", action("same")), ("e", error("same")), ("b", action("same"))]);
    assert_eq!(pending(&log, "b"), ["b"]);
    let both = Log::line(&[("a", action("same")), ("b", action("same")), ("e", error("same"))]);
    assert!(pending(&both, "e").is_empty());
}

#[test]
fn malformed_calls_cannot_execute_and_do_not_wait() {
    assert!(pending(&Log::line(&[("a", malformed("c"))]), "a").is_empty());
}

#[test]
fn a_finish_or_think_asks_nothing_only_when_alone() {
    for kind in [ExemptKind::Finish, ExemptKind::Think] {
        let alone = Log::line(&[("f", exempt("c", kind))]);
        let branch = active_branch(alone.events(), Some("f")).unwrap();
        assert_eq!(ids(&branch.pending()), ["f"]);
        assert!(branch.batch().is_empty());
        assert_eq!(branch.pending_exempt().map(|event| event.event_id.as_str()), Some("f"));
        for others in
            [[("a", action("c1")), ("f", exempt("c2", kind))], [("f", exempt("c1", kind)), ("a", exempt("c2", kind))]]
        {
            let log = Log::line(&others);
            let leaf = others[1].0;
            let branch = active_branch(log.events(), Some(leaf)).unwrap();
            assert_eq!(branch.batch().len(), 2);
            assert_eq!(branch.pending_exempt(), None);
        }
    }
    let action = Log::line(&[("a", action("c"))]);
    let branch = active_branch(action.events(), Some("a")).unwrap();
    assert_eq!((branch.batch().len(), branch.pending_exempt()), (1, None));
}

#[test]
fn safe_points_have_everything_before_them_answered() {
    let log = Log::line(&[
        ("r", LogEventKind::Other),
        ("u", user("one")),
        ("a", action("c1")),
        ("b", action("c2")),
        ("o", observation("a")),
        ("x", reject("b")),
        ("m", malformed("c3")),
        ("e", error("c3")),
        ("c", action("c4")),
        ("v", user("two")),
    ]);
    let branch = active_branch(log.events(), Some("v")).unwrap();
    assert_eq!(ids(&branch.safe_points()), ["r", "u", "x", "e"]);
    assert_eq!(branch.last_safe_point().map(|event| event.event_id.as_str()), Some("e"));
    assert!(branch.contains("c") && !branch.contains("z"));
}

#[test]
fn rewinding_leads_to_the_end_of_a_turn() {
    let long = "x".repeat(500);
    let log = Log::line(&[
        ("r", LogEventKind::Other),
        ("u", user("one")),
        ("a", action("c1")),
        ("o", observation("a")),
        ("m", LogEventKind::AgentMessage { text: "done".into() }),
        ("v", user(&long)),
        ("b", action("c2")),
    ]);
    let choices = active_branch(log.events(), Some("b")).unwrap().rewind_choices();
    let seen: Vec<(u32, &str, usize)> =
        choices.iter().map(|choice| (choice.turn, choice.event_id.as_str(), choice.text.chars().count())).collect();
    assert_eq!(seen, [(1, "m", 3), (2, "v", REWIND_TEXT_CHARS)]);
    assert!(active_branch(log.events(), Some("r")).unwrap().rewind_choices().is_empty());
}

#[test]
fn a_turn_begun_over_pending_actions_has_no_safe_point() {
    let log = Log::line(&[("u", user("one")), ("a", action("c")), ("v", user("two"))]);
    let choices = active_branch(log.events(), Some("v")).unwrap().rewind_choices();
    assert_eq!(choices.iter().map(|choice| choice.turn).collect::<Vec<_>>(), [1]);
}

/// The server's own reading, written down the way it does it: path to the root, then backwards over it.
fn server_unmatched(events: &[LogEvent], leaf: &str) -> Option<Vec<String>> {
    let find = |id: &str| events.iter().rposition(|event| event.event_id == id);
    let mut chain = Vec::new();
    let mut current = Some(find(leaf)?);
    while let Some(index) = current {
        if chain.contains(&index) {
            return None;
        }
        chain.push(index);
        current = match events[index].parent_id.as_deref() {
            Some("__root__") => None,
            Some(parent) => Some(find(parent)?),
            None => index.checked_sub(1),
        };
    }
    let (mut ids, mut calls, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
    for index in chain {
        match &events[index].kind {
            LogEventKind::Observation { action_id } | LogEventKind::UserReject { action_id } => {
                ids.push(action_id.clone())
            }
            LogEventKind::AgentError { tool_call_id } => calls.push(tool_call_id.clone()),
            LogEventKind::Action(record) => {
                if record.action.is_some()
                    && !ids.contains(&events[index].event_id)
                    && !calls.contains(&record.tool_call_id)
                {
                    unmatched.insert(0, events[index].event_id.clone());
                }
            }
            LogEventKind::UserMessage { .. }
            | LogEventKind::AgentMessage { .. }
            | LogEventKind::Status(_)
            | LogEventKind::StateUpdate
            | LogEventKind::Other => {}
        }
    }
    Some(unmatched)
}

const NODES: usize = 12;

fn any_kind() -> impl Strategy<Value = LogEventKind> {
    let node = (0..NODES).prop_map(|node| node.to_string());
    let call = (0..4_u8).prop_map(|call| format!("call{call}"));
    prop_oneof![
        4 => call.clone().prop_map(|call| action(&call)),
        1 => call.clone().prop_map(|call| malformed(&call)),
        1 => call.clone().prop_map(|call| exempt(&call, ExemptKind::Think)),
        3 => node.clone().prop_map(|node| observation(&node)),
        2 => node.prop_map(|node| reject(&node)),
        2 => call.prop_map(|call| error(&call)),
        2 => Just(user("hi")),
        1 => Just(LogEventKind::StateUpdate),
        1 => Just(LogEventKind::Other),
    ]
}

/// Trees mostly, and now and then a parent that is missing, later, or the event itself.
fn any_log() -> impl Strategy<Value = Vec<LogEvent>> {
    prop::collection::vec((any_kind(), any::<prop::sample::Index>(), 0..40_u8), 1..NODES).prop_map(|nodes| {
        let count = nodes.len();
        nodes
            .into_iter()
            .enumerate()
            .map(|(position, (kind, index, dice))| {
                let parent_id = match dice {
                    0 => Some("missing".to_owned()),
                    1 => Some(index.index(count).to_string()),
                    2 => None,
                    3 => Some(ROOT_PARENT_ID.to_owned()),
                    4..=12 if position > 0 => Some(index.index(position).to_string()),
                    _ => position.checked_sub(1).map(|parent| parent.to_string()),
                };
                LogEvent { event_id: position.to_string(), parent_id, kind }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_the_server_would_run_is_ever_overlooked(log in any_log(), leaf in any::<prop::sample::Index>()) {
        let leaf = leaf.index(log.len()).to_string();
        if let Ok(branch) = active_branch(&log, Some(&leaf)) {
            let pending = ids(&branch.pending());
            let server = server_unmatched(&log, &leaf).expect("a branch we can read, the server can read");
            prop_assert!(server.iter().all(|id| pending.contains(id)), "{server:?} but only {pending:?}");
            let batch = ids(&branch.batch());
            prop_assert!(batch == pending || (batch.is_empty() && branch.pending_exempt().is_some()));
            for event in branch.events().iter().filter(|event| event.executable().is_some()) {
                prop_assert_eq!(branch.answer(&event.event_id).is_none(), pending.contains(&event.event_id));
            }
        }
    }

    #[test]
    fn at_a_safe_point_nothing_is_pending(log in any_log(), leaf in any::<prop::sample::Index>()) {
        let leaf = leaf.index(log.len()).to_string();
        if let Ok(branch) = active_branch(&log, Some(&leaf)) {
            for point in branch.safe_points() {
                prop_assert!(!point.is_action());
                let cut = active_branch(&log, Some(&point.event_id)).unwrap();
                prop_assert!(cut.pending().is_empty());
                prop_assert_eq!(server_unmatched(&log, &point.event_id), Some(Vec::new()));
            }
            for choice in branch.rewind_choices() {
                prop_assert!(branch.safe_points().iter().any(|point| point.event_id == choice.event_id));
            }
        }
    }

    #[test]
    fn a_later_event_off_the_branch_changes_nothing(log in any_log(), leaf in any::<prop::sample::Index>(), kind in any_kind()) {
        let leaf = leaf.index(log.len()).to_string();
        let before = active_branch(&log, Some(&leaf)).map(|branch| ids(&branch.pending()));
        let mut longer = log.clone();
        longer.push(LogEvent { event_id: "beside".into(), parent_id: Some(leaf.clone()), kind });
        let after = active_branch(&longer, Some(&leaf)).map(|branch| ids(&branch.pending()));
        prop_assert_eq!(before, after);
    }
}

#[test]
fn an_answer_stands_after_its_action_on_its_branch() {
    let mut log = Log::line(&[
        ("early", error("c")),
        ("a", action("c")),
        ("b", action("d")),
        ("m", malformed("e")),
        ("r", reject("b")),
        ("f", error("c")),
    ]);
    let answer = |log: &Log, leaf: &str, id: &str| active_branch(log.events(), Some(leaf)).unwrap().answer(id);
    assert_eq!(answer(&log, "b", "a"), None);
    assert_eq!(answer(&log, "r", "a"), None);
    assert_eq!(answer(&log, "r", "b"), Some(Answer::Rejected));
    assert_eq!(answer(&log, "f", "a"), Some(Answer::Failed));
    for never in ["m", "early", "ghost"] {
        assert_eq!(answer(&log, "f", never), None, "{never}");
    }
    log.push("o", Some("f"), observation("a"));
    assert_eq!(answer(&log, "o", "a"), Some(Answer::Observed));
    assert_eq!(answer(&log, "o", "b"), Some(Answer::Rejected));
    log.push("aside", Some("r"), observation("b"));
    assert_eq!(answer(&log, "o", "b"), Some(Answer::Rejected));
    assert_eq!(answer(&log, "aside", "b"), Some(Answer::Observed));
}

#[test]
fn answers_have_the_words_of_receipts_and_the_one_that_says_most_is_the_greatest() {
    let answers = [Answer::Rejected, Answer::Failed, Answer::Observed];
    assert_eq!(answers.map(Answer::as_str), ["rejected", "error", "observed"]);
    assert!(answers.is_sorted());
}
