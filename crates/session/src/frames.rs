//! Events that the live stream brought and the journal has not taken yet.
//!
//! They may go to the journal only while the stream has left nothing out: from a read of the log that began after the
//! stream was opened, until the next gap. A gap is whatever was not heard: a broken connection, a frame that could not be
//! read, more frames than may wait. What a gap left out, the log tells.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_contract::CloseReason;
use store::NewEvent;
use tokio::sync::Notify;

/// Most events that wait, and most bytes of their content. More are a gap.
const MAX_WAITING: usize = 1024;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Most events that are journaled in one write.
const MAX_BATCH: usize = 256;
/// How long nothing is taken after there was too much.
const OVERRUN_PAUSE: Duration = Duration::from_secs(1);
/// How long nothing is taken after the stream proved wrong; each time twice as long, up to the second figure.
const DISTRUST_MIN: Duration = Duration::from_secs(10);
const DISTRUST_MAX: Duration = Duration::from_secs(600);

/// How the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not open, and being opened.
    Connecting,
    /// Open.
    Open,
    /// Closed, as nobody looks: it is opened again when somebody does.
    Resting,
    /// The server will not have it: it is not opened again.
    Refused(CloseReason),
}

/// Where the counting of gaps stood when a read began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

struct Inner {
    link: Link,
    waiting: VecDeque<NewEvent>,
    waiting_bytes: usize,
    gaps: u64,
    /// The gaps that a whole read of the log answered for.
    answered: Option<u64>,
    /// Until then nothing is taken.
    closed_until: Option<Instant>,
    distrust: Duration,
    /// The journal holds events that the log did not show yet.
    is_ahead: bool,
    /// What was taken last is on its way into the journal, or stands in it: a read in between cannot tell.
    is_taken: bool,
}

/// The events that wait, and what is known of gaps.
pub(crate) struct Frames {
    inner: Mutex<Inner>,
    ready: Notify,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                link: Link::Connecting,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                gaps: 0,
                answered: None,
                closed_until: None,
                distrust: DISTRUST_MIN,
                // What an earlier process left is not known to stand in the log.
                is_ahead: true,
                is_taken: false,
            }),
            ready: Notify::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn link(&self) -> Link {
        self.inner().link
    }

    /// The stream was opened, broke, or was refused: what came meanwhile was not heard.
    pub(crate) fn set_link(&self, link: Link) {
        let mut inner = self.inner();
        inner.link = link;
        inner.gap();
    }

    /// Ends a rest. Returns whether there was one.
    pub(crate) fn wake(&self) -> bool {
        let mut inner = self.inner();
        let rested = inner.link == Link::Resting;
        if rested {
            inner.link = Link::Connecting;
            inner.gap();
        }
        rested
    }

    /// Something was not heard.
    pub(crate) fn note_gap(&self) {
        self.inner().gap();
    }

    /// There was too much: the log is read instead, for a while.
    pub(crate) fn note_overrun(&self, now: Instant) {
        self.inner().overrun(now);
    }

    /// The stream's order was not the log's: it is not gone by for a while.
    pub(crate) fn note_wrong(&self, now: Instant) {
        let mut inner = self.inner();
        inner.gap();
        inner.closed_until = Some(now + inner.distrust);
        inner.distrust = (inner.distrust * 2).min(DISTRUST_MAX);
    }

    /// An event came. Returns whether it waits.
    pub(crate) fn push(&self, event: NewEvent, now: Instant) -> bool {
        let mut inner = self.inner();
        if inner.closed_until.is_some_and(|until| now < until) {
            inner.gap();
            return false;
        }
        let bytes = inner.waiting_bytes + event.payload_json.len();
        if inner.waiting.len() >= MAX_WAITING || (bytes > MAX_WAITING_BYTES && !inner.waiting.is_empty()) {
            inner.overrun(now);
            return false;
        }
        inner.waiting_bytes = bytes;
        inner.waiting.push_back(event);
        if inner.is_in_step() {
            self.ready.notify_one();
        }
        true
    }

    /// A read of the log begins.
    pub(crate) fn begin_read(&self) -> Mark {
        Mark(self.inner().gaps)
    }

    /// A read of the log reached its end: it answers for the gaps before it.
    pub(crate) fn end_read(&self, mark: Mark) {
        let mut inner = self.inner();
        if inner.link == Link::Open {
            inner.answered = Some(mark.0);
        }
        if inner.is_in_step() && !inner.waiting.is_empty() {
            self.ready.notify_one();
        }
    }

    /// Resolves when events may be ready.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// The next events for the journal, in the order in which they came; none while something is missing before them.
    pub(crate) fn take(&self) -> Vec<NewEvent> {
        let mut inner = self.inner();
        // By now it stands in the journal.
        inner.is_ahead |= std::mem::take(&mut inner.is_taken);
        if !inner.is_in_step() {
            return Vec::new();
        }
        let count = inner.waiting.len().min(MAX_BATCH);
        let batch: Vec<NewEvent> = inner.waiting.drain(..count).collect();
        inner.waiting_bytes -= batch.iter().map(|event| event.payload_json.len()).sum::<usize>();
        inner.is_taken = !batch.is_empty();
        batch
    }

    /// What a read made of the journal.
    pub(crate) fn set_ahead(&self, is_ahead: bool) {
        self.inner().is_ahead = is_ahead;
    }

    /// Whether the journal holds events that the log did not show yet.
    pub(crate) fn is_ahead(&self) -> bool {
        let inner = self.inner();
        inner.is_ahead || inner.is_taken
    }
}

impl Inner {
    /// INVARIANT I6: behind a gap nothing is taken before a read has told what it left out.
    fn gap(&mut self) {
        self.gaps += 1;
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    fn overrun(&mut self, now: Instant) {
        self.gap();
        self.closed_until = Some(now + OVERRUN_PAUSE);
    }

    fn is_in_step(&self) -> bool {
        self.link == Link::Open && self.answered == Some(self.gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: usize, bytes: usize) -> NewEvent {
        NewEvent {
            event_id: id.to_string(),
            at: String::new(),
            kind: "status".to_owned(),
            payload_json: "x".repeat(bytes),
            is_late: false,
        }
    }

    fn taken(frames: &Frames) -> Vec<String> {
        frames.take().into_iter().map(|event| event.event_id).collect()
    }

    #[test]
    fn nothing_is_taken_before_a_read_that_began_after_the_stream_was_opened() {
        let (frames, now) = (Frames::new(), Instant::now());
        frames.set_ahead(false);
        let too_early = frames.begin_read();
        frames.set_link(Link::Open);
        assert!(frames.push(event(1, 1), now));
        frames.end_read(too_early);
        assert_eq!(taken(&frames), Vec::<String>::new());
        frames.end_read(frames.begin_read());
        assert!(frames.push(event(2, 1), now));
        assert_eq!(taken(&frames), ["1", "2"]);
        assert!(frames.is_ahead());
    }

    #[test]
    fn a_read_says_nothing_of_a_batch_that_is_on_its_way_into_the_journal() {
        let (frames, now) = (Frames::new(), Instant::now());
        frames.set_link(Link::Open);
        frames.end_read(frames.begin_read());
        frames.push(event(1, 1), now);
        assert_eq!(taken(&frames), ["1"]);
        // The read had the journal first.
        frames.set_ahead(false);
        assert!(frames.is_ahead());
        assert_eq!(taken(&frames), Vec::<String>::new());
        assert!(frames.is_ahead(), "it was journaled after that read");
        frames.set_ahead(false);
        assert!(!frames.is_ahead());
    }

    #[test]
    fn a_gap_drops_what_waits_and_needs_another_read() {
        let (frames, now) = (Frames::new(), Instant::now());
        frames.set_link(Link::Open);
        let before = frames.begin_read();
        frames.end_read(before);
        frames.push(event(1, 1), now);
        frames.note_gap();
        frames.push(event(2, 1), now);
        assert_eq!(taken(&frames), Vec::<String>::new());
        frames.end_read(before);
        assert_eq!(taken(&frames), Vec::<String>::new(), "that read began before the gap");
        frames.end_read(frames.begin_read());
        assert_eq!(taken(&frames), ["2"]);
        frames.set_link(Link::Connecting);
        frames.end_read(frames.begin_read());
        frames.push(event(3, 1), now);
        assert_eq!(taken(&frames), Vec::<String>::new(), "nothing is heard");
    }

    #[test]
    fn more_than_may_wait_is_a_gap_and_a_pause() {
        for (count, bytes) in [(MAX_WAITING, 1), (3, MAX_WAITING_BYTES / 3)] {
            let (frames, now) = (Frames::new(), Instant::now());
            frames.set_link(Link::Open);
            frames.end_read(frames.begin_read());
            assert!((0..count).all(|id| frames.push(event(id, bytes), now)));
            assert!(!frames.push(event(count, bytes), now));
            assert_eq!(frames.inner().waiting.len(), 0);
            assert!(!frames.push(event(count, bytes), now + OVERRUN_PAUSE / 2));
            frames.end_read(frames.begin_read());
            assert!(frames.push(event(count, bytes), now + OVERRUN_PAUSE));
            assert_eq!(taken(&frames), [count.to_string()]);
        }
        // One event always fits.
        let frames = Frames::new();
        assert!(frames.push(event(0, MAX_WAITING_BYTES + 1), Instant::now()));
    }

    #[test]
    fn a_stream_that_proved_wrong_is_shunned_longer_each_time() {
        let (frames, mut now) = (Frames::new(), Instant::now());
        frames.set_link(Link::Open);
        for seconds in [10, 20, 40, 80, 160, 320, 600, 600] {
            frames.note_wrong(now);
            frames.end_read(frames.begin_read());
            assert!(!frames.push(event(1, 1), now + Duration::from_secs(seconds - 1)));
            now += Duration::from_secs(seconds);
            assert!(frames.push(event(1, 1), now));
        }
    }

    #[test]
    fn a_batch_is_bounded() {
        let (frames, now) = (Frames::new(), Instant::now());
        frames.set_link(Link::Open);
        frames.end_read(frames.begin_read());
        assert!((0..MAX_BATCH + 1).all(|id| frames.push(event(id, 1), now)));
        assert_eq!((taken(&frames).len(), taken(&frames).len()), (MAX_BATCH, 1));
    }
}
