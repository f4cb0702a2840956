//! The signed word on a session's canaries.

use http::StatusCode;
use rules::refusal::Refusal;

use super::session_id;
use crate::backend::Backend;
use crate::convert;
use crate::reply::{Reply, json};
use crate::service::Exchange;

pub(super) async fn show<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let attestation = exchange.service.backend.attestation(session_id(exchange)?).await?;
    Ok(json(StatusCode::OK, &convert::attestation(attestation)))
}
