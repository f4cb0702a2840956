//! The terminal: taken over, drawn on, and given back as it was found.

use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind, Write, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::panic;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetsid, tcgetwinsize, tcsetattr, ttyname,
};

use super::model::{Shown, Size, State};
use super::view;

/// Alternate screen, bracketed paste.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?2004h\x1b[2J\x1b[H";
/// The same back, with the cursor shown and no attribute left.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l";
/// How long a terminal that takes nothing may hold up its being given back.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// How often a writer that waits for the terminal looks whether it is to stop.
const LOOK_MS: i64 = 100;

/// What is needed to give the terminal back, while it is taken.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);
static HOOK: Once = Once::new();

struct Taken {
    modes: Termios,
    writer: Writer,
}

/// Gives the terminal back, once.
fn give_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Taken { modes, mut writer }) = taken {
        // A terminal that is gone, or takes nothing, is left as it is: nobody looks at it.
        writer.write_within(LEAVE, LEAVE_WITHIN).ok();
        // What was typed for the console is not for whoever reads next.
        tcflush(stdin(), QueueSelector::IFlush).ok();
        tcsetattr(stdin(), OptionalActions::Now, &modes).ok();
    }
}

/// The terminal while it is taken over. It is given back when this is dropped, and before the words of a panic are printed, of
/// whichever thread.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Frames>>,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Screen {
    /// Takes over the terminal that standard input and output are.
    ///
    /// # Errors
    /// When they are no terminal, or it cannot be taken over; it is as before then.
    pub fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |about| {
                give_back();
                before(about);
            }));
        });
        let stop = Arc::new(AtomicBool::new(false));
        let writer = Writer::open(stop.clone())?;
        let modes = tcgetattr(stdin())?;
        let mut raw = modes.clone();
        raw.make_raw();
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Taken { modes, writer: writer.clone()? });
        // From here on it is given back, also when the next line fails.
        let given_back = GiveBack;
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        writer.clone()?.write_all(ENTER)?;
        let options = TerminalOptions { viewport: Viewport::Fixed(area(size()?)) };
        let terminal = Terminal::with_options(CrosstermBackend::new(Frames { writer, frame: Vec::new() }), options)?;
        std::mem::forget(given_back);
        Ok(Self { terminal, stop })
    }

    /// Set from elsewhere, it ends every wait for a terminal that takes nothing.
    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Draws; says what stands on the screen now.
    pub(super) fn draw(&mut self, state: &State) -> io::Result<Shown> {
        if TAKEN.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(Error::other("a part of the console failed"));
        }
        let wanted = area(state.size);
        if self.terminal.get_frame().area() != wanted {
            self.terminal.resize(wanted)?;
        }
        let mut shown = Shown::default();
        self.terminal.draw(|frame| shown = view::draw(frame, state))?;
        Ok(shown)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        give_back();
    }
}

fn area(size: Size) -> Rect {
    Rect::new(0, 0, size.columns, size.rows)
}

/// The terminal's size now.
pub(super) fn size() -> io::Result<Size> {
    let size = tcgetwinsize(stdout())?;
    // A terminal that says nothing of its size is taken for the usual one.
    if size.ws_col == 0 || size.ws_row == 0 {
        return Ok(Size::LEAST);
    }
    Ok(Size { columns: size.ws_col, rows: size.ws_row })
}

/// Writes to the terminal, and waits for one that takes nothing only until it is told to stop.
struct Writer {
    file: File,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Opens the terminal anew, so that its not blocking is this file's alone and not the shell's. One that belongs to another
    /// user, as after `su`, can be opened by the session that it controls, by its other name.
    fn open(stop: Arc<AtomicBool>) -> io::Result<Self> {
        let name = ttyname(stdout(), Vec::new())?;
        let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
        let open = |path: &Path| OpenOptions::new().write(true).custom_flags(flags).open(path);
        let file = match open(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))) {
            // Answered for the session's own terminal only.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && tcgetsid(stdout()).is_ok() => {
                open(Path::new("/dev/tty"))?
            }
            opened => opened?,
        };
        Ok(Self { file, stop })
    }

    fn clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, stop: self.stop.clone() })
    }

    fn write_within(&mut self, bytes: &[u8], within: Duration) -> io::Result<()> {
        let begun = Instant::now();
        self.write_until(bytes, || begun.elapsed() > within)
    }

    fn write_until(&mut self, mut bytes: &[u8], over: impl Fn() -> bool) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if over() {
                        return Err(Error::new(ErrorKind::TimedOut, "the terminal takes nothing"));
                    }
                    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
                    poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&wait)).ok();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stop = self.stop.clone();
        self.write_until(bytes, || stop.load(Ordering::Relaxed))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Holds a frame together until it is whole.
struct Frames {
    writer: Writer,
    frame: Vec<u8>,
}

impl Write for Frames {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        self.writer.write_all(&frame)
    }
}
