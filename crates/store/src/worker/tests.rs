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

fn queue_write(
    worker: &Worker,
    operation: impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
) -> Receiver<Result<(), StoreError>> {
    let (reply, answer) = sync_channel(1);
    let (damage, outcome) = (Damage::default(), Err(StoreError::Stopped));
    let pending = PendingWrite { operation: Some(operation), outcome, damage, reply };
    worker.submit(Job::Write(Box::new(pending))).unwrap();
    answer
}

/// Queues a look at the file's length.
fn queue_look(worker: &Worker, file: &std::path::Path) -> Receiver<u64> {
    let (reply, answer) = sync_channel(1);
    let file = file.to_owned();
    worker.submit(Job::Read(Box::new(move |_| reply.send(file.metadata().unwrap().len()).unwrap()))).unwrap();
    answer
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
    let answer = queue_write(&worker, |connection| insert(connection, "queued"));
    drop(worker);
    assert_eq!(answer.try_recv(), Ok(Ok(())));
    assert_eq!(stored(&start(directory.path())), ["queued"]);
}

#[test]
fn the_log_is_written_back_in_a_pause_and_by_a_commit_only_when_it_is_long() {
    const WRITES: u32 = CHECKPOINT_COMMITS + 10;
    let directory = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap();
    let worker = start(directory.path());
    let file = directory.path().join(file::LEDGER_FILE);
    let before = file.metadata().unwrap().len();
    // Everything is queued before anything is done, so there is no pause in between.
    let (open, gate) = sync_channel::<()>(0);
    worker.submit(Job::Read(Box::new(move |_| gate.recv().unwrap_or_default()))).unwrap();
    let mut after_writes = Vec::new();
    for number in 0..WRITES {
        // 12 pages and more: together longer than SQLite itself lets a log become.
        queue_write(&worker, move |connection| insert(connection, &format!("{number:050000}")));
        // What stands between two writes keeps them from sharing a commit.
        after_writes.push(queue_look(&worker, &file));
    }
    drop(open);
    let lengths: Vec<u64> = after_writes.into_iter().map(|look| look.recv().unwrap()).collect();
    assert_eq!(lengths, vec![before; lengths.len()], "a commit wrote the log back");

    let begun = Instant::now();
    while file.metadata().unwrap().len() == before {
        assert!(begun.elapsed() < Duration::from_secs(WAIT_S), "the log is not written back");
        thread::sleep(CHECKPOINT_PAUSE);
    }

    let long = move |connection: &Connection| insert(connection, &"x".repeat(20 << 20));
    let committed = queue_write(&worker, long);
    let length = queue_look(&worker, &file).recv().unwrap();
    assert_eq!(committed.recv().unwrap(), Ok(()));
    assert!(length > 20 << 20, "a long log is left as it is");
}
