//! An install that this process hashed itself is known again by its stat data, so that it need not be hashed at each start.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::stat::Stats;
use super::verify::{VerifyReport, examine};
use super::{InstallRequest, Installed, manifest, place, stat};

/// How long before its hash began an install must have been changed last. A tick of the clock of file systems is some
/// milliseconds; but a write through a mapping sets the times only when it is the first one since the page was written
/// back, which takes 35 s at most unless the system was told otherwise.
const MARGIN: Duration = Duration::from_secs(60);

/// The install that was hashed last, if nothing was wrong with it, and the one that was found last. In memory only: evidence
/// of one process, for itself.
pub struct KnownInstall {
    known: Mutex<Option<Known>>,
    found: Mutex<Option<Found>>,
    margin: Duration,
    keeps_ctime: fn(&Path) -> bool,
}

struct Known {
    root: PathBuf,
    stats: [u8; 32],
    report: VerifyReport,
}

/// What a manifest says, and the stat data of it and its directory from before it was read.
struct Found {
    stats: Stats,
    installed: Installed,
}

impl Default for KnownInstall {
    fn default() -> Self {
        Self { known: Mutex::default(), found: Mutex::default(), margin: MARGIN, keeps_ctime: stat::keeps_ctime }
    }
}

impl KnownInstall {
    /// As [`verify`](super::verify()), but an install is not read again as long as all its stat data and its manifest
    /// are as they were when it was hashed here. A blocking call; one at a time, so that two starts hash once.
    pub fn verify(&self, installed: &Installed) -> VerifyReport {
        self.look(installed).0
    }

    /// And whether it was hashed.
    fn look(&self, installed: &Installed) -> (VerifyReport, bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = known.as_ref().and_then(|known| known.again(installed)) {
            return (report, false);
        }
        // Never what was known before, whatever becomes of this.
        *known = None;
        let begun = SystemTime::now();
        let (report, stats) = examine(installed);
        if report.passed() && self.counts(&installed.root, &stats, begun) {
            let (root, stats) = (installed.root.clone(), stat::digest(&stats));
            *known = Some(Known { root, stats, report: report.clone() });
        }
        (report, true)
    }

    /// As [`find_for`](super::find_for), but a manifest is not read again as long as its stat data are as they were when it was
    /// read here. For what is asked often: a start reads the manifest. A blocking call.
    pub fn find_for(&self, request: &InstallRequest<'_>) -> Option<Installed> {
        let root = place::target(request).ok()?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = SystemTime::now();
        let stats = manifest::own_stats(&root).ok()?;
        if let Some(found) = found.as_ref().filter(|found| found.installed.root == root && found.stats == stats) {
            return Some(found.installed.clone());
        }
        let installed = place::whole(&root);
        *found =
            installed.clone().filter(|_| self.counts(&root, &stats, begun)).map(|installed| Found { stats, installed });
        installed
    }

    /// Whether a later change of what was looked at from `begun` on would show in its stat data.
    fn counts(&self, root: &Path, stats: &Stats, begun: SystemTime) -> bool {
        stat::are_settled(stats, begun, self.margin) && (self.keeps_ctime)(root)
    }
}

impl Known {
    /// What was said of it, if it is still the same.
    fn again(&self, installed: &Installed) -> Option<VerifyReport> {
        let is_same = self.root == installed.root && self.report.manifest_sha256 == installed.manifest_sha256;
        // What cannot be walked is hashed, and that names what is wrong.
        let now = is_same.then(|| manifest::stats(&self.root).ok()).flatten()?;
        (stat::digest(&now) == self.stats).then(|| self.report.clone())
    }
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
