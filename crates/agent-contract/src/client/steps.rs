//! The calls that can make the agent take a step. Each consumes a grant of the gate for this session and this kind of
//! step, so there is no way to send one that the gate did not allow, nor to send one twice.
//!
//! INVARIANT I1: no other request of this crate makes the server run an action.

use rules::gate::{StepCause, StepGrant};
use serde_json::json;

use super::Client;
use super::changes::done;
use crate::route::{Chosen, PathValue, RouteName};
use crate::transport::Call;
use crate::{ContractError, SessionId};

impl Client {
    /// Sends a prompt and lets the agent go on.
    ///
    /// # Errors
    /// [`ContractError::GrantMismatch`] before anything is sent; any other of a mutation.
    pub async fn send_message(&self, grant: StepGrant, id: &SessionId, text: &str) -> Result<(), ContractError> {
        let content = json!([{"type": "text", "text": text}]);
        self.step(grant, StepCause::Message, RouteName::SendMessage, id, vec![("content", content)]).await
    }

    /// Lets the agent go on.
    ///
    /// # Errors
    /// [`ContractError::GrantMismatch`] before anything is sent; [`ContractError::Status`] with 409 when it is running;
    /// any other of a mutation.
    pub async fn run(&self, grant: StepGrant, id: &SessionId) -> Result<(), ContractError> {
        self.step(grant, StepCause::Run, RouteName::Run, id, Vec::new()).await
    }

    /// Lets the server run what is pending. The server takes no action id: which actions may run was told to the
    /// start-up module's latch before.
    ///
    /// # Errors
    /// [`ContractError::GrantMismatch`] before anything is sent; any other of a mutation.
    pub async fn accept(&self, grant: StepGrant, id: &SessionId) -> Result<(), ContractError> {
        self.step(grant, StepCause::Accept, RouteName::Accept, id, Vec::new()).await
    }

    /// Condenses the history. Answered when it is done, which can take a model's time.
    ///
    /// # Errors
    /// [`ContractError::GrantMismatch`] before anything is sent; any other of a mutation.
    pub async fn condense(&self, grant: StepGrant, id: &SessionId) -> Result<(), ContractError> {
        self.step(grant, StepCause::Condense, RouteName::Condense, id, Vec::new()).await
    }

    async fn step(
        &self,
        grant: StepGrant,
        cause: StepCause,
        route: RouteName,
        id: &SessionId,
        body: Chosen,
    ) -> Result<(), ContractError> {
        if grant.session_id() != id.as_str() {
            return Err(ContractError::GrantMismatch { route, what: "it names another session" });
        }
        if grant.cause() != cause {
            return Err(ContractError::GrantMismatch { route, what: "it allows another kind of step" });
        }
        let mut call = Call::new(route, PathValue::Session(id)).with_body(body);
        call.granted = true;
        let reply = self.transport.call(call).await?;
        done(route, &reply)
    }
}
