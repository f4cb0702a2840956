//! A pseudo-terminal with a program in it: what its screen shows, what a person types, and how it was left.

#![expect(clippy::unwrap_used, reason = "a terminal that cannot be had ends the test")]

use crate::wait::{LIMIT, wait_until};
use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::tcgetattr;
use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a terminal is told to go to its other screen and back.
const OTHER_SCREEN: &str = "\x1b[?1049h";
const FIRST_SCREEN: &str = "\x1b[?1049l";
/// How often the one who reads looks whether it is to go on.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A terminal of this many rows and columns, and the program in it, which is killed with it.
pub struct Terminal {
    pty: Arc<Pty>,
    // Held, so that the terminal can be looked at when the program has ended.
    _pts: Pts,
    child: Child,
    seen: Arc<Seen>,
    reader: Option<JoinHandle<()>>,
    modes: String,
}

struct Seen {
    screen: Mutex<vt100::Parser>,
    bytes: Mutex<Vec<u8>>,
    held: AtomicBool,
    ended: AtomicBool,
}

/// How a program ended, and what it left.
#[derive(Debug)]
pub struct Left {
    /// Its exit status.
    pub status: ExitStatus,
    /// All that it wrote.
    pub bytes: String,
    /// The screen at the end.
    pub screen: String,
    /// The terminal's modes, which [`Left::assert_as_found`] compares.
    modes: [String; 2],
    cursor_hidden: bool,
    bracketed_paste: bool,
}

impl Terminal {
    /// Starts a program in a new terminal.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(command: std::process::Command, rows: u16, columns: u16) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let modes = modes_of(&pty);
        let child = Command::from(command).spawn_borrowed(&pts).unwrap();
        let pty = Arc::new(pty);
        let seen = Arc::new(Seen {
            screen: Mutex::new(vt100::Parser::new(rows, columns, 0)),
            bytes: Mutex::new(Vec::new()),
            held: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let (read, shared) = (pty.clone(), seen.clone());
        let reader = std::thread::spawn(move || shared.read(&read));
        Self { pty, _pts: pts, child, seen, reader: Some(reader), modes }
    }

    /// The screen now.
    #[must_use]
    pub fn screen(&self) -> String {
        self.seen.screen.lock().unwrap().screen().contents()
    }

    /// Waits until these words stand on the screen.
    ///
    /// # Panics
    /// When they do not in time.
    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        let mut last = String::new();
        let found = || {
            last = self.screen();
            last.contains(words).then_some(())
        };
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_until(words, LIMIT, found)));
        assert!(waited.is_ok(), "{words:?} did not come to stand on\n{}", self.screen());
    }

    /// Types, all at once.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn write(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).unwrap();
    }

    /// Makes the terminal another size, as a window that is pulled.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.pty.resize(Size::new(rows, columns)).unwrap();
        self.seen.screen.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    /// Takes nothing of what the program writes from now on, as over a link that hangs.
    pub fn hold(&self) {
        self.seen.held.store(true, Ordering::SeqCst);
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    #[track_caller]
    pub fn wait_end(mut self) -> Left {
        let status = wait_until("the program to end", LIMIT, || self.child.try_wait().unwrap());
        let modes = [self.modes.clone(), modes_of(&self.pty)];
        self.seen.held.store(false, Ordering::SeqCst);
        self.stop_reading();
        let parser = self.seen.screen.lock().unwrap();
        let screen = parser.screen();
        Left {
            status,
            bytes: String::from_utf8_lossy(&self.seen.bytes.lock().unwrap()).into_owned(),
            screen: screen.contents(),
            modes,
            cursor_hidden: screen.hide_cursor(),
            bracketed_paste: screen.bracketed_paste(),
        }
    }

    /// Takes the terminal away from the program, as a window that is closed; its exit status.
    ///
    /// # Panics
    /// When it does not end in time.
    #[track_caller]
    pub fn take_away(mut self) -> ExitStatus {
        self.stop_reading();
        let (pty, pts) = open().unwrap();
        // What is replaced is closed.
        self.pty = Arc::new(pty);
        self._pts = pts;
        wait_until("the program to end", LIMIT, || self.child.try_wait().unwrap())
    }

    fn stop_reading(&mut self) {
        self.seen.ended.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.stop_reading();
    }
}

impl Seen {
    fn read(&self, pty: &Pty) {
        let mut buffer = [0; 4096];
        loop {
            let mut watched = [PollFd::new(pty, PollFlags::IN)];
            let ready = !self.held.load(Ordering::SeqCst)
                && poll(&mut watched, Some(&LOOK)).is_ok()
                && watched[0].revents().contains(PollFlags::IN);
            if !ready {
                // What was written before the end has been read then.
                if self.ended.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::yield_now();
                continue;
            }
            match (&mut &*pty).read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    self.bytes.lock().unwrap().extend_from_slice(&buffer[..read]);
                    self.screen.lock().unwrap().process(&buffer[..read]);
                }
            }
        }
    }
}

/// The modes in words: all of them but the speeds.
fn modes_of(pty: &Pty) -> String {
    let modes = tcgetattr(pty).unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes, modes.special_codes
    )
}

impl Left {
    /// The terminal is as it was before the program took it over, which it did.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn assert_as_found(&self) {
        let [before, after] = &self.modes;
        assert_eq!(before, after, "the terminal's modes are others now");
        let (taken, left) = (self.bytes.rfind(OTHER_SCREEN), self.bytes.rfind(FIRST_SCREEN));
        assert!(taken.is_some() && taken < left, "the other screen was not left: {:?}", self.bytes);
        assert!(!self.cursor_hidden && !self.bracketed_paste, "cursor or paste are not as they were: {:?}", self.bytes);
    }
}
