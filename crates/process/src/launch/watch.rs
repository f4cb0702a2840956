//! Seeing a server end, whoever ended it, and ending what it left.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use host::ExitStatus;
use tokio::sync::watch;

use super::held::Held;
use super::output::Output;
use super::places::Places;
use crate::children;

/// For everything that a server left to be ended.
pub(crate) const TREE_BUDGET: Duration = Duration::from_secs(10);
/// For the last lines of output.
const DRAIN_WAIT: Duration = Duration::from_millis(500);

/// How a server ended, and what became of its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// How; None when it could not be learned.
    pub status: Option<ExitStatus>,
    /// The last lines of its output, redacted, at most 40.
    pub log_tail: Vec<String>,
    /// Processes that outlived it and were ended.
    pub ended_processes: usize,
    /// Processes of it that could not be ended; empty when nothing is left.
    pub left_processes: Vec<u32>,
    /// Why it is not known whether anything is left.
    pub cleanup_error: Option<String>,
}

/// What the watching thread owns until the server has ended.
pub(crate) struct Watched {
    pub(crate) child: Arc<Held>,
    pub(crate) output: Output,
    pub(crate) places: Arc<Places>,
}

/// Watch in a thread of its own. The report comes once the tree is ended and temporary files are gone.
pub(crate) fn watch(watched: Watched) -> io::Result<watch::Receiver<Option<ExitReport>>> {
    let (sender, receiver) = watch::channel(None);
    std::thread::Builder::new().name("server-watch".to_owned()).spawn(move || {
        let report = watched.attend();
        sender.send_replace(Some(report));
    })?;
    Ok(receiver)
}

impl Watched {
    fn attend(self) -> ExitReport {
        let end = self.child.wait_end();
        let (ended, left, cleanup_error) = match end_what_is_left() {
            Ok((ended, left)) => (ended, left, None),
            Err(error) => (0, Vec::new(), Some(error.to_string())),
        };
        self.output.drain(DRAIN_WAIT);
        let locks = self.places.clear();
        self.child.clear();
        tracing::debug!(killed = end.killed, took = ?end.took, swept = ended, "a server's tree was ended");
        let report = ExitReport {
            status: end.status,
            log_tail: self.output.tail(),
            ended_processes: end.killed + ended,
            left_processes: left,
            cleanup_error,
        };
        drop(locks);
        report
    }
}

/// End everything that fell to this process from servers that ended; live servers' trees and our own tools stay.
fn end_what_is_left() -> io::Result<(usize, Vec<u32>)> {
    children::with_known(|tools| host::tree::end_descendants(tools, TREE_BUDGET))
        .map(|report| (report.killed, report.left))
}

pub(crate) fn ignore_gone(sent: io::Result<()>) {
    match sent {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "a server could not be signalled");
        }
        Ok(()) | Err(_) => {}
    }
}
