//! The console without a terminal: what keys and replies lead to, and what the screen then shows.

mod decisions;
mod desk;
mod screens;
mod showing;
