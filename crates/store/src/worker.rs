//! The thread that owns a file's connection, and its bounded queue.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::{StoreError, Trouble};

/// Jobs that may wait; callers block beyond it.
const QUEUE_JOBS: usize = 256;
/// Writes that share one commit.
const BATCH_JOBS: usize = 64;
/// Seconds a caller waits for room in the queue, and again for its answer.
const WAIT_S: u64 = 30;
/// After this many commits the log is written back into the file, once nothing was asked for the pause. Writing back syncs both,
/// so whoever asks meanwhile waits for the disk.
const CHECKPOINT_COMMITS: u32 = 100;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(50);
/// Pause between two looks at a full queue.
const FULL_PAUSE: Duration = Duration::from_millis(2);

/// A write: applied inside a shared transaction, answered when that is committed.
trait Write: Send {
    /// Does it, or undoes it alone. A failure is returned for the case that it undid the whole transaction.
    fn apply(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError>;
    /// Answers the caller.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Whether damage of the file was met since it was opened, whether or not anyone still waited for that answer.
#[derive(Clone, Default)]
struct Damage(Arc<AtomicBool>);

impl Damage {
    fn note<T>(&self, outcome: &Result<T, StoreError>) {
        if outcome.as_ref().is_err_and(|error| error.trouble() == Trouble::Damaged) {
            self.0.store(true, Ordering::Release);
        }
    }

    fn was_met(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct PendingWrite<T, F> {
    operation: Option<F>,
    outcome: Result<T, StoreError>,
    damage: Damage,
    reply: SyncSender<Result<T, StoreError>>,
}

impl<T, F> Write for PendingWrite<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn apply(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        let Some(operation) = self.operation.take() else { return Ok(()) };
        self.outcome = in_savepoint(transaction, operation);
        match &self.outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        // What an operation read may be the work of another one of the batch: without the commit no outcome stands.
        let outcome = committed.and(self.outcome);
        self.damage.note(&outcome);
        // A caller that no longer waits is no fault.
        self.reply.send(outcome).ok();
    }
}

fn in_savepoint<T>(
    transaction: &mut Transaction<'_>,
    operation: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Dropped without commit, a savepoint undoes what stands in it.
    let savepoint = transaction.savepoint()?;
    let value = operation(&savepoint)?;
    savepoint.commit()?;
    Ok(value)
}

enum Job {
    Write(Box<dyn Write>),
    Read(Box<dyn FnOnce(&Connection) + Send>),
    Close(SyncSender<Result<(), StoreError>>),
}

/// Handle of the thread; dropping it lets the queued jobs finish and closes the file.
pub(crate) struct Worker {
    path: PathBuf,
    damage: Damage,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Hands an opened and checked file to a thread of its own.
    pub(crate) fn start(name: &str, path: PathBuf, connection: Connection) -> Result<Self, StoreError> {
        let (jobs, queue) = sync_channel(QUEUE_JOBS);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(connection, &queue))
            .map_err(|error| StoreError::io(&path, &error))?;
        Ok(Self { path, damage: Damage::default(), jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does a write, all of it or nothing; returns once it is committed.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = sync_channel(1);
        let (damage, outcome) = (self.damage.clone(), Err(StoreError::Stopped));
        let pending = PendingWrite { operation: Some(operation), outcome, damage, reply };
        self.submit(Job::Write(Box::new(pending)))?;
        self.await_answer(&answer)
    }

    /// Reads what is committed.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = sync_channel(1);
        let damage = self.damage.clone();
        self.submit(Job::Read(Box::new(move |connection| {
            let outcome = operation(connection);
            damage.note(&outcome);
            reply.send(outcome).ok();
        })))?;
        self.await_answer(&answer)
    }

    /// Closes the file after all that was asked before; what is asked afterwards is refused as [`StoreError::Stopped`].
    /// Also closed, and told as damaged, is a file whose damage was met while it was open.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        let (reply, answer) = sync_channel(1);
        self.submit(Job::Close(reply))?;
        self.await_answer(&answer)?;
        if self.damage.was_met() {
            let reason = "damage was met while it was in use".to_owned();
            return Err(StoreError::Damaged { path: self.path.clone(), reason });
        }
        Ok(())
    }

    /// Notes damage that an answer tells of without being an error.
    pub(crate) fn note_damage(&self, reason: &str) {
        self.damage.note::<()>(&Err(StoreError::damaged(reason)));
    }

    fn submit(&self, mut job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Stopped)?;
        let deadline = Instant::now() + Duration::from_secs(WAIT_S);
        loop {
            job = match jobs.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(StoreError::Stopped),
                Err(TrySendError::Full(_)) if Instant::now() >= deadline => {
                    return Err(StoreError::Overloaded { waited_s: WAIT_S });
                }
                Err(TrySendError::Full(returned)) => returned,
            };
            thread::sleep(FULL_PAUSE);
        }
    }

    fn await_answer<T>(&self, answer: &Receiver<Result<T, StoreError>>) -> Result<T, StoreError> {
        match answer.recv_timeout(Duration::from_secs(WAIT_S)) {
            Ok(outcome) => outcome.map_err(|error| error.located(&self.path)),
            Err(RecvTimeoutError::Timeout) => Err(StoreError::TimedOut { waited_s: WAIT_S }),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::Stopped),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // The file's lock must be free when this returns. A thread that panicked has closed it as well.
            thread.join().ok();
        }
    }
}

fn run(mut connection: Connection, queue: &Receiver<Job>) {
    let mut held = None;
    let mut commits: u32 = 0;
    loop {
        let pause = (commits >= CHECKPOINT_COMMITS).then_some(CHECKPOINT_PAUSE);
        let job = match held.take().map_or_else(|| next_job(queue, pause), Next::Job) {
            Next::Job(job) => job,
            Next::Paused => {
                write_back(&connection);
                commits = 0;
                continue;
            }
            Next::Gone => return,
        };
        match job {
            Job::Read(operation) => operation(&connection),
            Job::Write(first) => {
                held = write_batch(&mut connection, first, queue);
                commits = commits.saturating_add(1);
            }
            Job::Close(reply) => {
                reply.send(connection.close().map_err(|(_, error)| error.into())).ok();
                return;
            }
        }
    }
}

/// What comes next.
enum Next {
    Job(Job),
    /// Nothing, for as long as was asked about.
    Paused,
    /// Nothing any more.
    Gone,
}

/// Waits for a job, at most for the pause if there is one.
fn next_job(queue: &Receiver<Job>, pause: Option<Duration>) -> Next {
    match pause {
        None => queue.recv().map_or(Next::Gone, Next::Job),
        Some(pause) => match queue.recv_timeout(pause) {
            Ok(job) => Next::Job(job),
            Err(RecvTimeoutError::Timeout) => Next::Paused,
            Err(RecvTimeoutError::Disconnected) => Next::Gone,
        },
    }
}

/// Writes the log back into the file.
fn write_back(connection: &Connection) {
    // What is committed stands in the log all the same, and it is tried again after as many commits.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_row| Ok(())).ok();
}

/// Applies the writes that wait, up to the batch's size, in one transaction; returns what ended the batch.
fn write_batch(connection: &mut Connection, first: Box<dyn Write>, queue: &Receiver<Job>) -> Option<Job> {
    let mut batch = Vec::new();
    let mut held = None;
    let committed = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Err(error) => {
            batch.push(first);
            Err(StoreError::from(error))
        }
        Ok(mut transaction) => {
            let mut next = Some(first);
            let mut undone = None;
            while let Some(mut write) = next.take() {
                let applied = write.apply(&mut transaction);
                batch.push(write);
                // A full disk and the like undo the whole transaction, with the earlier writes of the batch.
                if transaction.is_autocommit() {
                    undone = Some(applied.err().unwrap_or(StoreError::Stopped));
                    break;
                }
                if batch.len() < BATCH_JOBS {
                    match queue.try_recv() {
                        Ok(Job::Write(write)) => next = Some(write),
                        Ok(other @ (Job::Read(_) | Job::Close(_))) => held = Some(other),
                        Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
                    }
                }
            }
            match undone {
                Some(error) => Err(error),
                None => transaction.commit().map_err(StoreError::from),
            }
        }
    };
    for write in batch {
        write.finish(committed.clone());
    }
    held
}

#[cfg(test)]
mod tests;
