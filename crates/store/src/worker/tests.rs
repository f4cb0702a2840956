//! A kill at the worst moment: committed, and nobody told.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::file;

const CHILD_DIRECTORY: &str = "STORE_TEST_CHILD_DIRECTORY";

fn start(directory: &std::path::Path) -> Worker {
    let (path, connection) = file::open(directory, &file::LEDGER, &crate::testing::PLAIN).unwrap();
    Worker::start("test", path, connection).unwrap()
}

fn insert(connection: &Connection, name: &str) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO sessions (session_id, workspace, origin, created_at_ms) VALUES (?1, '/', 'created', 0)",
        [name],
    )?;
    Ok(())
}

fn stored(worker: &Worker) -> Vec<String> {
    let names = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT session_id FROM sessions ORDER BY rowid")?;
        let names = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(names)
    };
    worker.read(names).unwrap()
}

fn kill_self() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    loop {
        thread::park();
    }
}

/// Kills the process inside the transaction, or after its commit and before the answer.
struct Killer {
    after_commit: bool,
}

impl Write for Killer {
    fn apply(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        in_savepoint(transaction, |connection| insert(connection, "unanswered"))?;
        if !self.after_commit {
            kill_self();
        }
        Ok(())
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        committed.unwrap();
        kill_self();
    }
}

#[test]
#[ignore = "run by what_was_committed_is_there_after_a_kill_and_nothing_else in a process of its own"]
fn child_is_killed() {
    let directory = PathBuf::from(std::env::var_os(CHILD_DIRECTORY).expect("set by the parent"));
    let after_commit = std::env::var_os("STORE_TEST_AFTER_COMMIT").is_some();
    let worker = start(&directory);
    worker.write(|connection| insert(connection, "answered")).unwrap();
    worker.submit(Job::Write(Box::new(Killer { after_commit }))).unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_was_committed_is_there_after_a_kill_and_nothing_else() {
    for after_commit in [false, true] {
        let directory = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "worker::tests::child_is_killed"]);
        command.env(CHILD_DIRECTORY, directory.path());
        if after_commit {
            command.env("STORE_TEST_AFTER_COMMIT", "1");
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        let expected: &[&str] = if after_commit { &["answered", "unanswered"] } else { &["answered"] };
        assert_eq!(stored(&start(directory.path())), expected);
    }
}

#[test]
fn dropping_the_handle_finishes_what_was_queued() {
    let directory = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap();
    let worker = start(directory.path());
    let (reply, answer) = sync_channel(1);
    let outcome: Result<(), StoreError> = Err(StoreError::Stopped);
    let operation = |connection: &Connection| insert(connection, "queued");
    worker
        .submit(Job::Write(Box::new(PendingWrite {
            operation: Some(operation),
            outcome,
            damage: Damage::default(),
            reply,
        })))
        .unwrap();
    drop(worker);
    assert_eq!(answer.try_recv(), Ok(Ok(())));
    assert_eq!(stored(&start(directory.path())), ["queued"]);
}
