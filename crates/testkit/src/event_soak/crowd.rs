//! Many readers on few connections. A reader is a cursor: it polls when its turn comes, or holds one of a bounded number of
//! streams for a while, and goes on from its cursor the next time.

use super::pace::{Clock, Pace};
use super::stage::Session;
use crate::chaos::reader::Reading;
use crate::chaos::record::View;
use crate::daemon::Client;
use crate::failure::{Failure, Outcome};
use crate::random::Random;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that poll, each a part of the readers, and streams at once.
pub(super) const POLLERS: usize = 4;
pub(super) const STREAMS: usize = 12;
/// Of so many readers of a session the first reads by stream, and the second begins late.
const KINDS: usize = 10;
/// How long readers may take in the end for what they do not have yet.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// Failures of which the words are kept.
const MAX_TOLD: usize = 20;
/// The streams of random numbers for readers lie beyond those of the drivers.
const READERS: u64 = 1 << 20;

/// One reader of one session.
pub(super) struct Reader<'a> {
    session: &'a Session,
    reading: Reading,
    /// When it begins, from the start of the run: from the first event on.
    from: Duration,
    streams: bool,
}

/// What all readers did.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) polls: u64,
    pub(super) streams: u64,
    /// Reads that gave nothing; the reader went on from its cursor later.
    pub(super) failed: u64,
    /// What some of them said.
    pub(super) told: Vec<String>,
}

impl Reads {
    pub(super) fn add(&mut self, other: Self) {
        self.polls += other.polls;
        self.streams += other.streams;
        self.failed += other.failed;
        self.told.extend(other.told);
        self.told.truncate(MAX_TOLD);
    }

    fn note(&mut self, read: Outcome<()>) {
        if let Err(why) = read {
            self.failed += 1;
            self.told.push(why.to_string());
            self.told.truncate(MAX_TOLD);
        }
    }
}

/// So many readers of each session.
pub(super) fn readers<'a>(
    client: &Client,
    sessions: &'a [Session],
    each: usize,
    seed: u64,
    pace: &Pace,
) -> Vec<Reader<'a>> {
    let mut readers = Vec::new();
    for number in 0..each {
        for session in sessions {
            let mut random = Random::of(seed, READERS + u64::try_from(readers.len()).unwrap_or(0));
            let (streams, late) = (number % KINDS == 0, number % KINDS == 1);
            let from = if late { super::driver::some(pace.turns_until, &mut random) } else { Duration::ZERO };
            let reading = Reading::new(client, &session.talk.id, &number.to_string(), random);
            readers.push(Reader { session, reading, from, streams });
        }
    }
    readers
}

impl Reader<'_> {
    pub(super) fn reads_by_stream(&self) -> bool {
        self.streams
    }

    fn may_read(&self, clock: &Clock) -> bool {
        clock.elapsed() >= self.from && !self.session.is_left_alone(clock)
    }

    fn read(&mut self, read: impl FnOnce(&mut Reading) -> Outcome<()>) -> Outcome<()> {
        let outcome = read(&mut self.reading);
        self.session.has_events(highest(&self.reading));
        outcome
    }
}

fn highest(reading: &Reading) -> u64 {
    reading.view.epochs.last().and_then(|epoch| epoch.last()).map_or(0, |seen| seen.seq)
}

/// Polls for each of these in turn, until the run is over.
pub(super) fn poll(readers: &mut [&mut Reader<'_>], clock: &Clock) -> Reads {
    let mut reads = Reads::default();
    let each = clock.pace.poll_every / u32::try_from(readers.len()).unwrap_or(u32::MAX).max(1);
    let mut next = clock.elapsed();
    while clock.runs() {
        for reader in &mut *readers {
            thread::sleep(next.saturating_sub(clock.elapsed()));
            // Being late is no reason for a rush.
            next = clock.elapsed().max(next) + each;
            if !clock.runs() {
                break;
            }
            if reader.may_read(clock) {
                reads.polls += 1;
                reads.note(reader.read(|reading| reading.poll(0)));
            }
        }
        if readers.is_empty() {
            thread::sleep(LOOK);
        }
    }
    reads
}

/// Gives the next reader a stream for a while, until the run is over.
pub(super) fn stream<'a>(readers: &Mutex<VecDeque<&mut Reader<'a>>>, clock: &Clock) -> Reads {
    let mut reads = Reads::default();
    while clock.runs() {
        let next = {
            let mut waiting = locked(readers);
            let place = waiting.iter().position(|reader| reader.may_read(clock));
            place.and_then(|place| waiting.remove(place))
        };
        let Some(reader) = next else {
            thread::sleep(LOOK);
            continue;
        };
        reads.streams += 1;
        let read = reader.read(|reading| reading.stream(clock.pace.stream_for));
        if read.is_err() {
            thread::sleep(LOOK);
        }
        reads.note(read);
        locked(readers).push_back(reader);
    }
    reads
}

fn locked<'m, 'r, 'a>(
    readers: &'m Mutex<VecDeque<&'r mut Reader<'a>>>,
) -> MutexGuard<'m, VecDeque<&'r mut Reader<'a>>> {
    readers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets every reader have what was there when nothing happened any more; what each got, and how often it hung up.
///
/// # Errors
/// When the daemon does not answer them in time.
pub(super) fn end(readers: Vec<Reader<'_>>) -> Outcome<Vec<(View, u64)>> {
    let begun = Instant::now();
    let end_one = |mut reader: Reader<'_>| {
        catch_up(&mut reader.reading, begun)?;
        Ok((reader.reading.view, reader.reading.hung_up))
    };
    readers.into_iter().map(end_one).collect()
}

/// Everything of a session, as a reader who comes last gets it.
///
/// # Errors
/// When the daemon does not answer in time.
pub(super) fn read_last(client: &Client, session: &Session) -> Outcome<View> {
    let mut reading = Reading::new(client, &session.talk.id, "last", Random::of(0, 0));
    catch_up(&mut reading, Instant::now())?;
    Ok(reading.view)
}

/// Polls until a page is empty.
fn catch_up(reading: &mut Reading, begun: Instant) -> Outcome<()> {
    let state = |reading: &Reading| (reading.view.epochs.len(), highest(reading), reading.hung_up);
    loop {
        let before = state(reading);
        let read = reading.poll(0);
        if read.is_ok() && state(reading) == before || reading.view.cut_short {
            return Ok(());
        }
        if begun.elapsed() > CATCH_UP_LIMIT {
            return Err(Failure::new(format!("a reader of {} gets no end: {read:?}", reading.view.session)));
        }
    }
}
