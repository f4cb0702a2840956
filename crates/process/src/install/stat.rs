//! What a file system says of an install's entries, and when that shows that none of them has changed.
//!
//! Every way of changing an entry sets its ctime to the time of the system's clock, and no call sets it to another. So an
//! entry with the same stat data is the one that was read, with the content that was read, unless it was changed twice
//! within one tick of that clock, or the clock was set.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// By name relative to the root; that of the root is empty.
pub(crate) type Stats = BTreeMap<String, Stat>;

/// Of one file, link or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    device: u64,
    inode: u64,
    /// Kind and permissions.
    mode: u32,
    links: u64,
    user: u32,
    group: u32,
    size_bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl Stat {
    pub(crate) fn of(data: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: data.dev(),
            inode: data.ino(),
            mode: data.mode(),
            links: data.nlink(),
            user: data.uid(),
            group: data.gid(),
            size_bytes: data.size(),
            modified_ns: nanoseconds(data.mtime(), data.mtime_nsec()),
            changed_ns: nanoseconds(data.ctime(), data.ctime_nsec()),
        }
    }

    fn is_settled(&self, until_ns: i128) -> bool {
        self.modified_ns < until_ns && self.changed_ns < until_ns
    }
}

/// SHA-256 over names and stat data, in the order of the names.
pub(crate) fn digest(stats: &Stats) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (name, stat) in stats {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        for number in [stat.device, stat.inode, stat.links, stat.size_bytes] {
            hasher.update(number.to_le_bytes());
        }
        for number in [stat.mode, stat.user, stat.group] {
            hasher.update(number.to_le_bytes());
        }
        for time in [stat.modified_ns, stat.changed_ns] {
            hasher.update(time.to_le_bytes());
        }
    }
    hasher.finalize().into()
}

/// Whether everything was last changed by `margin` before `begun`, so that any change since shows in its ctime; and all of
/// it stands on one device, so that what holds for the root's file system holds for all of it.
pub(crate) fn are_settled(stats: &Stats, begun: SystemTime, margin: Duration) -> bool {
    let since = begun.checked_sub(margin).and_then(|until| until.duration_since(UNIX_EPOCH).ok());
    let Some(until_ns) = since.and_then(|since| i128::try_from(since.as_nanos()).ok()) else { return false };
    let Some(root) = stats.get("") else { return false };
    stats.values().all(|stat| stat.is_settled(until_ns) && stat.device == root.device)
}

/// Whether a file system is known to set ctime by this system's own clock at every change: not one of another host's, and
/// not one in memory, which does not notice every write through a mapping.
#[cfg(target_os = "linux")]
pub(crate) fn keeps_ctime(root: &Path) -> bool {
    /// ext2, ext3 and ext4 are one; then XFS and Btrfs. From `linux/magic.h`.
    const KNOWN: [i128; 3] = [0xEF53, 0x5846_5342, 0x9123_683E];
    rustix::fs::statfs(root).is_ok_and(|of| KNOWN.contains(&i128::from(of.f_type)))
}

/// The same: it was not looked into on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keeps_ctime(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i128 = 1_000_000_000;

    fn at(modified_s: i128, changed_s: i128, device: u64) -> Stat {
        let (modified_ns, changed_ns) = (modified_s * SECOND_NS, changed_s * SECOND_NS);
        Stat { device, inode: 1, mode: 0, links: 1, user: 0, group: 0, size_bytes: 0, modified_ns, changed_ns }
    }

    #[test]
    fn both_times_of_everything_are_to_be_older_than_the_margin_and_all_on_one_device() {
        let begun = UNIX_EPOCH + Duration::from_secs(1_000);
        for (other, expected) in [
            (at(0, 939, 1), true),
            (at(939, 0, 1), true),
            (at(0, 940, 1), false),
            (at(940, 0, 1), false),
            (at(0, 2_000, 1), false),
            (at(2_000, 0, 1), false),
            (at(0, 0, 2), false),
        ] {
            let stats = Stats::from([(String::new(), at(0, 0, 1)), ("x".to_owned(), other)]);
            assert_eq!(are_settled(&stats, begun, Duration::from_secs(60)), expected, "{other:?}");
        }
        assert!(!are_settled(&Stats::new(), begun, Duration::from_secs(60)), "nothing was looked at");
    }

    #[test]
    fn each_field_and_each_name_counts() {
        let of = |name: &str, stat: Stat| digest(&Stats::from([(name.to_owned(), stat)]));
        let stat = at(1, 1, 1);
        let whole = of("a", stat);
        for other in [
            Stat { device: 2, ..stat },
            Stat { inode: 2, ..stat },
            Stat { mode: 1, ..stat },
            Stat { links: 2, ..stat },
            Stat { user: 1, ..stat },
            Stat { group: 1, ..stat },
            Stat { size_bytes: 1, ..stat },
            Stat { modified_ns: 1, ..stat },
            Stat { changed_ns: SECOND_NS + 1, ..stat },
        ] {
            assert_ne!(of("a", other), whole, "{other:?}");
        }
        assert_ne!(of("b", stat), whole);
        assert_eq!(of("a", stat), whole);
    }
}
