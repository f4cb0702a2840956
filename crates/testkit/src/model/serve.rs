//! The HTTP side of the scripted model.

use super::chat::{Envelope, scripted_reply};
use super::{MAX_RECORDED_REQUESTS, Reply, State, lock};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bounds a request body: whole conversations with their system prompt are sent each time.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Bounds the connections served at once; further ones wait in the listen backlog.
const MAX_CONNECTIONS: usize = 64;

type Body = BoxBody<Bytes, Infallible>;

/// Serves until it is dropped.
pub(super) async fn serve(listener: std::net::TcpListener, state: State) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // An accept fails for a peer that has gone already: the next one is served.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&state)));
            // A client that hangs up in the middle is no concern of the model.
            drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            drop(place);
        });
    }
}

async fn answer(request: Request<Incoming>, state: State) -> Result<Response<Body>, Infallible> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    Ok(match (&method, path.as_str()) {
        (&Method::GET, "/v1/models") => {
            json_response(StatusCode::OK, &json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))
        }
        (&Method::POST, "/v1/chat/completions") => complete(request, &state).await,
        _ => error(StatusCode::NOT_FOUND, "no such route"),
    })
}

async fn complete(request: Request<Incoming>, state: &State) -> Response<Body> {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let Ok(body) = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await else {
        return error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or was cut off");
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return error(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let reply = next_reply(state, &body, authorization);
    tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
    if let Some(status) = reply.fail_status.and_then(|status| StatusCode::from_u16(status).ok()) {
        return error(status, "the script says so");
    }
    let model = body["model"].as_str().unwrap_or("scripted");
    let completion_id = uuid::Uuid::new_v4().simple().to_string();
    let envelope = Envelope { completion_id: &completion_id, model };
    if body["stream"].as_bool() != Some(true) {
        return json_response(StatusCode::OK, &envelope.whole(&reply));
    }
    let include_usage = body["stream_options"]["include_usage"].as_bool() == Some(true);
    let frames = envelope.frames(&reply, include_usage);
    let frames = stream::iter(frames.into_iter().map(|frame| Ok(Frame::data(Bytes::from(frame)))));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    response
}

/// Records the request and decides its reply.
fn next_reply(state: &State, body: &Value, authorization: String) -> Reply {
    let scripted = scripted_reply(body);
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let mut shared = lock(state);
    while shared.requests.len() >= MAX_RECORDED_REQUESTS {
        shared.requests.pop_front();
        shared.authorizations.pop_front();
    }
    shared.requests.push_back(body.clone());
    shared.authorizations.push_back(authorization);
    let queued = if has_tools { shared.queue.pop_front() } else { None };
    queued.unwrap_or(scripted)
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(BodyExt::boxed(Full::new(Bytes::from(body.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn error(status: StatusCode, message: &str) -> Response<Body> {
    json_response(status, &json!({"error": {"message": message, "type": "scripted", "code": status.as_u16()}}))
}
