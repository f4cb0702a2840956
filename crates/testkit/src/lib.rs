//! The scripted model, a hostile fake Agent Server and test tools.
//!
//! The shipped binary links [`model`] alone, for `gatepost demo`. Nothing here switches a guard off.

pub mod daemon;
mod failure;
pub mod fake_server;
pub mod model;

pub use failure::{Doing, Failure, Outcome};
