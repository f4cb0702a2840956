//! The directory of markers: how often each command ran.

use crate::failure::{Doing, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The directory, and the markers that belong to earlier sequences.
#[derive(Debug)]
pub(crate) struct Marks {
    directory: PathBuf,
    known: BTreeSet<String>,
}

impl Marks {
    /// Makes the directory.
    pub(crate) fn new(directory: PathBuf) -> Outcome<Self> {
        std::fs::create_dir_all(&directory).doing("no directory for markers")?;
        let directory = directory.canonicalize().doing("no directory for markers")?;
        Ok(Self { directory, known: BTreeSet::new() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// How often each command ran that was not there at the last call: the markers of one sequence.
    pub(crate) fn take_new(&mut self) -> Outcome<BTreeMap<String, usize>> {
        let mut runs = self.all()?;
        runs.retain(|marker, _| !self.known.contains(marker));
        self.known.extend(runs.keys().cloned());
        Ok(runs)
    }

    /// How often each command ran so far.
    pub(crate) fn all(&self) -> Outcome<BTreeMap<String, usize>> {
        let mut runs = BTreeMap::new();
        for entry in std::fs::read_dir(&self.directory).doing("the markers cannot be listed")? {
            let path = entry.doing("the markers cannot be listed")?.path();
            let text = std::fs::read_to_string(&path).doing("a marker cannot be read")?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            runs.insert(name, text.lines().count());
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_belongs_to_the_sequence_that_left_it() {
        let root = tempfile::tempdir().unwrap();
        let mut marks = Marks::new(root.path().join("marks")).unwrap();
        std::fs::write(marks.directory().join("a"), "ran\n").unwrap();
        assert_eq!(marks.take_new().unwrap(), BTreeMap::from([("a".to_owned(), 1)]));
        std::fs::write(marks.directory().join("a"), "ran\nran\n").unwrap();
        std::fs::write(marks.directory().join("b"), "").unwrap();
        assert_eq!(marks.take_new().unwrap(), BTreeMap::from([("b".to_owned(), 0)]));
        assert_eq!(marks.all().unwrap()["a"], 2);
    }
}
