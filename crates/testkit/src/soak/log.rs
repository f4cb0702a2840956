//! What a conversation's log says of our commands: proposed, and ended otherwise than by running. Pure.

use super::shape::tool_call_id_of;
use std::collections::BTreeMap;

/// One event, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// An action that could run, with the marker that it would leave.
    Proposed { event_id: String, marker: String },
    /// An error that names its call, not its action.
    Failed { tool_call_id: String, words: String },
    /// An answer that names its action and says that it did not go well.
    Refused { event_id: String, words: String },
}

/// Actions with their markers, and those that something after them says did not run, with its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) proposed: BTreeMap<String, String>,
    pub(crate) ended: BTreeMap<String, String>,
}

/// Reads a log in its order.
pub(crate) fn read(lines: impl IntoIterator<Item = Line>) -> Reading {
    let mut reading = Reading::default();
    for line in lines {
        match line {
            Line::Proposed { event_id, marker } => {
                reading.proposed.insert(event_id, marker);
            }
            Line::Failed { tool_call_id, words } => {
                // An error says nothing of a call that came after it.
                let of_call = reading.proposed.iter().filter(|(_, marker)| tool_call_id_of(marker) == tool_call_id);
                let ended: Vec<_> = of_call.map(|(event_id, _)| (event_id.clone(), words.clone())).collect();
                reading.ended.extend(ended);
            }
            Line::Refused { event_id, words } => {
                reading.ended.insert(event_id, words);
            }
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(id: &str, marker: &str) -> Line {
        Line::Proposed { event_id: id.to_owned(), marker: marker.to_owned() }
    }

    fn failed(tool_call_id: &str) -> Line {
        Line::Failed { tool_call_id: tool_call_id.to_owned(), words: "no".to_owned() }
    }

    #[test]
    fn an_error_ends_the_calls_of_its_id_that_stand_before_it() {
        let reading = read([failed("shared"), proposed("a", "x~shared"), proposed("b", "y")]);
        assert_eq!(reading.proposed.len(), 2);
        assert!(reading.ended.is_empty(), "an earlier error ended a later call");
        let reading = read([proposed("a", "x~shared"), proposed("b", "y"), failed("shared")]);
        assert_eq!(reading.ended.keys().collect::<Vec<_>>(), ["a"]);
        let reading = read([proposed("b", "y"), failed("call_y"), failed("call_z")]);
        assert_eq!(reading.ended.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_rejection_names_its_action() {
        let refused = Line::Refused { event_id: "a".to_owned(), words: "not this one".to_owned() };
        let reading = read([proposed("a", "x"), refused]);
        assert_eq!(reading.ended["a"], "not this one");
    }
}
