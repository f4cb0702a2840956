//! What a daemon needs of the system beside programs: room on the disk, a clock that is about right, and ports.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::finding::Finding;
use crate::places::Places;

/// Below this the records of a busy day may not fit.
const LITTLE_ROOM_BYTES: u64 = 256 * 1024 * 1024;
/// Below this nothing is recorded, so nothing is done.
const NO_ROOM_BYTES: u64 = 1024 * 1024;
/// No clock that is right shows a time before this program was written: 2026-01-01.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
/// Between two clocks, or over a leap second, this is nothing.
const TOLERATED: Duration = Duration::from_secs(300);
/// Each server takes one port, and its tools some more for a while.
const FEW_PORTS: u32 = 1_000;
const DISK_SPACE: &str = "disk_space";
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// All of them.
pub(super) fn all(places: &Places) -> Vec<Finding> {
    let newest = [&places.paths.ledger, &places.paths.journal].into_iter().filter_map(|file| {
        // Of a link nobody knows whose time it is.
        std::fs::symlink_metadata(file).ok()?.modified().ok()
    });
    vec![
        disk_space(&places.paths.state_dir),
        clock(SystemTime::now(), newest.max()),
        ports(std::fs::read_to_string(PORT_RANGE).ok().as_deref(), &bind()),
    ]
}

/// Room where the records are, or will be. Looked at, not tried.
fn disk_space(directory: &Path) -> Finding {
    let there = directory.ancestors().find(|at| at.is_dir()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(about) => free_space(there, about.f_bavail.saturating_mul(about.f_frsize)),
        Err(error) => {
            let detail = format!("the room of {} cannot be told: {error}", there.display());
            Finding::warning(DISK_SPACE, detail, format!("look with `df {}`", there.display()))
        }
    }
}

fn free_space(there: &Path, free_bytes: u64) -> Finding {
    let (at, free) = (there.display(), free_bytes / (1024 * 1024));
    let detail = format!("{free} MiB are free for this user at {at}");
    let remedy = format!("make room on the file system of {at}; an Agent Server takes about 600 MB");
    if free_bytes < NO_ROOM_BYTES {
        Finding::failed(DISK_SPACE, format!("{detail}: nothing can be recorded, so nothing is done"), remedy)
    } else if free_bytes < LITTLE_ROOM_BYTES {
        Finding::warning(DISK_SPACE, detail, remedy)
    } else {
        Finding::ok(DISK_SPACE, detail)
    }
}

/// No decision depends on the clock; what is shown does, and so do certificates of model providers.
fn clock(now: SystemTime, newest_record: Option<SystemTime>) -> Finding {
    const CHECK: &str = "clock";
    const REMEDY: &str = "set the clock (`timedatectl set-ntp true`, where systemd keeps it)";
    if now < UNIX_EPOCH + EARLIEST {
        let detail = "the clock shows a time before this program was written: certificates seem not yet valid to it";
        return Finding::failed(CHECK, detail, REMEDY);
    }
    match newest_record.and_then(|newest| newest.duration_since(now).ok()).filter(|ahead| *ahead > TOLERATED) {
        Some(ahead) => {
            let minutes = ahead.as_secs() / 60;
            let detail = format!(
                "the records were last written {minutes} minutes after what the clock shows: it was set back, or was wrong then"
            );
            Finding::warning(CHECK, detail, REMEDY)
        }
        None => Finding::ok(CHECK, "not before this program and its records"),
    }
}

/// A port as a server would be given one.
fn bind() -> io::Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop)
}

fn ports(range: Option<&str>, bound: &io::Result<()>) -> Finding {
    const CHECK: &str = "port_range";
    const REMEDY: &str =
        "widen net.ipv4.ip_local_port_range, end what holds the ports, or bring the loopback interface up";
    if let Err(error) = bound {
        return Finding::failed(CHECK, format!("no port of 127.0.0.1 can be had for a server: {error}"), REMEDY);
    }
    let numbers: Option<Vec<u32>> = range.map(|text| text.split_whitespace().filter_map(|n| n.parse().ok()).collect());
    let Some([first, last]) = numbers.as_deref() else {
        return Finding::ok(CHECK, "a port of 127.0.0.1 can be had; the kernel's range is not told here");
    };
    let count = (last + 1).saturating_sub(*first);
    let detail = format!("a port of 127.0.0.1 can be had, of {first} to {last}");
    if count < FEW_PORTS {
        Finding::warning(CHECK, format!("{detail}: only {count}"), REMEDY)
    } else {
        Finding::ok(CHECK, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn little_room_is_warned_of_and_none_fails() {
        let state = |bytes| free_space(Path::new("/s"), bytes).state;
        assert_eq!(state(NO_ROOM_BYTES - 1), State::Failed);
        assert_eq!((state(NO_ROOM_BYTES), state(LITTLE_ROOM_BYTES - 1)), (State::Warning, State::Warning));
        assert_eq!(state(LITTLE_ROOM_BYTES), State::Ok);
        assert!(free_space(Path::new("/s"), 0).remedy.unwrap().contains("make room"));
        // Where nothing is yet, the place that it will be made in counts.
        let home = tempfile::tempdir().unwrap();
        assert!(disk_space(&home.path().join("a/b")).detail.contains(home.path().to_str().unwrap()));
    }

    #[test]
    fn a_clock_before_this_program_fails_and_one_before_its_records_is_warned_of() {
        let now = UNIX_EPOCH + EARLIEST;
        assert_eq!(clock(now - Duration::from_secs(1), None).state, State::Failed);
        assert_eq!(clock(now, Some(now + TOLERATED)).state, State::Ok);
        let behind = clock(now, Some(now + Duration::from_secs(7_200)));
        assert_eq!(behind.state, State::Warning);
        assert!(behind.detail.contains("120 minutes") && behind.remedy.is_some(), "{behind:?}");
    }

    #[test]
    fn few_ports_are_warned_of_and_none_fails() {
        assert_eq!(ports(Some("32768\t60999\n"), &Ok(())).state, State::Ok);
        assert_eq!(ports(Some("40000 40009"), &Ok(())).state, State::Warning);
        assert!(ports(Some("40000 40009"), &Ok(())).detail.ends_with("only 10"));
        assert_eq!(ports(None, &Ok(())).state, State::Ok);
        assert_eq!(ports(Some("odd"), &Ok(())).state, State::Ok);
        let none = ports(Some("40000 40000"), &Err(io::ErrorKind::AddrInUse.into()));
        assert!(none.state == State::Failed && none.remedy.is_some(), "{none:?}");
        assert!(bind().is_ok());
    }
}
