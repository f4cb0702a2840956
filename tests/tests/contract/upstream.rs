//! Any request to a server, on a connection of its own, bounded.

use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a reply may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Bounds a reply, in bytes.
const MAX_REPLY_BYTES: u64 = 16 * 1024 * 1024;

/// A reply.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a 200 or 201 that reports success where it reports anything.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(matches!(self.status, 200 | 201), "{self:?}");
        assert_ne!(self.body["success"], false, "{:?}", self.body);
        self.body
    }

    /// The request was refused with this status.
    #[track_caller]
    pub(crate) fn refused(self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
    }
}

/// Requests to one port with one key.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    port: u16,
    key: String,
}

impl Upstream {
    pub(crate) fn new(port: u16, key: &str) -> Self {
        Self { port, key: key.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let exchange = self.exchange(method, path, body);
        tokio::time::timeout(LIMIT, exchange).await.unwrap_or_else(|_| panic!("{method} {path}: no reply in {LIMIT:?}"))
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        let text = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Session-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.key,
            text.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        stream.take(MAX_REPLY_BYTES).read_to_end(&mut received).await.unwrap();
        parse(&received)
    }
}

fn parse(received: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(received);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no whole reply: {text}"));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{head}"));
    // What comes in chunks is no reply of a reviewed route, and its body is not of interest.
    Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) }
}
