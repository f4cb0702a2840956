//! One file a resource: reads its parameters, asks the controller, shapes the reply.

use rules::catalog::validate_session_id;
use rules::refusal::Refusal;

use crate::backend::Backend;
use crate::reply::Reply;
use crate::routes::Endpoint;
use crate::service::Exchange;

mod actions;
mod approvals;
mod attestation;
mod audit;
mod daemon;
mod events;
mod sessions;
mod stream;
mod tokens;

pub use audit::{audit_page, audit_verification};

/// Answers an admitted request.
pub(crate) async fn respond<B: Backend>(exchange: Exchange<'_, B>) -> Result<Reply, Refusal> {
    match exchange.endpoint {
        Endpoint::Healthz => Ok(daemon::healthz()),
        Endpoint::Readyz => Ok(daemon::readyz(&exchange).await),
        Endpoint::OpenApi => Ok(daemon::openapi()),
        Endpoint::Status => Ok(daemon::status(&exchange).await),
        Endpoint::Probe => Ok(daemon::probe(&exchange).await),
        Endpoint::Catalog => Ok(daemon::catalog()),
        Endpoint::SessionList => sessions::list(&exchange).await,
        Endpoint::SessionCreate => sessions::create(exchange).await,
        Endpoint::SessionAttach => sessions::attach(exchange).await,
        Endpoint::SessionShow => sessions::show(&exchange).await,
        Endpoint::SessionClose => sessions::close(&exchange).await,
        Endpoint::ApprovalList => approvals::list(&exchange).await,
        Endpoint::ApprovalShow => approvals::show(&exchange).await,
        Endpoint::SessionAct => actions::on_session(exchange).await,
        Endpoint::ProviderAct => actions::on_provider(exchange).await,
        Endpoint::ReceiptShow => actions::receipt(&exchange).await,
        Endpoint::Events => events::read(&exchange).await,
        Endpoint::Attestation => attestation::show(&exchange).await,
        Endpoint::Audit => audit::page(&exchange).await,
        Endpoint::AuditVerification => audit::verification(&exchange).await,
        Endpoint::TokenList => tokens::list(&exchange).await,
        Endpoint::TokenCreate => tokens::create(exchange).await,
        Endpoint::TokenRevoke => tokens::revoke(&exchange).await,
    }
}

/// The session of the path, in canonical form.
fn session_id<'a, B>(exchange: &'a Exchange<'_, B>) -> Result<&'a str, Refusal> {
    let id = exchange.parameters.session_id.as_deref().unwrap_or_default();
    validate_session_id(id)?;
    Ok(id)
}
