//! What the servers themselves wrote, sorted for the judges. Pure.

use crate::chaos::judge::kind_of;
use crate::chaos::record::Conversation;
use crate::fake_server::Entry;
use std::collections::BTreeMap;

/// The servers' side of a run.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// By session: events in the order in which they were appended, and what the user said.
    pub(super) conversations: BTreeMap<String, Conversation>,
    /// Actions that were proposed; each is its own marker.
    pub(super) proposed: BTreeMap<String, String>,
    /// How often each ran.
    pub(super) runs: BTreeMap<String, usize>,
    /// How often each session's conversation was asked for each kind of change.
    pub(super) requests: BTreeMap<(String, String), u64>,
    /// Events of all conversations.
    pub(super) events: u64,
}

/// Reads the servers' journal.
pub(super) fn of(journal: Vec<Entry>) -> Truth {
    let mut truth = Truth::default();
    for entry in journal {
        match entry {
            Entry::Appended { conversation_id, event_id, kind, said } => {
                if kind == "ActionEvent" {
                    truth.proposed.insert(event_id.clone(), event_id.clone());
                }
                truth.events += 1;
                let conversation = truth.conversations.entry(conversation_id).or_default();
                conversation.messages.extend(said.map(|said| (event_id.clone(), said)));
                conversation.events.push(event_id);
            }
            Entry::Executed { event_id, .. } => *truth.runs.entry(event_id).or_default() += 1,
            Entry::Asked { conversation_id, route } => {
                if let Some(kind) = kind_of(&route) {
                    *truth.requests.entry((conversation_id, kind.to_owned())).or_default() += 1;
                }
            }
        }
    }
    truth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_goes_to_its_session_in_order() {
        let appended = |conversation: &str, event: &str, kind: &str, said: Option<&str>| Entry::Appended {
            conversation_id: conversation.to_owned(),
            event_id: event.to_owned(),
            kind: kind.to_owned(),
            said: said.map(str::to_owned),
        };
        let (c, d) = ("c".to_owned(), "d".to_owned());
        let truth = of(vec![
            appended("c", "z", "MessageEvent", Some("hi")),
            Entry::Asked { conversation_id: c.clone(), route: "send_message".to_owned() },
            Entry::Asked { conversation_id: c.clone(), route: "events_page".to_owned() },
            appended("d", "b", "ActionEvent", None),
            appended("c", "a", "ActionEvent", None),
            Entry::Executed { conversation_id: d, event_id: "b".to_owned() },
        ]);
        assert_eq!(truth.conversations["c"].events, ["z", "a"]);
        assert_eq!(truth.conversations["c"].messages["z"], "hi");
        assert_eq!((truth.events, truth.proposed.len()), (3, 2));
        assert_eq!(truth.runs, [("b".to_owned(), 1)].into());
        assert_eq!(truth.requests, [((c, "message".to_owned()), 1)].into());
    }
}
