//! Starting processes: not built for macOS, where nothing ties a child's life to ours.

use std::io;

use crate::child::ChildProcess;
use crate::spawn::SpawnSpec;

pub(crate) fn prepare_thread() {}

pub(crate) fn start(spec: SpawnSpec) -> io::Result<ChildProcess> {
    drop(spec);
    Err(super::unsupported("starting an owned process"))
}
