//! A session, driven as a client does: look, then act on what was seen.

#![expect(clippy::unwrap_used, reason = "what a client cannot do ends the test")]

use crate::typed::typed;
use crate::wait::{LIMIT, wait_until};
use api_types::{Approval, ApprovalList, Event, EventKind, EventPage, Problem, Receipt, ReceiptState, SessionSnapshot};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use testkit::daemon::{Client, Reply};

/// Events asked for at once.
const PAGE: usize = 500;
/// How often a client looks before it gives up on a session that moves on each time.
const LOOKS: u32 = 5;

/// One session of a daemon.
#[derive(Debug, Clone)]
pub struct Session {
    client: Client,
    id: String,
}

/// The code of a refusal, which must be a whole problem of that status.
///
/// # Panics
/// When the reply is no refusal.
#[track_caller]
#[must_use]
pub fn refusal_code(reply: &Reply) -> String {
    assert!(reply.status >= 400, "this was not refused: {} {}", reply.status, reply.text);
    let problem: Problem = typed(reply, &[reply.status]);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(problem.status, reply.status);
    assert!(!problem.detail.is_empty(), "a refusal without a word: {}", reply.text);
    problem.code
}

impl Session {
    pub(crate) fn new(client: Client, id: &str) -> Self {
        Self { client, id: id.to_owned() }
    }

    /// A new session in this workspace, with this client.
    ///
    /// # Panics
    /// When it is not created.
    #[must_use]
    #[track_caller]
    pub fn start(client: &Client, workspace: &Path) -> Self {
        let reply = client.post("/v1/sessions", &json!({"workspace": workspace})).unwrap();
        let snapshot: SessionSnapshot = typed(&reply, &[201]);
        Self::new(client.clone(), &snapshot.session_id)
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The client it is driven with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The same session driven with another client: another token, another time bound.
    #[must_use]
    pub fn with_client(&self, client: Client) -> Self {
        Self::new(client, &self.id)
    }

    /// The path of the session, or of what is below it.
    #[must_use]
    pub fn path(&self, below: &str) -> String {
        format!("/v1/sessions/{}{below}", self.id)
    }

    /// What may be done now.
    #[must_use]
    #[track_caller]
    pub fn snapshot(&self) -> SessionSnapshot {
        typed(&self.client.get(&self.path("")).unwrap(), &[200])
    }

    /// Whether the snapshot offers an operation now.
    #[must_use]
    #[track_caller]
    pub fn offers(&self, operation_id: &str) -> bool {
        self.snapshot().advertised_operations.iter().any(|operation| operation.operation_id == operation_id)
    }

    /// Asks for an operation with everything given.
    #[must_use]
    #[track_caller]
    pub fn request(
        &self,
        operation_id: &str,
        input: &Value,
        capability_generation: Option<u64>,
        client_action_id: &str,
    ) -> Reply {
        let mut body = json!({"operation_id": operation_id, "input": input, "client_action_id": client_action_id});
        if let Some(generation) = capability_generation {
            body["capability_generation"] = json!(generation);
        }
        self.client.post(&self.path("/actions"), &body).unwrap()
    }

    /// Asks for an operation with the current generation and a fresh key. As any client, it looks again when the session
    /// moved on between the look and the request, a few times.
    #[must_use]
    #[track_caller]
    pub fn ask(&self, operation_id: &str, input: &Value) -> Reply {
        self.ask_as(operation_id, input, &fresh_action_id())
    }

    /// [`Session::ask`] with this key.
    #[must_use]
    #[track_caller]
    pub fn ask_as(&self, operation_id: &str, input: &Value, client_action_id: &str) -> Reply {
        let mut tries = 0;
        loop {
            let generation = self.snapshot().capability_generation;
            let reply = self.request(operation_id, input, Some(generation), client_action_id);
            tries += 1;
            if reply.body["code"] != "generation_stale" || tries == LOOKS {
                return reply;
            }
        }
    }

    /// Carries an operation out; its receipt, final or not.
    #[track_caller]
    pub fn act(&self, operation_id: &str, input: &Value) -> Receipt {
        receipt_of(&self.ask(operation_id, input))
    }

    /// Carries an operation out to its receipt `applied`.
    #[track_caller]
    pub fn applied(&self, operation_id: &str, input: &Value) -> Receipt {
        let receipt = self.act(operation_id, input);
        assert_eq!(receipt.state, ReceiptState::Applied, "{receipt:?}");
        receipt
    }

    /// Asks for an operation that must be refused; the refusal's code.
    #[must_use]
    #[track_caller]
    pub fn refused(&self, operation_id: &str, input: &Value) -> String {
        refusal_code(&self.ask(operation_id, input))
    }

    /// Sends a prompt; its receipt.
    #[track_caller]
    pub fn prompt(&self, text: &str) -> Receipt {
        self.act("session.prompt.send", &json!({"text": text}))
    }

    /// Sends a prompt and waits until its turn is over.
    #[track_caller]
    pub fn turn(&self, text: &str) {
        let receipt = self.prompt(text);
        assert_eq!(receipt.state, ReceiptState::Applied, "{receipt:?}");
        self.wait_quiet();
    }

    /// Sends a prompt and waits for the batch that it leads to.
    #[must_use]
    #[track_caller]
    pub fn propose(&self, text: &str) -> Approval {
        let receipt = self.prompt(text);
        assert_eq!(receipt.state, ReceiptState::Applied, "{receipt:?}");
        self.wait_pending()
    }

    /// Interrupts.
    #[track_caller]
    pub fn interrupt(&self) -> Receipt {
        self.applied("session.turn.interrupt", &json!({}))
    }

    /// The batch that waits now.
    #[must_use]
    #[track_caller]
    pub fn pending(&self) -> Option<Approval> {
        let list: ApprovalList = typed(&self.client.get(&self.path("/approvals")).unwrap(), &[200]);
        assert!(list.approvals.len() <= 1, "more than one batch: {list:?}");
        list.approvals.into_iter().next()
    }

    /// Waits until the agent has stopped for a decision.
    #[must_use]
    #[track_caller]
    pub fn wait_pending(&self) -> Approval {
        let what = format!("a batch of session {}", self.id);
        wait_until(&what, LIMIT, || {
            let quiet = is_quiet(&self.snapshot());
            self.pending().filter(|_| quiet)
        })
    }

    /// Waits until the turn has ended: nothing runs, whatever the status then is.
    #[track_caller]
    pub fn wait_quiet(&self) -> SessionSnapshot {
        let what = format!("session {} to be quiet", self.id);
        wait_until(&what, LIMIT, || Some(self.snapshot()).filter(is_quiet))
    }

    /// Waits for one of these statuses.
    #[track_caller]
    pub fn wait_status(&self, statuses: &[&str]) -> SessionSnapshot {
        let what = format!("session {} to be one of {statuses:?}", self.id);
        wait_until(&what, LIMIT, || Some(self.snapshot()).filter(|now| statuses.contains(&now.status.as_str())))
    }

    /// The request that accepts a batch, under this key.
    #[must_use]
    #[track_caller]
    pub fn accept_as(&self, approval_id: &str, client_action_id: &str) -> Reply {
        let input = json!({"approval_id": approval_id, "decision": "accept"});
        self.ask_as("session.approval.decide", &input, client_action_id)
    }

    /// Asks to accept a batch.
    #[must_use]
    #[track_caller]
    pub fn ask_accept(&self, approval_id: &str) -> Reply {
        self.accept_as(approval_id, &fresh_action_id())
    }

    /// Accepts a batch to its receipt `applied`: its actions were answered.
    #[track_caller]
    pub fn approve(&self, approval: &Approval) -> Receipt {
        let receipt = receipt_of(&self.ask_accept(&approval.approval_id));
        assert_eq!(receipt.state, ReceiptState::Applied, "{receipt:?}");
        receipt
    }

    /// Accepts a batch and waits until the turn is over.
    #[track_caller]
    pub fn approve_to_end(&self, approval: &Approval) -> Receipt {
        let receipt = self.approve(approval);
        self.wait_quiet();
        receipt
    }

    /// Rejects a batch to its receipt `applied`.
    #[track_caller]
    pub fn reject(&self, approval: &Approval) -> Receipt {
        let input = json!({"approval_id": approval.approval_id, "decision": "reject", "reason": "not this one"});
        self.applied("session.approval.decide", &input)
    }

    /// The receipt of a key, as it stands now.
    #[must_use]
    #[track_caller]
    pub fn receipt(&self, client_action_id: &str) -> Receipt {
        typed(&self.client.get(&format!("/v1/actions/{client_action_id}")).unwrap(), &[200])
    }

    /// Waits until the receipt of a key is final.
    #[must_use]
    #[track_caller]
    pub fn wait_final(&self, client_action_id: &str) -> Receipt {
        let what = format!("the receipt of {client_action_id} to be final");
        wait_until(&what, LIMIT, || Some(self.receipt(client_action_id)).filter(|receipt| receipt.state.is_final()))
    }

    /// One page of events.
    #[must_use]
    #[track_caller]
    pub fn page(&self, after: Option<&str>, limit: usize, wait: Duration) -> EventPage {
        let mut query = format!("/events?limit={limit}&wait_ms={}", wait.as_millis());
        if let Some(after) = after {
            query.push_str(&format!("&after={after}"));
        }
        typed(&self.client.get(&self.path(&query)).unwrap(), &[200])
    }

    /// Every event so far, in order, which must be gapless. As any reader, it starts over when it is told to.
    #[must_use]
    #[track_caller]
    pub fn events(&self) -> Vec<Event> {
        let mut found: Vec<Event> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.page(after.as_deref(), PAGE, Duration::ZERO);
            if page.resync.is_some() {
                assert!(after.is_some(), "nothing was read that could be out of date");
                found.clear();
            }
            if page.events.is_empty() {
                break;
            }
            after = Some(page.next_cursor);
            found.extend(page.events);
        }
        let numbers: Vec<u64> = found.iter().map(|event| event.seq).collect();
        let gapless: Vec<u64> = (1..).take(found.len()).collect();
        assert_eq!(numbers, gapless, "the sequence has a gap");
        assert!(found.iter().all(|event| event.session_id == self.id), "an event of another session");
        found
    }

    /// Waits for an event.
    #[track_caller]
    pub fn wait_event(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        wait_until(what, LIMIT, || self.events().into_iter().find(|event| is_it(event)))
    }

    /// The results that stand in the events for this action.
    #[must_use]
    #[track_caller]
    pub fn results_of(&self, action_event_id: &str) -> Vec<Value> {
        let events = self.events().into_iter().filter(|event| event.kind == EventKind::ToolResult);
        events.map(|event| event.payload).filter(|payload| payload["action_event_id"] == action_event_id).collect()
    }

    /// Closes the session; with `delete` its conversation is removed as well.
    #[must_use]
    #[track_caller]
    pub fn close(&self, delete: bool) -> Reply {
        self.client.delete(&self.path(&format!("?delete={delete}"))).unwrap()
    }
}

/// A receipt, of a final state (200) or not (202).
#[track_caller]
fn receipt_of(reply: &Reply) -> Receipt {
    let receipt: Receipt = typed(reply, &[200, 202]);
    assert_eq!(reply.status == 200, receipt.state.is_final(), "status and state differ: {} {receipt:?}", reply.status);
    receipt
}

/// The model can be changed while nothing runs, and only then.
fn is_quiet(snapshot: &SessionSnapshot) -> bool {
    snapshot.advertised_operations.iter().any(|operation| operation.operation_id == "session.model.set")
}

fn fresh_action_id() -> String {
    format!("test-{}", uuid::Uuid::new_v4())
}
