//! The daemon itself: health, description, status, probe, catalog.

use api_types::Health;
use http::StatusCode;

use crate::backend::Backend;
use crate::reply::{Reply, json};
use crate::service::Exchange;
use crate::{convert, openapi};

pub(super) fn healthz() -> Reply {
    json(StatusCode::OK, &Health { alive: true })
}

pub(super) async fn readyz<B: Backend>(exchange: &Exchange<'_, B>) -> Reply {
    let readiness = convert::readiness(exchange.service.backend.readiness().await);
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &readiness)
}

pub(super) fn openapi() -> Reply {
    json(StatusCode::OK, &openapi::document())
}

pub(super) async fn status<B: Backend>(exchange: &Exchange<'_, B>) -> Reply {
    let refused_peers = exchange.service.refusals.told();
    json(StatusCode::OK, &convert::status(exchange.service.backend.status().await, refused_peers))
}

pub(super) async fn probe<B: Backend>(exchange: &Exchange<'_, B>) -> Reply {
    json(StatusCode::OK, &convert::probe(exchange.service.backend.probe().await))
}

pub(super) fn catalog() -> Reply {
    json(StatusCode::OK, &convert::catalog(rules::catalog::describe()))
}
