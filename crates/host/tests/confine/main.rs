//! The confinement with the reviewed policy, in both directions: what it forbids fails, and does not fail without the rule
//! that forbids it; what it grants works, and does not work without the rule that grants it.
//!
//! Confinement holds for a thread and what it starts, so each variant of the policy is tried in a thread of its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test file end the test as the tests do")]

#[path = "../common/mod.rs"]
mod common;

mod architecture;
mod calls;
mod files;
mod grants;
mod outside;
mod privileges;
mod stage;
