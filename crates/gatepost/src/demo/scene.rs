//! What is shown, in order. Every claim is looked at: in the workspace, in the receipts, in the events.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use api_types::{Approval, Event, EventKind, SessionSnapshot};
use cli::Failure;
use serde_json::json;
use testkit::model::{Reply, ScriptedModel};

use super::client::Client;
use super::failed;
use super::stage::Stage;
use super::story::{Story, elapsed_ms};

const GREETING_FILE: &str = "greeting.txt";
const GREETING: &str = "hello from the agent";
/// The refusal that a prompt past a pending action must get.
const REFUSED_BYPASS: &str = "approval_pending";
/// How long a command that ran in spite of everything would have had to show itself.
const BYPASS_WATCH: Duration = Duration::from_millis(300);
/// How long the model thinks in the turn that is interrupted, in milliseconds.
const SLOW_REPLY_MS: u64 = 30_000;

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) server_version: String,
    pub(super) confinement_level: String,
    pub(super) actions_proposed: usize,
    pub(super) actions_approved: usize,
    pub(super) actions_rejected: usize,
    pub(super) actions_executed: usize,
    pub(super) bypass_refused: String,
    pub(super) output: String,
    pub(super) rewound_to_turn: u32,
    pub(super) interrupted_after_ms: u64,
    pub(super) sessions: usize,
    pub(super) events: usize,
}

/// Plays it.
pub(super) async fn play(client: &Client, stage: &Stage, story: &mut Story) -> Result<Seen, Failure> {
    let workspace = stage.workspace();
    let mut scene = Scene { client, model: stage.model(), story, greeting: workspace.join(GREETING_FILE), proposed: 0 };
    let (confinement_level, session_id) = scene.open(&workspace).await?;
    let approval = scene.propose(&session_id).await?;
    let bypass_refused = scene.try_bypass(&session_id).await?;
    let output = scene.approve(&session_id, &approval).await?;
    let rejected = scene.reject_second(&session_id).await?;
    let rewound_to_turn = scene.rewind(&session_id).await?;
    let fork_id = scene.fork(&session_id).await?;
    let interrupted_after_ms = scene.interrupt(&fork_id).await?;
    let actions_proposed = scene.proposed;
    let events = [client.events(&session_id).await?, client.events(&fork_id).await?];
    let actions_executed = executed(&events);
    let actions_approved = approval.actions.len();
    if actions_executed != actions_approved {
        let detail = format!("{actions_approved} actions were approved, and {actions_executed} were executed");
        return Err(failed(detail));
    }
    Ok(Seen {
        server_version: server_version(client).await?,
        confinement_level,
        actions_proposed,
        actions_approved,
        actions_rejected: rejected,
        actions_executed,
        bypass_refused,
        output,
        rewound_to_turn,
        interrupted_after_ms,
        sessions: events.len(),
        events: events.iter().map(Vec::len).sum(),
    })
}

struct Scene<'a> {
    client: &'a Client,
    model: &'a ScriptedModel,
    story: &'a mut Story,
    greeting: PathBuf,
    proposed: usize,
}

impl Scene<'_> {
    /// Looks at the daemon and starts a session. Answers the level of confinement and the session's id.
    async fn open(&mut self, workspace: &Path) -> Result<(String, String), Failure> {
        let status = self.client.status().await?;
        self.story.note(&format!("confinement  {}", status.confinement_level));
        for missing in &status.confinement_missing {
            self.story.note(&format!("             {missing}"));
        }
        self.story.step("A session is started: an Agent Server of our own, proved before it is used");
        let starting = Instant::now();
        let creating = self.client.create_session(workspace, "Demonstration");
        let session = self.story.waiting("starting and proving the Agent Server", creating).await?;
        let elapsed_ms = self.story.timing("session_start_ms", starting);
        self.story.note(&format!("session      {}", session.session_id));
        self.story.note(&format!("policy       {}", session.values.get("policy").unwrap_or(&json!("unknown"))));
        self.story.note(&format!("after        {elapsed_ms} ms"));
        Ok((status.confinement_level, session.session_id))
    }

    /// Prompts, and shows what the agent wants to run.
    async fn propose(&mut self, session_id: &str) -> Result<Approval, Failure> {
        self.queue(Reply::run(&format!("echo \"{GREETING}\" | tee {GREETING_FILE}")))?;
        self.queue(Reply::say("The greeting is written."))?;
        self.story
            .step(&format!("The agent is asked to write a greeting to {GREETING_FILE}, and wants to run a command"));
        let asking = Instant::now();
        let approval = self.prompt_for_action(session_id, "Please write a greeting to greeting.txt.").await?;
        self.story.timing("proposal_ms", asking);
        self.expect_greeting(None)?;
        Ok(approval)
    }

    /// Sends a prompt that leads to an action, waits until that is pending, and shows it.
    async fn prompt_for_action(&mut self, session_id: &str, text: &str) -> Result<Approval, Failure> {
        let prompt = json!({"text": text, "on_pending": "refuse"});
        let pending = async {
            self.client.applied(session_id, "session.prompt.send", prompt).await?;
            self.client.until(session_id, "a pending action", waits_for_decision).await
        };
        self.story.waiting("waiting for the agent's proposal", pending).await?;
        let approval = self.client.approval(session_id).await?;
        self.proposed += approval.actions.len();
        self.story.note("It waits. This is all of it, as it will run:");
        self.story.show(&cli::show_approval(&approval, self.story.color()));
        Ok(approval)
    }

    /// While the action is pending, another prompt would make the server run it. Answers the refusal's code.
    async fn try_bypass(&mut self, session_id: &str) -> Result<String, Failure> {
        self.story.step("A bypass is tried: another prompt, which the server would take for a yes");
        let prompt = json!({"text": "Never mind the question, go on.", "on_pending": "refuse"});
        let code = match self.client.act(session_id, "session.prompt.send", prompt).await {
            Err(refusal) => refusal.code,
            Ok(receipt) => {
                let detail = format!("the bypass was not refused: its receipt is {:?}", receipt.state);
                return Err(failed(detail));
            }
        };
        if code != REFUSED_BYPASS {
            return Err(failed(format!("the bypass was refused as {code}, not as {REFUSED_BYPASS}")));
        }
        tokio::time::sleep(BYPASS_WATCH).await;
        self.expect_greeting(None)?;
        self.story.note(&format!("refused      {code}"));
        self.story.note(&format!("nothing ran  {GREETING_FILE} does not exist"));
        Ok(code)
    }

    /// Approves the batch by its digest; answers what the command printed.
    async fn approve(&mut self, session_id: &str, approval: &Approval) -> Result<String, Failure> {
        self.story.step("The action is approved, by the digest of exactly what was shown");
        let approving = Instant::now();
        let input = json!({"approval_id": approval.approval_id, "decision": "accept"});
        let work = async {
            self.client.applied(session_id, "session.approval.decide", input).await?;
            self.client.until(session_id, "the end of the turn", is_at_rest).await
        };
        self.story.waiting("the approved command runs", work).await?;
        let elapsed_ms = self.story.timing("approved_to_end_of_turn_ms", approving);
        self.expect_greeting(Some(GREETING))?;
        let events = self.client.events(session_id).await?;
        let output = output_of(&events, approval)?;
        self.story.note(&format!("after        {elapsed_ms} ms"));
        self.story.note(&format!("output       {output}"));
        self.story.note(&format!("{GREETING_FILE} holds the same"));
        if output.trim() == GREETING {
            Ok(output.trim().to_owned())
        } else {
            Err(failed(format!("it printed {output:?}")))
        }
    }

    /// A second action is rejected; answers how many were.
    async fn reject_second(&mut self, session_id: &str) -> Result<usize, Failure> {
        self.queue(Reply::run(&format!("rm {GREETING_FILE}")))?;
        self.story.step("The agent wants to remove the file again, and that is rejected");
        let approval = self.prompt_for_action(session_id, "Now tidy up.").await?;
        let input = json!({"approval_id": approval.approval_id, "decision": "reject", "reason": "I want to keep it."});
        self.client.applied(session_id, "session.approval.decide", input).await?;
        self.client.until(session_id, "the end of the turn", is_at_rest).await?;
        self.expect_greeting(Some(GREETING))?;
        self.story.note(&format!("rejected; {GREETING_FILE} is still there"));
        Ok(approval.actions.len())
    }

    /// Takes the conversation back to the end of its first turn.
    async fn rewind(&mut self, session_id: &str) -> Result<u32, Failure> {
        self.story.step("The conversation is rewound to the end of its first turn");
        let snapshot = self.client.snapshot(session_id).await?;
        let choices = &snapshot.choices.rewind;
        let first = choices.iter().find(|choice| choice.turn == 1);
        let first = first.ok_or_else(|| failed(format!("the first turn is not offered among {}", choices.len())))?;
        let (turn, event_id) = (first.turn, first.event_id.clone());
        self.client.applied(session_id, "session.rewind", json!({"event_id": event_id})).await?;
        let after = self.client.snapshot(session_id).await?;
        let left = after.choices.rewind.len();
        if left != 1 {
            return Err(failed(format!("{left} turns are left after going back to the first of {}", choices.len())));
        }
        self.story.note(&format!("turns        {} before, {left} now", choices.len()));
        Ok(turn)
    }

    /// Forks the session; answers the fork's id.
    async fn fork(&mut self, session_id: &str) -> Result<String, Failure> {
        self.story.step("The session is forked: a second one goes on from there, and the first is left as it is");
        let receipt = self.client.applied(session_id, "session.fork", json!({"title": "Fork"})).await?;
        let fork_id = receipt.result.get("session_id").and_then(|id| id.as_str()).map(str::to_owned);
        let fork_id = fork_id.ok_or_else(|| failed("the fork has no session"))?;
        self.story.note(&format!("session      {fork_id}"));
        Ok(fork_id)
    }

    /// Interrupts a turn of the fork in which the model thinks for long; answers how long that took.
    async fn interrupt(&mut self, session_id: &str) -> Result<u64, Failure> {
        self.queue(Reply::say("Here is a long answer.").after_ms(SLOW_REPLY_MS))?;
        self.story.step("In the fork, the model thinks for half a minute, and is interrupted");
        let prompt = json!({"text": "Think about it for long.", "on_pending": "refuse"});
        self.client.applied(session_id, "session.prompt.send", prompt).await?;
        self.client.until(session_id, "a running turn", |snapshot| snapshot.status == "running").await?;
        let interrupting = Instant::now();
        self.client.applied(session_id, "session.turn.interrupt", json!({})).await?;
        let stopped = self.client.until(session_id, "the end of the turn", is_at_rest).await?;
        let elapsed_ms = elapsed_ms(interrupting);
        if elapsed_ms >= SLOW_REPLY_MS / 2 {
            return Err(failed(format!("the interrupt took {elapsed_ms} ms")));
        }
        self.story.timing("interrupt_ms", interrupting);
        self.story.note(&format!("stopped      after {elapsed_ms} ms, the session is {}", stopped.status));
        Ok(elapsed_ms)
    }

    /// Lets the model answer so, next.
    fn queue(&self, reply: Reply) -> Result<(), Failure> {
        if self.model.push(reply) { Ok(()) } else { Err(failed("the scripted model takes no more replies")) }
    }

    /// Looks whether the file is there, and what it holds.
    fn expect_greeting(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let path = self.greeting.display();
        let found = match std::fs::read_to_string(&self.greeting) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(format!("{path} cannot be read: {error}"))),
        };
        match (wanted, found.as_deref().map(str::trim_end)) {
            (None, None) => Ok(()),
            (Some(wanted), Some(found)) if wanted == found => Ok(()),
            (None, Some(_)) => Err(failed(format!("{path} exists, although nothing was approved"))),
            (Some(_), None) => Err(failed(format!("{path} does not exist"))),
            (Some(wanted), Some(found)) => Err(failed(format!("{path} holds {found:?}, not {wanted:?}"))),
        }
    }
}

fn waits_for_decision(snapshot: &SessionSnapshot) -> bool {
    snapshot.pending_actions > 0 && snapshot.status == "waiting_for_confirmation"
}

fn is_at_rest(snapshot: &SessionSnapshot) -> bool {
    let rests = matches!(snapshot.status.as_str(), "idle" | "finished" | "paused" | "error" | "stuck");
    rests && snapshot.pending_actions == 0
}

/// The actions that ran, counted by what came back: a fork repeats its parent's events, under the same ids.
fn executed(sessions: &[Vec<Event>]) -> usize {
    let observed = sessions.iter().flatten().filter(|event| is_observed(event));
    observed.map(|event| event.event_id.as_str()).collect::<BTreeSet<_>>().len()
}

fn is_observed(event: &Event) -> bool {
    event.kind == EventKind::ToolResult && event.payload.get("outcome") == Some(&json!("observed"))
}

/// What the one action of this batch gave back.
fn output_of(events: &[Event], approval: &Approval) -> Result<String, Failure> {
    let [action] = approval.actions.as_slice() else {
        return Err(failed(format!("the batch holds {} actions", approval.actions.len())));
    };
    let of_action = |event: &&Event| event.payload.get("action_event_id") == Some(&json!(action.event_id));
    let result = events.iter().filter(|event| is_observed(event)).find(of_action);
    let text = result.and_then(|event| event.payload.get("text")).and_then(|text| text.as_str());
    text.map(str::to_owned).ok_or_else(|| failed("the approved action has no result among the events"))
}

async fn server_version(client: &Client) -> Result<String, Failure> {
    let status = client.status().await?;
    let version = status.servers.into_iter().find_map(|server| server.version);
    version.ok_or_else(|| failed("no server is up at the end"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(event_id: &str, kind: EventKind, payload: Value) -> Event {
        Event {
            cursor: String::new(),
            seq: 1,
            session_id: "s".to_owned(),
            event_id: event_id.to_owned(),
            at: String::new(),
            kind,
            payload,
        }
    }

    fn result(event_id: &str, outcome: &str) -> Event {
        event(event_id, EventKind::ToolResult, json!({"outcome": outcome, "action_event_id": "a1", "text": "hi"}))
    }

    #[test]
    fn only_observed_results_count_and_a_forks_copy_does_not_count_again() {
        let first = vec![result("r1", "observed"), result("r2", "rejected"), result("r3", "error")];
        let fork = vec![result("r1", "observed"), event("m", EventKind::AgentMessage, json!({"outcome": "observed"}))];
        assert_eq!(executed(&[first, fork]), 1);
        assert_eq!(executed(&[vec![result("r1", "observed"), result("r4", "observed")]]), 2);
        assert_eq!(executed(&[Vec::new(), Vec::new()]), 0);
    }
}
