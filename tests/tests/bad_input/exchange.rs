//! One exchange of bytes, whatever they are.

use serde_json::Value;
use std::io::{Read, Write};
use testkit::daemon::Client;

/// Bounds a reply, in bytes.
const MAX_REPLY_BYTES: u64 = 1 << 20;

/// What came back: a head, and a body where there was one.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Refused {
    pub(crate) fn code(&self) -> Option<&str> {
        self.body["code"].as_str()
    }
}

/// Sends the bytes with `Connection: close` after the request line, and reads to the end; `None` without a reply.
pub(crate) fn send(client: &Client, bytes: &[u8]) -> Option<Refused> {
    let mut stream = client.connect().unwrap();
    let line_end = bytes.windows(2).position(|window| window == b"\r\n").map_or(bytes.len(), |at| at + 2);
    // A server that refuses early may close while the body is still being sent; the reply tells.
    drop(stream.write_all(&bytes[..line_end]).and_then(|()| stream.write_all(b"Connection: close\r\n")));
    drop(stream.write_all(&bytes[line_end..]));
    let mut received = Vec::new();
    drop(stream.take(MAX_REPLY_BYTES).read_to_end(&mut received));
    let text = String::from_utf8_lossy(&received);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Refused { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or(Value::Null) })
}
