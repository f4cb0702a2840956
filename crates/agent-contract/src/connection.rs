//! One HTTP/1.1 connection to 127.0.0.1, and one bounded answer read from it.

use std::net::Ipv4Addr;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode, Version, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::{ContractError, RouteName};

/// Most bytes of an answer's head that are held, and most headers in it.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;
/// Most bytes of a refusal that are read for its reason.
const MAX_REASON_BYTES: usize = 64 << 10;

/// An answer: of a success the whole body, of a refusal as much of its reason as could be read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    pub(crate) is_json: bool,
}

/// An open connection. Dropping it closes it, whatever is going on there.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn open(route: RouteName, port: u16) -> Result<Self, ContractError> {
        let unreachable = |detail: String| ContractError::Unreachable { route, detail };
        let stream = connect(port).await.map_err(|error| unreachable(error.to_string()))?;
        let (sender, connection) = Builder::new()
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%route, %error, "a connection to the Agent Server ended");
            }
        });
        Ok(Self { sender, driver })
    }

    /// Whether the peer has not closed it, as far as is known.
    pub(crate) fn is_usable(&self) -> bool {
        self.sender.is_ready() && !self.driver.is_finished()
    }

    /// Sends one request, once, and reads the whole answer. Gives the connection back when it can serve again.
    ///
    /// # Errors
    /// [`ContractError::Unreachable`] when the connection was found closed before the request's first byte was written:
    /// nothing was sent.
    pub(crate) async fn exchange(
        mut self,
        route: RouteName,
        request: Request<Full<Bytes>>,
        success: &[u16],
        max_bytes: usize,
    ) -> Result<(Answer, Option<Self>), ContractError> {
        let response = self.sender.try_send_request(request).await.map_err(|mut failed| {
            // INVARIANT I5: a request is handed back only if none of it was ever written.
            let never_left = failed.take_message().is_some();
            let detail = failed.into_error().to_string();
            if never_left {
                ContractError::Unreachable { route, detail }
            } else {
                ContractError::ConnectionLost { route, detail }
            }
        })?;
        let (head, body) = response.into_parts();
        let status = head.status;
        if status.is_redirection() {
            return Err(ContractError::Redirect { route, status: status.as_u16() });
        }
        let is_json = is_json(&head.headers);
        if !success.contains(&status.as_u16()) {
            // The status alone is the server's definite answer: its reason is worth a look, not a failure.
            let body =
                if is_json { read_body(route, body, MAX_REASON_BYTES).await.unwrap_or_default() } else { Bytes::new() };
            return Ok((Answer { status: status.as_u16(), body, is_json }, None));
        }
        check_head(route, status, head.version, &head.headers)?;
        if !is_json {
            return Err(ContractError::malformed(route, "its content type is not application/json"));
        }
        let body = read_body(route, body, max_bytes).await?;
        let can_serve_again = !head.headers.contains_key(header::CONNECTION);
        Ok((Answer { status: status.as_u16(), body, is_json }, can_serve_again.then_some(self)))
    }
}

/// Connects to the loopback address and nowhere else.
pub(crate) async fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    value.to_str().is_ok_and(|text| {
        text.split(';').next().is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
    })
}

/// An answer that ends only with its connection cannot be told from one that was cut, so its length must be stated.
fn check_head(
    route: RouteName,
    status: StatusCode,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), ContractError> {
    if version != Version::HTTP_11 {
        return Err(ContractError::malformed(route, format!("status {status} came in another protocol version")));
    }
    if !headers.contains_key(header::CONTENT_LENGTH) && !headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(ContractError::malformed(route, "it does not say how long it is"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(ContractError::malformed(route, "it is compressed, which was not asked for"));
    }
    Ok(())
}

async fn read_body(route: RouteName, mut body: Incoming, max_bytes: usize) -> Result<Bytes, ContractError> {
    let too_large = ContractError::TooLarge { route, max_bytes };
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large);
    }
    let mut collected = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ContractError::ConnectionLost { route, detail: error.to_string() })?;
        if let Ok(data) = frame.into_data() {
            if collected.len() + data.len() > max_bytes {
                return Err(too_large);
            }
            collected.extend_from_slice(&data);
        }
    }
    Ok(collected.freeze())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{Act, Server, success};

    fn request() -> Request<Full<Bytes>> {
        Request::post("/x").header(header::HOST, "127.0.0.1").body(Full::new(Bytes::new())).unwrap()
    }

    #[tokio::test]
    async fn only_what_was_never_written_is_said_to_have_never_left() {
        // The request was read, and the answer was not whole.
        let lost = Server::always(Act::SendAndClose(Vec::new())).await;
        let connection = Connection::open(RouteName::Run, lost.port).await.unwrap();
        let error = connection.exchange(RouteName::Run, request(), &[200], 1024).await.map(drop).unwrap_err();
        assert!(matches!(error, ContractError::ConnectionLost { .. }), "{error}");
        assert_eq!(lost.received().len(), 1);
        // It was closed before.
        let server = Server::always(Act::SendAndClose(success())).await;
        let connection = Connection::open(RouteName::Run, server.port).await.unwrap();
        let (_, kept) = connection.exchange(RouteName::Run, request(), &[200], 1024).await.unwrap();
        let kept = kept.unwrap();
        while kept.is_usable() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = kept.exchange(RouteName::Run, request(), &[200], 1024).await.map(drop).unwrap_err();
        assert!(matches!(error, ContractError::Unreachable { .. }), "{error}");
        assert!(!error.may_have_been_sent());
        assert_eq!(server.received().len(), 1);
    }
}
