//! Events from the server to readers: at once by the stream, in the order of the log in the end, whatever the stream and the
//! reads do. On the fake server, which can be made to do it.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod aside;
mod bench;
mod breaks;
mod faults;
mod floods;
mod readers;
mod refused;
mod requests;
mod rest;
mod retention;
mod stage;
