//! A session, driven as a person does: propose, look, decide.

use crate::daemon::{Client, Reply};
use crate::failure::{Failure, Outcome};
use crate::soak::daemon::is_quiet;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// How long a turn may take.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);
/// How often is looked again when the session moved on in between.
const LOOKS: usize = 5;

/// A session of the daemon's.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    client: Client,
    /// The same as the conversation's.
    pub(crate) id: String,
}

/// A batch that waits.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) approval_id: String,
    pub(crate) generation: u64,
}

impl Talk {
    /// A new session in this workspace.
    pub(crate) fn start(client: &Client, workspace: &str) -> Outcome<Self> {
        let snapshot = client.post("/v1/sessions", &json!({"workspace": workspace}))?.expect_status(201)?;
        let text = |name: &str| snapshot[name].as_str().unwrap_or_default().to_owned();
        Ok(Self { client: client.clone(), id: text("session_id") })
    }

    /// The same session with another client.
    pub(crate) fn with_client(mut self, client: &Client) -> Self {
        self.client = client.clone();
        self
    }

    /// Where it stands in the API.
    pub(crate) fn path(&self) -> String {
        format!("/v1/sessions/{}", self.id)
    }

    /// Where its events are.
    pub(crate) fn events(&self) -> String {
        format!("{}/events", self.path())
    }

    pub(crate) fn snapshot(&self) -> Outcome<Value> {
        self.client.get(&self.path())?.expect_status(200)
    }

    /// Carries an operation out, to its receipt or its refusal.
    pub(crate) fn act(&self, operation_id: &str, input: &Value) -> Outcome<Reply> {
        self.act_as(&format!("talk-{}", uuid::Uuid::new_v4()), operation_id, input)
    }

    /// The same under a key of one's own.
    pub(crate) fn act_as(&self, action_id: &str, operation_id: &str, input: &Value) -> Outcome<Reply> {
        for look in 1.. {
            let generation = self.snapshot()?["capability_generation"].clone();
            let body = json!({
                "operation_id": operation_id, "input": input, "client_action_id": action_id,
                "capability_generation": generation,
            });
            let reply = self.client.post(&format!("{}/actions", self.path()), &body)?;
            if reply.body["code"] != "generation_stale" || look == LOOKS {
                return Ok(reply);
            }
        }
        Err(Failure::new("no look is the last"))
    }

    pub(crate) fn prompt(&self, text: &str) -> Outcome<Reply> {
        self.act("session.prompt.send", &json!({"text": text}))
    }

    /// Prompts, and waits for what the agent then asks for.
    pub(crate) fn propose(&self, text: &str) -> Outcome<Waiting> {
        let reply = self.prompt(text)?;
        if reply.status >= 400 {
            return Err(Failure::new(format!("the prompt was refused: {}", reply.text)));
        }
        self.batch()
    }

    /// Waits for what the agent asks for.
    pub(crate) fn batch(&self) -> Outcome<Waiting> {
        self.wait("a batch", |talk| Ok(if talk.rests()? { talk.waiting()? } else { None }))
    }

    /// A batch in full, as it must be shown to a person.
    pub(crate) fn shown(&self, waiting: &Waiting) -> Outcome<Value> {
        let path = format!("{}/approvals/{}?full=true", self.path(), waiting.approval_id);
        self.client.get(&path)?.expect_status(200)
    }

    /// What waits now.
    pub(crate) fn waiting(&self) -> Outcome<Option<Waiting>> {
        let list = self.client.get(&format!("{}/approvals", self.path()))?.expect_status(200)?;
        let approval_id = list["approvals"][0]["approval_id"].as_str().map(str::to_owned);
        let generation = self.snapshot()?["capability_generation"].as_u64().unwrap_or(0);
        Ok(approval_id.map(|approval_id| Waiting { approval_id, generation }))
    }

    /// Accepts a batch and waits until the agent rests.
    pub(crate) fn approve(&self, waiting: &Waiting) -> Outcome<()> {
        self.accept(waiting)?;
        self.rest()
    }

    /// Accepts a batch.
    pub(crate) fn accept(&self, waiting: &Waiting) -> Outcome<()> {
        let input = json!({"approval_id": waiting.approval_id, "decision": "accept"});
        let reply = self.act("session.approval.decide", &input)?;
        if reply.status >= 400 {
            return Err(Failure::new(format!("the approval was refused: {}", reply.text)));
        }
        Ok(())
    }

    /// Proposes and approves what these words lead to.
    pub(crate) fn carry_out(&self, text: &str) -> Outcome<()> {
        let waiting = self.propose(text)?;
        self.approve(&waiting)
    }

    /// Waits until the agent rests and nothing is asked for, or the session is blocked.
    pub(crate) fn rest(&self) -> Outcome<()> {
        self.wait("the agent to rest", |talk| Ok((talk.rests()?).then_some(())))
    }

    fn rests(&self) -> Outcome<bool> {
        Ok(is_quiet(&self.snapshot()?))
    }

    fn wait<T>(&self, what: &str, look: impl Fn(&Self) -> Outcome<Option<T>>) -> Outcome<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if begun.elapsed() > LIMIT {
                return Err(Failure::new(format!("waited {LIMIT:?} in vain for {what}: {}", self.snapshot()?)));
            }
            thread::sleep(LOOK);
        }
    }
}
