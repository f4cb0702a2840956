//! What may be done with a session now: the waiting batch, the advertised operations, the generation.

use rules::approval::{self, ApprovalBasis, Binding, Detail};
use rules::branch::{Branch, active_branch};
use rules::canary::{CanaryResult, CanaryScope, all_passed};
use rules::log::ExecutionStatus;
use rules::operation::OperationId;
use rules::refusal::{Refusal, RefusalCode};
use rules::standing::{self, Guarded, ServerStanding};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::clock;
use crate::log::WithoutLog;
use crate::named_files::{hash_named, left_processes};
use crate::session::Session;
use crate::state::{Current, MAX_QUEUED_PROMPTS, State};
use crate::stream::link_word;
use crate::view::{
    AdvertisedOperation, Approval, BlockChoice, NamedFile, PendingAction, RewindChoice, SessionSnapshot, SessionSummary,
};

/// How long a snapshot may be shown without asking again.
const SNAPSHOT_VALID_MS: i64 = 10_000;

/// The batch that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) approval_id: String,
    pub(crate) event_ids: Vec<String>,
    pub(crate) expires_at_ms: u64,
}

impl State {
    /// The active branch.
    ///
    /// # Errors
    /// `branch_unreadable`.
    pub(crate) fn branch(&self) -> Result<Branch<'_>, Refusal> {
        active_branch(self.log.mirror.events(), self.leaf.as_deref()).map_err(Refusal::from)
    }

    /// The batch that waits now, entered into the book.
    pub(crate) fn waiting(&mut self, session_id: &str) -> Option<Waiting> {
        let Self { log, current } = self;
        let server_start_id = current.server.as_ref()?.start_id().to_owned();
        let info = current.info.as_ref()?;
        let binding = Binding {
            session_id,
            server_start_id: &server_start_id,
            workdir: &current.record.workspace,
            policy: &info.policy_kind,
        };
        // Not `self.branch()`: the book is borrowed at the same time.
        let branch = active_branch(log.mirror.events(), current.leaf.as_deref()).ok()?;
        let basis = ApprovalBasis::of(binding, &branch)?;
        let event_ids = basis.event_ids();
        if current.is_running(&event_ids) {
            return None;
        }
        let now_ms = u64::try_from(clock::steady_ms()).unwrap_or(0);
        let offer = current.book.offer(&basis, now_ms);
        Some(Waiting { approval_id: offer.approval_id, event_ids, expires_at_ms: offer.expires_at_ms })
    }

    fn advertised(&self, waiting: Option<&Waiting>) -> Vec<OperationId> {
        let mut operations = vec![OperationId::TurnInterrupt];
        if waiting.is_some() {
            operations.push(OperationId::ApprovalDecide);
        }
        if self.tripped.is_some() && self.server.is_some() {
            operations.push(OperationId::BlockAcknowledge);
        }
        let Ok(branch) = self.branch() else { return operations };
        if self.block().is_some() || self.server.is_none() || self.info.is_none() {
            return operations;
        }
        let running = self.status == ExecutionStatus::Running || !self.quiet.is_quiet();
        let doubtful = !approval::in_doubt(&branch, &self.sent).is_empty();
        let free = !running && waiting.is_none() && !doubtful;
        let mut offer = |operation, when: bool| {
            if when {
                operations.push(operation);
            }
        };
        offer(OperationId::PromptSend, self.queue.len() < MAX_QUEUED_PROMPTS);
        offer(OperationId::TitleSet, true);
        offer(OperationId::Fork, branch.last_safe_point().is_some());
        offer(OperationId::Rewind, !running && !branch.rewind_choices().is_empty());
        offer(OperationId::Resume, free && can_resume(self.status));
        offer(OperationId::Compact, free && !branch.events().is_empty());
        offer(OperationId::ModelSet, !running);
        operations.sort();
        operations
    }

    /// Moves the generation when what may be done has changed.
    pub(crate) fn refresh_generation(&mut self, session_id: &str) {
        let waiting = self.waiting(session_id);
        let operations: Vec<&str> = self.advertised(waiting.as_ref()).into_iter().map(OperationId::as_str).collect();
        let choices: Vec<String> = self
            .branch()
            .map(|branch| branch.rewind_choices().into_iter().map(|choice| choice.event_id).collect())
            .unwrap_or_default();
        let basis = json!({
            "operations": operations,
            "choices": choices,
            "approval": waiting.map(|waiting| waiting.approval_id),
            "block": self.block().map(|refusal| refusal.code.as_str()),
            "tripped": self.tripped.as_ref().map(|tripped| tripped.block_id.as_str()),
            "policy": self.info.as_ref().map(|info| info.policy_kind.as_str()),
            "server": self.server.as_ref().map(|server| server.start_id()),
        })
        .to_string();
        let basis: [u8; 32] = Sha256::digest(basis).into();
        if basis != self.generation_basis {
            self.generation_basis = basis;
            self.generation = self.generations.next();
        }
    }
}

impl Current {
    /// Whether it is on a server that is up, and was read there.
    fn on_server(&self) -> bool {
        self.info.is_some() && self.server.as_ref().is_some_and(|server| !server.is_gone())
    }

    /// Every canary that a step of this session needs.
    pub(crate) fn all_canaries(&self) -> Vec<CanaryResult> {
        let mut results = self.server.as_ref().map(|server| server.canaries().results).unwrap_or_default();
        results.extend(self.canaries.iter().cloned());
        results
    }

    /// Why the session takes no step, if it takes none.
    pub(crate) fn block(&self) -> Option<Refusal> {
        if let Some(tripped) = &self.tripped {
            return Some(tripped.refusal.clone());
        }
        if self.info.is_none() || self.server.is_none() {
            return self.unreachable.clone();
        }
        all_passed(&self.all_canaries()).err()
    }

    /// Whether these actions were accepted and are running, as far as is known.
    fn is_running(&self, event_ids: &[String]) -> bool {
        self.open_decisions.iter().any(|decision| event_ids.iter().any(|id| decision.event_ids.contains(id)))
    }
}

impl WithoutLog<'_> {
    /// None while the log is set aside: a session in which something waits does not rest.
    fn pending_actions(&mut self, session_id: &str) -> usize {
        let waiting = self.with_log().and_then(|state| state.waiting(session_id));
        waiting.map_or(0, |waiting| waiting.event_ids.len())
    }
}

/// Whether `run` would do anything: on a finished conversation the server answers success and does nothing.
pub(crate) fn can_resume(status: ExecutionStatus) -> bool {
    match status {
        ExecutionStatus::Idle | ExecutionStatus::Paused | ExecutionStatus::Error | ExecutionStatus::Stuck => true,
        ExecutionStatus::Running
        | ExecutionStatus::WaitingForConfirmation
        | ExecutionStatus::Finished
        | ExecutionStatus::Deleting
        | ExecutionStatus::Unknown => false,
    }
}

impl Session {
    /// How many actions wait for a decision.
    pub(crate) fn pending_actions(&self) -> usize {
        self.current().pending_actions(self.id().as_str())
    }

    /// The list's line; `server` is where the workspace's server stands.
    pub(crate) fn summary(&self, server: ServerStanding) -> SessionSummary {
        let mut state = self.current();
        let pending_actions = state.pending_actions(self.id().as_str());
        let block = state.block();
        let on_server = state.on_server();
        let status = if state.closed { "closed" } else { state.status.as_str() };
        SessionSummary {
            session_id: self.id().as_str().to_owned(),
            workspace: state.record.workspace.clone(),
            title: state.record.title.clone(),
            state: standing::session(block.as_ref(), on_server, server),
            status: status.to_owned(),
            pending_actions,
            blocked_reason: block,
            created_at: clock::rfc3339(state.record.created_at_ms),
        }
    }

    /// Everything a client needs to decide what to do next.
    pub(crate) fn snapshot(&self, cursor: String, server: ServerStanding) -> SessionSnapshot {
        let summary = self.summary(server);
        let mut state = self.state();
        state.refresh_generation(self.id().as_str());
        let waiting = state.waiting(self.id().as_str());
        let advertised_operations = state
            .advertised(waiting.as_ref())
            .into_iter()
            .map(|operation_id| AdvertisedOperation { operation_id, needs_generation: needs_generation(operation_id) })
            .collect();
        let rewind_choices = match state.branch() {
            Err(_) => Vec::new(),
            Ok(branch) => branch
                .rewind_choices()
                .into_iter()
                .map(|choice| RewindChoice {
                    turn: choice.turn,
                    at: state.log.mirror.time_of(&choice.event_id).unwrap_or_default().to_owned(),
                    event_id: choice.event_id,
                    text: choice.text,
                })
                .collect(),
        };
        let info = state.info.as_ref();
        let values = [
            ("model", json!(info.and_then(|info| info.model()))),
            ("title", json!(state.record.title)),
            ("policy", json!(info.map(|info| info.policy_kind.as_str()))),
            ("agent_kind", json!(info.map(|info| info.agent_kind.as_str()))),
            ("server_start_id", json!(state.server.as_ref().map(|server| server.start_id()))),
            ("queued_prompts", json!(state.queue.len())),
            ("quiet", json!(state.quiet.is_quiet() && state.status != ExecutionStatus::Running)),
            ("event_stream", json!(link_word(self.frames().link()))),
            ("confinement_level", json!(state.server.as_ref().map(|server| server.confinement().level.as_str()))),
        ];
        let observed_at_ms = state.observed_at_ms;
        let guarded = Guarded::session(state.on_server(), summary.state);
        SessionSnapshot {
            canaries: standing::canaries(&[CanaryScope::Session], &state.canaries, &[], guarded),
            summary,
            capability_generation: state.generation,
            observed_at: clock::rfc3339(observed_at_ms),
            valid_until: clock::rfc3339(clock::now_ms() + SNAPSHOT_VALID_MS),
            advertised_operations,
            rewind_choices,
            acknowledge_choices: state
                .tripped
                .iter()
                .map(|tripped| BlockChoice {
                    block_id: tripped.block_id.clone(),
                    observation_ids: tripped.observation_ids.clone(),
                })
                .collect(),
            model_choices: self.shared().settings.model.as_ref().map(|model| model.choices.clone()).unwrap_or_default(),
            values: values.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect(),
            cursor,
        }
    }

    /// The waiting batch as a person sees it, with the files it names and what earlier ones left; `None` when nothing
    /// waits.
    pub(crate) async fn show_approval(&self, detail: Detail) -> Option<Approval> {
        let mut approval = self.approval(detail)?;
        let server = self.state().server.as_ref().map(|server| (server.owned().tree_pid(), server.owned().pid()));
        let now = self.named_files().await;
        approval.background_processes = match server {
            Some((tree, server)) => {
                tokio::task::spawn_blocking(move || left_processes(tree, server)).await.unwrap_or_default()
            }
            None => Vec::new(),
        };
        let mut state = self.state();
        // What was replaced while its files were hashed must not take the place of what waits now.
        let waits = state.waiting(self.id().as_str()).is_some_and(|now| now.approval_id == approval.approval_id);
        if !waits {
            return None;
        }
        state.pinned_files.pin(&approval.approval_id, &now);
        approval.named_files = state.pinned_files.mark(now);
        Some(approval)
    }

    /// The files that the pending commands name, hashed now.
    pub(crate) async fn named_files(&self) -> Vec<NamedFile> {
        let arguments: Vec<Value> = {
            let state = self.state();
            let Ok(branch) = state.branch() else { return Vec::new() };
            branch
                .batch()
                .into_iter()
                .filter_map(|event| event.executable().map(|(_, action)| action.clone()))
                .collect()
        };
        let workspace = self.workspace().to_path_buf();
        tokio::task::spawn_blocking(move || hash_named(&workspace, &arguments)).await.unwrap_or_default()
    }

    fn approval(&self, detail: Detail) -> Option<Approval> {
        let mut state = self.state();
        let waiting = state.waiting(self.id().as_str())?;
        let server = state.server.clone()?;
        let branch = state.branch().ok()?;
        let shown: Vec<approval::ShownAction> = branch
            .batch()
            .into_iter()
            .filter_map(|event| approval::show(event, server.redactor(), detail, &state.sent))
            .collect();
        let complete = shown.iter().all(|action| !action.redacted && !action.truncated);
        Some(Approval {
            approval_id: waiting.approval_id,
            session_id: self.id().as_str().to_owned(),
            expires_at: clock::rfc3339(i64::try_from(waiting.expires_at_ms).unwrap_or(i64::MAX)),
            holds_secret: shown.iter().any(|action| action.holds_secret),
            actions: shown.into_iter().map(pending_action).collect(),
            complete,
            confinement_level: server.confinement().level.as_str().to_owned(),
            named_files: Vec::new(),
            background_processes: Vec::new(),
            notes: notes().into_iter().chain(server.confinement().said().cloned()).collect(),
        })
    }

    /// Refuses a request that was decided on another generation.
    ///
    /// # Errors
    /// `generation_missing` or `generation_stale`.
    pub(crate) fn check_generation(&self, given: Option<u64>) -> Result<(), Refusal> {
        let mut state = self.state();
        state.refresh_generation(self.id().as_str());
        match given {
            Some(generation) if generation == state.generation => Ok(()),
            Some(generation) => Err(Refusal::new(
                RefusalCode::GenerationStale,
                format!("decided on generation {generation}, the session is at {}; look again", state.generation),
            )),
            None => Err(Refusal::new(
                RefusalCode::GenerationMissing,
                "this operation needs the capability_generation of the snapshot it was decided on",
            )),
        }
    }
}

/// Whether at least one form of it must carry the generation it was decided on.
fn needs_generation(operation: OperationId) -> bool {
    match operation {
        OperationId::TurnInterrupt
        | OperationId::BlockAcknowledge
        | OperationId::ProviderAuthRead
        | OperationId::ProviderConfigRead
        | OperationId::ProviderUsageRead
        | OperationId::ProviderDiagnosticsRead => false,
        OperationId::PromptSend
        | OperationId::ApprovalDecide
        | OperationId::Fork
        | OperationId::Rewind
        | OperationId::Resume
        | OperationId::Compact
        | OperationId::ModelSet
        | OperationId::TitleSet => true,
    }
}

fn pending_action(shown: approval::ShownAction) -> PendingAction {
    PendingAction {
        event_id: shown.event_id,
        tool: shown.tool,
        arguments: shown.arguments,
        agent_risk: shown.claimed_risk,
        agent_summary: shown.claimed_summary,
        redacted: shown.redacted,
        truncated: shown.truncated,
        deceptive_text: shown.deceptive_text,
        in_doubt: shown.in_doubt,
    }
}

/// What approval cannot promise.
fn notes() -> Vec<String> {
    [
        "The shell is persistent: what earlier commands set (aliases, functions, variables) can change what this one means.",
        "A script that a command names can change between now and the moment it runs.",
        "The network is open to the command.",
    ]
    .map(str::to_owned)
    .into()
}
