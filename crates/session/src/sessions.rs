//! Creating, attaching and closing sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_contract::{NewConversation, SessionId};
use rules::catalog::{OnPending, OperationInput, validate_prompt, validate_session_id, validate_title};
use rules::log::LogEventKind;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Role, authorize};
use serde_json::json;
use store::{SessionOrigin, SessionRecord};

use crate::closed::Owed;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::supervisor::{Supervisor, resolve_workspace};
use crate::view::{ActionRequest, AttachSession, Caller, CreateSession, SessionSnapshot};
use crate::{clock, profile, upstream};

impl Supervisor {
    /// Creates a session; the same id again is the same session (then `false`). Never takes up a conversation that the
    /// server already had.
    ///
    /// # Errors
    /// Any refusal of the request, of the server's start, or of the new session's canaries.
    pub async fn create_session(
        &self,
        caller: &Caller,
        request: CreateSession,
    ) -> Result<(SessionSnapshot, bool), Refusal> {
        authorize(caller.roles, Role::Operator)?;
        if let Some(title) = &request.title {
            validate_title(title)?;
        }
        if let Some(prompt) = &request.prompt {
            validate_prompt(prompt)?;
        }
        let session_id = match &request.session_id {
            Some(id) => {
                validate_session_id(id)?;
                id.clone()
            }
            None => uuid::Uuid::new_v4().to_string(),
        };
        let workspace = resolve_workspace(self.shared(), &request.workspace)?;
        if let Some(known) = self.known_session(&session_id, &workspace).await? {
            // Its first prompt has a key of its own: sent once, whichever of the requests gets to it.
            if let Some(text) = request.prompt {
                self.first_prompt(caller, &known, text).await?;
            }
            return Ok((self.snapshot(&known).await?, false));
        }
        let supervisor = self.clone();
        let (caller, id) = (caller.clone(), session_id.clone());
        let task = crate::request::spawn(async move { supervisor.create(&caller, &id, &workspace, request).await });
        task.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))??;
        Ok((self.snapshot(&session_id).await?, true))
    }

    async fn known_session(&self, session_id: &str, workspace: &Path) -> Result<Option<String>, Refusal> {
        let id = session_id.to_owned();
        let Some(record) = self.shared().records.ledger(move |ledger| ledger.session(&id)).await? else {
            return Ok(None);
        };
        if Path::new(&record.workspace) != workspace {
            let detail = format!("session {session_id} stands in {}", record.workspace);
            return Err(Refusal::new(RefusalCode::SessionExists, detail));
        }
        if record.closed_at_ms.is_some() {
            return Err(Refusal::new(RefusalCode::SessionClosed, format!("session {session_id} was closed")));
        }
        Ok(Some(record.session_id))
    }

    async fn create(
        &self,
        caller: &Caller,
        session_id: &str,
        workspace: &Path,
        request: CreateSession,
    ) -> Result<(), Refusal> {
        profile::configured(self.shared())?;
        // A conversation that no session can be recorded for is not made.
        self.shared().records.room().check().await?;
        let server = self.inner.servers.ensure(workspace).await?;
        let id = parse_id(session_id)?;
        let new = NewConversation {
            id: id.clone(),
            workspace_dir: workspace.to_string_lossy().into_owned(),
            profile_id: server.profile().id.clone(),
        };
        let created = server.client().create_conversation(&new).await.map_err(|error| upstream::refusal(&error))?;
        if !created.is_new && !is_untouched(&server, &id).await? {
            let detail = format!("the server has a conversation {session_id} already; attach to it");
            return Err(Refusal::new(RefusalCode::SessionExists, detail));
        }
        if let Some(title) = &request.title {
            server.client().set_title(&id, title).await.map_err(|error| upstream::refusal(&error))?;
        }
        let record = record(caller, session_id, workspace, request.title.clone(), SessionOrigin::Created);
        let session = self.enter(&server, id, record).await?;
        session.check_unblocked()?;
        if let Some(text) = request.prompt {
            self.first_prompt(caller, session_id, text).await?;
        }
        Ok(())
    }

    async fn first_prompt(&self, caller: &Caller, session_id: &str, text: String) -> Result<(), Refusal> {
        let client_action_id = format!("session-start:{session_id}");
        if self.shared().records.receipt(&client_action_id).await?.is_none()
            && let Some(session) = self.shared().session(session_id)
        {
            self.server_of(&session).await?;
        }
        let action = ActionRequest {
            session_id: Some(session_id.to_owned()),
            input: OperationInput::PromptSend { text, on_pending: OnPending::Refuse },
            client_action_id,
            capability_generation: self.generation(session_id),
        };
        // Boxed: an operation may in turn come here.
        Box::pin(self.act(caller, action)).await?;
        Ok(())
    }

    /// Takes up a conversation that the server has: one read of it, nothing created.
    ///
    /// # Errors
    /// As [`Self::create_session`]; `conversation_not_found`.
    pub async fn attach_session(&self, caller: &Caller, request: AttachSession) -> Result<SessionSnapshot, Refusal> {
        authorize(caller.roles, Role::Operator)?;
        validate_session_id(&request.conversation_id)?;
        let workspace = resolve_workspace(self.shared(), &request.workspace)?;
        let session_id = request.conversation_id;
        if self.shared().session(&session_id).is_some() {
            self.known_session(&session_id, &workspace).await?;
            return self.snapshot(&session_id).await;
        }
        let supervisor = self.clone();
        let (caller, id) = (caller.clone(), session_id.clone());
        let task = crate::request::spawn(async move { supervisor.attach(&caller, &id, &workspace).await });
        task.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))??;
        self.snapshot(&session_id).await
    }

    async fn attach(&self, caller: &Caller, session_id: &str, workspace: &Path) -> Result<(), Refusal> {
        let server = self.inner.servers.ensure(workspace).await?;
        let id = parse_id(session_id)?;
        // Two at once would each take the other's baseline for none.
        let lock = self.shared().operation_lock(session_id);
        let _one_at_a_time = lock.lock().await;
        if self.shared().session(session_id).is_some() {
            return Ok(());
        }
        let info = server.client().conversation(&id).await.map_err(|error| upstream::refusal(&error))?;
        let fresh = record(caller, session_id, workspace, info.title, SessionOrigin::Attached);
        let key = session_id.to_owned();
        let record = match self.shared().records.ledger(move |ledger| ledger.session(&key)).await? {
            // A session again: what it was trusted with, and what blocked it, stands.
            Some(known) if known.workspace == fresh.workspace => SessionRecord {
                origin: known.origin,
                parent_session_id: known.parent_session_id,
                baseline_event_id: known.baseline_event_id,
                ..fresh
            },
            Some(_) | None => fresh,
        };
        self.enter(&server, id, record).await?;
        Ok(())
    }

    /// Records a session and puts it on its server.
    async fn enter(
        &self,
        server: &Arc<VerifiedServer>,
        id: SessionId,
        record: SessionRecord,
    ) -> Result<Arc<Session>, Refusal> {
        let stored = record.clone();
        self.shared().records.write("put_session", move |ledger| ledger.put_session(stored)).await?;
        let session = Session::new(self.shared(), id, record, BTreeSet::new());
        session.state().owed.extend(self.shared().owed_of_closed.take_events(session.id().as_str()));
        let session = self.shared().enter(session);
        session.bind(server).await?;
        Ok(session)
    }

    /// Closes a session: a turn that goes on is interrupted, queued prompts are cancelled. With `delete` the
    /// conversation is removed from the server as well; otherwise it is kept there.
    ///
    /// # Errors
    /// `session_not_found`, `not_permitted`, an upstream refusal, `store_failed`.
    pub async fn close_session(&self, caller: &Caller, session_id: &str, delete: bool) -> Result<(), Refusal> {
        authorize(caller.roles, Role::Operator)?;
        let session = self.find(session_id)?;
        // First: nothing goes out from here on.
        session.state().closing = true;
        let closed = self.close(caller, &session, delete).await;
        session.state().closing = false;
        closed
    }

    async fn close(&self, caller: &Caller, session: &Arc<Session>, delete: bool) -> Result<(), Refusal> {
        let session_id = session.id().as_str();
        let mut server = session.state().server.clone();
        if delete && server.is_none() {
            server = Some(self.inner.servers.ensure(session.workspace()).await?);
        }
        let server = server.filter(|server| !server.is_gone());
        if let Some(server) = &server {
            // Whether anything runs is not asked: nothing may go on unseen.
            session.revoke_unused(server).await;
            if session.is_busy() {
                let interrupted = server.client().interrupt(session.id()).await;
                if let Err(error) = interrupted.as_ref().map_err(|error| (error, error.refused_status())) {
                    tracing::warn!(session = session_id, error = %error.0, "the turn could not be interrupted");
                    // Without an answer the turn may go on: then the server is ended.
                    if error.1.is_none() {
                        server.stop().await;
                    }
                }
            }
        }
        // After the interrupt: what cannot be recorded holds up no stop.
        session.cancel_queue().await?;
        session.close_what_is_open(server.as_ref()).await?;
        if delete {
            // A session that cannot be recorded as closed keeps its conversation.
            self.shared().records.room().check().await?;
        }
        // First on the server: what a crash leaves between the two is a session that can be closed again.
        if delete {
            delete_conversation(session, server.as_deref()).await?;
        }
        let (id, by) = (session_id.to_owned(), caller.name.clone());
        let close = move |ledger: &store::Ledger| ledger.close_session(&id, clock::now_ms(), &by);
        // First: what stores the session meanwhile closes it again.
        session.state().closed = true;
        if let Err(refusal) = self.shared().records.write("close_session", close).await {
            session.state().closed = false;
            return Err(refusal);
        }
        session.state().server = None;
        // It is closed from here on: what the journal does not take now, it gets later.
        let payload = json!({"event": "session_closed", "deleted": delete});
        let mut journaled = session.note_event("lifecycle", payload).await;
        session.mark_stale();
        if delete {
            let id = session_id.to_owned();
            let remove = move |journal: &store::Journal| journal.remove_session(&id);
            journaled = self.shared().records.write_journal("remove_session", remove).await.map(|_| ());
        }
        if let Err(refusal) = journaled {
            tracing::warn!(session = session_id, %refusal, "the close could not be journaled; it will be");
            // Nobody journals them meanwhile.
            let _intake = session.intake.lock().await;
            let events = std::mem::take(&mut session.state().owed);
            let owed = if delete { Owed::Removal } else { Owed::Events(events.into()) };
            self.shared().owed_of_closed.put(session_id, owed);
            self.note_owed();
        }
        self.shared().remove(session_id);
        Ok(())
    }
}

/// Whether nothing was ever said in a conversation: it is then what the same request made before, whose answer was lost.
async fn is_untouched(server: &VerifiedServer, id: &SessionId) -> Result<bool, Refusal> {
    let page = server.client().events_page(id, None).await.map_err(|error| upstream::refusal(&error))?;
    let is_silent = |kind: &LogEventKind| match kind {
        LogEventKind::Status(_) | LogEventKind::StateUpdate | LogEventKind::Other => true,
        LogEventKind::Action(_)
        | LogEventKind::Observation { .. }
        | LogEventKind::UserReject { .. }
        | LogEventKind::AgentError { .. }
        | LogEventKind::UserMessage { .. }
        | LogEventKind::AgentMessage { .. } => false,
    };
    Ok(page.next.is_none() && page.events.iter().all(|event| is_silent(&event.log.kind)))
}

/// Removes the conversation from its server. One that is not there any more counts as removed, whatever was answered: the
/// answer was lost, or an earlier close did not get to its end.
async fn delete_conversation(session: &Session, server: Option<&VerifiedServer>) -> Result<(), Refusal> {
    let Some(server) = server else {
        let detail = "the server has ended, so the conversation was not deleted and the session stays; try again";
        return Err(Refusal::new(RefusalCode::ServerUnavailable, detail));
    };
    let Err(error) = server.client().delete(session.id()).await else { return Ok(()) };
    match server.client().conversation(session.id()).await.map_err(|error| upstream::refusal(&error).code) {
        Err(RefusalCode::ConversationNotFound) => Ok(()),
        Ok(_) | Err(_) => Err(upstream::refusal(&error)),
    }
}

fn parse_id(session_id: &str) -> Result<SessionId, Refusal> {
    SessionId::parse(session_id).map_err(|error| Refusal::new(RefusalCode::InvalidValue, error.to_string()))
}

fn record(
    caller: &Caller,
    session_id: &str,
    workspace: &Path,
    title: Option<String>,
    origin: SessionOrigin,
) -> SessionRecord {
    let now_ms = clock::now_ms();
    SessionRecord {
        session_id: session_id.to_owned(),
        workspace: PathBuf::from(workspace).to_string_lossy().into_owned(),
        title,
        origin,
        parent_session_id: None,
        baseline_event_id: None,
        created_at_ms: now_ms,
        closed_at_ms: None,
        changed_by: caller.name.clone(),
        changed_at_ms: now_ms,
    }
}
