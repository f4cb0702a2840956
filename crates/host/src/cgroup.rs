//! A cgroup for each server, where the service manager has delegated this process's own to its user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::hygiene;

/// Cgroups of ours begin with it.
const PREFIX: &str = "gatepost-";
/// For the last process of a killed cgroup to be gone.
const EMPTY_WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// The cgroup of this process, if it was delegated, as it never is where there are none (macOS): its directory and list of
/// processes are this user's. Root's never count, since everything is root's, whoever it was meant for.
#[must_use]
pub fn delegated() -> Option<PathBuf> {
    if hygiene::is_root() {
        return None;
    }
    let own = own(&fs::read_to_string("/proc/self/cgroup").ok()?, &fs::read_to_string("/proc/self/mountinfo").ok()?)?;
    let user = hygiene::effective_user();
    let is_mine = |path: &Path| fs::metadata(path).is_ok_and(|data| data.uid() == user);
    let can_kill = own.join("cgroup.kill").exists();
    (is_mine(&own) && is_mine(&own.join("cgroup.procs")) && can_kill).then_some(own)
}

/// Where the unified hierarchy shows the cgroup of this process. Not its root, which is nobody's to divide.
fn own(cgroups: &str, mounts: &str) -> Option<PathBuf> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    if path.is_empty() || path.split('/').any(|part| part == "..") {
        return None;
    }
    // The fields after ` - ` begin with the kind; before it, the fourth is the root of the mount and the fifth where it is.
    let mounted = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, at) = (place.next()?, place.next()?);
        (kind.split(' ').next() == Some("cgroup2") && root == "/").then_some(at)
    })?;
    Some(Path::new(mounted).join(path))
}

/// A cgroup of ours. Dropping it does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes the one of this name below `parent`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(format!("{PREFIX}{name}"));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// The one of this name below `parent`, if it is there.
    #[must_use]
    pub fn find(parent: &Path, name: &str) -> Option<Self> {
        Some(parent.join(format!("{PREFIX}{name}"))).filter(|path| path.is_dir()).map(Self::at)
    }

    /// The one that stands there.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it stands.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a process is put into it by, with [`crate::guard::spawn_here`].
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn entrance(&self) -> io::Result<OwnedFd> {
        Ok(OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))?.into())
    }

    /// Kills every process in it, in one step.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn kill(&self) -> io::Result<()> {
        File::options().write(true).open(self.path.join("cgroup.kill"))?.write_all(b"1")
    }

    /// Removes it once nothing is in it, which may take a moment after a kill. `false` when something still is.
    ///
    /// # Errors
    /// When the kernel refuses otherwise.
    pub fn remove(&self) -> io::Result<bool> {
        let deadline = Instant::now() + EMPTY_WAIT;
        loop {
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Err(error),
                Err(_) if Instant::now() >= deadline => return Ok(false),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_place_in_the_unified_hierarchy_is_found() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = |cgroups| own(cgroups, mounts);
        let expected = Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice/a.service"));
        assert_eq!(found("1:cpu:/x\n0::/user.slice/a.service\n"), expected);
        for cgroups in ["", "0::/\n", "1:cpu:/x\n", "0::/../outside\n"] {
            assert_eq!(found(cgroups), None, "{cgroups:?}");
        }
        assert_eq!(own("0::/a\n", ""), None);
        // A part of the hierarchy mounted elsewhere shows other names.
        assert_eq!(own("0::/a\n", "31 24 0:27 /part /mnt rw - cgroup2 cgroup2 rw\n"), None);
    }
}
