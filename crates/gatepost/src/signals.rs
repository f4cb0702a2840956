//! The signals that ask a process to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How urgently the process was asked to stop. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    /// Not at all.
    No,
    /// Once: finish what is under way, within bounds.
    Graceful,
    /// Again: do not wait for anything that can be cut short.
    Hurried,
}

impl Stopping {
    /// After one more signal.
    fn asked_again(self) -> Self {
        match self {
            Self::No => Self::Graceful,
            Self::Graceful | Self::Hurried => Self::Hurried,
        }
    }
}

/// What SIGHUP means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// That the terminal is closed: it would otherwise end the process, and leave what it started.
    Stops,
    /// Something else, which is followed elsewhere.
    IsNotForUs,
}

/// Follows SIGTERM and SIGINT, and SIGHUP where it asks to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StopSignals {
    state: watch::Receiver<Stopping>,
}

impl StopSignals {
    /// Begins to listen, in a task of the running runtime.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(crate) fn listen(on_hangup: Hangup) -> io::Result<Self> {
        let stops_on_hangup = on_hangup == Hangup::Stops && !is_ignored(HANGUP);
        let mut asked = Asked {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: if stops_on_hangup { Some(signal(SignalKind::hangup())?) } else { None },
        };
        let (sender, state) = watch::channel(Stopping::No);
        tokio::spawn(async move {
            while asked.next().await.is_some() {
                sender.send_modify(|state| *state = state.asked_again());
            }
        });
        Ok(Self { state })
    }

    /// Resolves once the process was asked to stop.
    pub(crate) async fn asked(&self) {
        self.at_least(Stopping::Graceful).await;
    }

    /// Resolves once it was asked again.
    pub(crate) async fn hurried(&self) {
        self.at_least(Stopping::Hurried).await;
    }

    /// Resolves once it is asked after now: for the first time, or again.
    pub(crate) async fn asked_once_more(&self) {
        let now = *self.state.borrow();
        self.at_least(now.asked_again()).await;
    }

    async fn at_least(&self, least: Stopping) {
        let mut state = self.state.clone();
        let reached = state.wait_for(|state| *state >= least).await.is_ok();
        if !reached {
            // No signal can be seen any more; nobody is to take that for one.
            std::future::pending::<()>().await;
        }
    }
}

struct Asked {
    terminate: Signal,
    interrupt: Signal,
    /// None also when whoever started this process chose that it outlives its terminal, as `nohup` does.
    hangup: Option<Signal>,
}

impl Asked {
    async fn next(&mut self) -> Option<()> {
        tokio::select! {
            asked = self.terminate.recv() => asked,
            asked = self.interrupt.recv() => asked,
            asked = received(self.hangup.as_mut()) => asked,
        }
    }
}

async fn received(signal: Option<&mut Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Number of SIGHUP on every system.
const HANGUP: u32 = 1;

/// Whether this process was started to ignore a signal. Without `/proc` it is taken for not ignored.
fn is_ignored(number: u32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored_in(&status, number))
}

/// In the text of `/proc/<pid>/status`, where the signals are bits of a hexadecimal number, the first one lowest.
fn ignored_in(status: &str, number: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    number.checked_sub(1).and_then(|shift| mask.checked_shr(shift)).is_some_and(|rest| rest & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn the_second_signal_hurries_and_no_further_one_slows() {
        let states = std::iter::successors(Some(Stopping::No), |state| Some(state.asked_again()));
        let expected = [Stopping::No, Stopping::Graceful, Stopping::Hurried, Stopping::Hurried];
        assert_eq!(states.take(4).collect::<Vec<_>>(), expected);
        assert!(Stopping::No < Stopping::Graceful && Stopping::Graceful < Stopping::Hurried);
    }

    #[test]
    fn an_ignored_hangup_is_seen_in_the_mask() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert!(ignored_in(&status("0000000000000001"), HANGUP));
        assert!(ignored_in(&status("0000000000001001"), 13));
        for mask in ["0000000000001000", "0000000000000000", "zz", ""] {
            assert!(!ignored_in(&status(mask), HANGUP), "{mask}");
        }
        assert!(!ignored_in("", HANGUP) && !ignored_in(&status("ffffffffffffffff"), 0));
    }

    #[tokio::test]
    async fn each_signal_counts_as_one() {
        let signals = StopSignals::listen(Hangup::Stops).unwrap();
        let soon = Duration::from_millis(100);
        assert!(tokio::time::timeout(soon, signals.asked()).await.is_err());
        kill_process(getpid(), Signal::INT).unwrap();
        tokio::time::timeout(Duration::from_secs(5), signals.asked()).await.unwrap();
        assert!(tokio::time::timeout(soon, signals.hurried()).await.is_err());
        kill_process(getpid(), Signal::TERM).unwrap();
        tokio::time::timeout(Duration::from_secs(5), signals.hurried()).await.unwrap();
    }
}
