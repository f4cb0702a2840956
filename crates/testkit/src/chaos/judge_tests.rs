use super::*;
use crate::chaos::record::Seen;

const SESSION: &str = "s";

fn receipt(state: &str, steps: &[(&str, &str)]) -> Receipt {
    let steps = steps.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect();
    Receipt { state: state.to_owned(), code: None, steps }
}

fn keyed(key: &str, kind: &str, answers: &[Answer], receipt: Option<Receipt>) -> Keyed {
    Keyed {
        key: key.to_owned(),
        session: SESSION.to_owned(),
        kind: kind.to_owned(),
        answers: answers.to_vec(),
        receipt,
        ..Keyed::default()
    }
}

fn told(state: &str) -> Answer {
    Answer::Receipt(state.to_owned())
}

fn seen(events: &[(u64, &str)]) -> Vec<Seen> {
    events.iter().map(|(seq, id)| Seen { seq: *seq, event_id: (*id).to_owned(), own: id.starts_with("own") }).collect()
}

fn view(epochs: &[&[(u64, &str)]]) -> View {
    View {
        reader: "r".to_owned(),
        session: SESSION.to_owned(),
        epochs: epochs.iter().map(|epoch| seen(epoch)).collect(),
        cut_short: false,
    }
}

/// A prompt, a fork and a title that each happened once, and a reader that got it all.
fn sound() -> Record {
    let message = [("send_message", "done")];
    let conversation = Conversation {
        title: Some("k3".to_owned()),
        broken: None,
        events: ["a", "m", "b"].map(str::to_owned).to_vec(),
        messages: [("m".to_owned(), "say: k1.".to_owned())].into(),
    };
    let fork = Conversation { title: Some("k2".to_owned()), ..conversation.clone() };
    Record {
        keyed: vec![
            keyed("k1", "prompt", &[Answer::Lost, told("in_flight")], Some(receipt("applied", &message))),
            keyed("k2", "fork", &[told("applied")], Some(receipt("applied", &[("fork", "done")]))),
            keyed("k3", "title", &[Answer::Lost], Some(receipt("outcome_unknown", &[("set_title", "unknown")]))),
            keyed("k4", "prompt", &[Answer::Refused("session_running".to_owned())], None),
        ],
        conversations: [(SESSION.to_owned(), conversation), ("f".to_owned(), fork)].into(),
        requests: [("message", 1), ("fork", 1), ("set_title", 1)]
            .map(|(kind, seen)| ((SESSION.to_owned(), kind.to_owned()), seen))
            .into(),
        closes: BTreeMap::new(),
        views: vec![view(&[&[(1, "own-1"), (2, "a"), (3, "m"), (4, "own-2"), (5, "b")]])],
        late: BTreeSet::new(),
    }
}

fn verdict_of(doctor: impl FnOnce(&mut Record)) -> Verdict {
    let mut record = sound();
    doctor(&mut record);
    let verdict = judge(&record);
    assert!(!verdict.is_sound() && !verdict.findings.is_empty(), "{verdict:?}");
    verdict
}

fn request(record: &mut Record, kind: &str) {
    *record.requests.entry((SESSION.to_owned(), kind.to_owned())).or_default() += 1;
}

#[test]
fn what_happened_once_is_sound() {
    let verdict = judge(&sound());
    assert!(verdict.is_sound(), "{:?}", verdict.findings);
    assert_eq!(verdict.events_expected, 3);
}

#[test]
fn a_message_that_stands_twice_is_found() {
    let verdict = verdict_of(|record| {
        let conversation = record.conversations.get_mut(SESSION).unwrap();
        conversation.messages.insert("m2".to_owned(), "say: k1.".to_owned());
    });
    assert_eq!(verdict.duplicated_mutations, 1);
}

#[test]
fn a_second_fork_of_one_key_is_found() {
    let verdict = verdict_of(|record| {
        let fork = record.conversations["f"].clone();
        record.conversations.insert("g".to_owned(), fork);
    });
    assert_eq!(verdict.duplicated_mutations, 1);
}

#[test]
fn a_request_that_no_step_accounts_for_is_found() {
    for kind in ["set_title", "message", "decision", "navigate", "run", "interrupt"] {
        let verdict = verdict_of(|record| request(record, kind));
        assert_eq!(verdict.duplicated_mutations, 1, "{kind}");
    }
    let not_sent =
        verdict_of(|record| record.keyed[2].receipt = Some(receipt("rejected", &[("set_title", "not_sent")])));
    assert_eq!(not_sent.duplicated_mutations, 1);
    let mut closed = sound();
    request(&mut closed, "interrupt");
    closed.closes.insert(SESSION.to_owned(), 1);
    assert!(judge(&closed).is_sound(), "closing interrupts");
}

#[test]
fn a_lost_receipt_is_found() {
    let gone = verdict_of(|record| record.keyed[1].receipt = None);
    assert_eq!(gone.lost_receipts, 1);
    let unanswered = verdict_of(|record| {
        (record.keyed[0].receipt, record.keyed[0].answers) = (None, vec![Answer::Lost]);
    });
    assert_eq!(unanswered.lost_receipts, 1, "its message stands on the server");
    for state in ["queued", "in_flight"] {
        let open = verdict_of(|record| record.keyed[0].receipt = Some(receipt(state, &[("send_message", "done")])));
        assert_eq!(open.lost_receipts, 1, "{state}");
    }
    let changed = verdict_of(|record| record.keyed[2].answers.push(told("applied")));
    assert_eq!(changed.lost_receipts, 1, "what was final became something else");
}

#[test]
fn a_receipt_that_tells_something_else_is_found() {
    let rejected =
        verdict_of(|record| record.keyed[0].receipt = Some(receipt("rejected", &[("send_message", "failed")])));
    assert_eq!(rejected.false_outcomes, 1);
    let applied = verdict_of(|record| {
        for conversation in record.conversations.values_mut() {
            conversation.messages.clear();
        }
    });
    assert_eq!(applied.false_outcomes, 1);
}

#[test]
fn a_missing_event_is_found() {
    let unnumbered = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "b")]])]);
    assert_eq!(unnumbered.events_missing, 1);
    let late = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "m")]])]);
    assert_eq!(late.events_missing, 1, "the end counts");
    let gap = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "m"), (4, "b")]])]);
    assert_eq!(gap.events_missing, 1, "a number that is skipped is an event that is missing");
    let nothing = verdict_of(|record| record.views = vec![view(&[])]);
    assert_eq!(nothing.events_missing, 3);
}

#[test]
fn swapped_and_repeated_and_unfounded_events_are_found() {
    let swapped = verdict_of(|record| record.views = vec![view(&[&[(1, "m"), (2, "a"), (3, "b")]])]);
    assert_eq!((swapped.events_out_of_order, swapped.events_missing), (1, 0));
    let again = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "m"), (2, "m"), (3, "b")]])]);
    assert_eq!((again.events_duplicated, again.events_missing), (1, 0));
    let own =
        verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "own"), (3, "own"), (4, "m"), (5, "b")]])]);
    assert_eq!(own.events_duplicated, 1);
    let unfounded = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (2, "x"), (3, "m"), (4, "b")]])]);
    assert_eq!(unfounded.events_unfounded, 1);
}

#[test]
fn what_the_journal_has_as_late_may_stand_behind_its_place_and_nothing_else_may() {
    let with = |late: &[&str], events: &[(u64, &str)]| {
        let mut record = sound();
        record.late = late.iter().map(|id| (SESSION.to_owned(), (*id).to_owned())).collect();
        record.views = vec![view(&[events])];
        judge(&record)
    };
    let behind = [(1, "m"), (2, "a"), (3, "b")];
    assert!(with(&["a"], &behind).is_sound());
    assert!(with(&["a", "m"], &[(1, "b"), (2, "a"), (3, "m")]).is_sound());
    assert_eq!(with(&["m"], &behind).events_out_of_order, 1, "a late one stands before its place");
    assert_eq!(with(&["b"], &behind).events_out_of_order, 1, "another one is late");
    assert_eq!(with(&["a"], &[(1, "b"), (2, "m"), (3, "a")]).events_out_of_order, 1, "one of two is late");
    assert_eq!(with(&["a", "m"], &[(1, "b"), (2, "m"), (3, "a")]).events_out_of_order, 1, "both are, and swapped");
    let mut elsewhere = sound();
    elsewhere.late = [("f".to_owned(), "a".to_owned())].into();
    elsewhere.views = vec![view(&[&behind])];
    assert_eq!(judge(&elsewhere).events_out_of_order, 1, "late in another session");
}

#[test]
fn a_new_epoch_starts_over_and_the_old_one_must_be_whole_in_itself() {
    let mut record = sound();
    let whole: &[(u64, &str)] = &[(1, "a"), (2, "m"), (3, "b")];
    record.views = vec![view(&[&[(1, "m"), (2, "a")], whole])];
    assert!(judge(&record).is_sound(), "an order that was given up does not count");
    let gap = verdict_of(|record| record.views = vec![view(&[&[(1, "a"), (3, "b")], whole])]);
    assert_eq!(gap.events_missing, 1);
}

#[test]
fn a_reader_of_a_closed_or_broken_session_may_miss_its_end_and_nothing_else() {
    let mut record = sound();
    record.views = vec![view(&[&[(1, "a"), (2, "m")]])];
    record.views[0].cut_short = true;
    assert!(judge(&record).is_sound());
    record.views[0].cut_short = false;
    assert!(!judge(&record).is_sound());
    record.conversations.get_mut(SESSION).unwrap().broken = Some("base_state.json".to_owned());
    assert!(judge(&record).is_sound());
    let hole = verdict_of(|record| {
        record.views = vec![view(&[&[(1, "a"), (2, "b")]])];
        record.views[0].cut_short = true;
    });
    assert_eq!(hole.events_missing, 1);
}
