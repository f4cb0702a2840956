//! The configuration file through the crate's public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod common;
mod load;
mod mistakes;
