//! What needs the inside: a full disk.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn event(number: usize, bytes: usize) -> NewEvent {
    NewEvent {
        event_id: format!("event-{number}"),
        at: "2025-01-01T00:00:00Z".into(),
        kind: "other".into(),
        payload_json: "x".repeat(bytes),
        is_late: false,
    }
}

#[test]
fn a_full_disk_takes_no_number() {
    let directory = private_directory();
    let journal = Journal::open_bounded(directory.path(), Check::Whole, Some(40)).unwrap();
    let mut stored = 0;
    let refused = loop {
        // Two at once: a batch that does not fit leaves none of its events.
        match journal.append("s", vec![event(stored, 10), event(stored + 1, 6000)], 1) {
            Ok(records) => stored += records.len(),
            Err(error) => break error,
        }
        assert!(stored < 1000, "the bound does not hold");
    };
    assert_eq!(refused, StoreError::DiskFull { path: directory.path().join("journal.sqlite3") });
    assert_eq!(journal.head("s").unwrap().seq, stored as u64);
    drop(journal);
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    let next = journal.append("s", vec![event(stored, 10)], 1).unwrap();
    assert_eq!(next[0].seq, stored as u64 + 1);
}
