//! What would show that a step took effect, for the case that its answer was lost.

use serde::{Deserialize, Serialize};

use crate::branch::{Answer, Branch};
use crate::jcs;
use crate::log::{ExecutionStatus, LogEvent, LogEventKind};

/// Written down with the step's intent, looked for when the step has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "shown_by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Evidence {
    /// A person's message of this text.
    Message {
        /// The log's last event before the step; `None` when it was empty.
        after_event_id: Option<String>,
        /// SHA-256 of the text, 64 lower-case hexadecimal digits.
        text_sha256: String,
    },
    /// The rejection of each of these actions.
    Rejections {
        /// Their event ids.
        event_ids: Vec<String>,
    },
    /// The observation of each of these actions; see [`crate::approval::accept_evidence`].
    Observations {
        /// Their event ids.
        event_ids: Vec<String>,
    },
    /// A run that began.
    Run {
        /// The log's last event before the step; `None` when it was empty.
        after_event_id: Option<String>,
    },
    /// The branch's head.
    Head {
        /// Its event id.
        event_id: String,
    },
    /// The conversation's title.
    Title {
        /// It.
        title: String,
    },
    /// The conversation's model.
    Model {
        /// Its name.
        model: String,
    },
    /// A conversation of the server's, forked from this one.
    Fork {
        /// Its id.
        session_id: String,
        /// The event it was taken at.
        from_event_id: String,
    },
    /// Nothing does.
    Nothing,
}

impl Evidence {
    /// Of a message that is about to be sent.
    pub fn of_message(after_event_id: Option<&str>, text: &str) -> Self {
        Self::Message {
            after_event_id: after_event_id.map(str::to_owned),
            text_sha256: jcs::sha256_hex(text.as_bytes()),
        }
    }
}

/// A conversation as it was read after the step.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The whole log, in append order.
    pub events: &'a [LogEvent],
    /// The active branch.
    pub branch: &'a Branch<'a>,
    /// The title.
    pub title: Option<&'a str>,
    /// The model's name.
    pub model: Option<&'a str>,
    /// Whether the fork in question is there; `false` when none is.
    pub fork_is_there: bool,
}

/// Whether the conversation shows that the step took effect. What it does not show may have happened all the same.
pub fn is_shown(evidence: &Evidence, seen: &Seen<'_>) -> bool {
    match evidence {
        Evidence::Message { after_event_id, text_sha256 } => {
            after(seen.events, after_event_id.as_deref()).iter().any(|event| match &event.kind {
                LogEventKind::UserMessage { text } => jcs::sha256_hex(text.as_bytes()) == *text_sha256,
                LogEventKind::Action(_)
                | LogEventKind::Observation { .. }
                | LogEventKind::UserReject { .. }
                | LogEventKind::AgentError { .. }
                | LogEventKind::AgentMessage { .. }
                | LogEventKind::Status(_)
                | LogEventKind::StateUpdate
                | LogEventKind::Other => false,
            })
        }
        Evidence::Run { after_event_id } => after(seen.events, after_event_id.as_deref())
            .iter()
            .any(|event| event.kind == LogEventKind::Status(ExecutionStatus::Running)),
        Evidence::Rejections { event_ids } => all_answered(seen.branch, event_ids, Answer::Rejected),
        Evidence::Observations { event_ids } => all_answered(seen.branch, event_ids, Answer::Observed),
        Evidence::Head { event_id } => seen.branch.leaf() == Some(event_id),
        Evidence::Title { title } => seen.title == Some(title),
        Evidence::Model { model } => seen.model == Some(model),
        Evidence::Fork { .. } => seen.fork_is_there,
        Evidence::Nothing => false,
    }
}

fn all_answered(branch: &Branch<'_>, event_ids: &[String], answer: Answer) -> bool {
    !event_ids.is_empty() && event_ids.iter().all(|event_id| branch.answer(event_id) == Some(answer))
}

/// What stands after the recorded event. Nothing does after one that is not there: the log is then not the one of before.
fn after<'a>(events: &'a [LogEvent], event_id: Option<&str>) -> &'a [LogEvent] {
    let Some(event_id) = event_id else { return events };
    match events.iter().position(|event| event.event_id == event_id) {
        Some(at) => &events[at + 1..],
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch::active_branch;
    use crate::testing::{Log, action, observation, reject, user};

    fn shown(log: &Log, evidence: &Evidence) -> bool {
        let leaf =
            log.events().iter().rev().find(|event| !event.is_state_update()).map(|event| event.event_id.as_str());
        let branch = active_branch(log.events(), leaf).unwrap();
        let seen =
            Seen { events: log.events(), branch: &branch, title: Some("t"), model: Some("m"), fork_is_there: false };
        is_shown(evidence, &seen)
    }

    fn ids(of: &[&str]) -> Vec<String> {
        of.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_message_counts_after_the_recorded_point_only() {
        let log = Log::line(&[("u", user("hi")), ("v", user("ho"))]);
        assert!(shown(&log, &Evidence::of_message(None, "hi")));
        assert!(shown(&log, &Evidence::of_message(Some("u"), "ho")));
        for (after, text) in [(Some("u"), "hi"), (Some("v"), "ho"), (Some("gone"), "hi"), (None, "hi ")] {
            assert!(!shown(&log, &Evidence::of_message(after, text)), "{after:?} {text}");
        }
    }

    #[test]
    fn a_run_counts_after_the_recorded_point_only() {
        let running = LogEventKind::Status(ExecutionStatus::Running);
        let log = Log::line(&[("u", user("hi")), ("s", running), ("v", user("ho"))]);
        assert!(shown(&log, &Evidence::Run { after_event_id: None }));
        assert!(!shown(&log, &Evidence::Run { after_event_id: Some("s".into()) }));
    }

    #[test]
    fn decisions_are_shown_by_every_answer() {
        let log = Log::line(&[
            ("a", action("1")),
            ("b", action("2")),
            ("c", action("3")),
            ("o", observation("a")),
            ("r", reject("b")),
        ]);
        assert!(shown(&log, &Evidence::Observations { event_ids: ids(&["a"]) }));
        assert!(shown(&log, &Evidence::Rejections { event_ids: ids(&["b"]) }));
        for unclear in [&["b"][..], &["c"], &["a", "c"], &["a", "b"], &[]] {
            assert!(!shown(&log, &Evidence::Observations { event_ids: ids(unclear) }), "{unclear:?}");
        }
        for unclear in [&["a"][..], &["c"], &["b", "c"], &[]] {
            assert!(!shown(&log, &Evidence::Rejections { event_ids: ids(unclear) }), "{unclear:?}");
        }
    }

    #[test]
    fn the_rest_is_compared() {
        let mut log = Log::line(&[("u", user("hi"))]);
        log.push("v", Some("u"), user("ho"));
        let cases = [
            (Evidence::Head { event_id: "v".into() }, true),
            (Evidence::Head { event_id: "u".into() }, false),
            (Evidence::Title { title: "t".into() }, true),
            (Evidence::Title { title: "m".into() }, false),
            (Evidence::Model { model: "m".into() }, true),
            (Evidence::Model { model: "t".into() }, false),
            (Evidence::Fork { session_id: "f".into(), from_event_id: "u".into() }, false),
            (Evidence::Nothing, false),
        ];
        for (evidence, expected) in cases {
            assert_eq!(shown(&log, &evidence), expected, "{evidence:?}");
            let written = serde_json::to_string(&evidence).unwrap();
            assert_eq!(serde_json::from_str::<Evidence>(&written).unwrap(), evidence, "{written}");
        }
        let branch = active_branch(log.events(), Some("v")).unwrap();
        let there = Seen { events: log.events(), branch: &branch, title: None, model: None, fork_is_there: true };
        assert!(is_shown(&Evidence::Fork { session_id: "f".into(), from_event_id: "u".into() }, &there));
        assert!(!is_shown(&Evidence::Title { title: "t".into() }, &there));
    }
}
