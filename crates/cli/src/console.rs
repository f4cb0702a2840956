//! `gatepost console`: a full-screen view of sessions, events and what waits for a decision.
//!
//! [`model`] and [`update`] hold what happens, [`view`] what is drawn, both without clock, terminal or socket. Around them stand
//! the keyboard, the screen and the requests to the daemon, each over a bounded channel.

mod input;
mod keyboard;
mod keys;
mod model;
mod requests;
mod run;
mod screen;
mod text;
mod update;
mod view;

pub(crate) use run::run;
pub use screen::Screen;

#[cfg(test)]
mod tests;
