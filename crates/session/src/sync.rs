//! Reading a conversation: the log first, then its state, so that the head is always an event that was read.

use std::sync::Arc;

use agent_contract::{AgentInfo, ConversationInfo, WireEvent};
use rules::canary::{CanaryId, CanaryResult, Presence, ProfileRef, WorkspaceEvidence, WorkspaceExpectation};
use rules::log::{ExecutionStatus, LogEventKind};
use rules::reconcile::Rest;
use rules::refusal::{Refusal, RefusalCode};

use crate::intake::{ReadBegan, Taken};
use crate::mirror::MirrorError;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::{clock, events, upstream, workspace};

/// Pages of one read; a log that is longer than that many hundred events is refused.
const MAX_PAGES: usize = 4000;

impl Session {
    /// Reads what is new in the log. One request when nothing, or less than a page, is new.
    ///
    /// # Errors
    /// An upstream refusal, or `store_failed`.
    pub(crate) async fn pull(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        self.check_taken_up()?;
        let read = {
            let _reading = self.reading.lock().await;
            self.read_log(server).await
        };
        self.conclude(server, read).await
    }

    /// Reads the log and the conversation's state, and takes the session canaries. Two requests.
    ///
    /// # Errors
    /// An upstream refusal, `branch_unreadable`, or `store_failed`. A failed canary is no error here.
    pub(crate) async fn observe(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        self.check_taken_up()?;
        let read = {
            let _reading = self.reading.lock().await;
            match self.read_log(server).await {
                Ok(()) => self.read_state(server).await,
                Err(refusal) => Err(refusal),
            }
        };
        self.conclude(server, read).await
    }

    /// A log of which it is not known what stood in it before cannot be judged: [`State::lose_log`].
    ///
    /// [`State::lose_log`]: crate::state::State::lose_log
    fn check_taken_up(&self) -> Result<(), Refusal> {
        let state = self.state();
        if state.taken_up {
            return Ok(());
        }
        let lost = || Refusal::new(RefusalCode::ServerUnavailable, "the session's log is to be read anew; try again");
        Err(state.unreachable.clone().unwrap_or_else(lost))
    }

    /// [`Self::observe`] right after [`Self::read_whole_log`]: one request less.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub(crate) async fn observe_state(self: &Arc<Self>, server: &Arc<VerifiedServer>) -> Result<(), Refusal> {
        let read = {
            let _reading = self.reading.lock().await;
            self.read_state(server).await
        };
        self.conclude(server, read).await
    }

    /// Draws the consequences of a read. What was read and could not be journaled has this one only, that it is judged.
    async fn conclude(
        self: &Arc<Self>,
        server: &Arc<VerifiedServer>,
        read: Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Err(refusal) = read else { return self.after_change(server).await };
        if self.state().has_unjournaled() {
            {
                let _one_at_a_time = self.consequences.lock().await;
                if let Err(why) = self.watch_for_unreviewed(server).await {
                    tracing::debug!(session = self.id().as_str(), %why, "it is told of once that can be journaled");
                }
            }
            self.state().refresh_generation(self.id().as_str());
            self.announce_change();
        }
        Err(refusal)
    }

    /// The conversation's state, for a log that was read before it.
    async fn read_state(&self, server: &VerifiedServer) -> Result<(), Refusal> {
        let info = server.client().conversation(self.id()).await.map_err(|error| upstream::refusal(&error))?;
        let is_known = |leaf: &String| self.state().log.mirror.position(leaf).is_some();
        if !info.leaf_event_id.as_ref().is_none_or(is_known) {
            // It moved between the two reads.
            self.read_log(server).await?;
            if !info.leaf_event_id.as_ref().is_none_or(is_known) {
                let detail = "the server's head is an event that its log does not hold";
                return Err(Refusal::new(RefusalCode::BranchUnreadable, detail));
            }
        }
        let canaries = self.session_canaries(server, &info).await;
        let mut state = self.state();
        if info.status == ExecutionStatus::Running {
            state.quiet.note_status(ExecutionStatus::Running);
        }
        state.leaf.clone_from(&info.leaf_event_id);
        state.status = info.status;
        state.observed_at_ms = clock::steady_ms();
        state.info = Some(info);
        state.canaries = canaries;
        Ok(())
    }

    /// The whole log, without drawing consequences: for a session that is taken up.
    ///
    /// # Errors
    /// As [`Self::pull`].
    pub(crate) async fn read_whole_log(&self, server: &VerifiedServer) -> Result<(), Refusal> {
        let _reading = self.reading.lock().await;
        self.read_log(server).await
    }

    async fn read_log(&self, server: &VerifiedServer) -> Result<(), Refusal> {
        let (mark, began) = (self.frames().begin_read(), ReadBegan::now());
        let mut held_back: Vec<WireEvent> = Vec::new();
        for _page in 0..MAX_PAGES {
            let last = held_back.last().map(|event| event.log.event_id.clone());
            let after = last.or_else(|| self.state().log.mirror.last_event_id().map(str::to_owned));
            let page = server
                .client()
                .events_page(self.id(), after.as_deref())
                .await
                .map_err(|error| upstream::refusal(&error))?;
            let rest = if page.next.is_some() { Rest::More } else { Rest::Nothing };
            held_back.extend(page.events);
            held_back = match self.take(server, held_back, rest, began).await {
                Ok(held_back) => held_back,
                Err(refusal) => {
                    self.read_unjournaled(server).await;
                    return Err(refusal);
                }
            };
            if rest == Rest::Nothing {
                self.frames().end_read(mark);
                return Ok(());
            }
        }
        Err(Refusal::new(RefusalCode::UpstreamMalformed, "the server's event log has no end"))
    }

    /// What stands behind events that could not be journaled is read all the same, to be judged.
    async fn read_unjournaled(&self, server: &VerifiedServer) {
        for _page in 0..MAX_PAGES {
            let Some(after) = self.state().unjournaled.last_event_id().map(str::to_owned) else { return };
            let Ok(page) = server.client().events_page(self.id(), Some(&after)).await else { return };
            if self.state().unjournaled.merge(page.events).is_err() || page.next.is_none() {
                return;
            }
        }
    }

    /// Journals new events, then lets them count. Returns those that are to come again with more. Those that cannot be
    /// journaled are kept, to be judged.
    async fn take(
        &self,
        server: &VerifiedServer,
        events: Vec<WireEvent>,
        rest: Rest,
        began: ReadBegan,
    ) -> Result<Vec<WireEvent>, Refusal> {
        if events.is_empty() && !self.frames().is_ahead() {
            return Ok(events);
        }
        let too_long = |error: MirrorError| Refusal::new(RefusalCode::UpstreamMalformed, error.to_string());
        self.state().log.mirror.has_room(events.len()).map_err(too_long)?;
        match self.take_logged(&events, rest, began, server.redactor()).await {
            Ok(Taken::Journaled) => {}
            Ok(Taken::HeldBack) => return Ok(events),
            Err(refusal) => {
                self.state().unjournaled.merge(events).map_err(too_long)?;
                return Err(refusal);
            }
        }
        let usage = events
            .iter()
            .rev()
            .find(|event| events::is_usage(&event.raw))
            .map(|event| events::describe(&event.log.event_id, &event.at, &event.raw, server.redactor()).payload);
        let mut state = self.state();
        if let Some(usage) = usage {
            state.usage = usage;
        }
        for event in state.log.mirror.merge(events).map_err(too_long)? {
            if let LogEventKind::Status(status) = event.log.kind {
                state.status = status;
                state.quiet.note_status(status);
            }
            if !event.log.is_state_update() {
                state.leaf = Some(event.log.event_id);
            }
        }
        state.forget_journaled();
        drop(state);
        self.announce_change();
        Ok(Vec::new())
    }

    /// Journals something of our own: a `lifecycle` or approval event.
    pub(crate) async fn note_event(&self, kind: &'static str, payload: serde_json::Value) -> Result<(), Refusal> {
        self.take_own(store::NewEvent {
            event_id: uuid::Uuid::new_v4().to_string(),
            at: clock::rfc3339(clock::now_ms()),
            kind: kind.to_owned(),
            payload_json: payload.to_string(),
            is_late: false,
        })
        .await?;
        self.announce_change();
        Ok(())
    }

    async fn session_canaries(&self, server: &VerifiedServer, info: &ConversationInfo) -> Vec<CanaryResult> {
        let directory = self.workspace().to_path_buf();
        let scanned = tokio::task::spawn_blocking(move || workspace::scan(&directory)).await;
        let reviewed = self.shared().reviewed_content();
        let content = match scanned {
            Ok(Ok(findings)) => rules::canary::workspace_content(&findings, &reviewed),
            Ok(Err(refusal)) => CanaryResult::unreadable(CanaryId::WorkspaceContent, refusal.detail),
            Err(error) => CanaryResult::unreadable(CanaryId::WorkspaceContent, error.to_string()),
        };
        let mut results = vec![content, self.workspace_canary(info)];
        results.push(rules::canary::policy(&info.policy_kind));
        results.push(rules::canary::agent_kind(&info.agent_kind));
        results.push(rules::canary::no_hooks(if info.hook_config_present {
            Presence::Present
        } else {
            Presence::Absent
        }));
        results.extend(self.agent_canaries(info));
        let observed = match (&info.profile_id, info.profile_revision.and_then(|revision| i64::try_from(revision).ok()))
        {
            (Some(id), Some(revision)) => Some(ProfileRef { id: id.clone(), revision }),
            (Some(_) | None, _) => None,
        };
        let reviewed = server.profile();
        let any = observed.as_ref().map_or(0, |profile| profile.revision);
        let expected = ProfileRef { id: reviewed.id.clone(), revision: reviewed.revision.unwrap_or(any) };
        results.push(rules::canary::profile(observed.as_ref(), &expected));
        results
    }

    fn workspace_canary(&self, info: &ConversationInfo) -> CanaryResult {
        let roots = crate::supervisor::resolved_roots(self.shared());
        let resolved = std::path::Path::new(&info.workspace_dir)
            .canonicalize()
            .map_or_else(|_| info.workspace_dir.clone(), |path| path.to_string_lossy().into_owned());
        rules::canary::workspace(
            &WorkspaceEvidence { kind: info.workspace_kind.clone(), resolved },
            &WorkspaceExpectation { bound: self.workspace().to_string_lossy().into_owned(), roots },
        )
    }

    fn agent_canaries(&self, info: &ConversationInfo) -> Vec<CanaryResult> {
        let configured = self.shared().settings.model.as_ref().map(|model| model.tools.clone()).unwrap_or_default();
        let mut observed: Vec<String> = info.client_tools.clone();
        let (mcp, plugins) = match &info.agent {
            AgentInfo::Native { tools, mcp_servers, marketplaces, .. } => {
                observed.extend(tools.iter().cloned());
                let plugins =
                    if *marketplaces == 0 { Vec::new() } else { vec![format!("{marketplaces} marketplaces")] };
                (rules::canary::no_mcp(mcp_servers), rules::canary::no_plugins(&plugins))
            }
            AgentInfo::Foreign => (
                CanaryResult::unreadable(CanaryId::NoMcp, "the agent is not the server's own"),
                CanaryResult::unreadable(CanaryId::NoPlugins, "the agent is not the server's own"),
            ),
        };
        vec![rules::canary::tools(&observed, &configured), mcp, plugins]
    }
}
