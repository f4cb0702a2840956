//! The units where the service manager looks for them: written and removed, and never one that somebody else wrote.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use api_types::ExitCode;
use cli::Failure;

use super::units::{Unit, differ_in_path_alone, is_ours};

/// Modes that service managers expect: everybody may read, and only the owner write.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// How a unit's file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing is there.
    Missing,
    /// As it would be written now.
    Current,
    /// The same, but for where programs are searched.
    OtherPath,
    /// Written here, by another version or with other options.
    Older,
    /// Not written here, or changed since.
    Foreign,
}

/// How the file of this unit stands.
///
/// # Errors
/// It cannot be read.
pub(crate) fn standing(directory: &Path, unit: &Unit) -> Result<Standing, Failure> {
    let path = directory.join(unit.name);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Missing),
        Err(error) => return Err(failed(&path, &error)),
        Ok(found) if !found.is_file() => return Ok(Standing::Foreign),
        Ok(_) => {}
    }
    let text = fs::read(&path).map_err(|error| failed(&path, &error))?;
    let text = String::from_utf8_lossy(&text);
    Ok(match text {
        text if text == unit.text => Standing::Current,
        text if !is_ours(&text) => Standing::Foreign,
        text if differ_in_path_alone(&text, &unit.text) => Standing::OtherPath,
        _ => Standing::Older,
    })
}

/// Writes the units; nothing when one of them may not be replaced. Whether anything changed.
///
/// # Errors
/// `unit_not_ours`, or the system refuses.
pub(super) fn write(directory: &Path, units: &[Unit], force: bool) -> Result<bool, Failure> {
    let standings = may_change(directory, units, force)?;
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(directory)
        .map_err(|error| failed(directory, &error))?;
    let stale: Vec<&Unit> = units
        .iter()
        .zip(standings)
        .filter(|(_, standing)| *standing != Standing::Current)
        .map(|(unit, _)| unit)
        .collect();
    for unit in &stale {
        let path = directory.join(unit.name);
        replace(&path, &unit.text).map_err(|error| failed(&path, &error))?;
    }
    Ok(!stale.is_empty())
}

/// Removes the units; nothing when one of them may not be removed. The files that went.
///
/// # Errors
/// `unit_not_ours`, or the system refuses.
pub(super) fn remove(directory: &Path, units: &[Unit]) -> Result<Vec<PathBuf>, Failure> {
    let mut removed = Vec::new();
    for unit in units {
        let path = directory.join(unit.name);
        match fs::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, &error)),
        }
    }
    Ok(removed)
}

/// How all stand, when they may be changed.
///
/// # Errors
/// `unit_not_ours`, or one cannot be read.
pub(super) fn may_change(directory: &Path, units: &[Unit], force: bool) -> Result<Vec<Standing>, Failure> {
    let standings = units.iter().map(|unit| standing(directory, unit)).collect::<Result<Vec<_>, _>>()?;
    let foreign = units.iter().zip(&standings).find(|(_, standing)| **standing == Standing::Foreign);
    match foreign.filter(|_| !force) {
        None => Ok(standings),
        Some((unit, _)) => {
            let detail = format!(
                "{} was not written by `gatepost service install`, or was changed since",
                directory.join(unit.name).display()
            );
            Err(Failure::new(ExitCode::Conflict, "unit_not_ours", detail)
                .hint("put changes of yours into gatepost.service.d/; --force does it all the same"))
        }
    }
}

/// Whole or not at all. A link in its place is replaced, not followed.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    fs::remove_file(&part)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(ExitCode::Failed, "system", format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::units::{Installation, Manager};
    use super::*;

    fn units(binary: &str) -> Vec<Unit> {
        let installation = Installation {
            binary: binary.into(),
            options: Vec::new(),
            socket: "/run/user/1/gatepost/gatepost.sock".into(),
            credential: None,
            path: "/usr/bin".to_owned(),
            home: "/home/a".into(),
        };
        installation.units(Manager::Systemd).unwrap()
    }

    #[test]
    fn what_was_written_here_is_replaced_and_removed_and_nothing_else_is() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        let (first, second) = (units("/opt/1"), units("/opt/2"));
        assert_eq!(standing(&directory, &first[1]).unwrap(), Standing::Missing);
        assert!(write(&directory, &first, false).unwrap());
        assert!(!write(&directory, &first, false).unwrap(), "nothing changed");
        assert_eq!(standing(&directory, &second[1]).unwrap(), Standing::Older);
        assert!(write(&directory, &second, false).unwrap());
        let service = directory.join("gatepost.service");
        assert_eq!(fs::metadata(&service).unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "nothing else was left there");

        let edited = format!("{}# mine\n", second[1].text);
        fs::write(&service, &edited).unwrap();
        let refused = write(&directory, &first, false).unwrap_err();
        assert_eq!((refused.exit, refused.code.as_str()), (ExitCode::Conflict, "unit_not_ours"));
        assert_eq!(fs::read_to_string(&service).unwrap(), edited);
        assert_eq!(standing(&directory, &second[0]).unwrap(), Standing::Current, "all or nothing");
        assert!(may_change(&directory, &first, false).is_err());
        assert!(write(&directory, &first, true).unwrap());

        let elsewhere = root.path().join("elsewhere");
        fs::write(&elsewhere, "kept").unwrap();
        fs::remove_file(&service).unwrap();
        symlink(&elsewhere, &service).unwrap();
        assert_eq!(standing(&directory, &first[1]).unwrap(), Standing::Foreign);
        assert!(write(&directory, &first, true).unwrap());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");

        assert_eq!(remove(&directory, &first).unwrap().len(), 2);
        assert_eq!(remove(&directory, &first).unwrap(), Vec::<PathBuf>::new());
    }
}
