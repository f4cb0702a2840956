//! Any request to a server's port, with its key: what a thief of the key could send.

use crate::daemon::Reply;
use crate::daemon::http_reply::parse;
use crate::failure::{Doing, Outcome};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How long a reply may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Bounds a reply, in bytes.
const MAX_REPLY_BYTES: u64 = 32 * 1024 * 1024;

/// Requests to one port with one key, each on a connection of its own.
#[derive(Debug, Clone)]
pub struct Raw {
    port: u16,
    key: String,
}

impl Raw {
    /// To 127.0.0.1:`port`.
    #[must_use]
    pub fn new(port: u16, key: &str) -> Self {
        Self { port, key: key.to_owned() }
    }

    /// `GET`.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn get(&self, path: &str) -> Outcome<Reply> {
        self.send("GET", path, None)
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn post(&self, path: &str, body: &Value) -> Outcome<Reply> {
        self.send("POST", path, Some(body))
    }

    /// Any request.
    ///
    /// # Errors
    /// When no whole reply came in time.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Outcome<Reply> {
        let text = body.map(Value::to_string).unwrap_or_default();
        // One write: a server that answers without having read the body resets the connection when it comes later.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Session-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            self.key,
            text.len()
        );
        let mut stream =
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).doing("the port could not be connected")?;
        stream.set_read_timeout(Some(LIMIT)).doing("no time bound could be set")?;
        stream.set_write_timeout(Some(LIMIT)).doing("no time bound could be set")?;
        stream.write_all(request.as_bytes()).doing("the request could not be sent")?;
        let mut received = Vec::new();
        stream.take(MAX_REPLY_BYTES).read_to_end(&mut received).doing("the reply could not be read")?;
        parse(&received)
    }
}
