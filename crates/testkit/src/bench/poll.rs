//! A poll on a long session over a poll on a short one: for nothing new, and for one event.

use super::figure::median;
use super::line::Line;
use super::stage::Stage;
use super::{Figure, Options, Tell};
use crate::failure::{Failure, Outcome};
use serde_json::{Value, json};

const BOUND: f64 = 1.2;
/// Events of the short session.
const SHORT: u64 = 100;

/// One of the two sessions.
struct Session {
    events: String,
    /// Behind the last event, and before it.
    cursors: [String; 2],
    /// How long polls from either took.
    took: [Vec<f64>; 2],
}

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let long = options.size(100_000, 1000);
    let stage = Stage::start()?;
    let mut sessions = Vec::new();
    for events in [SHORT, long] {
        tell(&format!("  {events} events"));
        let session = stage.sessions(1, events)?.pop().ok_or_else(|| Failure::new("no session"))?;
        sessions.push(Session {
            cursors: ends(&mut stage.line()?, &session.events())?,
            events: session.events(),
            took: Default::default(),
        });
    }
    // Only now: an idle connection is not kept for as long as a long session takes.
    let mut line = stage.line()?;
    for _ in 0..options.size(2000, 10) {
        for session in &mut sessions {
            for new in 0..2 {
                let target = format!("{}?after={}&wait_ms=0", session.events, session.cursors[new]);
                let answer = line.ask("GET", &target, None)?;
                if answer.json()?["events"].as_array().is_none_or(|events| events.len() != new) {
                    return Err(Failure::new("a poll got something else"));
                }
                session.took[new].push(answer.ms());
            }
        }
    }
    drop(line);
    stage.stop()?;
    let [short_of, long_of] = [0, 1].map(|which| [0, 1].map(|new| median(&sessions[which].took[new])));
    let figure = |name, new: usize| {
        let made_of = json!({
            "events": [SHORT, long], "p50_ms": [short_of[new], long_of[new]], "polls_of_each": sessions[0].took[new].len(),
        });
        Figure::new(name, long_of[new] / short_of[new], "ratio", BOUND, &made_of)
    };
    Ok(vec![figure("poll_nothing_new", 0), figure("poll_one_event", 1)])
}

/// The cursors behind a session's last event and before it.
fn ends(line: &mut Line, events: &str) -> Outcome<[String; 2]> {
    let (mut cursor, mut before) = (String::new(), String::new());
    loop {
        let target = if cursor.is_empty() {
            format!("{events}?limit=1000")
        } else {
            format!("{events}?limit=1000&after={cursor}")
        };
        let page: Value = line.ask("GET", &target, None)?.json()?;
        let cursors: Vec<&str> =
            page["events"].as_array().into_iter().flatten().filter_map(|event| event["cursor"].as_str()).collect();
        match cursors.as_slice() {
            [] => return Ok([cursor, before]),
            [.., second, last] => {
                (*second).clone_into(&mut before);
                (*last).clone_into(&mut cursor);
            }
            [last] => before = std::mem::replace(&mut cursor, (*last).to_owned()),
        }
    }
}
