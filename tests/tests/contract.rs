//! The Agent Server as the code relies on it: one suite of checks, run against the real server and the fake one.
//!
//! Both are launched as the daemon launches its own, the real one with the contract's start-up module. Requests that the
//! contract's client cannot express go out over a plain connection, so that what the real server does with them is known.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test file end the test as the tests do"
)]

mod contract {
    pub(super) mod branches;
    pub(super) mod conversations;
    pub(super) mod events;
    pub(super) mod identity;
    pub(super) mod latch;
    pub(super) mod life;
    pub(super) mod profiles;
    pub(super) mod stage;
    pub(super) mod steps;
    pub(super) mod stops;
    pub(super) mod stream;
    pub(super) mod suite;
    pub(super) mod talk;
    pub(super) mod upstream;
}

use contract::stage::{Kind, Stage};
use contract::suite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_server_is_as_the_code_relies_on_it() {
    suite::run(Stage::start(Kind::Real).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fake_server_is_as_the_code_relies_on_it() {
    suite::run(Stage::start(Kind::Fake).await).await;
}
