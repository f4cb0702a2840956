//! Each canary failing, end to end: its code is to be seen, nothing goes out that could make the agent act, and what can
//! only prevent stays available.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test file end the test as the tests do")]

mod canaries {
    pub(super) mod blocked;
    pub(super) mod channel;
    pub(super) mod installation;
    pub(super) mod later;
    pub(super) mod policy_on_disk;
    pub(super) mod starts;
    pub(super) mod workspaces;
}
