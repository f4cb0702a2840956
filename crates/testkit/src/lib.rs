//! The scripted model, a hostile fake Agent Server, test tools, and the build of the package.
//!
//! The shipped binary links [`model`] alone, for `gatepost demo`. What takes a guard out ([`guards`]) makes texts that only
//! the tests' own binaries are given.

pub mod bench;
pub mod chaos;
pub mod daemon;
pub mod development;
pub mod escapes;
pub mod event_soak;
mod failure;
pub mod fake_server;
pub mod guards;
pub mod leftovers;
mod marks;
pub mod model;
pub mod package;
pub mod processes;
mod random;
pub mod soak;
mod talk;
pub mod verdict;

pub use failure::{Doing, Failure, Outcome};
