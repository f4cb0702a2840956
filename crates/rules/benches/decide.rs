//! What is decided after each change, on a long log and on a short one, in one run: `cargo bench -p rules --bench decide`.
//!
//! Decisions look at the whole log, so they cost more on a longer one. The ratio of the costs of one event says whether more
//! than in proportion.

#![expect(clippy::unwrap_used, reason = "what cannot be measured ends the run")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rules::branch::active_branch;
use rules::log::{ActionRecord, ExecutionStatus, ExemptKind, LogEvent, LogEventKind};
use rules::reconcile::{Logged, Origin, Rest, Row, reconcile};
use rules::tripwire::{KnownExempt, unexplained};
use serde_json::json;

/// Events of the two logs.
const LONG: usize = 100_000;
const SHORT: usize = 100;
/// Looks at the long log; the short one is looked at as many times more as it is shorter.
const LOOKS: usize = 5;
/// Events of a turn: a prompt, a status, a proposal to finish and its answer.
const TURN: usize = 4;

/// The cost of an event, in nanoseconds.
type Cost = fn(&[LogEvent]) -> f64;

fn log(count: usize) -> Vec<LogEvent> {
    let id = |number: usize| format!("event-{number}");
    let finish = |number: usize| ActionRecord {
        tool: "finish".to_owned(),
        tool_call_id: format!("call-{number}"),
        action: Some(json!({"kind": "FinishAction", "message": "done"})),
        exempt_kind: Some(ExemptKind::Finish),
        claimed_risk: None,
        claimed_summary: None,
    };
    (0..count)
        .map(|number| {
            let (kind, parent) = match number % TURN {
                0 => (LogEventKind::UserMessage { text: "do it".to_owned() }, number.checked_sub(1)),
                1 => (LogEventKind::Status(ExecutionStatus::Running), number.checked_sub(1)),
                2 => (LogEventKind::Action(finish(number)), number.checked_sub(2)),
                _ => (LogEventKind::Observation { action_id: id(number - 1) }, number.checked_sub(1)),
            };
            LogEvent { event_id: id(number), parent_id: parent.map(id), kind }
        })
        .collect()
}

/// The time of one look, for each event of the log.
fn time(events: usize, mut look: impl FnMut()) -> f64 {
    let looks = LOOKS * (LONG / events);
    let begun = Instant::now();
    for _ in 0..looks {
        look();
    }
    let whole: Duration = begun.elapsed();
    whole.as_secs_f64() * 1e9 / (looks * events) as f64
}

fn branch(events: &[LogEvent]) -> f64 {
    let leaf = events.last().map(|event| event.event_id.clone());
    time(events.len(), || {
        let branch = active_branch(events, leaf.as_deref()).unwrap();
        black_box((branch.pending().len(), branch.rewind_choices().len()));
    })
}

fn tripwire(events: &[LogEvent]) -> f64 {
    let (baseline, sent) = (BTreeSet::new(), BTreeSet::new());
    let mut known = KnownExempt::default();
    // What was found before is remembered: in a session each read brings a few events.
    for upto in (0..=events.len()).step_by(events.len() / 100) {
        unexplained(&events[..upto], &baseline, &sent, &mut known);
    }
    time(events.len(), || {
        black_box(unexplained(events, &baseline, &sent, &mut known).len());
    })
}

/// A journal that is compared with the log in pages, as at the first read.
fn compare(events: &[LogEvent]) -> f64 {
    let row = |event: &LogEvent| Row {
        event_id: event.event_id.clone(),
        origin: Origin::Server { content: None, arrived_ms: 1 },
    };
    let rows: Vec<Row> = events.iter().map(row).collect();
    let logged: Vec<Logged<'_>> = events.iter().map(|event| Logged { event_id: &event.event_id, content: 0 }).collect();
    time(events.len(), || {
        for (number, page) in logged.chunks(100).enumerate() {
            black_box(reconcile(&rows[number * 100..], page, Rest::More, 0));
        }
    })
}

fn main() {
    let (long, short) = (log(LONG), log(SHORT));
    let costs: [(&str, Cost); 3] =
        [("branch and choices", branch), ("tripwire", tripwire), ("journal against log", compare)];
    for (what, cost) in costs {
        let (of_long, of_short) = (cost(&long), cost(&short));
        let ratio = of_long / of_short;
        println!("{what}: {of_long:.0} ns an event of {LONG}, {of_short:.0} ns an event of {SHORT}, ratio {ratio:.2}");
    }
}
