//! Replies as text for people. Every string of a reply is made visible (`sanitize`) here, on its way into the text.

pub(crate) mod approval;
pub(crate) mod audit;
pub(crate) mod block;
mod canary;
pub(crate) mod event;
pub(crate) mod receipt;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod token;
