//! What a request that may change something turned out to ask for, for the case that it is refused.

use std::sync::OnceLock;

use rules::catalog::validate_session_id;
use rules::operation::OperationId;
use rules::refusal::RefusalCode;
use session::view::RefusedRequest;

use crate::routes::Endpoint;

/// Filled in while the request is read.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    operation: OnceLock<OperationId>,
    client_action_id: OnceLock<String>,
}

impl Attempt {
    /// The body names this operation.
    pub(crate) fn note_operation(&self, operation: OperationId) {
        self.operation.get_or_init(|| operation);
    }

    /// The request carries this valid key.
    pub(crate) fn note_key(&self, client_action_id: &str) {
        self.client_action_id.get_or_init(|| client_action_id.to_owned());
    }

    /// The record of its refusal. What a client wrote is taken over only where it was found valid.
    pub(crate) fn refused(
        &self,
        endpoint: Endpoint,
        caller: &str,
        session_id: Option<&str>,
        code: RefusalCode,
    ) -> RefusedRequest {
        RefusedRequest {
            request: format!("{} {}", endpoint.method(), endpoint.template()),
            caller: caller.to_owned(),
            client_action_id: self.client_action_id.get().cloned(),
            session_id: session_id.filter(|id| validate_session_id(id).is_ok()).map(str::to_owned),
            operation_id: self.operation.get().map(|operation| operation.as_str().to_owned()),
            code,
        }
    }
}
