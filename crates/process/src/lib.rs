//! Installs, starts, watches and stops the owned Agent Server. Knows no HTTP.

mod children;
pub mod confine;
pub mod install;
pub mod launch;
pub mod own;
