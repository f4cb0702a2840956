//! Bad input against a running daemon: each request and command line is refused with its status and code, and nothing
//! comes of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test file end the test as the tests do")]

#[path = "../../crates/api/tests/malformed/table.rs"]
mod table;

mod bad_input {
    pub(super) mod commands;
    pub(super) mod doctor;
    pub(super) mod exchange;
    pub(super) mod peers;
    pub(super) mod requests;
    pub(super) mod roles;
    pub(super) mod stage;
    pub(super) mod starts;
    pub(super) mod state;
}
