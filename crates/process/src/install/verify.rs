//! Comparing an install with its records, file by file.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::Installed;
use super::manifest::{self, Manifest, Tree};
use super::stat::Stats;
use super::{lock, record};

/// Findings that a report lists; the rest are counted.
const MAX_FINDINGS: usize = 50;

/// What is wrong with one path of an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// Recorded, and not there.
    Missing,
    /// There, and not recorded.
    Unknown,
    /// Its content, or a link's target, is not the recorded one.
    Changed,
    /// Its content is not what its own distribution's RECORD says.
    NotAsDistributed,
    /// A distribution or version that the locked requirements do not hold.
    NotLocked,
    /// It cannot be read.
    Unreadable,
}

impl FindingKind {
    /// The stable word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Changed => "changed",
            Self::NotAsDistributed => "not_as_distributed",
            Self::NotLocked => "not_locked",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// Where: a path relative to the install's root, or a distribution.
    pub path: String,
}

/// What a verification saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files that were hashed.
    pub files: usize,
    /// The first findings, sorted, at most 50.
    pub findings: Vec<Finding>,
    /// Findings beyond those listed.
    pub unlisted: usize,
    /// SHA-256 of the manifest that was compared with, lower-case hexadecimal; empty when there was none.
    pub manifest_sha256: String,
    /// The interpreter outside the install is another one than at the install (a system update, for one). Not a
    /// failure by itself.
    pub interpreter_changed: bool,
}

impl VerifyReport {
    /// Nothing is wrong.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.findings.is_empty() && self.unlisted == 0
    }

    fn new(files: usize, found: BTreeSet<Finding>, manifest_sha256: String, interpreter_changed: bool) -> Self {
        let unlisted = found.len().saturating_sub(MAX_FINDINGS);
        let findings = found.into_iter().take(MAX_FINDINGS).collect();
        Self { files, findings, unlisted, manifest_sha256, interpreter_changed }
    }
}

/// Compare every file of an install with the manifest, with the RECORD of its distribution, and the distributions with
/// the locked requirements. Reads all of it (half a gigabyte); a blocking call.
#[must_use]
pub fn verify(installed: &Installed) -> VerifyReport {
    examine(installed).0
}

/// The same, and what the file system said of what was read; nothing when not all of it could be.
pub(super) fn examine(installed: &Installed) -> (VerifyReport, Stats) {
    let root = &installed.root;
    compare(root).unwrap_or_else(|error| {
        let finding = Finding { kind: FindingKind::Unreadable, path: format!("{}: {error}", root.display()) };
        (VerifyReport::new(0, BTreeSet::from([finding]), String::new(), false), Stats::new())
    })
}

fn compare(root: &Path) -> io::Result<(VerifyReport, Stats)> {
    let (recorded, manifest_sha256) = manifest::read(root)?;
    let tree = manifest::scan(root, &|_| {})?;
    let mut found = BTreeSet::new();
    against_manifest(&recorded, &tree, &mut found);
    against_distributions(root, &recorded, &tree, &mut found)?;
    let head = &recorded.head;
    let interpreter = head.interpreter.canonicalize().and_then(|path| manifest::hash_file(&path));
    let interpreter_changed = interpreter.map_or(true, |now| now.sha256 != head.interpreter_sha256);
    Ok((VerifyReport::new(tree.files.len(), found, manifest_sha256, interpreter_changed), tree.stats))
}

fn against_manifest(recorded: &Manifest, tree: &Tree, found: &mut BTreeSet<Finding>) {
    let mut note = |kind, path: &str| {
        found.insert(Finding { kind, path: path.to_owned() });
    };
    for (path, entry) in &recorded.files {
        match tree.files.get(path) {
            Some(now) if now == entry => {}
            Some(_) => note(FindingKind::Changed, path),
            None => note(FindingKind::Missing, path),
        }
    }
    for (path, target) in &recorded.links {
        match tree.links.get(path) {
            Some(now) if now == target => {}
            Some(_) => note(FindingKind::Changed, path),
            None => note(FindingKind::Missing, path),
        }
    }
    for path in recorded.directories.difference(&tree.directories) {
        note(FindingKind::Missing, path);
    }
    let strangers = tree.files.keys().filter(|path| !recorded.files.contains_key(*path));
    let strangers = strangers.chain(tree.links.keys().filter(|path| !recorded.links.contains_key(*path)));
    let strangers = strangers.chain(tree.directories.difference(&recorded.directories)).chain(&tree.strange);
    strangers.for_each(|path| note(FindingKind::Unknown, path));
}

/// Check the distributions on disk against the locks kept beside them, and the files against their RECORDs.
pub(crate) fn against_distributions(
    root: &Path,
    recorded: &Manifest,
    tree: &Tree,
    found: &mut BTreeSet<Finding>,
) -> io::Result<()> {
    let site_packages = record::site_packages(root)?;
    for line in record::recorded(root, &site_packages)? {
        let path = line.path.to_string_lossy().into_owned();
        match tree.files.get(&path) {
            Some(now) if now.sha256 == line.sha256 => {}
            Some(_) => {
                found.insert(Finding { kind: FindingKind::NotAsDistributed, path });
            }
            None => {
                found.insert(Finding { kind: FindingKind::Missing, path });
            }
        }
    }
    let mut pins = lock::Pins::new();
    for (name, digest) in [
        (super::REQUIREMENTS_NAME, &recorded.head.requirements_sha256),
        (super::BUILD_REQUIREMENTS_NAME, &recorded.head.build_requirements_sha256),
    ] {
        let text = std::fs::read_to_string(root.join(name))?;
        if lock::digest(&text) != *digest {
            found.insert(Finding { kind: FindingKind::Changed, path: name.to_owned() });
        }
        for (name, versions) in lock::parse(&text).map_err(|error| io::Error::other(error.to_string()))? {
            pins.entry(name).or_default().extend(versions);
        }
    }
    let distributions = record::distributions(&site_packages)?;
    for (name, version) in &distributions {
        if !pins.get(name).is_some_and(|versions| versions.contains(version)) {
            found.insert(Finding { kind: FindingKind::NotLocked, path: format!("{name} {version}") });
        }
    }
    if distributions != recorded.head.distributions {
        found.insert(Finding { kind: FindingKind::Changed, path: "distributions".to_owned() });
    }
    Ok(())
}
