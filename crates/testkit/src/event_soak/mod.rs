//! Many sessions and many readers for a long time: nothing lost, and nothing that grows.
//!
//! The daemon is the one that ships, on fake servers that write down what they append, run and are asked for. Scripted turns are taken
//! in every session: a prompt, an action that the agent proposes, a decision on that very batch by its digest. A daemon takes 64
//! connections at once, so readers are cursors: they poll in turn, or hold one of a few streams for a while. In the end a pure
//! judge compares what each reader got with the servers' journal, and what ran with what was approved.

mod crowd;
mod driver;
mod growth;
mod meter;
mod pace;
mod stage;
mod summary;
mod truth;

pub use growth::{Growth, Growths};
pub use summary::Summary;

use crate::chaos::record::{Record, View};
use crate::chaos::settle::{approved, is_at_rest, receipt};
use crate::chaos::truth::late;
use crate::failure::{Failure, Outcome};
use crate::random::Random;
use crate::soak::judge::{self, Evidence};
use crowd::{POLLERS, Reads, STREAMS};
use driver::{Done, Driver};
use growth::Sample;
use pace::{Clock, Pace};
use stage::{Session, Stage, Stopped};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use summary::count;

/// Clients that take turns.
const DRIVERS: usize = 12;
/// How long sessions may take to come to rest after the last turn.
const REST_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long, setting up and judging aside.
    pub length: Duration,
    /// So many sessions, over four workspaces.
    pub sessions: usize,
    /// So many readers of each.
    pub readers: usize,
    /// Everything random comes from it; when exactly something happens is not random and not the same each time.
    pub seed: u64,
}

/// Runs it. Progress goes to `tell`, a line a minute.
///
/// # Errors
/// When the daemon cannot be brought up, ends by itself, or no longer answers.
pub fn run(options: &Options, tell: &(dyn Fn(&str) + Sync)) -> Outcome<Summary> {
    let begun = Instant::now();
    let stamped = |line: &str| tell(&format!("{:>7.1} s  {line}", begun.elapsed().as_secs_f64()));
    let pace = Pace::of(options.length);
    let stage = Stage::start(&pace)?;
    stamped("the sessions are made");
    let sessions = stage.sessions(options.sessions)?;
    let readers = crowd::readers(stage.client(), &sessions, options.readers, options.seed, &pace);
    stamped("the run begins");
    let clock = Clock::start(pace);
    let (ended, samples, done, reads) = play(&stage, &sessions, readers, &clock, options.seed, &stamped)?;
    stamped("readers catch up, and everything is judged");
    let mut summary = Summary {
        seed: options.seed,
        sessions: count(sessions.len()),
        duration_s: options.length.as_secs(),
        ..Summary::default()
    };
    let (mut views, mut last) = (Vec::new(), BTreeMap::new());
    for (view, reconnects) in ended {
        summary.reconnects += reconnects;
        views.push(view);
    }
    for session in &sessions {
        let view = crowd::read_last(stage.client(), session)?;
        views.push(view.clone());
        last.insert(view.session.clone(), view);
    }
    let restless = restless(&stage, &sessions)?;
    let mut keyed: Vec<_> = done.iter().flat_map(|done| done.keyed.clone()).collect();
    for keyed in &mut keyed {
        keyed.receipt = receipt(stage.client(), &keyed.key)?;
    }
    let (late, stopped) = stage.stop(|home| late(&home.state()))?;
    let record = Record { keyed, views, late, ..Record::default() };
    conclude(&mut summary, record, &last, stopped);
    summary.add_clients(&done, reads);
    summary.restless = count(restless.len());
    summary.find(restless);
    summary.growth = Growths::of(&samples, &pace, DRIVERS + POLLERS + STREAMS);
    Ok(summary)
}

type Played = (Vec<(View, u64)>, Vec<Sample>, Vec<Done>, Reads);

/// Everybody at work until the time is over, and then readers until they have everything.
fn play(
    stage: &Stage,
    sessions: &[Session],
    mut readers: Vec<crowd::Reader<'_>>,
    clock: &Clock,
    seed: u64,
    tell: &(dyn Fn(&str) + Sync),
) -> Outcome<Played> {
    let (mut by_stream, mut by_poll) = (Vec::new(), Vec::new());
    for reader in &mut readers {
        if reader.reads_by_stream() { by_stream.push(reader) } else { by_poll.push(reader) }
    }
    let by_stream = Mutex::new(by_stream.into());
    let part = by_poll.len().div_ceil(POLLERS).max(1);
    let (samples, done, reads) = thread::scope(|scope| {
        let watching = scope.spawn(|| meter::watch(stage.pid(), sessions, clock, tell));
        let driver = |number: usize| {
            let own = sessions.iter().skip(number).step_by(DRIVERS).collect();
            Driver::new(number, own, Random::of(seed, count(number)), &clock.pace)
        };
        let drivers: Vec<_> = (0..DRIVERS).map(driver).map(|driver| scope.spawn(move || driver.drive(clock))).collect();
        let pollers = by_poll.chunks_mut(part).map(|part| scope.spawn(move || crowd::poll(part, clock)));
        let streams = (0..STREAMS).map(|_| scope.spawn(|| crowd::stream(&by_stream, clock)));
        let reading: Vec<_> = pollers.chain(streams).collect();
        let done = drivers.into_iter().map(|driver| joined(driver.join())).collect::<Outcome<Vec<Done>>>();
        let mut reads = Reads::default();
        for one in reading {
            reads.add(joined(one.join())?);
        }
        Ok::<_, Failure>((joined(watching.join())??, done?, reads))
    })?;
    drop((by_stream, by_poll));
    Ok((crowd::end(readers)?, samples, done, reads))
}

fn joined<T>(result: thread::Result<T>) -> Outcome<T> {
    result.map_err(|_| Failure::new("a thread of the run panicked"))
}

/// Sessions that do not come to rest in time.
fn restless(stage: &Stage, sessions: &[Session]) -> Outcome<Vec<String>> {
    let begun = Instant::now();
    let mut found = Vec::new();
    for session in sessions {
        loop {
            let snapshot = stage.client().get(&session.talk.path())?.expect_status(200)?;
            if is_at_rest(&snapshot) {
                break;
            }
            if begun.elapsed() > REST_LIMIT {
                found.push(format!("session {} does not rest: {snapshot}", session.talk.id));
                break;
            }
            thread::sleep(LOOK);
        }
    }
    Ok(found)
}

/// Judges what clients were told by what the servers wrote.
fn conclude(summary: &mut Summary, mut record: Record, last: &BTreeMap<String, View>, stopped: Stopped) {
    let truth = truth::of(stopped.journal);
    summary.events_appended = truth.events;
    record.conversations = truth.conversations;
    record.requests = truth.requests;
    summary.judge(&record, last);
    let evidence = Evidence {
        proposed: truth.proposed,
        approved: approved(&record.keyed),
        shown_in_doubt: BTreeSet::new(),
        ended: BTreeMap::new(),
        runs: truth.runs,
    };
    summary.add_executions(&judge::judge(&evidence));
    summary.stopped_cleanly = stopped.cleanly;
    summary.leftover_processes = count(stopped.processes.len());
    summary.leftover_directories = count(stopped.directories.len());
    summary.find(stopped.processes.into_iter().map(|process| format!("left: {process}")));
    summary.find(stopped.directories.into_iter().map(|directory| format!("left: {}", directory.display())));
}
