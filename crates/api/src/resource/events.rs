//! Events as a page, waited for; the stream is next door.

use http::StatusCode;
use rules::refusal::Refusal;
use session::view::EventPage;

use super::{session_id, stream};
use crate::backend::Backend;
use crate::limits::{EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX, EVENTS_WAIT_MAX_MS};
use crate::query::check_cursor;
use crate::reply::{Reply, json};
use crate::service::{Exchange, Service, unauthenticated};
use crate::{convert, request};

pub(super) async fn read<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let session_id = session_id(exchange)?;
    let after = exchange.query.cursor("after")?;
    let limit = exchange.query.number("limit", as_u64(EVENTS_LIMIT_DEFAULT), 1, as_u64(EVENTS_LIMIT_MAX))?;
    let limit = usize::try_from(limit).unwrap_or(EVENTS_LIMIT_MAX);
    let wait_ms = exchange.query.number("wait_ms", 0, 0, EVENTS_WAIT_MAX_MS)?;
    let last = request::single(&exchange.parts.headers, &request::LAST_EVENT_ID)?;
    let last = last.map(check_cursor).transpose()?;
    if request::wants_event_stream(&exchange.parts.headers) {
        // A client that reconnects repeats its URL; where it stopped is in the header.
        let after = last.or(after);
        let bearer = request::bearer(&exchange.parts.headers).unwrap_or_default();
        return stream::open(exchange.service, session_id, bearer, after, limit).await;
    }
    let place = if wait_ms > 0 { Some(exchange.service.waiting_place()?) } else { None };
    let bearer = request::bearer(&exchange.parts.headers).unwrap_or_default();
    let page = wait(exchange.service, session_id, bearer, after.as_deref(), limit, wait_ms).await?;
    drop(place);
    Ok(json(StatusCode::OK, &convert::event_page(page)))
}

/// A page, waited for until events come, the time is over, the daemon stops or the token is revoked.
pub(super) async fn wait<B: Backend>(
    service: &Service<B>,
    session_id: &str,
    bearer: &str,
    after: Option<&str>,
    limit: usize,
    wait_ms: u64,
) -> Result<EventPage, Refusal> {
    let page = tokio::select! {
        page = service.backend.events(session_id, after, limit, wait_ms) => page,
        () = service.stopped() => service.backend.events(session_id, after, limit, 0).await,
        () = service.revoked(bearer) => Err(unauthenticated()),
    };
    // After the wait, not before: what came meanwhile is not for a token that was revoked meanwhile.
    service.authenticate(bearer).and(page)
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
