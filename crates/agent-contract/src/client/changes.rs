//! Changes that make the agent take no step. None is ever sent twice.

use serde_json::{Value, json};

use super::Client;
use crate::route::{Chosen, PathValue, RouteName};
use crate::transport::{Call, Reply};
use crate::wire::{ConversationInfo, Fields};
use crate::{ContractError, EventId, ProfileName, SessionId};

/// A conversation to be created: with `AlwaysConfirm`, without a first message, without a title of the model's making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// Its id, chosen by us, so that creating it again is the same conversation.
    pub id: SessionId,
    /// The directory it works in: an absolute path.
    pub workspace_dir: String,
    /// The server's id of the agent profile to launch.
    pub profile_id: String,
}

/// A conversation that stands after a creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its state.
    pub info: ConversationInfo,
    /// Whether it is new; otherwise it was there already and nothing was changed.
    pub is_new: bool,
}

impl Client {
    /// Creates a conversation, or finds the one of that id.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 404 when the profile is unknown; any other of a mutation.
    pub async fn create_conversation(&self, new: &NewConversation) -> Result<Created, ContractError> {
        let route = RouteName::CreateConversation;
        let body = vec![
            ("conversation_id", Value::from(new.id.as_str())),
            ("workspace", json!({"working_dir": new.workspace_dir})),
            ("agent_profile_id", Value::from(new.profile_id.as_str())),
        ];
        let reply = self.transport.call(Call::new(route, PathValue::None).with_body(body)).await?;
        Ok(Created { info: ConversationInfo::parse(route, &new.id, &reply.value)?, is_new: reply.status == 201 })
    }

    /// Asserts the policy `AlwaysConfirm`; there is no other.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation.
    pub async fn set_policy(&self, id: &SessionId) -> Result<(), ContractError> {
        self.change(RouteName::SetPolicy, id, Vec::new()).await
    }

    /// Rejects everything that is pending. On a connection of its own, whatever else is under way.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation.
    pub async fn reject(&self, id: &SessionId, reason: Option<&str>) -> Result<(), ContractError> {
        let body = reason.map(|reason| ("reason", Value::from(reason))).into_iter().collect();
        self.change(RouteName::Reject, id, body).await
    }

    /// Interrupts a turn. On a connection of its own, whatever else is under way.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation.
    pub async fn interrupt(&self, id: &SessionId) -> Result<(), ContractError> {
        self.change(RouteName::Interrupt, id, Vec::new()).await
    }

    /// Moves the head of the active branch to an event.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 404 when the event is unknown; [`ContractError::Malformed`] when the head is not
    /// there afterwards; any other of a mutation.
    pub async fn navigate(&self, id: &SessionId, event_id: &EventId) -> Result<ConversationInfo, ContractError> {
        let route = RouteName::Navigate;
        let body = vec![("event_id", Value::from(event_id.as_str()))];
        let reply = self.transport.call(Call::new(route, PathValue::Session(id)).with_body(body)).await?;
        let info = ConversationInfo::parse(route, id, &reply.value)?;
        if info.leaf_event_id.as_deref() != Some(event_id.as_str()) {
            return Err(ContractError::malformed(route, "the head is not at the event asked for"));
        }
        Ok(info)
    }

    /// Copies the branch up to an event into a new conversation.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 409 when the new id is in use, 404 when the event is unknown; any other of a
    /// mutation.
    pub async fn fork(
        &self,
        id: &SessionId,
        new_id: &SessionId,
        from_event_id: &EventId,
        title: Option<&str>,
    ) -> Result<ConversationInfo, ContractError> {
        let route = RouteName::Fork;
        let mut body =
            vec![("id", Value::from(new_id.as_str())), ("from_event_id", Value::from(from_event_id.as_str()))];
        body.extend(title.map(|title| ("title", Value::from(title))));
        let reply = self.transport.call(Call::new(route, PathValue::Session(id)).with_body(body)).await?;
        ConversationInfo::parse(route, new_id, &reply.value)
    }

    /// Sets the title: 1 to 200 characters, as the server bounds it.
    ///
    /// # Errors
    /// [`ContractError::Declined`] when the server did not take it; any other of a mutation.
    pub async fn set_title(&self, id: &SessionId, title: &str) -> Result<(), ContractError> {
        self.change(RouteName::SetTitle, id, vec![("title", Value::from(title))]).await
    }

    /// Switches to the model of a stored profile.
    ///
    /// # Errors
    /// [`ContractError::Status`] with 404 when the profile is unknown; any other of a mutation.
    pub async fn switch_profile(&self, id: &SessionId, profile: &ProfileName) -> Result<(), ContractError> {
        self.change(RouteName::SwitchProfile, id, vec![("profile_name", Value::from(profile.as_str()))]).await
    }

    /// Removes the conversation and its log for good.
    ///
    /// # Errors
    /// Any [`ContractError`] of a mutation.
    pub async fn delete(&self, id: &SessionId) -> Result<(), ContractError> {
        self.change(RouteName::Delete, id, Vec::new()).await
    }

    async fn change(&self, route: RouteName, id: &SessionId, body: Chosen) -> Result<(), ContractError> {
        let reply = self.transport.call(Call::new(route, PathValue::Session(id)).with_body(body)).await?;
        done(route, &reply)
    }
}

/// A `{"success": …}` answer.
pub(super) fn done(route: RouteName, reply: &Reply) -> Result<(), ContractError> {
    if Fields::of(route, "reply", &reply.value)?.boolean("success")? {
        Ok(())
    } else {
        Err(ContractError::Declined { route })
    }
}
