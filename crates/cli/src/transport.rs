//! One request over the daemon's Unix socket: bounded in time and size, on a connection of its own.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::Duration;

use api_types::{ExitCode, Problem};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::token::{self, TokenFile};

/// Most bytes of a reply: the daemon's own bound of 8 MiB upstream, escaped and wrapped.
const MAX_REPLY_BYTES: usize = 32 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a request that got no answer may have changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads.
    Read,
    /// It may have been carried out.
    Change,
}

/// A request to the daemon.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// Path and query, made of checked or encoded parts only.
    pub(crate) target: String,
    pub(crate) body: Option<&'a Value>,
    pub(crate) effect: Effect,
    /// How long an answer may take.
    pub(crate) within: Duration,
}

/// Sends one request and takes its JSON reply.
pub(crate) async fn send(socket: &Path, token_file: &TokenFile, call: Call<'_>) -> Result<Value, Failure> {
    let stream = connect(socket).await?;
    // Only now: before its first start a daemon has no token, and "not running" is the truth to tell.
    let authorization = token::authorization(token_file)?;
    let (effect, within) = (call.effect, call.within);
    match timeout(within, exchange(stream, authorization, call)).await {
        Ok(result) => result,
        Err(_) => Err(no_answer(effect, "timed_out", format!("no answer within {} s", within.as_secs().max(1)))),
    }
}

async fn connect(socket: &Path) -> Result<UnixStream, Failure> {
    let at = socket.display();
    let stream = match timeout(CONNECT_TIMEOUT, UnixStream::connect(socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(not_connected(socket, &error)),
        Err(_) => {
            let detail = format!("the daemon does not take the connection on {at}");
            return Err(Failure::new(ExitCode::Unknown, "timed_out", detail).hint("nothing was sent; try again"));
        }
    };
    // The token goes to a process of this user or of root, to no other.
    let peer = stream.peer_cred().map_err(|error| not_connected(socket, &error))?.uid();
    if peer != 0 && peer != rustix::process::geteuid().as_raw() {
        let detail = format!("user {peer} serves {at}; no token was sent");
        return Err(Failure::new(ExitCode::NotPermitted, "socket_not_trusted", detail)
            .hint("check --socket: the daemon must run as you"));
    }
    Ok(stream)
}

fn not_connected(socket: &Path, error: &Error) -> Failure {
    let at = socket.display();
    let kind = error.kind();
    if kind == ErrorKind::PermissionDenied {
        let detail = format!("{at} may not be opened: {error}");
        Failure::new(ExitCode::NotPermitted, "socket_not_permitted", detail)
    } else if kind == ErrorKind::InvalidInput {
        Failure::usage(format!("{at} cannot be a socket: {error}"))
    } else {
        let detail = format!("nothing answers on {at} ({error})");
        Failure::new(ExitCode::DaemonNotRunning, "daemon_not_running", detail)
    }
}

async fn exchange(stream: UnixStream, authorization: HeaderValue, call: Call<'_>) -> Result<Value, Failure> {
    let effect = call.effect;
    let lost = |error: &hyper::Error| {
        no_answer(effect, "no_reply", format!("the daemon closed the connection without an answer ({error})"))
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| lost(&e))?;
    // The connection ends with the request: dropping the sender closes it, and aborting keeps no task behind.
    let driver = tokio::spawn(connection);
    let result = async {
        let response = sender.send_request(request(authorization, &call)?).await.map_err(|e| lost(&e))?;
        let status = response.status();
        let body = match Limited::new(response.into_body(), MAX_REPLY_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(no_answer(
                    effect,
                    "reply_too_large",
                    format!("the reply is larger than {MAX_REPLY_BYTES} bytes"),
                ));
            }
            Err(error) => {
                return Err(no_answer(effect, "no_reply", format!("the daemon's answer broke off ({error})")));
            }
        };
        understand(status, &body, effect)
    }
    .await;
    driver.abort();
    result
}

fn request(authorization: HeaderValue, call: &Call<'_>) -> Result<Request<Full<Bytes>>, Failure> {
    let mut request = Request::builder()
        .method(&call.method)
        .uri(&call.target)
        .header(HOST, "gatepost")
        .header(ACCEPT, "application/json")
        .header(AUTHORIZATION, authorization);
    let mut content = Bytes::new();
    if let Some(body) = call.body {
        request = request.header(CONTENT_TYPE, "application/json");
        content = Bytes::from(body.to_string());
    }
    request.body(Full::new(content)).map_err(|error| Failure::usage(format!("this cannot be asked: {error}")))
}

fn understand(status: StatusCode, body: &[u8], effect: Effect) -> Result<Value, Failure> {
    if status.is_success() {
        return serde_json::from_slice(body)
            .map_err(|_| no_answer(effect, "reply_malformed", "the reply is not JSON".to_owned()));
    }
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => Err(Failure::from_problem(&problem)),
        Err(_) => {
            let exit = ExitCode::of_refusal("", status.as_u16());
            Err(Failure::new(exit, "http_error", format!("the daemon answered {status} without saying why")))
        }
    }
}

/// No usable answer came: nothing is known of a change.
fn no_answer(effect: Effect, code: &str, detail: String) -> Failure {
    let exit = match (effect, code) {
        (Effect::Change, _) | (Effect::Read, "timed_out") => ExitCode::Unknown,
        (Effect::Read, _) => ExitCode::Failed,
    };
    Failure::new(exit, code, detail)
}

/// Encodes a value for a query string.
pub(crate) fn encoded(value: &str) -> String {
    value.bytes().fold(String::with_capacity(value.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
