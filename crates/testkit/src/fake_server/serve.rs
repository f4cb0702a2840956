//! The HTTP side of the fake server: keys, faults, replies.

use super::cut::{Budget, Cut};
use super::plan::{Fault, Keys};
use super::routes::{Answer, Parsed, detail, parse, perform};
use super::server::{RecordedRequest, Server};
use super::stream;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bounds a request body.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Bounds the connections served at once.
const MAX_CONNECTIONS: usize = 256;
/// The header that carries the session key.
const KEY_HEADER: &str = "x-session-api-key";

pub(super) type Reply = Response<Full<Bytes>>;

/// Serves until it is dropped.
pub(super) async fn serve(listener: std::net::TcpListener, server: Arc<Server>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        // As the real one's event loop does: else a frame waits until the one before it is acknowledged.
        stream.set_nodelay(true).ok();
        let (server, budget) = (Arc::clone(&server), Budget::endless());
        tokio::spawn(async move {
            let io = TokioIo::new(Cut::new(stream, budget.clone()));
            let service = service_fn(move |request| answer(request, Arc::clone(&server), budget.clone()));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
            // A cut connection ends in an error, as planned.
            drop(connection.with_upgrades().await);
            drop(place);
        });
    }
}

async fn answer(mut request: Request<Incoming>, server: Arc<Server>, budget: Budget) -> Result<Reply, Infallible> {
    let method = request.method().clone();
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let key = request.headers().get(KEY_HEADER).and_then(|key| key.to_str().ok()).map(str::to_owned);
    let body = match Limited::new(&mut *request.body_mut(), MAX_REQUEST_BYTES).collect().await {
        Ok(body) => serde_json::from_slice::<Value>(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => return Ok(whole(detail(StatusCode::PAYLOAD_TOO_LARGE, "too large"))),
    };
    let parsed = parse(&method, &path, &body);
    let route = parsed.as_ref().map_or("", |parsed| parsed.route);
    let recorded =
        RecordedRequest { route: route.to_owned(), method: method.to_string(), target, body: body.clone(), key };
    let key = recorded.key.clone();
    let number = server.note_request(recorded);
    let plan = server.plan();
    flood(plan.log_flood_bytes);
    if plan.dies_at_request == Some(number) {
        die(&server, &budget);
    }
    let Some(parsed) = parsed else { return Ok(whole(detail(StatusCode::NOT_FOUND, "Not Found"))) };
    let open = matches!(parsed.route, "server_info" | "init_probe" | "events_stream");
    if !open && !accepts(&server, plan.keys, key.as_deref()) {
        return Ok(whole(detail(StatusCode::UNAUTHORIZED, "Unauthorized")));
    }
    let fault = server.fault(parsed.route);
    if parsed.route == "events_stream" && fault.is_none() {
        return Ok(stream::upgrade(request, server, parsed.subject, query, budget));
    }
    Ok(respond(&server, &parsed, &query, &body, fault, &budget).await)
}

async fn respond(
    server: &Server,
    parsed: &Parsed,
    query: &str,
    body: &Value,
    fault: Option<Fault>,
    budget: &Budget,
) -> Reply {
    let proper = || perform(server, parsed, query, body);
    let status = |code: u16| StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match fault {
        None => whole(proper().await),
        Some(Fault::StallMs(ms)) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            whole(proper().await)
        }
        Some(Fault::StatusAfter(code)) => {
            proper().await;
            whole(detail(status(code), "as planned"))
        }
        Some(Fault::StatusInstead(code)) => whole(detail(status(code), "as planned")),
        Some(Fault::Redirect(address)) => {
            let mut reply = whole(detail(StatusCode::TEMPORARY_REDIRECT, "as planned"));
            if let Ok(address) = HeaderValue::from_str(&address) {
                reply.headers_mut().insert(header::LOCATION, address);
            }
            reply
        }
        Some(Fault::OversizeBytes(bytes)) => {
            let length = usize::try_from(bytes).unwrap_or(0);
            Response::new(Full::new(Bytes::from(vec![b' '; length])))
        }
        Some(Fault::NotJson) => Response::new(Full::new(Bytes::from_static(b"<html>not JSON</html>"))),
        Some(Fault::WrongConversation) => {
            let (status, mut body) = proper().await;
            if let Some(id) = body.get_mut("id") {
                *id = Value::from(uuid::Uuid::new_v4().to_string());
            }
            whole((status, body))
        }
        Some(Fault::CutAtByte(bytes)) => {
            let reply = whole(proper().await);
            budget.cut_after(bytes);
            reply
        }
        Some(Fault::Drop) => {
            budget.cut_after(0);
            whole(detail(StatusCode::OK, "never sent"))
        }
        Some(Fault::Die) => {
            die(server, budget);
            whole(detail(StatusCode::OK, "never sent"))
        }
        Some(Fault::DieAfter) => {
            proper().await;
            die(server, budget);
            whole(detail(StatusCode::OK, "never sent"))
        }
    }
}

/// Ends a launched server's process, as a crash does; in a test's own process, the connection only.
fn die(server: &Server, budget: &Budget) {
    budget.cut_after(0);
    if server.environment.is_some() {
        super::launched::end_process();
    }
}

pub(super) fn accepts(server: &Server, keys: Keys, key: Option<&str>) -> bool {
    match keys {
        Keys::Open => true,
        Keys::Closed => false,
        Keys::Configured => key.is_some_and(|key| server.keys.iter().any(|own| own == key)),
    }
}

fn flood(bytes: u64) {
    let mut left = bytes;
    let line = [b"flood ".repeat(200).as_slice(), b"\n"].concat();
    // Standard output is the control channel of a launched server, so the log is standard error.
    let mut error = std::io::stderr().lock();
    while left > 0 {
        let length = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if error.write_all(&line[..length]).is_err() {
            return;
        }
        left -= length as u64;
    }
}

fn whole((status, body): Answer) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body.to_string())));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
