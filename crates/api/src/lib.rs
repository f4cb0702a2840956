//! HTTP/1.1 over a Unix socket: peer, bounds, parse, authenticate, then one call of the controller.
//!
//! A request passes, in this order: peer check before a byte is read ([`peer`]), connection and head bounds ([`server`]),
//! the route table ([`routes`]), the bearer token and the role, query and body in strict form, the catalog of `rules`.
//! Only then is the controller asked ([`backend::Backend`]). Nothing here decides what a session may do.

mod attempt;
pub mod backend;
mod body;
mod convert;
mod fields;
pub mod limits;
pub mod openapi;
pub mod peer;
mod query;
mod refusals;
mod reply;
mod request;
mod resource;
pub mod routes;
pub mod server;
mod service;
mod stall;
mod strict_json;
mod supervisor;

pub use backend::Backend;
pub use limits::Limits;
pub use openapi::document;
pub use peer::{PeerPolicy, PeerVerdict};
pub use resource::{audit_page, audit_verification};
pub use server::{ServeReport, serve};
