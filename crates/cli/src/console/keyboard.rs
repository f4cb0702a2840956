//! The keyboard: a thread that reads what is typed and says which stage stood on the screen when it was.

use std::io::{self, stdin};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::input::{Decoder, Input};

/// How long after an escape the rest of what a key sends may take over a slow link.
const ESCAPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const READ_BYTES: usize = 4_096;
/// Most inputs that wait to be taken.
const MAX_WAITING: usize = 256;

/// What the thread says.
#[derive(Debug)]
pub(super) enum Typed {
    /// This, while that stage stood on the screen.
    Input(Input, u64),
    /// The terminal is gone.
    Gone,
}

/// The running thread; it ends when this is dropped.
pub(super) struct Keyboard {
    told: Arc<Told>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

struct Told {
    /// The stage that stands on the screen.
    stage: AtomicU64,
    ended: AtomicBool,
}

impl Keyboard {
    pub(super) fn start() -> io::Result<(Self, mpsc::Receiver<Typed>)> {
        // Close-on-exec, on every system.
        let (woken, wake) = io::pipe()?;
        let (woken, wake) = (OwnedFd::from(woken), OwnedFd::from(wake));
        rustix::io::ioctl_fionbio(&woken, true)?;
        rustix::io::ioctl_fionbio(&wake, true)?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let told = Arc::new(Told { stage: AtomicU64::new(0), ended: AtomicBool::new(false) });
        let shared = told.clone();
        let thread = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            let gone =
                Reader { told: &shared, woken: &woken, sender: &sender, stage: 0, decoder: Decoder::new() }.read();
            if gone.is_err() {
                sender.blocking_send(Typed::Gone).ok();
            }
        })?;
        Ok((Self { told, wake, thread: Some(thread) }, receiver))
    }

    /// This stage was drawn. What was typed until now belongs to the stage before, also what nobody has read yet.
    pub(super) fn stage_stands(&self, stage: u64) {
        self.told.stage.store(stage, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // A full pipe wakes as well.
        rustix::io::write(&self.wake, &[0]).ok();
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.told.ended.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

struct Reader<'a> {
    told: &'a Told,
    woken: &'a OwnedFd,
    sender: &'a mpsc::Sender<Typed>,
    /// The stage of what is read now.
    stage: u64,
    decoder: Decoder,
}

impl Reader<'_> {
    /// Reads until it is told to end; an error when the terminal is gone.
    fn read(mut self) -> io::Result<()> {
        while !self.told.ended.load(Ordering::SeqCst) {
            let wait = self.decoder.is_undecided().then_some(&ESCAPE_WAIT);
            let (typed, woken, waited) = self.wait(wait)?;
            // Taken before reading: whatever can be read then was typed before the new stage was told of.
            let next = woken.then(|| self.told.stage.load(Ordering::SeqCst));
            if typed {
                self.take()?;
            }
            if waited {
                let inputs = self.decoder.nothing_follows();
                self.send(inputs)?;
            }
            if let Some(next) = next {
                self.drain()?;
                self.stage = next;
            }
        }
        Ok(())
    }

    /// Waits for something typed or a wake-up; whether it was one, the other, or neither in time.
    fn wait(&self, timeout: Option<&Timespec>) -> io::Result<(bool, bool, bool)> {
        let stdin = stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(self.woken, PollFlags::IN)];
        match poll(&mut watched, timeout) {
            Ok(0) => return Ok((false, false, true)),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok((false, false, false)),
            Err(error) => return Err(error.into()),
        }
        let [typed, woken] = watched.map(|watched| watched.revents());
        if typed.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let woken = woken.contains(PollFlags::IN);
        if woken {
            rustix::io::read(self.woken, &mut [0; 64]).ok();
        }
        Ok((typed.contains(PollFlags::IN), woken, false))
    }

    /// Reads all that was typed.
    fn drain(&mut self) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Bounded, though nobody types for ever.
        for _ in 0..READ_BYTES {
            let stdin = stdin();
            let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
            if !matches!(poll(&mut watched, Some(&now)), Ok(1..)) {
                break;
            }
            self.take()?;
        }
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        match rustix::io::read(stdin(), &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                let inputs = self.decoder.feed(bytes.get(..read).unwrap_or_default());
                self.send(inputs)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&self, inputs: Vec<Input>) -> io::Result<()> {
        for input in inputs {
            self.sender.blocking_send(Typed::Input(input, self.stage)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Ok(())
    }
}
