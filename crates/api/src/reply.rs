//! Builds replies. Every reply leaves through [`finish`].

use std::convert::Infallible;

use api_types::Problem;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use rules::refusal::{Refusal, RefusalCode};
use serde::Serialize;

use crate::limits::RETRY_AFTER_S;
use crate::request;

/// A reply's body: whole, or pulled piece by piece.
pub(crate) type ReplyBody = UnsyncBoxBody<Bytes, Infallible>;
/// A reply.
pub(crate) type Reply = Response<ReplyBody>;

/// A JSON reply.
pub(crate) fn json<T: Serialize>(status: StatusCode, body: &T) -> Reply {
    match serde_json::to_vec(body) {
        Ok(bytes) => finish(status, "application/json", whole(bytes)),
        Err(error) => {
            tracing::error!(%error, "a reply could not be written as JSON");
            problem(&internal(), None)
        }
    }
}

/// A problem reply, with the session's generation where it is known.
pub(crate) fn problem(refusal: &Refusal, capability_generation: Option<u64>) -> Reply {
    let status = StatusCode::from_u16(refusal.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let problem = Problem {
        type_uri: "about:blank".to_owned(),
        title: status.canonical_reason().unwrap_or("Error").to_owned(),
        status: status.as_u16(),
        code: refusal.code.as_str().to_owned(),
        detail: refusal.detail.clone(),
        remedy: Some(refusal.code.remedy().to_owned()),
        retryable: refusal.code.retryable(),
        capability_generation,
        request_id: session::request::current().map(|id| id.as_str().to_owned()),
    };
    // A problem holds strings and numbers only, so writing it cannot fail; an empty body is still a 500 for the client.
    let bytes = serde_json::to_vec(&problem).unwrap_or_default();
    finish(status, "application/problem+json", whole(bytes))
}

/// 405, naming the methods that exist.
pub(crate) fn method_not_allowed(allow: &str) -> Reply {
    let refusal = Refusal::new(RefusalCode::MethodNotAllowed, format!("this path takes {allow}"));
    let mut reply = problem(&refusal, None);
    if let Ok(value) = HeaderValue::from_str(allow) {
        reply.headers_mut().insert(ALLOW, value);
    }
    reply
}

/// What a client learns of a fault of ours.
pub(crate) fn internal() -> Refusal {
    Refusal::new(RefusalCode::Internal, "gatepost failed on this request; its log says more")
}

/// Sets what every reply carries.
pub(crate) fn finish(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(value) = session::request::current().and_then(|id| HeaderValue::from_str(id.as_str()).ok()) {
        headers.insert(request::REQUEST_ID, value);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
    }
    reply
}

/// A body that is there already.
pub(crate) fn whole(bytes: Vec<u8>) -> ReplyBody {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}
