//! Sequences against the server itself: the gate is off, and whoever drives holds the session key. The latch alone decides
//! what runs: only what was approved is granted.

mod operations;
mod plan;
mod sequence;
mod settle;

pub(super) use plan::draw;
pub(super) use sequence::{Stage, play};
