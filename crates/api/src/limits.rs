//! Every bound of the surface, in one place.

use std::time::Duration;

/// Greatest length of a request path, in bytes. The longest real one holds a session id and an approval id.
pub(crate) const PATH_MAX_BYTES: usize = 512;
/// Greatest length of a query, in bytes.
pub(crate) const QUERY_MAX_BYTES: usize = 1024;
/// Greatest length of a cursor, in bytes.
pub(crate) const CURSOR_MAX_BYTES: usize = 256;
/// Greatest length of a bearer token, in bytes.
pub(crate) const BEARER_MAX_BYTES: usize = 512;
/// Greatest nesting of a request body; the deepest real one has three levels.
pub(crate) const JSON_MAX_DEPTH: usize = 32;
/// Greatest length of a workspace path, in bytes (the kernel's own bound).
pub(crate) const WORKSPACE_MAX_BYTES: usize = 4096;
/// Greatest number of header fields.
pub(crate) const HEADERS_MAX: usize = 64;
/// Greatest size of the request line and the header fields together, in bytes.
pub(crate) const HEAD_MAX_BYTES: usize = 16 * 1024;
/// Greatest size of the read and write buffers of a connection, in bytes.
pub(crate) const BUFFER_MAX_BYTES: usize = 64 * 1024;
/// Events of a page when the client does not say.
pub(crate) const EVENTS_LIMIT_DEFAULT: usize = 100;
/// Greatest number of events of a page.
pub(crate) const EVENTS_LIMIT_MAX: usize = 1000;
/// Links of a page when the client does not say.
pub(crate) const AUDIT_LIMIT_DEFAULT: u64 = 100;
/// Greatest number of links of a page.
pub(crate) const AUDIT_LIMIT_MAX: u64 = 500;
/// Greatest number that a link is asked for after: what nine digits hold.
pub(crate) const AUDIT_AFTER_MAX: u64 = 999_999_999;
/// Longest wait of a poll, in milliseconds.
pub(crate) const EVENTS_WAIT_MAX_MS: u64 = 60_000;
/// What a client is told to wait after a 503, in seconds.
pub(crate) const RETRY_AFTER_S: u64 = 2;

/// Bounds that a test may tighten; [`Limits::default`] holds the shipped ones.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections served at once; one more is answered 503 and closed.
    pub connections: usize,
    /// Requests that wait for events at once, streams included.
    pub waiting_polls: usize,
    /// Mutations under way at once. It is above `connections` only where clients hang up, which cancels nothing.
    pub mutations: usize,
    /// Greatest request body, in bytes.
    pub body_bytes: usize,
    /// How long a request head may take, and how long an idle connection is kept.
    pub head_timeout: Duration,
    /// How long a request body may take.
    pub body_timeout: Duration,
    /// How long a peer may leave a reply unread before its connection is dropped.
    pub write_stall: Duration,
    /// How often an idle event stream carries a keep-alive comment.
    pub stream_keep_alive: Duration,
    /// How long requests may finish once shutdown has begun.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            waiting_polls: 32,
            mutations: 64,
            body_bytes: 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_stall: Duration::from_secs(30),
            stream_keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(10),
        }
    }
}
