use super::*;
use crate::chaos::record::Conversation;

/// Three events of the server with one of the daemon's own among them, read by two readers and the last one.
fn record(of_a_reader: impl FnOnce(&mut Vec<Seen>)) -> (Record, BTreeMap<String, View>) {
    let seen = |(at, id): (usize, &str)| Seen { seq: count(at) + 1, event_id: id.to_owned(), own: id == "own" };
    let all: Vec<Seen> = ["a", "own", "b", "c"].into_iter().enumerate().map(seen).collect();
    let view = |reader: &str, events| View {
        reader: reader.to_owned(),
        session: "s".to_owned(),
        epochs: vec![events],
        cut_short: false,
    };
    let mut one = all.clone();
    of_a_reader(&mut one);
    let last = view("last", all.clone());
    let events = ["a", "b", "c"].map(str::to_owned).to_vec();
    let record = Record {
        conversations: [("s".to_owned(), Conversation { events, ..Conversation::default() })].into(),
        views: vec![view("0", one), view("1", all), last.clone()],
        ..Record::default()
    };
    (record, [("s".to_owned(), last)].into())
}

fn judged(of_a_reader: impl FnOnce(&mut Vec<Seen>)) -> Summary {
    let (record, last) = record(of_a_reader);
    let mut summary = Summary { stopped_cleanly: true, ..Summary::default() };
    summary.judge(&record, &last);
    summary
}

/// Missing, duplicated, out of order, unfounded, disagreeing.
fn counts(summary: &Summary) -> [u64; 5] {
    let verdict = &summary.verdict;
    let of_events = [verdict.events_missing, verdict.events_duplicated, verdict.events_out_of_order];
    let [missing, duplicated, out_of_order] = of_events;
    [missing, duplicated, out_of_order, verdict.events_unfounded, summary.readers_disagreeing]
}

#[test]
fn who_got_everything_once_in_order_is_right() {
    let summary = judged(|_| ());
    assert!(summary.is_sound(), "{}", summary.text());
    assert_eq!((summary.readers, summary.deliveries, summary.verdict.events_expected), (2, 12, 9));
}

#[test]
fn one_event_lost_doubled_swapped_or_made_up_is_counted() {
    let lost = judged(|events| {
        events.remove(2);
    });
    // By its number and by the server's log.
    assert_eq!((counts(&lost), lost.is_sound()), ([2, 0, 0, 0, 1], false));
    let lost_end = judged(|events| {
        events.pop();
    });
    assert_eq!((counts(&lost_end), lost_end.is_sound()), ([1, 0, 0, 0, 1], false));
    let renumbered = judged(|events| {
        events.remove(2);
        events[2].seq = 3;
    });
    assert_eq!((counts(&renumbered), renumbered.is_sound()), ([1, 0, 0, 0, 1], false));
    let doubled = judged(|events| events.insert(3, events[2].clone()));
    assert_eq!((counts(&doubled), doubled.is_sound()), ([0, 1, 0, 0, 1], false));
    let swapped = judged(|events| {
        events.swap(2, 3);
        (events[2].seq, events[3].seq) = (3, 4);
    });
    assert_eq!((counts(&swapped), swapped.is_sound()), ([0, 0, 1, 0, 1], false));
    let made_up = judged(|events| events.push(Seen { seq: 5, event_id: "z".to_owned(), own: false }));
    assert_eq!((counts(&made_up), made_up.is_sound()), ([0, 0, 0, 1, 1], false));
}

#[test]
fn one_of_the_daemons_own_events_lost_or_moved_is_counted() {
    let lost = judged(|events| {
        events.remove(1);
    });
    assert_eq!((counts(&lost), lost.is_sound()), ([1, 0, 0, 0, 1], false));
    let moved = judged(|events| {
        events.swap(1, 2);
        (events[1].seq, events[2].seq) = (2, 3);
    });
    assert_eq!((counts(&moved), moved.is_sound()), ([0, 0, 0, 0, 1], false));
}

#[test]
fn who_was_told_to_start_over_is_judged_by_what_came_then() {
    let (mut record, last) = record(|_| ());
    let whole = record.views[0].epochs[0].clone();
    record.views[0].epochs = vec![whole[..2].to_vec(), whole];
    let mut summary = Summary { stopped_cleanly: true, ..Summary::default() };
    summary.judge(&record, &last);
    assert!(summary.is_sound() && summary.resyncs == 1, "{}", summary.text());
}

#[test]
fn every_other_count_makes_a_run_unsound() {
    let sound = Summary { stopped_cleanly: true, ..Summary::default() };
    assert!(sound.is_sound());
    let wrongs: [fn(&mut Summary); 14] = [
        |summary| summary.verdict.lost_receipts = 1,
        |summary| summary.verdict.false_outcomes = 1,
        |summary| summary.verdict.duplicated_mutations = 1,
        |summary| summary.readers_cut_short = 1,
        |summary| summary.unapproved_executions = 1,
        |summary| summary.double_executions = 1,
        |summary| summary.approved_not_executed = 1,
        |summary| summary.outcomes_unknown = 1,
        |summary| summary.failed_turns = 1,
        |summary| summary.restless = 1,
        |summary| summary.leftover_processes = 1,
        |summary| summary.leftover_directories = 1,
        |summary| summary.stopped_cleanly = false,
        |summary| summary.growth.judged = true,
    ];
    for (number, wrong) in wrongs.iter().enumerate() {
        let mut summary = sound.clone();
        wrong(&mut summary);
        assert!(!summary.is_sound(), "{number}");
        assert_eq!(summary.json()["sound"], false);
    }
}
