//! The scripted model, a hostile fake Agent Server and test tools.
//!
//! The shipped binary links [`model`] alone, for `gatepost demo`. What takes a guard out ([`guards`]) makes texts that only
//! the tests' own binaries are given.

pub mod daemon;
mod failure;
pub mod fake_server;
pub mod guards;
pub mod model;
pub mod soak;

pub use failure::{Doing, Failure, Outcome};
