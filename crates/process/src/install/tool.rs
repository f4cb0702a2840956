//! Running one installation tool: bounded time, bounded memory, its own process group, nothing left when it fails.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::children;

/// Lines of a tool's output that an error repeats.
const TAIL_LINES: usize = 30;
/// Bytes of one line that are kept.
const LINE_BYTES: usize = 500;
/// Bytes of standard output that are kept for those who read an answer from it.
const ANSWER_BYTES: usize = 64 * 1024;
/// Output pieces that may wait to be looked at.
const QUEUE: usize = 64;
/// How often a running tool is looked at.
const LOOK_MS: u64 = 50;
/// How often a running tool is reported.
const REPORT_MS: u64 = 1_000;
/// How long the pipes may stay open after the tool ended (a process it left may hold them).
const DRAIN_MS: u64 = 2_000;

/// What to run.
pub(crate) struct Tool<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) cwd: &'a Path,
    /// Becomes standard input. A locked file here keeps its lock until the tool has ended, even if we die first.
    pub(crate) stdin: Option<File>,
    pub(crate) limit: Duration,
}

/// How it ended.
pub(crate) struct ToolOutput {
    pub(crate) status: ExitStatus,
    /// Standard output, the first 64 KiB.
    pub(crate) answer: String,
    /// The last lines of both streams.
    pub(crate) tail: String,
}

/// Why it has no end of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} took longer than {limit_s} s and was ended; its last words:\n{tail}")]
    TooLong { program: String, limit_s: u64, tail: String },
    #[error("cannot wait for {program}: {source}")]
    Wait { program: String, source: io::Error },
}

enum Piece {
    Answer(Vec<u8>),
    Words(Vec<u8>),
}

#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    part: Vec<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' || byte == b'\r' {
                self.end_line();
            } else if self.part.len() < LINE_BYTES {
                self.part.push(byte);
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.part).trim().to_owned();
        self.part.clear();
        if line.is_empty() {
            return;
        }
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn last(&self) -> &str {
        self.lines.back().map_or("", String::as_str)
    }

    fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn follow(mut source: impl Read + Send + 'static, wrap: fn(Vec<u8>) -> Piece, out: mpsc::SyncSender<Piece>) {
    std::thread::spawn(move || {
        let mut buffer = [0_u8; 8 * 1024];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    if out.send(wrap(buffer[..count].to_vec())).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
}

struct Ears {
    pieces: mpsc::Receiver<Piece>,
    answer: Vec<u8>,
    tail: Tail,
}

impl Ears {
    /// Take what arrives within `wait`; false once both pipes are closed.
    fn listen(&mut self, wait: Duration) -> bool {
        match self.pieces.recv_timeout(wait) {
            Ok(Piece::Answer(bytes)) => {
                let room = ANSWER_BYTES.saturating_sub(self.answer.len());
                self.answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.tail.push(&bytes);
                true
            }
            Ok(Piece::Words(bytes)) => {
                self.tail.push(&bytes);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(wait.min(Duration::from_millis(LOOK_MS)));
                false
            }
        }
    }
}

/// Run the tool to its end. `report` hears its last line about once a second.
pub(crate) fn run(tool: Tool<'_>, report: &dyn Fn(&str)) -> Result<ToolOutput, ToolError> {
    let program = tool.program.display().to_string();
    let mut command = Command::new(tool.program);
    command
        .args(&tool.args)
        .env_clear()
        .envs(tool.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))
        .current_dir(tool.cwd)
        .stdin(tool.stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = children::spawn_known(|| command.spawn(), Child::id)
        .map_err(|source| ToolError::Start { program: program.clone(), source })?;
    let pid = child.id();
    let ended = attend(&mut child, &program, tool.limit, report);
    children::forget(pid);
    ended
}

fn attend(child: &mut Child, program: &str, limit: Duration, report: &dyn Fn(&str)) -> Result<ToolOutput, ToolError> {
    let (sender, pieces) = mpsc::sync_channel(QUEUE);
    if let Some(stdout) = child.stdout.take() {
        follow(stdout, Piece::Answer, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        follow(stderr, Piece::Words, sender.clone());
    }
    drop(sender);
    let mut ears = Ears { pieces, answer: Vec::new(), tail: Tail::default() };
    let began = Instant::now();
    let mut reported = Instant::now();
    let status = loop {
        ears.listen(Duration::from_millis(LOOK_MS));
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(source) => return Err(ToolError::Wait { program: program.to_owned(), source }),
        }
        if began.elapsed() > limit {
            end_group(child);
            let tail = ears.tail.text();
            return Err(ToolError::TooLong { program: program.to_owned(), limit_s: limit.as_secs(), tail });
        }
        if reported.elapsed() > Duration::from_millis(REPORT_MS) {
            reported = Instant::now();
            report(ears.tail.last());
        }
    };
    let drained = Instant::now();
    while drained.elapsed() < Duration::from_millis(DRAIN_MS) && ears.listen(Duration::from_millis(LOOK_MS)) {}
    ears.tail.end_line();
    Ok(ToolOutput { status, answer: String::from_utf8_lossy(&ears.answer).into_owned(), tail: ears.tail.text() })
}

/// End a tool that is still running (so its pid, and with it its group id, is still its own), and reap it.
fn end_group(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
        && let Err(error) = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL)
    {
        tracing::warn!(%error, "an installation tool could not be ended");
    }
    if let Err(error) = child.wait() {
        tracing::warn!(%error, "an installation tool could not be reaped");
    }
}

/// Words of a command line.
pub(crate) fn words<const N: usize>(words: [&dyn AsRef<OsStr>; N]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_os_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Result<ToolOutput, ToolError> {
        let args = words([&"-c", &script]);
        let env = [(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
        let (program, cwd) = (Path::new("/bin/sh"), Path::new("/"));
        run(Tool { program, args, env: &env, cwd, stdin: None, limit: Duration::from_millis(limit_ms) }, &|_| {})
    }

    #[test]
    fn the_answer_the_last_words_and_the_status_are_kept() {
        let output =
            shell("echo answer; i=0; while [ $i -lt 100 ]; do echo line$i >&2; i=$((i+1)); done; exit 3", 10_000)
                .expect("runs");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.answer, "answer\n");
        assert!(output.tail.contains("line98\nline99"), "{}", output.tail);
        assert!(output.tail.lines().count() <= TAIL_LINES);
    }

    #[test]
    fn a_flood_is_not_kept() {
        let output = shell("yes 0123456789 | head -c 5000000", 20_000).expect("runs");
        assert_eq!(output.answer.len(), ANSWER_BYTES);
        assert!(output.tail.len() <= TAIL_LINES * (LINE_BYTES + 1));
    }

    #[test]
    fn a_tool_that_hangs_is_ended_with_its_group() {
        let dir = tempfile::tempdir().expect("dir");
        let mark = dir.path().join("pid");
        let script = format!("sleep 60 & echo $! > {}; echo waiting; wait", mark.display());
        let error = shell(&script, 500).err().expect("too long");
        assert!(error.to_string().contains("waiting"), "{error}");
        let pid = std::fs::read_to_string(&mark).expect("pid").trim().to_owned();
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
        });
        assert!(gone, "the background process is still there");
    }

    #[test]
    fn a_missing_program_is_named() {
        let env = [];
        let (program, cwd) = (Path::new("/nonexistent/tool"), Path::new("/"));
        let tool = Tool { program, args: vec![], env: &env, cwd, stdin: None, limit: Duration::from_secs(1) };
        assert!(run(tool, &|_| {}).err().expect("fails").to_string().contains("/nonexistent/tool"));
    }
}
