//! The files themselves: modes, locks, damage, versions, directories that cannot be written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use store::{Check, JOURNAL_FILE, Journal, LEDGER_FILE, NewEvent, ReceiptRecord, ReceiptState, StoreError};

mod support;

use support::open_ledger;

const CHILD_DIRECTORY: &str = "STORE_TEST_CHILD_DIRECTORY";

fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn receipt(number: usize) -> ReceiptRecord {
    ReceiptRecord {
        client_action_id: format!("action-{number}"),
        session_id: None,
        operation_id: "o".into(),
        fingerprint: "f".into(),
        caller: "c".into(),
        state: ReceiptState::Queued,
        code: None,
        detail: None,
        input_json: "x".repeat(2000),
        result_json: None,
        steps: Vec::new(),
        created_at_ms: 0,
        updated_at_ms: 0,
        request_id: None,
    }
}

/// A directory with a ledger and a journal that hold something.
fn filled() -> tempfile::TempDir {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    for number in 0..40 {
        ledger.insert_receipt(receipt(number)).unwrap();
    }
    let journal = Journal::open(directory.path(), Check::Whole).unwrap();
    let event = |number: usize| NewEvent {
        event_id: format!("{number}"),
        at: String::new(),
        kind: "other".into(),
        payload_json: "x".repeat(2000),
        is_late: false,
    };
    journal.append("s", (0..40).map(event).collect(), 0).unwrap();
    directory
}

fn open_both(directory: &Path) -> [Result<(), StoreError>; 2] {
    [open_ledger(directory).map(drop), Journal::open(directory, Check::Whole).map(drop)]
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_private_and_nothing_else_is_left() {
    let directory = filled();
    assert_eq!(names(directory.path()), [JOURNAL_FILE, LEDGER_FILE]);
    let _open = (open_ledger(directory.path()).unwrap(), Journal::open(directory.path(), Check::Whole).unwrap());
    _open.0.insert_receipt(receipt(1000)).unwrap();
    for name in names(directory.path()) {
        let mode = fs::metadata(directory.path().join(&name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_creation_that_was_cut_short_is_cleared_away() {
    let directory = private_directory();
    let leftover = directory.path().join(format!("{LEDGER_FILE}.new-1"));
    fs::write(&leftover, b"half").unwrap();
    open_ledger(directory.path()).unwrap();
    assert_eq!(names(directory.path()), [LEDGER_FILE]);
}

#[test]
fn a_second_opening_is_refused_until_the_first_is_dropped() {
    let directory = filled();
    let first = (open_ledger(directory.path()).unwrap(), Journal::open(directory.path(), Check::Whole).unwrap());
    for _ in 0..2 {
        let [ledger, journal] = open_both(directory.path());
        assert_eq!(ledger, Err(StoreError::InUse { path: directory.path().join(LEDGER_FILE) }));
        assert_eq!(journal, Err(StoreError::InUse { path: directory.path().join(JOURNAL_FILE) }));
    }
    // The refused openings took no lock away.
    assert_eq!(child(directory.path(), None), "InUse InUse");
    first.0.insert_receipt(receipt(1000)).unwrap();
    drop(first);
    assert_eq!(open_both(directory.path()), [Ok(()), Ok(())]);
    assert_eq!(child(directory.path(), None), "opened opened");
}

#[test]
fn many_that_create_at_once_get_one_file() {
    let directory = private_directory();
    let opened: Vec<_> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..8).map(|_| scope.spawn(|| open_ledger(directory.path()))).collect();
        openers.into_iter().map(|opener| opener.join().unwrap()).collect()
    });
    assert_eq!(opened.iter().filter(|result| result.is_ok()).count(), 1, "{opened:?}");
    assert!(opened.iter().all(|result| matches!(result, Ok(_) | Err(StoreError::InUse { .. }))), "{opened:?}");
}

type Damage = fn(&mut Vec<u8>);

#[test]
fn a_damaged_or_truncated_file_is_refused_and_untouched() {
    let damages: [(&str, Damage); 8] = [
        ("emptied", Vec::clear),
        ("cut in the header", |bytes| bytes.truncate(60)),
        ("cut in the first page", |bytes| bytes.truncate(1000)),
        ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2)),
        ("cut by one page", |bytes| bytes.truncate(bytes.len() - 4096)),
        ("another kind of file", |bytes| *bytes = b"not a database ".repeat(1000)),
        ("zeros", |bytes| bytes.fill(0)),
        ("pages overwritten", |bytes| {
            for page in bytes.chunks_mut(4096).skip(2) {
                page[..64].fill(0xA5);
            }
        }),
    ];
    for name in [LEDGER_FILE, JOURNAL_FILE] {
        for (what, damage) in damages {
            let directory = filled();
            let path = directory.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, &bytes).unwrap();
            for _ in 0..2 {
                let [ledger, journal] = open_both(directory.path());
                let refused = if name == LEDGER_FILE { ledger } else { journal };
                assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{name} {what}: {refused:?}");
                assert_eq!(fs::read(&path).unwrap(), bytes, "{name} {what}: it was written to");
            }
        }
    }
}

#[test]
fn a_missing_file_with_its_log_still_there_is_no_new_start() {
    let directory = filled();
    let path = directory.path().join(LEDGER_FILE);
    fs::remove_file(&path).unwrap();
    let log = directory.path().join(format!("{LEDGER_FILE}-wal"));
    fs::write(&log, b"log").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = open_ledger(directory.path()).map(drop);
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    assert_eq!(fs::read(&log).unwrap(), b"log");
    assert!(!path.exists());
}

#[test]
fn one_of_ours_in_the_place_of_another_is_refused() {
    let directory = filled();
    fs::copy(directory.path().join(JOURNAL_FILE), directory.path().join(LEDGER_FILE)).unwrap();
    assert!(matches!(open_ledger(directory.path()), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_newer_file_is_refused_and_untouched() {
    let directory = filled();
    let path = directory.path().join(LEDGER_FILE);
    let file = rusqlite::Connection::open(&path).unwrap();
    let known = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    file.pragma_update(None, "user_version", 77).unwrap();
    drop(file);
    let before = fs::read(&path).unwrap();
    let refused = open_ledger(directory.path()).map(drop);
    assert_eq!(refused, Err(StoreError::NewerVersion { path: path.clone(), found: 77, known }));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_others_could_reach_or_exchange_is_refused() {
    let refused = |directory: &Path| matches!(open_ledger(directory), Err(StoreError::Unsafe { .. }));
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let directory = filled();
    let path = directory.path().join(LEDGER_FILE);
    for (target, good) in [(directory.path(), 0o700), (&*path, 0o600)] {
        for bad in [0o040, 0o010, 0o020, 0o004, 0o001, 0o002] {
            mode(target, good | bad);
            assert!(refused(directory.path()), "{} {bad:o}", target.display());
        }
        mode(target, good);
    }
    let link = directory.path().join("link");
    symlink(directory.path(), &link).unwrap();
    assert!(refused(&link), "a link in the place of the directory");
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(refused(directory.path()), "a link in the place of the file");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(refused(directory.path()), "a directory in the place of the file");
    assert!(refused(&elsewhere), "a file in the place of the directory");
    let absent = open_ledger(&directory.path().join("absent")).unwrap_err();
    assert!(matches!(absent, StoreError::Io { kind: std::io::ErrorKind::NotFound, .. }), "{absent}");
}

/// The body of the re-executed process: opens both files and says how that went.
#[test]
#[ignore = "run by other tests in a process of its own"]
fn child_opens() {
    let directory = PathBuf::from(std::env::var_os(CHILD_DIRECTORY).expect("set by the parent"));
    let word = |result: Result<(), StoreError>| match result {
        Ok(()) => "opened".to_owned(),
        Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
    };
    let [ledger, journal] = open_both(&directory);
    println!("\nverdict: {} {}", word(ledger), word(journal));
}

/// Runs [`child_opens`], as another user if one is given, and returns its verdict.
fn child(directory: &Path, user: Option<u32>) -> String {
    // The build's directory may be closed to another user, the system's temporary one is not.
    let program = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let executable = program.path().join("child");
    fs::copy(std::env::current_exe().unwrap(), &executable).unwrap();
    fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&executable);
    command.args(["--ignored", "--exact", "child_opens", "--nocapture"]).env(CHILD_DIRECTORY, directory);
    if let Some(user) = user {
        command.uid(user).gid(user).current_dir("/");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("verdict: "))
        .unwrap_or_else(|| panic!("no verdict: {text} {}", String::from_utf8_lossy(&output.stderr)))
        .to_owned()
}

#[test]
fn a_read_only_directory_is_refused_with_its_files_untouched() {
    // Modes do not bind root, so it looks as somebody else.
    let root = rustix::process::geteuid().is_root();
    let user = root.then_some(65534);
    let empty = private_directory();
    let full = filled();
    let before: Vec<_> = [LEDGER_FILE, JOURNAL_FILE].map(|name| fs::read(full.path().join(name)).unwrap()).into();
    for directory in [empty.path(), full.path()] {
        if let Some(user) = user {
            for name in names(directory) {
                chown(directory.join(name), Some(user), Some(user)).unwrap();
            }
            chown(directory, Some(user), Some(user)).unwrap();
        }
        fs::set_permissions(directory, fs::Permissions::from_mode(0o500)).unwrap();
    }
    let verdicts = [child(empty.path(), user), child(full.path(), user)];
    for directory in [empty.path(), full.path()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(verdicts, ["NotWritable NotWritable"; 2]);
    assert_eq!(names(empty.path()), Vec::<String>::new());
    let after: Vec<_> = [LEDGER_FILE, JOURNAL_FILE].map(|name| fs::read(full.path().join(name)).unwrap()).into();
    assert!(before == after);
    if let Some(user) = user {
        assert_eq!(child(full.path(), user.into()), "opened opened");
    } else {
        assert_eq!(child(full.path(), None), "opened opened");
    }
}
