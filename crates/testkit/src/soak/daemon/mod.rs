//! Sequences against a daemon: everything goes through gatepost, as its clients do it.

mod operations;
mod sequence;
mod settle;
mod stage;

pub(crate) use sequence::is_quiet;
pub(super) use sequence::play;
pub(super) use stage::Stage;
