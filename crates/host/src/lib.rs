//! System calls, secrets and everything `unsafe`: the only crate that talks to the kernel directly.
//!
//! Linux is what is tested. The files under `macos/` compile for macOS and answer honestly what they cannot do; nothing
//! in them was ever run.
//!
//! | module | what it is for |
//! |---|---|
//! | [`secret`] | text that never shows itself and is wiped |
//! | [`secure_fs`] | private files and directories, checked on the open descriptor |
//! | [`lock`] | one holder at a time, across processes |
//! | [`sealed`], [`memory`] | setting content aside on disk, for this process alone; giving memory back |
//! | [`sign`] | an Ed25519 key of our own, random words |
//! | [`hygiene`] | hardening of the calling process |
//! | [`kernel`] | what the running kernel offers for confinement |
//! | [`confine`] | giving up for good what the agent's processes may not do |
//! | [`spawn`], [`child`] | starting a process, and holding on to it |
//! | [`guard`], [`cgroup`] | what a guard of a server's tree needs of the kernel |
//! | [`tree`], [`reap`] | ending what a dead process left behind |
//! | [`listener`], [`memfile`], [`control`] | descriptors to hand to a child |
//! | [`socket`], [`peer`] | the private Unix socket, and who is at its other end |
//! | [`abstract_socket`], [`terminal`] | sockets without a file and terminals, to try the confinement with |

pub mod cgroup;
pub mod child;
pub mod confine;
pub mod control;
mod io_util;
pub mod listener;
pub mod lock;
pub mod memory;
mod nameless;
pub mod sealed;
pub mod secret;
pub mod secure_fs;
pub mod sign;
pub mod socket;
pub mod spawn;

#[cfg(target_os = "linux")]
#[path = "linux"]
mod platform {
    pub mod abstract_socket;
    pub(crate) mod ancestry;
    pub(crate) mod below;
    pub(crate) mod child_setup;
    pub(crate) mod confine;
    pub mod guard;
    pub mod hygiene;
    pub mod kernel;
    pub mod memfile;
    pub mod peer;
    pub(crate) mod pidfd;
    pub(crate) mod procfs;
    pub mod reap;
    pub(crate) mod registry;
    pub mod terminal;
    pub mod tree;
}

#[cfg(not(target_os = "linux"))]
#[path = "macos"]
mod platform {
    pub mod abstract_socket;
    pub(crate) mod child_setup;
    pub mod guard;
    pub mod hygiene;
    pub mod kernel;
    pub mod memfile;
    pub mod peer;
    pub(crate) mod pidfd;
    pub mod reap;
    pub(crate) mod registry;
    pub mod terminal;
    pub mod tree;

    fn unsupported(what: &str) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::Unsupported, format!("{what} is not built for this system yet"))
    }
}

pub use platform::{abstract_socket, guard, hygiene, kernel, memfile, peer, reap, terminal, tree};

pub use child::{ChildProcess, ExitStatus, Signal};
pub use secret::Secret;
pub use spawn::{SpawnSpec, Spawner};
