//! Between two daemons: the mark of an orderly stop, files set aside, the ledger read while nobody runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use store::{
    Check, Fault, JOURNAL_FILE, Journal, LEDGER_FILE, Ledger, NewEvent, OfflineLedger, RefusedRequest, StoreError,
    mark_clean, take_clean_mark,
};
use support::{Word, open_ledger};

fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn refused(code: &str) -> RefusedRequest {
    RefusedRequest {
        request: "POST /v1/actions".into(),
        caller: "owner".into(),
        client_action_id: None,
        session_id: None,
        operation_id: None,
        code: code.into(),
        at_ms: 1,
    }
}

fn event(id: &str) -> NewEvent {
    NewEvent { event_id: id.into(), at: String::new(), kind: "other".into(), payload_json: "{}".into(), is_late: false }
}

/// Both files as an orderly stop leaves them.
fn closed() -> tempfile::TempDir {
    let directory = private_directory();
    let (ledger, journal) =
        (open_ledger(directory.path()).unwrap(), Journal::open(directory.path(), Check::Whole).unwrap());
    ledger.note_refusal(refused("empty")).unwrap();
    journal.append("s", vec![event("a"), event("b")], 1).unwrap();
    journal.close().unwrap();
    ledger.close().unwrap();
    directory
}

/// Every file's name and content.
fn all(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    fs::read_dir(directory).unwrap().map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn the_mark_counts_once_and_only_for_the_files_as_they_were_closed() {
    let directory = closed();
    let path = directory.path();
    assert_eq!(take_clean_mark(path).unwrap(), Check::Whole, "none was left");
    mark_clean(path).unwrap();
    assert_eq!(take_clean_mark(path).unwrap(), Check::Cheap);
    assert_eq!(take_clean_mark(path).unwrap(), Check::Whole, "it was taken");
    for name in [LEDGER_FILE, JOURNAL_FILE] {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let touched: [&dyn Fn(); 4] = [
            &|| fs::write(&file, &flipped).unwrap(),
            &|| fs::write(&file, &whole).unwrap(),
            &|| fs::write(path.join(format!("{name}-wal")), "").unwrap(),
            &|| fs::rename(&file, path.join("elsewhere")).unwrap(),
        ];
        for (number, touch) in touched.iter().enumerate() {
            mark_clean(path).unwrap();
            touch();
            assert_eq!(take_clean_mark(path).unwrap(), Check::Whole, "{name}, {number}");
            fs::remove_file(path.join(format!("{name}-wal"))).ok();
        }
        fs::rename(path.join("elsewhere"), &file).unwrap();
    }
    mark_clean(path).unwrap();
    fs::write(path.join("records.clean"), [0xff; 40]).unwrap();
    assert_eq!(take_clean_mark(path).unwrap(), Check::Whole, "it is none of ours");
}

/// Overwrites the pages of a file behind the back of the one that has it open.
fn wipe(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    // The first page holds the schema, which is known already.
    file.write_all_at(&vec![0xff; length - 4096], 4096).unwrap();
    // Closing it would free the lock of the one that has it open.
    std::mem::forget(file);
}

#[test]
fn a_file_whose_damage_was_met_while_it_was_open_is_closed_as_damaged_and_an_unharmed_one_is_not() {
    let directory = closed();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    wipe(&directory.path().join(JOURNAL_FILE));
    assert!(matches!(journal.rows("s", 0, 9), Err(StoreError::Damaged { .. })));
    assert!(matches!(journal.close(), Err(StoreError::Damaged { reason, .. }) if reason.contains("in use")));
    assert_eq!(journal.close(), Err(StoreError::Stopped), "it is closed");

    let directory = closed();
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    assert!(journal.append("s", vec![event("a"), event("c")], 1).is_ok() && journal.rows("s", 9, 9).is_ok());
    assert!(matches!(journal.read("s", 7, 0, 9), Err(StoreError::OutOfRange { .. })), "a refusal is no damage");
    assert_eq!(journal.close(), Ok(()));

    let directory = closed();
    let ledger = open_ledger(directory.path()).unwrap();
    wipe(&directory.path().join(LEDGER_FILE));
    assert!(matches!(ledger.note_refusal(refused("empty")), Err(StoreError::Damaged { .. })), "by a write");
    assert!(matches!(ledger.close(), Err(StoreError::Damaged { .. })));
}

/// [`closed`], with the code of the refusal altered, in the middle of the chain's newest entry.
fn altered() -> tempfile::TempDir {
    let directory = closed();
    let path = directory.path().join(LEDGER_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(7).position(|window| window == b"\"empty\"").unwrap();
    bytes[at + 1] = b'E';
    fs::write(&path, &bytes).unwrap();
    directory
}

#[test]
fn a_chain_that_was_found_broken_is_damage_too() {
    let directory = altered();
    let open = || Ledger::open(directory.path(), Arc::new(Word("own")), Check::Cheap, 1).unwrap();
    assert_eq!(open().close(), Ok(()), "nobody looked");
    let ledger = open();
    assert!(ledger.verify().unwrap().broken.is_some());
    assert!(matches!(ledger.close(), Err(StoreError::Damaged { .. })));
}

#[test]
fn no_mark_is_left_while_a_file_is_open() {
    let directory = closed();
    let ledger = open_ledger(directory.path()).unwrap();
    ledger.note_refusal(refused("empty")).unwrap();
    mark_clean(directory.path()).unwrap();
    assert_eq!(take_clean_mark(directory.path()).unwrap(), Check::Whole);
}

#[test]
fn a_closed_file_takes_nothing_more_and_is_free_for_others() {
    let directory = closed();
    let ledger = open_ledger(directory.path()).unwrap();
    let second = ledger.clone();
    ledger.close().unwrap();
    assert_eq!(second.note_refusal(refused("empty")), Err(StoreError::Stopped));
    assert_eq!(second.close(), Err(StoreError::Stopped));
    open_ledger(directory.path()).unwrap();
}

#[test]
fn an_orderly_stop_spares_the_whole_check_and_not_that_of_the_head() {
    let directory = altered();
    let open = |check| Ledger::open(directory.path(), Arc::new(Word("own")), check, 1).map(drop);
    assert!(matches!(open(Check::Whole), Err(StoreError::Damaged { reason, .. }) if reason.contains("link 2")));
    assert_eq!(open(Check::Cheap), Ok(()));
    let foreign = Ledger::open(directory.path(), Arc::new(Word("other")), Check::Cheap, 1).map(drop);
    assert!(matches!(foreign, Err(StoreError::Damaged { reason, .. }) if reason.contains("signature")));
}

#[test]
fn a_journal_whose_numbers_have_a_gap_is_damaged_when_it_is_checked_whole() {
    let directory = closed();
    // Deleting through the database keeps its pages right: only the numbers tell.
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\nc.execute('DELETE FROM events WHERE seq = 1')\nc.commit()\n";
    let file = directory.path().join(JOURNAL_FILE);
    let python = std::process::Command::new("python3").args(["-c", script]).arg(&file).status().unwrap();
    assert!(python.success());
    assert!(Journal::open(directory.path(), Check::Cheap).is_ok());
    let refused = Journal::open(directory.path(), Check::Whole).map(drop);
    assert!(matches!(refused, Err(StoreError::Damaged { reason, .. }) if reason.contains("numbered")));
}

#[test]
fn what_is_set_aside_keeps_its_content_and_overwrites_nothing() {
    let directory = closed();
    let path = directory.path();
    fs::write(path.join(format!("{LEDGER_FILE}-wal")), "a log").unwrap();
    let taken = path.join(format!("{LEDGER_FILE}.damaged-T-wal"));
    fs::write(&taken, "of an earlier time").unwrap();
    let before = fs::read(path.join(LEDGER_FILE)).unwrap();
    let aside = Ledger::set_aside(path, "T").unwrap().unwrap();
    assert_eq!(aside, path.join(format!("{LEDGER_FILE}.damaged-T-2")));
    assert_eq!(fs::read(&aside).unwrap(), before);
    assert_eq!(fs::read(path.join(format!("{LEDGER_FILE}.damaged-T-2-wal"))).unwrap(), b"a log");
    assert_eq!(fs::read(&taken).unwrap(), b"of an earlier time");
    assert_eq!(Ledger::set_aside(path, "T").unwrap(), None);
    // A journal alone says that the ledger was lost.
    let lost = open_ledger(path).map(drop);
    assert!(matches!(&lost, Err(StoreError::Damaged { reason, .. }) if reason.contains("missing")), "{lost:?}");
    assert!(!path.join(LEDGER_FILE).exists());
    Journal::set_aside(path, "T").unwrap().unwrap();
    assert_eq!(open_ledger(path).unwrap().audit(0, 9).unwrap().head.n, 1, "a new one was begun");
}

#[test]
fn a_journal_made_anew_has_another_number_and_one_that_stays_keeps_its_own() {
    let directory = closed();
    let lineage = || Journal::open(directory.path(), Check::Whole).unwrap().lineage();
    let first = lineage();
    assert_eq!(lineage(), first);
    Journal::set_aside(directory.path(), "T").unwrap().unwrap();
    let second = lineage();
    assert!(first != 0 && second != 0 && first != second, "{first} {second}");
}

#[test]
fn a_journal_that_a_power_failure_may_have_cut_short_has_another_number() {
    let directory = closed();
    let open = |check| Journal::open(directory.path(), check).unwrap().lineage();
    let booted = |boot_id: &str| {
        let connection = rusqlite::Connection::open(directory.path().join(JOURNAL_FILE)).unwrap();
        connection.execute("UPDATE lineage SET boot_id = ?1", [boot_id]).unwrap();
    };
    let first = open(Check::Whole);
    assert_eq!(open(Check::Whole), first, "the same boot: what was committed is there");
    booted("another");
    assert_eq!(open(Check::Cheap), first, "closed in order: it is all there");
    booted("another");
    let second = open(Check::Whole);
    assert_ne!(second, first);
    assert_eq!(open(Check::Whole), second);
    booted("");
    assert_eq!(open(Check::Whole), second, "nothing is known of an older file's boot");
}

#[test]
fn the_ledger_is_read_where_it_lies_and_nothing_is_written() {
    let directory = closed();
    let open = || OfflineLedger::open(directory.path(), Arc::new(Word("own")));
    let before = all(directory.path());
    let ledger = open().unwrap();
    let links = ledger.audit(0, 9).unwrap().links;
    assert_eq!(links.len(), 2);
    assert_eq!(ledger.verify().unwrap().broken, None);
    drop(ledger);
    assert_eq!(all(directory.path()), before);
    // What a killed daemon leaves: the newest link stands in the log alone.
    let killed = open_ledger(directory.path()).unwrap();
    killed.note_refusal(refused("too_long")).unwrap();
    let copy = private_directory();
    for suffix in ["", "-wal"] {
        let name = format!("{LEDGER_FILE}{suffix}");
        fs::copy(directory.path().join(&name), copy.path().join(&name)).unwrap();
    }
    let before = all(copy.path());
    assert!(before.len() == 2 && !before[&format!("{LEDGER_FILE}-wal")].is_empty(), "{:?}", before.keys());
    let ledger = OfflineLedger::open(copy.path(), Arc::new(Word("own"))).unwrap();
    assert_eq!(ledger.audit(0, 9).unwrap().links.len(), 3);
    assert_eq!(ledger.verify().unwrap().links, 3);
    drop(ledger);
    assert_eq!(all(copy.path()), before);
    let foreign = OfflineLedger::open(copy.path(), Arc::new(Word("other"))).unwrap().verify().unwrap();
    assert_eq!(foreign.broken.map(|broken| broken.fault), Some(Fault::Signature));
    // In use: refused while its log is there, and never locked against the one that uses it.
    assert!(matches!(open(), Err(StoreError::InUse { .. })));
    killed.note_refusal(refused("empty")).unwrap();
}

#[test]
fn a_ledger_that_is_not_there_is_not_made_and_one_with_a_rollback_journal_is_not_touched() {
    let directory = private_directory();
    let open = |path: &Path| OfflineLedger::open(path, Arc::new(Word("own"))).map(drop);
    assert!(matches!(open(directory.path()), Err(StoreError::NotFound { .. })));
    assert!(all(directory.path()).is_empty());
    let directory = closed();
    let journal = directory.path().join(format!("{LEDGER_FILE}-journal"));
    fs::write(&journal, "x").unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();
    let before = all(directory.path());
    assert!(matches!(open(directory.path()), Err(StoreError::Damaged { .. })));
    assert!(matches!(open_ledger(directory.path()), Err(StoreError::Damaged { .. })));
    assert_eq!(all(directory.path()), before);
}
