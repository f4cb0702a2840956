//! One conversation of a server, driven in every way that its interface has.

use super::Raw;
use crate::daemon::Reply;
use crate::failure::{Doing, Failure, Outcome};
use crate::fake_server::Log;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

const LOOK: Duration = Duration::from_millis(50);
/// The most pages that are read of one log.
const MAX_PAGES: usize = 100;

/// One conversation.
#[derive(Debug, Clone)]
pub struct Conversation {
    raw: Raw,
    id: String,
}

impl Conversation {
    /// Creates one that asks before each action, from this agent profile.
    ///
    /// # Errors
    /// When the server does not create it.
    pub fn create(raw: &Raw, profile_id: &str, workspace: &Path) -> Outcome<Self> {
        let id = Uuid::new_v4().to_string();
        let body = json!({
            "conversation_id": id, "workspace": {"working_dir": workspace}, "agent_profile_id": profile_id,
            "confirmation_policy": {"kind": "AlwaysConfirm"}, "autotitle": false,
        });
        raw.post("/api/conversations", &body)?.expect_status(201)?;
        Ok(Self { raw: raw.clone(), id })
    }

    /// One that stands.
    #[must_use]
    pub fn of(raw: &Raw, id: &str) -> Self {
        Self { raw: raw.clone(), id: id.to_owned() }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `POST` below its path.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn post(&self, below: &str, body: &Value) -> Outcome<Reply> {
        self.raw.post(&self.path(below), body)
    }

    fn path(&self, below: &str) -> String {
        format!("/api/conversations/{}{below}", self.id)
    }

    /// Posts a message that starts a turn.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn say(&self, text: &str) -> Outcome<Reply> {
        let content = json!([{"type": "text", "text": text}]);
        self.post("/events", &json!({"role": "user", "content": content, "run": true}))
    }

    /// Lets the agent go on.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn run(&self) -> Outcome<Reply> {
        self.post("/run", &json!({}))
    }

    /// Accepts or rejects whatever is pending.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn answer(&self, accept: bool) -> Outcome<Reply> {
        self.post("/events/respond_to_confirmation", &json!({"accept": accept}))
    }

    /// Compacts.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn condense(&self) -> Outcome<Reply> {
        self.post("/condense", &json!({}))
    }

    /// Interrupts.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn interrupt(&self) -> Outcome<Reply> {
        self.post("/interrupt", &json!({}))
    }

    /// Makes an event the head.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn navigate(&self, event_id: &str) -> Outcome<Reply> {
        self.post("/navigate", &json!({"event_id": event_id}))
    }

    /// Sets the confirmation policy.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn set_policy(&self, kind: &str) -> Outcome<Reply> {
        self.post("/confirmation_policy", &json!({"policy": {"kind": kind}}))
    }

    /// Copies it whole, with what is pending.
    ///
    /// # Errors
    /// When the server does not copy it.
    pub fn fork(&self) -> Outcome<Self> {
        let id = Uuid::new_v4().to_string();
        self.post("/fork", &json!({"id": id}))?.expect_status(201)?;
        Ok(Self { raw: self.raw.clone(), id })
    }

    /// Removes it.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn delete(&self) -> Outcome<Reply> {
        self.raw.send("DELETE", &self.path(""), None)
    }

    /// Its state.
    ///
    /// # Errors
    /// When the server does not tell.
    pub fn info(&self) -> Outcome<Value> {
        self.raw.get(&self.path(""))?.expect_status(200)
    }

    /// Its execution status.
    ///
    /// # Errors
    /// When the server does not tell.
    pub fn status(&self) -> Outcome<String> {
        Ok(self.info()?["execution_status"].as_str().unwrap_or_default().to_owned())
    }

    /// Its whole log, as the server wrote it.
    ///
    /// # Errors
    /// When it cannot be read or has no end.
    pub fn events(&self) -> Outcome<Vec<Value>> {
        let mut found: Vec<Value> = Vec::new();
        let mut page_id: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let after = page_id.map(|id| format!("&page_id={id}")).unwrap_or_default();
            let path = self.path(&format!("/events/search?limit=100&sort_order=TIMESTAMP{after}"));
            let page = self.raw.get(&path)?.expect_status(200)?;
            found.extend(page["items"].as_array().cloned().unwrap_or_default());
            page_id = page["next_page_id"].as_str().map(str::to_owned);
            if page_id.is_none() {
                return Ok(found);
            }
        }
        Err(Failure::new("the log has no end"))
    }

    /// The actions that the server would run at the next step.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn pending(&self) -> Outcome<Vec<Value>> {
        let events = self.events()?;
        let leaf = self.info()?["leaf_event_id"].clone();
        let log: Log = serde_json::from_value(json!({"events": events, "leaf": leaf})).doing("the log is no log")?;
        Ok(log.pending())
    }

    /// Waits for one of these statuses; the last one seen when it does not come.
    ///
    /// # Errors
    /// When the server does not tell, or none of them came in time.
    pub fn wait_status(&self, wanted: &[&str], limit: Duration) -> Outcome<String> {
        let begun = Instant::now();
        loop {
            let status = self.status()?;
            if wanted.contains(&status.as_str()) {
                return Ok(status);
            }
            if begun.elapsed() > limit {
                return Err(Failure::new(format!("the status is {status}, waited for one of {wanted:?}")));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Posts a message and waits for the actions that it leads to; their events.
    ///
    /// # Errors
    /// When nothing is pending in time.
    pub fn propose(&self, text: &str, limit: Duration) -> Outcome<Vec<Value>> {
        self.say(text)?.expect_status(200)?;
        self.wait_status(&["waiting_for_confirmation"], limit)?;
        let pending = self.pending()?;
        if pending.is_empty() { Err(Failure::new("the agent waits, and nothing is pending")) } else { Ok(pending) }
    }
}
