//! Requests, replies and connections, down to the byte.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::OWNER;

/// A well-formed request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub(crate) fn get(target: &'a str) -> Self {
        Self { method: "GET", target, token: Some(OWNER), headers: &[], body: None }
    }

    pub(crate) fn post(target: &'a str, body: &'a str) -> Self {
        Self { method: "POST", target, token: Some(OWNER), headers: &[], body: Some(body) }
    }

    pub(crate) fn token(mut self, token: Option<&'a str>) -> Self {
        self.token = token;
        self
    }

    pub(crate) fn headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) fn method(mut self, method: &'a str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        if let Some(token) = self.token {
            text.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = self.body {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(self.body.unwrap_or_default());
        text.into_bytes()
    }
}

/// A reply, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> Option<String> {
        (!self.body.is_empty()).then(|| self.json()["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// A raw connection.
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    pub(super) buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // A server that refuses early may close while the body is still being sent; the reply tells.
        drop(self.stream.write_all(bytes).await);
    }

    /// Reads until `end` stands in what was read, and takes it out; `None` when the connection ends first.
    pub(crate) async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end.as_bytes()) {
                let taken: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                return Some(String::from_utf8(taken).unwrap());
            }
            if self.more().await == 0 {
                return None;
            }
        }
    }

    /// Bytes read by one read; 0 at the end.
    pub(crate) async fn more(&mut self) -> usize {
        let mut chunk = [0; 16 * 1024];
        let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read(&mut chunk));
        let count = read.await.expect("the server answers in time").unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }

    /// One reply with a length; `None` when the connection ends without one.
    pub(crate) async fn reply(&mut self, head_only: bool) -> Option<Reply> {
        let head = self.until("\r\n\r\n").await?;
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
        let length: usize = if head_only { 0 } else { length.parse().unwrap() };
        while self.buffer.len() < length {
            assert_ne!(self.more().await, 0, "the reply breaks off");
        }
        let body = self.buffer.drain(..length).collect();
        Some(Reply { status, headers, body })
    }
}
