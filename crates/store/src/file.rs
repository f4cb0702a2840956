//! Opening a file: its directory and mode checked, created whole or not at all, locked, examined, brought up to date.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::migrate::{self, Complete};

/// Name of the ledger in the state directory.
pub const LEDGER_FILE: &str = "ledger.sqlite3";
/// Name of the journal in the state directory.
pub const JOURNAL_FILE: &str = "journal.sqlite3";

/// What tells one of our files from another.
pub(crate) struct FileKind {
    /// Name in the directory.
    pub(crate) name: &'static str,
    /// SQLite's `application_id`.
    pub(crate) application_id: i32,
    /// Numbered migrations.
    pub(crate) migrations: &'static [&'static str],
    /// The oldest version that is brought up to date; an older one is no file that was ever in use.
    pub(crate) oldest: i64,
    /// SQLite's `synchronous`.
    pub(crate) synchronous: &'static str,
}

/// Every commit is on the disk before it is answered. INVARIANT I5: one without a chain (version 1) was put back to that, and
/// is not given another chain.
pub(crate) const LEDGER: FileKind = FileKind {
    name: LEDGER_FILE,
    application_id: 0x4750_4C47,
    migrations: migrate::LEDGER,
    oldest: 2,
    synchronous: "FULL",
};

/// Commits survive the daemon, not a power failure.
pub(crate) const JOURNAL: FileKind = FileKind {
    name: JOURNAL_FILE,
    application_id: 0x4750_4A4E,
    migrations: migrate::JOURNAL,
    oldest: 1,
    synchronous: "NORMAL",
};

/// Pages of the log (16 MiB) beyond which a commit writes it back into the file and waits for the disk. Below it that is done in a
/// pause ([`crate::worker`]).
const LOG_MAX_PAGES: u32 = 4096;

/// Closing any descriptor of a file drops every lock that the process holds on it, so the descriptor that creates a
/// file must be closed before another thread can have opened it.
static OPENING: Mutex<()> = Mutex::new(());

/// How much of a file is read before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// All of it: after a stop that was not in order, or when something else may have written to it.
    Whole,
    /// What costs nothing: after an orderly stop, when the file is as it was left.
    Cheap,
}

/// What opening a file takes besides its kind.
pub(crate) struct Opening<'a> {
    pub(crate) check: Check,
    /// Bound of the file's size, for tests.
    pub(crate) max_pages: Option<u32>,
    /// What its migrations do beside their SQL, in their transaction.
    pub(crate) complete: Complete<'a>,
    /// What else a file of any version in use must be, before it is brought up to date; fails with [`StoreError::Damaged`].
    pub(crate) verify: &'a dyn Fn(&Connection, Check) -> Result<(), StoreError>,
}

/// Opens or creates the file of `kind` in `directory`; returns its path and its only connection.
pub(crate) fn open(
    directory: &Path,
    kind: &FileKind,
    opening: &Opening<'_>,
) -> Result<(PathBuf, Connection), StoreError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    check_directory(directory)?;
    let path = directory.join(kind.name);
    if !check_file(&path)? {
        if check_file(&beside(&path, "-wal"))? {
            return Err(missing_but_logged(path));
        }
        create(directory, &path, kind, opening)?;
    }
    for suffix in ["-wal", "-shm"] {
        check_file(&beside(&path, suffix))?;
    }
    refuse_rollback_journal(&path)?;
    let located = |error: StoreError| error.located(&path);
    let has_log = check_file(&beside(&path, "-wal"))?;
    if !has_log {
        // Opening for writing makes a log; nothing is made beside a file that is found damaged.
        inspect(&path, &connect_immutable(&path)?, kind, opening).map_err(located)?;
    }
    let mut connection = connect(&path)?;
    examine(&path, &mut connection, kind, opening, has_log).map_err(located)?;
    if let Some(pages) = opening.max_pages {
        connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(|error| StoreError::sqlite(&path, &error))?;
    }
    remove_leftovers(directory, kind);
    Ok((path, connection))
}

/// Opens the file of `kind` to read it, when it is there; nothing is made, and nothing is written to it or beside it.
pub(crate) fn open_to_read(directory: &Path, kind: &FileKind) -> Result<(PathBuf, Connection), StoreError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    check_directory(directory)?;
    let path = directory.join(kind.name);
    let log = beside(&path, "-wal");
    let has_log = check_file(&log)?;
    if !check_file(&path)? {
        if has_log {
            return Err(missing_but_logged(path));
        }
        return Err(StoreError::NotFound { what: "file", id: path.display().to_string() });
    }
    refuse_rollback_journal(&path)?;
    let log_bytes = if has_log { fs::metadata(&log).map_err(|error| StoreError::io(&log, &error))?.len() } else { 0 };
    let connection = if log_bytes > 0 {
        // Its index is kept in memory, so the log is read and stays as it is.
        let connection = connect(&path)?;
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .and_then(|_| connection.pragma_update(None, "query_only", true))
            .map_err(|error| StoreError::sqlite(&path, &error))?;
        connection
    } else {
        connect_immutable(&path)?
    };
    let recognise = || -> Result<(), StoreError> {
        let found = recognise(&path, &connection, kind)?;
        if found < migrate::newest(kind.migrations) {
            let reason = "it is of an older version; start the daemon once, which brings it up to date";
            return Err(StoreError::Conflict { what: "file", id: path.display().to_string(), reason });
        }
        Ok(())
    };
    recognise().map_err(|error| error.located(&path))?;
    Ok((path, connection))
}

/// Whether every page is what it should be.
pub(crate) fn check_pages(connection: &Connection) -> Result<(), StoreError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::damaged(verdict)) }
}

fn missing_but_logged(path: PathBuf) -> StoreError {
    StoreError::Damaged { path, reason: "missing, while its write-ahead log is there".into() }
}

/// Ours have a write-ahead log; SQLite would play a rollback journal back into the file.
fn refuse_rollback_journal(path: &Path) -> Result<(), StoreError> {
    if check_file(&beside(path, "-journal"))? {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            reason: "a rollback journal stands beside it".into(),
        });
    }
    Ok(())
}

fn check_directory(directory: &Path) -> Result<(), StoreError> {
    let metadata = fs::symlink_metadata(directory).map_err(|error| StoreError::io(directory, &error))?;
    if !metadata.is_dir() {
        return Err(unsafe_path(directory, "is no directory (a link to one is refused)"));
    }
    check_private(directory, &metadata)
}

/// Whether the file is there; refuses one that is not a private regular file of ours. By path, not by descriptor:
/// see [`OPENING`]; the directory is private, so nobody else can exchange it.
fn check_file(path: &Path) -> Result<bool, StoreError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io(path, &error)),
    };
    if !metadata.is_file() {
        return Err(unsafe_path(path, "is no regular file"));
    }
    check_private(path, &metadata)?;
    Ok(true)
}

fn check_private(path: &Path, metadata: &Metadata) -> Result<(), StoreError> {
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        return Err(unsafe_path(path, &format!("belongs to user {}, not to {own}", metadata.uid())));
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(unsafe_path(path, &format!("has mode {mode:04o}, which lets other users in")));
    }
    Ok(())
}

fn unsafe_path(path: &Path, reason: &str) -> StoreError {
    StoreError::Unsafe { path: path.to_owned(), reason: reason.to_owned() }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the file under another name and links it into place, so that an empty file is always a damaged one.
fn create(directory: &Path, path: &Path, kind: &FileKind, opening: &Opening<'_>) -> Result<(), StoreError> {
    let new = directory.join(format!("{}{}", new_prefix(kind), std::process::id()));
    let made = build(&new, kind, opening).and_then(|()| {
        // Unlike a rename, a link never replaces the file of a daemon that was faster.
        fs::hard_link(&new, path).map_err(|error| StoreError::io(path, &error))
    });
    let removed = match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(&new, &error)),
        Ok(()) | Err(_) => Ok(()),
    };
    match made {
        // The faster daemon may hold the lock; opening will say so.
        Err(_) if check_file(path)? => return Ok(()),
        made => made?,
    }
    removed?;
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(|error| StoreError::io(directory, &error))
}

fn build(new: &Path, kind: &FileKind, opening: &Opening<'_>) -> Result<(), StoreError> {
    // A file of this name is a leftover of a dead process that had our number.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        fs::remove_file(beside(new, suffix)).ok();
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new);
    let file = file.map_err(|error| StoreError::io(new, &error))?;
    drop(file);
    let mut connection = connect(new)?;
    let prepare = |connection: &mut Connection| -> Result<(), StoreError> {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "application_id", kind.application_id)?;
        migrate::migrate(connection, kind.migrations, opening.complete)?;
        let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode == "wal" {
            Ok(())
        } else {
            Err(StoreError::Database { detail: "this file system has no write-ahead log".into() })
        }
    };
    prepare(&mut connection).map_err(|error| error.located(new))?;
    connection.close().map_err(|(_, error)| StoreError::sqlite(new, &error))?;
    File::open(new).and_then(|handle| handle.sync_all()).map_err(|error| StoreError::io(new, &error))
}

fn new_prefix(kind: &FileKind) -> String {
    format!("{}.new-", kind.name)
}

/// Removes what creations cut short have left. The lock is ours: no creation can still succeed.
fn remove_leftovers(directory: &Path, kind: &FileKind) {
    let prefix = new_prefix(kind);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// For a file that nobody writes to and that has no log: neither locks it nor makes anything beside it.
fn connect_immutable(path: &Path) -> Result<Connection, StoreError> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
    let encoded: String = path
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
        .collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        Ok(connection)
    };
    open().map_err(|error| StoreError::sqlite(path, &error))
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| StoreError::sqlite(path, &error))?;
    let configure = |connection: &Connection| -> rusqlite::Result<()> {
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // On macOS a plain fsync leaves the data in the drive's cache.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)
    };
    configure(&connection).map_err(|error| StoreError::sqlite(path, &error))?;
    Ok(connection)
}

/// The version of a file of this kind.
fn recognise(path: &Path, connection: &Connection, kind: &FileKind) -> Result<i64, StoreError> {
    let length = fs::metadata(path).map_err(|error| StoreError::io(path, &error))?.len();
    if length == 0 {
        return Err(StoreError::damaged("it is empty"));
    }
    let application_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application_id != kind.application_id {
        return Err(StoreError::damaged("it is not a file of this kind"));
    }
    let found = migrate::version(connection)?;
    let known = migrate::newest(kind.migrations);
    if found > known {
        return Err(StoreError::NewerVersion { path: path.to_owned(), found, known });
    }
    if found < 1 {
        return Err(StoreError::damaged("it has no version"));
    }
    if found < kind.oldest {
        return Err(StoreError::damaged(format!(
            "it has version {found}, and none below {} was ever in use",
            kind.oldest
        )));
    }
    Ok(found)
}

/// Checks the file as far as it is to be checked.
fn inspect(path: &Path, connection: &Connection, kind: &FileKind, opening: &Opening<'_>) -> Result<(), StoreError> {
    recognise(path, connection, kind)?;
    if opening.check == Check::Whole {
        check_pages(connection)?;
    }
    (opening.verify)(connection, opening.check)
}

/// Takes the lock, checks the file where that was not done with its log unread, and only then lets anything be written to it.
fn examine(
    path: &Path,
    connection: &mut Connection,
    kind: &FileKind,
    opening: &Opening<'_>,
    unchecked: bool,
) -> Result<(), StoreError> {
    // Closing would write the log back into a file that was found damaged.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    recognise(path, connection, kind)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::damaged(format!("its journal mode is {mode}")));
    }
    if unchecked {
        inspect(path, connection, kind, opening)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update(None, "synchronous", kind.synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_MAX_PAGES)?;
    migrate::migrate(connection, kind.migrations, opening.complete)
}
