//! The scripted model, a hostile fake Agent Server and test tools.
//!
//! The shipped binary links [`model`] alone, for `gatepost demo`. What takes a guard out ([`guards`]) makes texts that only
//! the tests' own binaries are given.

pub mod chaos;
pub mod daemon;
mod failure;
pub mod fake_server;
pub mod guards;
mod marks;
pub mod model;
mod random;
pub mod soak;
pub mod verdict;

pub use failure::{Doing, Failure, Outcome};
