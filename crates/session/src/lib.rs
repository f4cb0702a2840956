//! The controller: one actor a session, and the only place that knows servers, contract and records together.
//!
//! [`Supervisor`] is what the API talks to; [`view`] is what it answers with. A session's conversation is read by
//! `sync`, what that means is drawn in `changes`, what may be done now is derived in `offer`, and each operation is
//! carried out below `operations` under the session's lock, with its receipt written before anything is sent.

mod act;
mod attestation;
mod audit;
mod bind;
mod changes;
mod clock;
mod closed;
mod confinement;
mod cursor;
mod events;
mod evidence;
mod frames;
mod generations;
mod intake;
mod known_secrets;
mod log;
mod mirror;
mod named_files;
mod offer;
mod operations;
mod profile;
mod reading;
mod records;
pub mod request;
mod rest;
mod resting_round;
mod room;
mod server;
mod server_canaries;
mod servers;
mod session;
mod sessions;
mod shared;
mod state;
mod status;
mod stream;
mod supervisor;
mod sync;
mod tokens;
mod tripped;
mod upstream;
pub mod view;
mod workspace;

pub use clock::{now_ms, rfc3339};
pub use confinement::not_proved_yet;
pub use known_secrets::KnownSecrets;
pub use shared::{Dependencies, OpenRecords};
pub use supervisor::{Supervisor, owner};
