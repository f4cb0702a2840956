//! Readers of events, by long poll and by stream. Each goes on from its cursor after whatever happened, and hangs up now and
//! then.

use super::frames::{Frame, Frames};
use super::record::{Seen, View};
use crate::daemon::Client;
use crate::failure::{Failure, Outcome};
use crate::random::Random;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a poll waits, and how long a stream may be silent before the end is looked for.
const WAIT_MS: u64 = 1500;
const SILENCE: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_millis(100);
/// Kinds of events that gatepost writes itself.
const OWN_KINDS: [&str; 3] = ["lifecycle", "approval_requested", "approval_resolved"];

/// How a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Poll,
    Stream,
}

/// What a reader's thread shares.
#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    stop: AtomicBool,
    /// Events of the last epoch.
    got: AtomicUsize,
}

/// A reader at work.
pub(super) struct Reader {
    session: String,
    shared: Arc<Shared>,
    thread: JoinHandle<(View, u64)>,
}

impl Reader {
    /// Begins at the beginning.
    pub(super) fn start(client: &Client, session: &str, way: Way, random: Random) -> Self {
        let shared = Arc::new(Shared::default());
        let name = format!("{way:?}").to_lowercase();
        let mut reading = Reading::new(client, session, &name, random);
        reading.shared = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !reading.shared.stop.load(Ordering::Acquire) && !reading.view.cut_short {
                let read = match way {
                    Way::Poll => reading.poll(WAIT_MS),
                    Way::Stream => reading.stream(Duration::MAX),
                };
                if read.is_err() {
                    std::thread::sleep(AGAIN);
                }
            }
            reading.shared.over.store(true, Ordering::Release);
            (reading.view, reading.hung_up)
        });
        Self { session: session.to_owned(), shared, thread }
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Whether it reads no more.
    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    pub(super) fn got(&self) -> usize {
        self.shared.got.load(Ordering::Acquire)
    }

    pub(super) fn tell_to_end(&self) {
        self.shared.stop.store(true, Ordering::Release);
    }

    /// What it got, and how often it hung up; nothing when its thread panicked.
    pub(super) fn end(self) -> Option<(View, u64)> {
        self.tell_to_end();
        self.thread.join().ok()
    }
}

/// What a reader got so far, and where it goes on.
pub(crate) struct Reading {
    client: Client,
    pub(crate) view: View,
    cursor: Option<String>,
    random: Random,
    shared: Arc<Shared>,
    /// How often it hung up.
    pub(crate) hung_up: u64,
}

impl Reading {
    /// Begins at the beginning, once it is asked to read.
    pub(crate) fn new(client: &Client, session: &str, name: &str, random: Random) -> Self {
        let view =
            View { reader: name.to_owned(), session: session.to_owned(), epochs: vec![Vec::new()], cut_short: false };
        Self { client: client.clone(), view, cursor: None, random, shared: Arc::default(), hung_up: 0 }
    }

    fn path(&self, limit: u64, wait_ms: u64) -> String {
        let after = self.cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        format!("/v1/sessions/{}/events?limit={limit}&wait_ms={wait_ms}{after}", self.view.session)
    }

    /// One page from the cursor on, for which the daemon waits so long. Now and then it hangs up in place of reading it.
    pub(crate) fn poll(&mut self, wait_ms: u64) -> Outcome<()> {
        let (limit, hangs_up) = (1 + self.random.below(40), self.random.chance(8));
        let path = self.path(limit, wait_ms);
        if hangs_up {
            let mut stream = self.client.connect()?;
            stream.write_all(&self.client.written("GET", &path, &[], None)).map_err(lost)?;
            std::thread::sleep(Duration::from_millis(self.random.below(300)));
            self.hung_up += 1;
            return Ok(());
        }
        let reply = self.client.get(&path)?;
        if reply.status != 200 {
            self.view.cut_short = reply.body["code"] == "session_not_found";
            return Err(Failure::new(reply.text));
        }
        if !reply.body["resync"].is_null() {
            self.start_over();
        }
        for event in reply.body["events"].as_array().into_iter().flatten() {
            self.take(event);
        }
        self.cursor = reply.body["next_cursor"].as_str().map(str::to_owned);
        Ok(())
    }

    /// One connection of a stream, up to its end, or until this hangs up, which it does after this time at the latest.
    pub(crate) fn stream(&mut self, limit: Duration) -> Outcome<()> {
        let begun = Instant::now();
        let most = if self.random.chance(70) { 1 + self.random.below(40) } else { u64::MAX };
        let mut stream = self.client.connect()?;
        stream.set_read_timeout(Some(SILENCE)).map_err(lost)?;
        let path = format!("/v1/sessions/{}/events", self.view.session);
        let mut headers = vec![("accept", "text/event-stream")];
        if let Some(cursor) = &self.cursor {
            headers.push(("last-event-id", cursor));
        }
        stream.write_all(&self.client.written("GET", &path, &headers, None)).map_err(lost)?;
        let (mut frames, mut buffer, mut taken) = (Frames::default(), [0; 16 * 1024], 0);
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) => return Err(Failure::new("the stream ended")),
                Ok(count) => count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
                Err(error) => return Err(lost(error)),
            };
            for frame in frames.feed(buffer.get(..count).unwrap_or_default())? {
                self.take_frame(&frame);
                taken += 1;
                if taken >= most {
                    self.hung_up += 1;
                    return Ok(());
                }
            }
            let over = begun.elapsed() >= limit;
            self.hung_up += u64::from(over);
            if over || self.shared.stop.load(Ordering::Acquire) || self.view.cut_short {
                return Ok(());
            }
        }
    }

    fn take_frame(&mut self, frame: &Frame) {
        match frame.name.as_str() {
            "resync" => self.start_over(),
            "problem" => self.view.cut_short |= frame.data["code"] == "session_not_found",
            _ => {
                self.take(&frame.data);
                self.cursor.clone_from(&frame.id);
            }
        }
    }

    fn start_over(&mut self) {
        self.view.epochs.push(Vec::new());
        self.shared.got.store(0, Ordering::Release);
    }

    fn take(&mut self, event: &Value) {
        if let Some(epoch) = self.view.epochs.last_mut() {
            epoch.push(seen(event));
            self.shared.got.store(epoch.len(), Ordering::Release);
        }
    }
}

/// An event as the judge takes it.
pub(super) fn seen(event: &Value) -> Seen {
    Seen {
        seq: event["seq"].as_u64().unwrap_or(0),
        event_id: event["event_id"].as_str().unwrap_or_default().to_owned(),
        own: event["kind"].as_str().is_some_and(|kind| OWN_KINDS.contains(&kind)),
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::new(error.to_string())
}
