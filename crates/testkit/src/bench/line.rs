//! A kept connection: requests one after the other, and how long each reply took.

use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a reply may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Bounds a body, in bytes.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A reply's status and body, and how long it took from the first byte sent to the last one received.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) took: Duration,
}

impl Answer {
    /// The body, when the request succeeded.
    pub(super) fn json(&self) -> Outcome<Value> {
        if !(200..300).contains(&self.status) {
            let text = String::from_utf8_lossy(&self.body);
            return Err(Failure::new(format!("answered {}: {text}", self.status)));
        }
        serde_json::from_slice(&self.body).doing("the answer is no JSON")
    }

    /// How long it took, in milliseconds.
    pub(super) fn ms(&self) -> f64 {
        self.took.as_secs_f64() * 1e3
    }
}

/// What a connection runs over.
pub(super) trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// A connection that stays.
pub(super) struct Line {
    wire: BufReader<Box<dyn Wire>>,
    head: String,
}

impl Line {
    /// To a daemon's socket, with this token.
    pub(super) fn to_daemon(socket: &Path, token: &str) -> Outcome<Self> {
        let stream = UnixStream::connect(socket).doing("the socket could not be connected")?;
        stream.set_read_timeout(Some(LIMIT)).doing("no time bound could be set")?;
        Ok(Self::over(Box::new(stream), format!("Host: gatepost\r\nAuthorization: Bearer {token}\r\n")))
    }

    /// To a server's port, with its key.
    pub(super) fn to_server(port: u16, key: &str) -> Outcome<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).doing("the port could not be connected")?;
        stream.set_read_timeout(Some(LIMIT)).doing("no time bound could be set")?;
        stream.set_nodelay(true).doing("the connection could not be set up")?;
        Ok(Self::over(Box::new(stream), format!("Host: 127.0.0.1\r\nX-Session-API-Key: {key}\r\n")))
    }

    fn over(wire: Box<dyn Wire>, head: String) -> Self {
        Self { wire: BufReader::new(wire), head }
    }

    /// Sends a request and reads its whole reply.
    pub(super) fn ask(&mut self, method: &str, target: &str, body: Option<&Value>) -> Outcome<Answer> {
        let request = self.written(method, target, body);
        let begun = Instant::now();
        self.wire.get_mut().write_all(&request).doing("the request could not be sent")?;
        let (status, length) = self.read_head()?;
        let body = match length {
            Some(length) => self.read_bytes(length)?,
            None => self.read_chunks()?,
        };
        Ok(Answer { status, body, took: begun.elapsed() })
    }

    /// Asks for an endless stream of lines, which [`Line::next_piece`] then reads.
    pub(super) fn open_stream(&mut self, target: &str) -> Outcome<()> {
        let stream = std::mem::take(&mut self.head);
        self.head = format!("{stream}Accept: text/event-stream\r\n");
        let request = self.written("GET", target, None);
        self.wire.get_mut().write_all(&request).doing("the request could not be sent")?;
        match self.read_head()? {
            (200, None) => Ok(()),
            (status, _) => Err(Failure::new(format!("the stream was answered with {status}"))),
        }
    }

    /// The next piece of a stream: one frame.
    pub(super) fn next_piece(&mut self) -> Outcome<Vec<u8>> {
        let size = self.read_line()?;
        let size = usize::from_str_radix(size.trim(), 16).doing("a piece has no size")?;
        let piece = self.read_bytes(size)?;
        self.read_line()?;
        Ok(piece)
    }

    fn written(&self, method: &str, target: &str, body: Option<&Value>) -> Vec<u8> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let head = &self.head;
        let of_body = match body {
            Some(_) => format!("Content-Type: application/json\r\nContent-Length: {}\r\n", text.len()),
            None => String::new(),
        };
        format!("{method} {target} HTTP/1.1\r\n{head}{of_body}\r\n{text}").into_bytes()
    }

    fn read_head(&mut self) -> Outcome<(u16, Option<usize>)> {
        let status = self.read_line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| Failure::new(format!("no status line: {status:?}")))?;
        let mut length = None;
        loop {
            let line = self.read_line()?.to_lowercase();
            if line.trim().is_empty() {
                return Ok((code, length));
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse().doing("a length is no number")?);
            }
        }
    }

    fn read_chunks(&mut self) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let piece = self.next_piece()?;
            if piece.is_empty() {
                return Ok(body);
            }
            body.extend(piece);
            if body.len() > MAX_BODY_BYTES {
                return Err(Failure::new("the reply has no end"));
            }
        }
    }

    fn read_line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.wire.read_line(&mut line).doing("the reply could not be read")? {
            0 => Err(Failure::new("the connection ended")),
            _ => Ok(line),
        }
    }

    fn read_bytes(&mut self, length: usize) -> Outcome<Vec<u8>> {
        if length > MAX_BODY_BYTES {
            return Err(Failure::new("the reply is too long"));
        }
        let mut bytes = vec![0; length];
        self.wire.read_exact(&mut bytes).doing("the reply could not be read")?;
        Ok(bytes)
    }
}
