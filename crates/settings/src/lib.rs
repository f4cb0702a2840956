//! The configuration file as validated types, and where gatepost keeps its files.
//!
//! [`Settings::load`] reads one TOML file over the defaults and reports **every** mistake of it at once, each with its
//! key and line. Unknown keys are refused. No value of the file is ever repeated in a message, and no secret stands in
//! [`Settings`]: the model's key is read from its own file when it is asked for, with [`Settings::read_model_key`].
//!
//! The process environment is not looked at; what matters of it comes in [`Sources`].

mod document;
mod error;
mod granted;
mod load;
mod model;
mod nearest;
mod paths;
mod report;
mod sections;
mod text;

pub use error::SettingsError;
pub use load::{MAX_CONFIG_BYTES, Settings};
pub use model::{ApiKey, DEFAULT_TOOLS, MAX_MODEL_KEY_BYTES, Model, ModelSource, SUB_AGENT_TOOLS};
pub use paths::{Paths, Sources};
pub use report::Mistake;
pub use sections::{AgentServer, Approval, Confinement, DEFAULT_VERSION, Events, Log, LogFormat, Root, Workspaces};
