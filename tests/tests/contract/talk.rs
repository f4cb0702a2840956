//! One conversation, driven as the checks need it: also in ways that the product never would.

use super::stage::{Stage, message};
use super::upstream::Answer;
use agent_contract::{ConversationInfo, EventId, SessionId};
use rules::branch::active_branch;
use rules::log::{ExecutionStatus, LogEvent, LogEventKind};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a turn may take.
const TURN_LIMIT: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(30);
/// How long a command that was let out in error would need to leave its mark.
const SETTLE: Duration = Duration::from_millis(1200);
/// The most pages that are read of one log.
const MAX_PAGES: usize = 20;

pub(crate) struct Talk {
    pub(crate) stage: Arc<Stage>,
    pub(crate) id: SessionId,
    pub(crate) directory: PathBuf,
}

impl Talk {
    pub(crate) fn new(stage: Arc<Stage>, id: SessionId, directory: PathBuf) -> Self {
        Self { stage, id, directory }
    }

    fn path(&self, below: &str) -> String {
        format!("/api/conversations/{}{below}", self.id)
    }

    pub(crate) async fn get(&self, below: &str) -> Answer {
        self.stage.upstream.get(&self.path(below)).await
    }

    pub(crate) async fn post(&self, below: &str, body: &Value) -> Answer {
        self.stage.upstream.post(&self.path(below), body).await
    }

    pub(crate) async fn info(&self) -> ConversationInfo {
        self.stage.client.conversation(&self.id).await.unwrap()
    }

    pub(crate) async fn status(&self) -> ExecutionStatus {
        self.info().await.status
    }

    /// The whole log as the product reads it.
    pub(crate) async fn events(&self) -> Vec<LogEvent> {
        self.read().await.into_iter().map(|(_, event)| event).collect()
    }

    /// The whole log as the server wrote it.
    pub(crate) async fn log(&self) -> Vec<Value> {
        self.read().await.into_iter().map(|(raw, _)| raw).collect()
    }

    async fn read(&self) -> Vec<(Value, LogEvent)> {
        let mut found: Vec<(Value, LogEvent)> = Vec::new();
        for _ in 0..MAX_PAGES {
            let after = found.last().map(|(_, event)| event.event_id.clone());
            let page = self.stage.client.events_page(&self.id, after.as_deref()).await.unwrap();
            found.extend(page.events.into_iter().map(|event| (event.raw, event.log)));
            if page.next.is_none() {
                return found;
            }
        }
        panic!("the log has no end");
    }

    /// The log in short, for messages.
    pub(crate) async fn told(&self) -> String {
        let words = |event: &Value| {
            let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            [word("kind"), word("key"), word("value"), word("error")].join(" ").trim().to_owned()
        };
        self.log().await.iter().map(words).collect::<Vec<_>>().join("\n")
    }

    /// Events of a kind, as the server wrote them.
    pub(crate) async fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.log().await.into_iter().filter(|event| event["kind"] == kind).collect()
    }

    /// The actions that the product takes for pending.
    pub(crate) async fn pending(&self) -> Vec<String> {
        let events = self.events().await;
        let leaf = self.info().await.leaf_event_id;
        let branch = active_branch(&events, leaf.as_deref()).unwrap();
        branch.pending().into_iter().map(|event| event.event_id.clone()).collect()
    }

    /// Posts a message with `run`.
    pub(crate) async fn say(&self, text: &str) {
        self.post("/events", &message(text, true)).await.ok();
    }

    /// Posts a message without `run`.
    pub(crate) async fn store(&self, text: &str) {
        self.post("/events", &message(text, false)).await.ok();
    }

    pub(crate) async fn run(&self) -> Answer {
        self.post("/run", &json!({})).await
    }

    pub(crate) async fn answer(&self, accept: bool) {
        self.post("/events/respond_to_confirmation", &json!({"accept": accept})).await.ok();
    }

    pub(crate) async fn interrupt(&self) {
        self.stage.client.interrupt(&self.id).await.unwrap();
    }

    pub(crate) async fn navigate(&self, event_id: &str) {
        let event_id = EventId::parse(event_id).unwrap();
        self.stage.client.navigate(&self.id, &event_id).await.unwrap();
    }

    /// Lets these actions run, once.
    pub(crate) async fn grant(&self, event_ids: &[String]) {
        self.stage.control().grant(event_ids).await.unwrap();
    }

    pub(crate) async fn settled(&self) -> bool {
        self.stage.control().settled(self.id.as_str()).await.unwrap()
    }

    /// Waits until a status and then no run is to be seen.
    pub(crate) async fn until(&self, wanted: ExecutionStatus) {
        let begun = Instant::now();
        while self.status().await != wanted || !self.settled().await {
            let now = self.status().await;
            assert!(begun.elapsed() < TURN_LIMIT, "status {now:?}, waited for {wanted:?}: {}", self.told().await);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until running and then this status were appended after so many events, and the run has ended.
    pub(crate) async fn turn_ends(&self, after: usize, wanted: ExecutionStatus) {
        let begun = Instant::now();
        loop {
            let statuses = statuses(&self.events().await[after..]);
            let ran =
                statuses.first() == Some(&ExecutionStatus::Running) || statuses.contains(&ExecutionStatus::Running);
            if ran && statuses.last() == Some(&wanted) && self.settled().await {
                return;
            }
            assert!(begun.elapsed() < TURN_LIMIT, "{statuses:?}, waited for {wanted:?}: {}", self.told().await);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a run has begun, as the state shows it.
    pub(crate) async fn until_running(&self) {
        let begun = Instant::now();
        while self.status().await != ExecutionStatus::Running {
            assert!(begun.elapsed() < TURN_LIMIT, "no run began: {}", self.told().await);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What the agent said so far.
    pub(crate) async fn agent_texts(&self) -> Vec<String> {
        let said =
            |event: LogEvent| if let LogEventKind::AgentMessage { text } = event.kind { Some(text) } else { None };
        self.events().await.into_iter().filter_map(said).collect()
    }

    /// Waits until the agent has said something.
    pub(crate) async fn until_said(&self, text: &str) {
        let begun = Instant::now();
        while !self.agent_texts().await.iter().any(|said| said == text) {
            assert!(begun.elapsed() < TURN_LIMIT, "{text:?} was not said: {}", self.told().await);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Posts a message with `run`, and waits for the end of its turn.
    pub(crate) async fn turn(&self, text: &str, wanted: ExecutionStatus) {
        let before = self.events().await.len();
        self.say(text).await;
        self.turn_ends(before, wanted).await;
    }

    /// Posts a message that leads to pending actions; their ids.
    pub(crate) async fn propose(&self, text: &str) -> Vec<String> {
        self.turn(text, ExecutionStatus::WaitingForConfirmation).await;
        let pending = self.pending().await;
        assert!(!pending.is_empty(), "nothing is pending: {}", self.told().await);
        pending
    }

    /// Grants what is pending, accepts it, and waits for the end of the turn.
    pub(crate) async fn accept(&self, event_ids: &[String], wanted: ExecutionStatus) {
        self.grant(event_ids).await;
        let before = self.events().await.len();
        self.answer(true).await;
        self.turn_ends(before, wanted).await;
    }

    /// A file that a proposed command leaves.
    pub(crate) fn marker(&self) -> Marker {
        Marker { path: self.directory.join("marker") }
    }
}

/// The statuses of these events, in order.
pub(crate) fn statuses(events: &[LogEvent]) -> Vec<ExecutionStatus> {
    let status = |event: &LogEvent| if let LogEventKind::Status(status) = event.kind { Some(status) } else { None };
    events.iter().filter_map(status).collect()
}

/// A file to which each run of the command adds a line.
pub(crate) struct Marker {
    path: PathBuf,
}

impl Marker {
    pub(crate) fn command(&self) -> String {
        format!("echo ran >> {}", self.path.display())
    }

    pub(crate) fn directive(&self) -> String {
        format!("run: {}", self.command())
    }

    pub(crate) fn runs(&self) -> usize {
        std::fs::read_to_string(&self.path).map_or(0, |text| text.lines().count())
    }

    /// The command has not run, nor does it in the time that it would need.
    pub(crate) async fn stays_absent(&self) {
        tokio::time::sleep(SETTLE).await;
        assert!(!self.path.exists(), "a command ran that nobody granted");
    }
}
