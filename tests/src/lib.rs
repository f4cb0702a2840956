//! Shared pieces of the end-to-end tests: a daemon with its model and its server, and sessions driven as a client does.
//!
//! Every helper ends the test with what it saw when something is not as expected, and every wait is bounded.

mod changed_contract;
mod faked;
mod locked_tool;
mod marker;
mod scenario;
mod scene;
mod session;
mod small_disk;
mod terminal;
mod typed;
mod user_manager;
mod wait;

pub use changed_contract::changed_contract;
pub use faked::Faked;
pub use locked_tool::{install_step, locked_tool};
pub use marker::Marker;
pub use scenario::Scenarios;
pub use scene::Scene;
pub use session::{Session, refusal_code};
pub use small_disk::{SmallDisk, in_own_mounts};
pub use terminal::{Left, Terminal};
pub use testkit::daemon::{ServerLog, UpstreamRequest};
pub use typed::typed;
pub use user_manager::UserManager;
pub use wait::{LIMIT, SETTLE, wait_until};
