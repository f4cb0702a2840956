//! Installs, starts, watches and stops the owned Agent Server. Knows no HTTP.

mod children;
pub mod confine;
pub mod guard;
pub mod install;
pub mod launch;
pub mod own;
#[cfg(any(target_os = "macos", test))]
pub mod seatbelt;
