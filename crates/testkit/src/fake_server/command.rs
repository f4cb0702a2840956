//! Running one approved command for real, with nothing left when it is cut off.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Bytes of output that an observation holds.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;
/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A command with a process group of its own, which is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The group id stays taken until the child is reaped below.
        kill_process_group(Pid::from_child(&self.0), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// Runs it and answers its output and exit code. Cancelling the future kills it.
pub(super) async fn run(command: &str, directory: &Path) -> io::Result<(String, i32)> {
    let mut output: File = tempfile::tempfile()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(directory).process_group(0).stdin(Stdio::null());
    shell.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut running = Running(shell.spawn()?);
    let code = loop {
        if let Some(status) = running.0.try_wait()? {
            break status.code().unwrap_or(-1);
        }
        tokio::time::sleep(LOOK).await;
    };
    output.rewind()?;
    let mut bytes = Vec::new();
    output.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).trim_end().to_owned(), code))
}
