use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A row that a test can own: its id, and what it is.
#[derive(Debug, Clone, PartialEq)]
struct Entry(String, Kind);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Own,
    Fresh,
    Overdue,
    Late,
    Emptied,
}

/// What readers see of an event that nothing changed.
const SAME: Content = 7;

/// What came by then is overdue.
const OVERDUE_MS: u64 = 1_000;

fn rows(entries: &[Entry]) -> Vec<Row> {
    let origin = |kind| match kind {
        Kind::Own => Origin::Own,
        Kind::Fresh => Origin::Server { content: Some(SAME), arrived_ms: OVERDUE_MS + 1 },
        Kind::Overdue => Origin::Server { content: None, arrived_ms: OVERDUE_MS },
        Kind::Late => Origin::Late,
        Kind::Emptied => Origin::Emptied,
    };
    entries.iter().map(|entry| Row { event_id: entry.0.clone(), origin: origin(entry.1) }).collect()
}

fn logged(ids: &[String]) -> Vec<Logged<'_>> {
    ids.iter().map(|id| Logged { event_id: id, content: SAME }).collect()
}

/// `"a b +o c! d~ -e"`: two events of the server, one of gatepost's own, one that is overdue, one that is late, one that is
/// emptied.
fn tail(text: &str) -> Vec<Entry> {
    text.split_whitespace()
        .map(|word| {
            let marks = [('+', Kind::Own), ('!', Kind::Overdue), ('~', Kind::Late), ('-', Kind::Emptied)];
            let mark = marks.into_iter().find(|(mark, _)| word.starts_with(*mark) || word.ends_with(*mark));
            mark.map_or(Entry(word.to_owned(), Kind::Fresh), |(mark, kind)| Entry(word.replace(mark, ""), kind))
        })
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The tail after a decision, and how many of its rows are confirmed; with the difference, if the epoch was raised.
fn applied(entries: &[Entry], read: &[String], rest: Rest) -> (Vec<Entry>, usize, Option<Difference>) {
    let entry = |index: usize, kind| Entry(read[index].clone(), kind);
    match reconcile(&rows(entries), &logged(read), rest, OVERDUE_MS) {
        Verdict::Extend { confirmed, append, late } => {
            let kinds = (0..append.len()).map(|number| if number < late { Kind::Late } else { Kind::Fresh });
            let mut after = entries.to_vec();
            after.extend(append.iter().zip(kinds).map(|(index, kind)| entry(*index, kind)));
            let confirmed = if confirmed == entries.len() { after.len() } else { confirmed };
            (after, confirmed, None)
        }
        Verdict::Rewrite { difference, keep, order } => {
            let mut after = entries[..keep].to_vec();
            after.extend(order.into_iter().map(|place| match place {
                Place::Row(index) => entries[index].clone(),
                Place::Logged(index) => entry(index, Kind::Fresh),
            }));
            let confirmed = after.len();
            (after, confirmed, Some(difference))
        }
    }
}

fn text(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.0.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_case_comes_out_as_written() {
    let whole = Rest::Nothing;
    let (order, never) = (Some(Difference::Order), Some(Difference::NeverAppended));
    // The tail, the read, whether it is whole; the tail then, its confirmed rows, whether and why the epoch is raised.
    let cases = [
        ("", "", whole, "", 0, None),
        ("", "a b", whole, "a b", 2, None),
        ("a b", "a b", whole, "a b", 2, None),
        ("a b +o", "a b", whole, "a b o", 3, None),
        ("a b", "a b c", whole, "a b c", 3, None),
        ("a +o b +p", "a b c", whole, "a o b p c", 5, None),
        ("a b", "", whole, "a b", 0, None),
        ("a b", "a", whole, "a b", 1, None),
        ("a b!", "a", Rest::More, "a b", 1, None),
        ("b a", "a b", whole, "a b", 2, order),
        ("a c", "a b c", whole, "a c b", 3, None),
        ("a +o c +p", "a b c", whole, "a o c p b", 5, None),
        ("a +o c +p", "a b c", Rest::More, "a o c p b", 3, None),
        ("a c b~", "a b c d", whole, "a c b d", 4, None),
        ("a c b~", "a b", Rest::More, "a c b", 1, None),
        ("c b~", "c d", whole, "c b d", 3, None),
        ("a c b~ e d", "a b c d e", whole, "a b c d e", 5, order),
        ("c b~ +o e d", "c d e", whole, "c b o d e", 5, order),
        ("a c", "b", whole, "a c b", 0, None),
        ("a! c", "b", whole, "b", 1, never),
        ("a x c", "a c", whole, "a c", 2, never),
        ("a x!", "a", whole, "a", 1, never),
        ("x! +o", "", whole, "o", 1, never),
        ("a x c d", "a c", whole, "a c", 2, never),
        ("a x +o c", "a c", whole, "a o c", 3, never),
        ("b +o a +p", "a b", whole, "a b o p", 4, order),
        ("x b", "a", Rest::More, "x b a", 0, None),
        ("x b", "b", Rest::More, "b", 1, order),
        ("x b", "a b", whole, "a b", 2, never),
        ("-a -p b", "a b c", whole, "a p b c", 4, None),
        ("-p -q +o", "", whole, "p q o", 3, None),
        ("-a b", "c b", whole, "a b c", 3, None),
    ];
    for (before, read, rest, after, confirmed, raised) in cases {
        let outcome = applied(&tail(before), &words(read), rest);
        assert_eq!((text(&outcome.0).as_str(), outcome.1, outcome.2), (after, confirmed, raised), "{before} | {read}");
    }
}

#[test]
fn what_readers_were_shown_otherwise_is_written_again() {
    let entries = tail("a b +o");
    let read = [Logged { event_id: "a", content: SAME }, Logged { event_id: "b", content: SAME + 1 }];
    let expected =
        Verdict::Rewrite { difference: Difference::Content, keep: 1, order: vec![Place::Logged(1), Place::Row(2)] };
    assert_eq!(reconcile(&rows(&entries), &read, Rest::Nothing, OVERDUE_MS), expected);
    // What is not remembered is not compared.
    let entries = tail("a b! +o");
    assert_eq!(
        reconcile(&rows(&entries), &read, Rest::Nothing, OVERDUE_MS),
        Verdict::Extend { confirmed: 3, append: Vec::new(), late: 0 }
    );
}

/// Everything that a small stream can do to a small log: each order of each subset of what was published, with own events
/// in between, against each log.
#[test]
fn every_small_case_ends_in_the_order_of_the_log() {
    let pieces = ["a", "b", "x!", "+o", "+p", "y", "c~"];
    let logs = ["", "a", "b", "a b", "b a", "a b c", "a c b", "c a b", "y a b", "a y"];
    let mut tried = 0;
    let mut tails: Vec<Vec<&str>> = vec![Vec::new()];
    let mut from = 0;
    for _length in 0..5 {
        let end = tails.len();
        for index in from..end {
            for piece in pieces {
                let is_first_own = piece != "+p" || tails[index].contains(&"+o");
                if is_first_own && !tails[index].contains(&piece) {
                    let mut longer = tails[index].clone();
                    longer.push(piece);
                    tails.push(longer);
                }
            }
        }
        from = end;
    }
    for entries in &tails {
        for log in logs {
            check(&tail(&entries.join(" ")), &words(log));
            tried += 1;
        }
    }
    assert!(tried > 3_000, "{tried}");
}

/// What holds after any read that reached the end of the log.
fn check(before: &[Entry], log: &[String]) {
    let (after, confirmed, raised) = applied(before, log, Rest::Nothing);
    let case = format!("{before:?} | {log:?} -> {after:?}, {confirmed}, {raised:?}");
    check_events(&after, log, &case);
    // Behind what is confirmed only what the log may still bring, in the order in which it came, and what it had late.
    let waits: Vec<&Entry> = after.iter().filter(|entry| is_streamed(entry) && !log.contains(&entry.0)).collect();
    assert!(waits.iter().all(|entry| entry.1 == Kind::Fresh && !after[..confirmed].contains(entry)), "waits: {case}");
    let places: Vec<usize> = waits.iter().map(|entry| before.iter().position(|old| old == *entry).unwrap()).collect();
    assert!(places.is_sorted(), "reordered without a reason: {case}");
    assert!(waits.is_empty() || raised.is_none(), "a raised epoch waits for nothing: {case}");
    assert!(!waits.is_empty() || confirmed == after.len(), "not confirmed: {case}");
    assert_eq!(own(&after), own(before), "{case}");
    // No epoch is raised for what the stream left out, and each for what it brought otherwise.
    let streamed: Vec<&Entry> = before.iter().filter(|entry| is_streamed(entry)).collect();
    let places: Vec<Option<usize>> = streamed.iter().map(|entry| log.iter().position(|id| *id == entry.0)).collect();
    let appended = places.iter().take_while(|place| place.is_some()).count();
    let is_as_logged = places[..appended].is_sorted() && places[appended..].iter().all(Option::is_none);
    let is_overdue = streamed[appended..].iter().any(|entry| entry.1 == Kind::Overdue);
    assert_eq!(raised.is_none(), is_as_logged && !is_overdue, "{case}");
    if raised.is_none() {
        assert_eq!(&after[..before.len()], before, "rows moved within an epoch: {case}");
        let behind =
            |id: &str| places.iter().any(|place| place.is_none_or(|place| log[..place].iter().any(|e| e == id)));
        for entry in &after[before.len()..] {
            assert_eq!(entry.1 == Kind::Late, behind(&entry.0), "{}: {case}", entry.0);
        }
    } else {
        assert!(!text(&after).starts_with(&text(before)) || before.is_empty(), "a needless epoch: {case}");
    }
    // Another read that brings nothing changes nothing, but for what has become overdue.
    let (again, _, raised) = applied(&after[confirmed..], &[], Rest::Nothing);
    assert_eq!((again.as_slice(), raised), (&after[confirmed..], None), "{case}");
    // Nor does one of the whole log, with nothing known but what a file remembers.
    let (again, _, raised) = applied(&after, log, Rest::Nothing);
    assert_eq!((again, raised), (after, None), "another start: {case}");
}

fn is_streamed(entry: &Entry) -> bool {
    matches!(entry.1, Kind::Fresh | Kind::Overdue)
}

/// gatepost's own: all there, in their order.
fn own(entries: &[Entry]) -> Vec<&str> {
    entries.iter().filter(|entry| entry.1 == Kind::Own).map(|entry| entry.0.as_str()).collect()
}

/// Each event of the log is there once; those that are not late stand in its order.
fn check_events(entries: &[Entry], log: &[String], case: &str) {
    let ids: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "twice: {case}");
    assert!(log.iter().all(|id| unique.contains(id.as_str())), "lost: {case}");
    let place = |entry: &Entry| log.iter().position(|id| *id == entry.0);
    let places: Vec<usize> = entries.iter().filter(|entry| is_streamed(entry)).filter_map(place).collect();
    assert!(places.is_sorted(), "not the log's order: {case}");
}

/// A stream that loses, swaps and invents some of the log's events.
fn history() -> impl Strategy<Value = (Vec<Entry>, Vec<String>)> {
    let faults = prop::collection::vec((0..10_u8, 0..4_u8), 0..40);
    (faults, 0..6_usize).prop_map(|(faults, unpublished)| {
        let mut log: Vec<String> = Vec::new();
        let mut seen: Vec<Entry> = Vec::new();
        for (number, (fault, own)) in faults.into_iter().enumerate() {
            let id = format!("e{number}");
            match fault {
                0 => log.push(id),
                1 => seen.push(Entry(id, Kind::Fresh)),
                2 => seen.push(Entry(id, Kind::Overdue)),
                3 if !seen.is_empty() => {
                    log.push(id.clone());
                    seen.insert(seen.len() - 1, Entry(id, Kind::Fresh));
                }
                _ => {
                    log.push(id.clone());
                    seen.push(Entry(id, Kind::Fresh));
                }
            }
            if own == 0 {
                seen.push(Entry(format!("o{number}"), Kind::Own));
            }
        }
        log.extend((0..unpublished).map(|number| format!("u{number}")));
        (seen, log)
    })
}

proptest! {
    #[test]
    fn any_history_ends_in_the_order_of_the_log((seen, log) in history()) {
        check(&seen, &log);
    }

    /// However a read is cut into pages, the end is the same order.
    #[test]
    fn pages_of_any_size_come_to_the_same((seen, log) in history(), size in 1..7_usize) {
        let mut rest: Vec<Entry> = seen.clone();
        let mut done: Vec<Entry> = Vec::new();
        let mut pages: Vec<&[String]> = log.chunks(size).collect();
        if pages.is_empty() {
            pages.push(&[]);
        }
        let last = pages.len() - 1;
        for (number, page) in pages.into_iter().enumerate() {
            let more = if number == last { Rest::Nothing } else { Rest::More };
            let (after, confirmed, _) = applied(&rest, page, more);
            done.extend(after[..confirmed].iter().cloned());
            rest = after[confirmed..].to_vec();
        }
        let all: Vec<Entry> = done.iter().chain(&rest).cloned().collect();
        check_events(&all, &log, &format!("{seen:?} | {log:?} by {size} -> {all:?}"));
        prop_assert!(all.iter().all(|entry| log.contains(&entry.0) || matches!(entry.1, Kind::Fresh | Kind::Own)));
        prop_assert_eq!(own(&all), own(&seen));
    }
}
