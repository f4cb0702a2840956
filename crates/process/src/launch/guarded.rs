//! A server below its guards, as the daemon holds it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::cgroup::{self, Cgroup};
use host::{ChildProcess, ExitStatus, Signal, SpawnSpec, Spawner};
use rules::guard::{Armament, Domain};

use super::watch::ignore_gone;
use crate::guard::{Asked, LIFE_FD, Named, Order, STATUS_FD, Said, Started};

/// For both guards to stand and the server to run its program.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Once something has ended, for the guards to end the rest and themselves; they give up after ten seconds.
const END_LIMIT: Duration = Duration::from_secs(12);
/// For a killed guard to be reaped.
const REAP_WAIT: Duration = Duration::from_secs(5);
/// Unread words of the guards', which say little.
const MAX_WORDS: usize = 64 * 1024;

/// The guards of a server, and through them the server.
pub(crate) struct Guarded {
    first: ChildProcess,
    started: Started,
    words: Mutex<Words>,
    orders: UnixStream,
    /// Held open by nobody else: its end tells both guards that this server is given up.
    life: Mutex<Option<OwnedFd>>,
    cgroup: Option<Cgroup>,
}

/// How it ended, as far as the guards told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GuardsEnd {
    pub(crate) status: Option<ExitStatus>,
    pub(crate) killed: usize,
    /// From a guard's seeing the end to nothing being left below it.
    pub(crate) took: Option<Duration>,
}

impl Guarded {
    /// Starts the guards, and the server below them. `guard` is the gatepost binary; `name` names the cgroup, where one can
    /// be made.
    pub(crate) fn start(
        spawner: &Spawner,
        guard: &Path,
        domain: Domain,
        spec: SpawnSpec,
        name: &str,
    ) -> io::Result<Self> {
        let (theirs, life) = io::pipe()?;
        let (ours, status) = UnixStream::pair()?;
        let cgroup = cgroup::delegated().and_then(|parent| {
            Cgroup::make(&parent, name)
                .inspect_err(|error| tracing::warn!(%error, "the server gets no cgroup of its own"))
                .ok()
        });
        let asked = Asked {
            fds: spec.fds.iter().map(|(_, number)| *number).collect(),
            domain,
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_path_buf()),
            program: spec.program,
            args: spec.args,
        };
        let mut fds = spec.fds;
        fds.extend([(theirs.into(), LIFE_FD), (status.into(), STATUS_FD)]);
        let begun = spawner
            .spawn(SpawnSpec { program: guard.to_path_buf(), args: asked.words(), fds, ..spec })
            .and_then(|first| Self::begun(first, ours, life.into(), cgroup.clone()));
        if begun.is_err() {
            remove(cgroup.as_ref());
        }
        begun
    }

    fn begun(first: ChildProcess, status: UnixStream, life: OwnedFd, cgroup: Option<Cgroup>) -> io::Result<Self> {
        let orders = status.try_clone()?;
        let mut words = Words { status, unread: Vec::new() };
        let deadline = Instant::now() + START_LIMIT;
        let started = loop {
            match words.next(Some(&first), Some(deadline)) {
                Ok(Heard::Said(Said::Started(started))) => break Ok(started),
                Ok(Heard::Said(Said::Failed(why))) => break Err(io::Error::other(why)),
                Ok(Heard::Said(Said::Ended(_))) => {}
                Ok(Heard::End | Heard::FirstGone) => break Err(io::Error::other("the guards ended")),
                Ok(Heard::Nothing) => break Err(io::Error::from(io::ErrorKind::TimedOut)),
                Err(error) => break Err(error),
            }
        };
        match started {
            Ok(started) => {
                Ok(Self { first, started, words: Mutex::new(words), orders, life: Mutex::new(Some(life)), cgroup })
            }
            Err(error) => {
                drop(life);
                end_first(&first);
                Err(error)
            }
        }
    }

    /// The server.
    pub(crate) fn server(&self) -> Named {
        self.started.server
    }

    /// The guards, the outer one first.
    pub(crate) fn guards(&self) -> [Named; 2] {
        let first = Named { pid: self.first.pid(), start_time_ticks: self.first.start_time_ticks() };
        [first, self.started.second]
    }

    /// How the tree is ended.
    pub(crate) fn armament(&self) -> Armament {
        self.started.armament
    }

    /// Gives an order; whoever does not hear it has ended.
    pub(crate) fn order(&self, order: Order) {
        (&self.orders).write_all(&[order.byte()]).ok();
    }

    /// Gives the server up: the end of the pipe, and of the first guard. Whatever the guards leave is left to the sweep.
    pub(crate) fn give_up(&self) {
        drop(self.life.lock().unwrap_or_else(PoisonError::into_inner).take());
        ignore_gone(self.first.signal_group(Signal::Kill));
    }

    /// Waits until the server has ended and the guards have done what they could; reaps the first guard. What is left below
    /// them has fallen to this process.
    pub(crate) fn wait_end(&self) -> GuardsEnd {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let mut end = GuardsEnd::default();
        // Nothing has ended yet, so there is no deadline.
        let mut deadline = None;
        let mut first_is_gone = false;
        loop {
            let heard = words.next((!first_is_gone).then_some(&self.first), deadline);
            match heard {
                Ok(Heard::Said(Said::Ended(ended))) => {
                    end.status = end.status.or(ended.status());
                    end.killed += ended.killed;
                    end.took = end.took.max(Some(Duration::from_micros(ended.took_us)));
                }
                Ok(Heard::Said(Said::Started(_) | Said::Failed(_))) => {}
                Ok(Heard::FirstGone) => first_is_gone = true,
                Ok(Heard::End | Heard::Nothing) | Err(_) => break,
            }
            deadline = deadline.or_else(|| Some(Instant::now() + END_LIMIT));
        }
        if !self.first.has_ended(END_LIMIT).unwrap_or(false) {
            tracing::warn!(pid = self.first.pid(), "a guard did not end by itself");
        }
        end_first(&self.first);
        end
    }

    /// Once nothing is left.
    pub(crate) fn remove_cgroup(&self) {
        remove(self.cgroup.as_ref());
    }
}

fn end_first(first: &ChildProcess) {
    ignore_gone(first.signal_group(Signal::Kill));
    if let Err(error) = first.wait_exit(REAP_WAIT) {
        tracing::warn!(%error, "a guard could not be waited for");
    }
}

fn remove(cgroup: Option<&Cgroup>) {
    let Some(cgroup) = cgroup else { return };
    match cgroup.remove() {
        Ok(true) => {}
        Ok(false) => tracing::warn!(path = %cgroup.path().display(), "a server's cgroup is not empty"),
        Err(error) => tracing::warn!(path = %cgroup.path().display(), %error, "a server's cgroup is left"),
    }
}

/// What came of waiting for the guards' words.
enum Heard {
    Said(Said),
    /// Neither of them can say any more.
    End,
    /// The first guard has ended.
    FirstGone,
    Nothing,
}

/// The guards' words, as they come.
struct Words {
    status: UnixStream,
    unread: Vec<u8>,
}

impl Words {
    /// The next word, or that the first guard has ended and left none, if that is looked for. Waits for ever without a
    /// deadline.
    fn next(&mut self, first: Option<&ChildProcess>, deadline: Option<Instant>) -> io::Result<Heard> {
        loop {
            if let Some(said) = self.line()? {
                return Ok(Heard::Said(said));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let first = first.map_or(self.status.as_fd(), AsFd::as_fd);
            match host::guard::wait_any([self.status.as_fd(), first], left)? {
                [true, _] if !self.read()? => return Ok(Heard::End),
                [true, _] => {}
                [false, true] => return Ok(Heard::FirstGone),
                [false, false] if left.is_some_and(|left| left.is_zero()) => return Ok(Heard::Nothing),
                [false, false] => {}
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<Said>> {
        let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// `false` at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let length = self.status.read(&mut piece)?;
        if self.unread.len() + length > MAX_WORDS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a guard says too much"));
        }
        self.unread.extend_from_slice(&piece[..length]);
        Ok(length > 0)
    }
}
