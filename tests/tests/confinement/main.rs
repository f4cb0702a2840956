//! The confinement wrapper as the shipped binary runs it, for an unprivileged user: what it hands on, when it executes
//! nothing, and that ordinary development works inside. Then the server whose every process goes through it, and the level
//! that is proved at its start.
//!
//! What the policy forbids and grants, rule by rule, is tried in `crates/host/tests/confine/`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod development;
mod door;
mod further;
mod hygiene;
mod levels;
mod peers;
mod refusals;
mod service;
mod stage;
mod wrapper;
