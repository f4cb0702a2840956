//! What a launched server appended, ran and was asked for, a line each: the truth against which a long run is judged.

use crate::failure::{Doing, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The file, in the environment's directory. All servers of one environment write it.
const JOURNAL_NAME: &str = "journal.jsonl";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// An event stands in a conversation's log, behind all that were named before it.
    Appended {
        /// The conversation.
        conversation_id: String,
        /// The event.
        event_id: String,
        /// Its kind.
        kind: String,
        /// What a user said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    /// An action ran.
    Executed {
        /// The conversation.
        conversation_id: String,
        /// The action.
        event_id: String,
    },
    /// A request about a conversation arrived, reads included.
    Asked {
        /// The conversation.
        conversation_id: String,
        /// The route's name in the contract.
        route: String,
    },
}

impl Entry {
    /// An event as it was appended.
    pub(super) fn appended(conversation_id: &str, event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_said = event["kind"] == "MessageEvent" && event["source"] == "user";
        Self::Appended {
            conversation_id: conversation_id.to_owned(),
            event_id: text(&event["id"]),
            kind: text(&event["kind"]),
            said: is_said.then(|| text(&event["llm_message"]["content"][0]["text"])),
        }
    }
}

/// The file, open for appending; by default there is none.
#[derive(Clone, Default)]
pub(super) struct Journal(Option<Arc<File>>);

impl Journal {
    /// The journal in this environment's directory.
    pub(super) fn open(directory: &Path) -> Outcome<Self> {
        let file = File::options().create(true).append(true).open(directory.join(JOURNAL_NAME));
        Ok(Self(Some(Arc::new(file.doing("the server's journal cannot be opened")?))))
    }

    /// Writes a line at once, so that lines of several threads and processes do not mix.
    pub(super) fn note(&self, entry: &Entry) {
        let Some(file) = &self.0 else { return };
        let line = serde_json::to_string(entry).map(|text| format!("{text}\n"));
        let written = line.map_err(std::io::Error::other).and_then(|line| (&**file).write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("fake server: the journal could not be written: {error}");
        }
    }
}

/// What the servers launched below this directory wrote, if their plan asked for it ([`super::Plan::keeps_journal`]), oldest first.
///
/// # Errors
/// When there is no journal, or a line of it cannot be read.
pub fn journal(directory: &Path) -> Outcome<Vec<Entry>> {
    let text = std::fs::read_to_string(directory.join(JOURNAL_NAME)).doing("the server's journal cannot be read")?;
    text.lines().map(|line| serde_json::from_str(line).doing("a line of the server's journal")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_noted_is_read_again_in_its_order() {
        let directory = tempfile::tempdir().unwrap();
        assert!(journal(directory.path()).is_err());
        let said = json!({"id": "e", "kind": "MessageEvent", "source": "user",
                          "llm_message": {"content": [{"text": "hi\n"}]}});
        let entries = [
            Entry::appended("c", &said),
            Entry::appended("c", &json!({"id": "f", "kind": "ActionEvent", "source": "agent"})),
            Entry::Executed { conversation_id: "c".to_owned(), event_id: "f".to_owned() },
            Entry::Asked { conversation_id: "c".to_owned(), route: "accept".to_owned() },
        ];
        let (one, other) = (Journal::open(directory.path()).unwrap(), Journal::open(directory.path()).unwrap());
        entries.iter().zip([&one, &other, &one, &other]).for_each(|(entry, journal)| journal.note(entry));
        assert_eq!(journal(directory.path()).unwrap(), entries);
        assert!(matches!(&entries[0], Entry::Appended { said: Some(text), .. } if text == "hi\n"));
    }
}
