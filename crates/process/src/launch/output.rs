//! The server's output: read, redacted line by line, kept in a file of bounded size and, the last lines, in memory.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rules::redact::Redactor;
use rustix::event::{PollFd, PollFlags, poll};

/// The file's name in the data directory; the file before it has `.1` after that.
const LOG_NAME: &str = "server.log";
/// One file's size; there are two.
pub(crate) const LOG_BYTES: u64 = 4 * 1024 * 1024;
/// Lines in memory.
const TAIL_LINES: usize = 40;
/// A line as it arrives is kept up to here, and redacted whole: much longer than what is shown, so that no secret is cut
/// in two and missed.
const RAW_LINE_BYTES: usize = 64 * 1024;
/// A line as it is kept.
pub(crate) const LINE_BYTES: usize = 4 * 1024;

struct Shared {
    sink: Mutex<Sink>,
    tail: Mutex<VecDeque<String>>,
    /// No more output will come.
    ended: Mutex<bool>,
    end: Condvar,
}

/// The reader's other end. When the last one is dropped, the reader ends, although something still holds the pipe.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<Shared>,
    /// Its closing is what ends the reader, which so need not look by itself, again and again.
    _stop: Arc<PipeWriter>,
}

impl Output {
    /// Follow a pipe in a thread of its own.
    pub(crate) fn follow(pipe: PipeReader, data: &Path, redactor: Arc<Redactor>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            sink: Mutex::new(Sink::open(data, redactor)?),
            tail: Mutex::default(),
            ended: Mutex::new(false),
            end: Condvar::new(),
        });
        let (stopped, stop) = io::pipe()?;
        let mut writer = Writer { shared: Arc::clone(&shared), line: Vec::new() };
        std::thread::Builder::new().name("server-output".to_owned()).spawn(move || {
            writer.run(pipe, &stopped);
            let shared = writer.shared;
            *shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
            shared.end.notify_all();
        })?;
        Ok(Self { _stop: Arc::new(stop), shared })
    }

    /// From here on each line is redacted with these secrets and kept in that data directory.
    pub(crate) fn move_to(&self, data: &Path, redactor: Arc<Redactor>) -> io::Result<()> {
        let sink = Sink::open(data, redactor)?;
        *self.shared.sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
        Ok(())
    }

    /// The last lines, redacted.
    pub(crate) fn tail(&self) -> Vec<String> {
        self.shared.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Wait a bounded time for the last of the output. Blocks.
    pub(crate) fn drain(&self, wait: Duration) {
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // The answer does not matter: what has come by then is what there is.
        drop(self.shared.end.wait_timeout_while(ended, wait, |ended| !*ended));
    }
}

/// Where a line goes, and what is taken out of it before.
struct Sink {
    /// None once writing has failed; output is read on, so that the server never blocks on it.
    file: Option<LogFile>,
    redactor: Arc<Redactor>,
}

impl Sink {
    fn open(data: &Path, redactor: Arc<Redactor>) -> io::Result<Self> {
        Ok(Self { file: Some(LogFile::create(data.join(LOG_NAME))?), redactor })
    }

    /// The line as it is shown.
    fn take(&mut self, line: &[u8]) -> String {
        let (redacted, _) = self.redactor.redact_text(&String::from_utf8_lossy(line));
        let line = shown(&redacted);
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_line(&line)
        {
            tracing::warn!(%error, "the server's log cannot be written any more");
            self.file = None;
        }
        line
    }
}

struct Writer {
    shared: Arc<Shared>,
    line: Vec<u8>,
}

impl Writer {
    fn run(&mut self, mut pipe: PipeReader, stopped: &PipeReader) {
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            let mut waits = [PollFd::new(&pipe, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
            match poll(&mut waits, None) {
                // What has come by then is read.
                Ok(_) if waits[0].revents().is_empty() => break,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            }
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (piece, false),
            };
            let room = RAW_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = self.shared.sink.lock().unwrap_or_else(PoisonError::into_inner).take(&self.line);
        self.line.clear();
        let mut tail = self.shared.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// Bounded, and without characters that would play with a terminal.
fn shown(line: &str) -> String {
    let mut out = String::new();
    for character in line.trim_end().chars() {
        if out.len() >= LINE_BYTES {
            out.push('…');
            break;
        }
        if character.is_control() && character != '\t' {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

struct LogFile {
    path: PathBuf,
    file: File,
    written_bytes: u64,
}

impl LogFile {
    /// A new file; the one before is kept once.
    fn create(path: PathBuf) -> io::Result<Self> {
        let before = path.with_extension("log.1");
        match fs::rename(&path, before) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file, written_bytes: 0 })
    }

    fn write_line(&mut self, line: &str) -> io::Result<()> {
        let bytes = line.len() as u64 + 1;
        if self.written_bytes + bytes > LOG_BYTES {
            *self = Self::create(self.path.clone())?;
        }
        self.written_bytes += bytes;
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn followed(feed: impl FnOnce(&mut io::PipeWriter)) -> (tempfile::TempDir, Output) {
        let dir = tempfile::tempdir().expect("dir");
        let redactor = Redactor::new(vec![("session_key".to_owned(), SECRET.to_owned())]);
        let (reader, mut writer) = io::pipe().expect("pipe");
        let output = Output::follow(reader, dir.path(), Arc::new(redactor)).expect("follow");
        feed(&mut writer);
        drop(writer);
        output.drain(Duration::from_secs(20));
        (dir, output)
    }

    #[test]
    fn secrets_are_redacted_in_file_and_tail_also_across_reads() {
        let (dir, output) = followed(|pipe| {
            pipe.write_all(b"key is 0123456789abcdef").expect("write");
            std::thread::sleep(Duration::from_millis(50));
            pipe.write_all(b"0123456789abcdef, and \x1b[31mred\nlast without end").expect("write");
        });
        let text = fs::read_to_string(dir.path().join(LOG_NAME)).expect("log");
        assert_eq!(text, "key is «secret:session_key», and \\u{1b}[31mred\nlast without end\n");
        assert_eq!(output.tail().join("\n"), text.trim_end());
        assert_eq!(fs::metadata(dir.path().join(LOG_NAME)).expect("log").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_long_line_is_cut_after_it_was_redacted() {
        let (dir, output) = followed(|pipe| {
            let edge = "x".repeat(LINE_BYTES - 10);
            pipe.write_all(format!("{edge}{SECRET}{}\n", "y".repeat(200_000)).as_bytes()).expect("write");
            pipe.write_all(b"next\n").expect("write");
        });
        let text = fs::read_to_string(dir.path().join(LOG_NAME)).expect("log");
        assert!(!text.contains(&SECRET[..8]), "a part of the secret is left");
        assert_eq!(output.tail().len(), 2);
        assert!(output.tail()[0].len() < LINE_BYTES + 16);
        assert_eq!(output.tail()[1], "next");
    }

    #[test]
    fn a_flood_fills_two_files_and_no_more() {
        let (dir, output) = followed(|pipe| {
            let line = format!("{}\n", "z".repeat(1023)).repeat(64);
            for _ in 0..(3 * LOG_BYTES / (64 * 1024)) {
                pipe.write_all(line.as_bytes()).expect("write");
            }
        });
        let sizes: Vec<u64> = fs::read_dir(dir.path())
            .expect("dir")
            .map(|entry| entry.expect("entry").metadata().expect("data").len())
            .collect();
        assert_eq!(sizes.len(), 2, "{sizes:?}");
        assert!(sizes.iter().all(|&size| size <= LOG_BYTES), "{sizes:?}");
        assert_eq!(output.tail().len(), TAIL_LINES);
    }

    #[test]
    fn a_pipe_that_stays_open_does_not_keep_the_reader() {
        let dir = tempfile::tempdir().expect("dir");
        let (reader, mut writer) = io::pipe().expect("pipe");
        let output = Output::follow(reader, dir.path(), Arc::new(Redactor::new(vec![]))).expect("follow");
        let shared = Arc::clone(&output.shared);
        drop(output);
        let ended = shared.ended.lock().expect("lock");
        let (ended, _) = shared.end.wait_timeout_while(ended, Duration::from_secs(5), |ended| !*ended).expect("wait");
        assert!(*ended, "the reader still waits");
        // Other tests fork, and between fork and exec their children hold every descriptor.
        let closed = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            writer.write_all(b"x").is_err()
        });
        assert!(closed, "the pipe is still open");
    }
}
