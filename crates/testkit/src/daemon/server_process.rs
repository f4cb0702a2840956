//! What a running server's process tells: its port, and the guards above it.

use crate::failure::{Doing, Failure, Outcome};
use crate::processes;
use std::fs;

/// The port that a server was started with, which stands in its arguments.
///
/// # Errors
/// When there is no such process, or it names no port.
pub fn server_port(server: u32) -> Outcome<u16> {
    let arguments = fs::read(format!("/proc/{server}/cmdline")).doing("the server is gone")?;
    let mut words = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy).skip_while(|word| word != "--port");
    words.nth(1).and_then(|port| port.parse().ok()).ok_or_else(|| Failure::new("the server names no port"))
}

/// The guards of a server's tree, the outer one first: its parent's parent, and its parent. `None` when one of them is gone.
#[must_use]
pub fn guards_of(server: u32) -> Option<[u32; 2]> {
    let parent = |pid| processes::stat(pid).filter(|stat| stat.runs()).map(|stat| stat.parent);
    let second = parent(server)?;
    Some([parent(second)?, second])
}
