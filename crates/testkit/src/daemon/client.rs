//! A plain HTTP/1.1 client over a Unix socket, one connection a request, blocking and bounded.

pub use super::http_reply::Reply;
use super::http_reply::parse;
use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bounds a reply, in bytes.
const MAX_REPLY_BYTES: u64 = 32 * 1024 * 1024;
/// How long a reply may take: longer than any call that the daemon answers by waiting for the server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(420);

/// A client of one socket with one token.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    token: Option<String>,
    user: Option<u32>,
    timeout: Duration,
}

impl Client {
    /// A client without a token.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), token: None, user: None, timeout: DEFAULT_TIMEOUT }
    }

    /// The same client with this bearer token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// The same client without a token.
    #[must_use]
    pub fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    /// The same client, connecting as this user (only root can).
    #[must_use]
    pub fn as_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// The same client with another bound on a reply's time.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects, as the client's user, and sets the time bounds.
    ///
    /// # Errors
    /// When nobody listens, or the user cannot be taken.
    pub fn connect(&self) -> Outcome<UnixStream> {
        let stream = match self.user {
            None => UnixStream::connect(&self.socket).doing("the socket could not be connected")?,
            Some(user) => connect_as(&self.socket, user)?,
        };
        stream.set_read_timeout(Some(self.timeout)).doing("no time bound could be set")?;
        stream.set_write_timeout(Some(self.timeout)).doing("no time bound could be set")?;
        Ok(stream)
    }

    /// `GET`.
    ///
    /// # Errors
    /// When no well-formed reply came in time.
    pub fn get(&self, path: &str) -> Outcome<Reply> {
        self.request("GET", path, &[], None)
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// When no well-formed reply came in time.
    pub fn post(&self, path: &str, body: &Value) -> Outcome<Reply> {
        self.request("POST", path, &[("content-type", "application/json")], Some(body.to_string().as_bytes()))
    }

    /// `DELETE`.
    ///
    /// # Errors
    /// When no well-formed reply came in time.
    pub fn delete(&self, path: &str) -> Outcome<Reply> {
        self.request("DELETE", path, &[], None)
    }

    /// Any request. The token, `Host` and `Content-Length` are added.
    ///
    /// # Errors
    /// When no well-formed reply came in time.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Outcome<Reply> {
        self.raw(&self.written(method, path, headers, body))
    }

    /// A request as it goes over the connection. The token, `Host` and `Content-Length` are added.
    #[must_use]
    pub fn written(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: gatepost\r\nConnection: close\r\n");
        if let Some(token) = &self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        bytes
    }

    /// Sends these bytes as they are, and reads the reply to the end of the connection.
    ///
    /// # Errors
    /// When no well-formed reply came in time.
    pub fn raw(&self, bytes: &[u8]) -> Outcome<Reply> {
        let mut stream = self.connect()?;
        // A server may answer and close before it has read everything: its reply counts, not the failed write.
        let written = stream.write_all(bytes).and_then(|()| stream.flush());
        let mut received = Vec::new();
        let read = Read::by_ref(&mut stream).take(MAX_REPLY_BYTES).read_to_end(&mut received);
        match parse(&received) {
            Ok(reply) => Ok(reply),
            Err(why) => {
                written.doing("the request could not be sent")?;
                read.doing("the reply could not be read")?;
                Err(why)
            }
        }
    }
}

/// Connects from a thread that has taken another user, as the kernel tells the peer who connected.
#[cfg(target_os = "linux")]
fn connect_as(socket: &Path, user: u32) -> Outcome<UnixStream> {
    let socket = socket.to_owned();
    let connecting = std::thread::spawn(move || {
        let (group, user) = (rustix::process::Gid::from_raw(user), rustix::process::Uid::from_raw(user));
        rustix::thread::set_thread_groups(&[]).doing("supplementary groups could not be dropped")?;
        rustix::thread::set_thread_res_gid(group, group, group).doing("the group could not be taken")?;
        rustix::thread::set_thread_res_uid(user, user, user).doing("the user could not be taken")?;
        UnixStream::connect(&socket).doing("the socket could not be connected")
    });
    connecting.join().unwrap_or_else(|_| Err(Failure::new("the connecting thread panicked")))
}

/// There, no thread is another user than its process.
#[cfg(not(target_os = "linux"))]
fn connect_as(_socket: &Path, _user: u32) -> Outcome<UnixStream> {
    Err(Failure::new("a thread cannot take another user on this system"))
}
