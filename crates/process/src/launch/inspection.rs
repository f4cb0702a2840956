//! What the start-up module says of the process that it runs in.

use std::net::Ipv4Addr;

use serde::Deserialize;

/// A listening socket of the server process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// `inet`, `inet6` or `unix`.
    pub family: String,
    /// As the kernel's table writes it: for `inet`, hexadecimal address and port.
    pub address: String,
}

impl Listener {
    /// For `inet`, the address and port.
    #[must_use]
    pub fn ipv4(&self) -> Option<(Ipv4Addr, u16)> {
        let (address, port) = self.address.split_once(':').filter(|_| self.family == "inet")?;
        // The table holds the address as a number in the machine's own byte order.
        let address = u32::from_str_radix(address, 16).ok()?.to_ne_bytes();
        Some((Ipv4Addr::from(address), u16::from_str_radix(port, 16).ok()?))
    }
}

/// Facts about the server process, taken when asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// It repeats this start's nonce.
    pub nonce_matches: bool,
    /// Its process id.
    pub pid: u32,
    /// Others of the same user may read it.
    pub dumpable: bool,
    /// Every listening socket it holds.
    pub listeners: Vec<Listener>,
    /// The latch stands before every way to run an action.
    pub latch: bool,
    /// Every process that it starts goes through the wrapper, and tools within it through a confined thread.
    pub door: bool,
    /// Plugins, hooks, agent definitions and skill commands of the workspace are not loaded.
    pub ambient_plugins_dropped: bool,
}

impl Inspection {
    /// Exactly one listening socket is there: the one on 127.0.0.1 at that port.
    #[must_use]
    pub fn listens_only_on(&self, port: u16) -> bool {
        matches!(self.listeners.as_slice(), [only] if only.ipv4() == Some((Ipv4Addr::LOCALHOST, port)))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawInspection {
    nonce: String,
    pid: u32,
    dumpable: i64,
    listeners: Vec<Listener>,
    latch: bool,
    #[serde(default)]
    door: bool,
    ambient_plugins: String,
}

impl RawInspection {
    /// What it says of the server of this start.
    pub(crate) fn read(self, nonce: &str) -> Inspection {
        Inspection {
            nonce_matches: self.nonce == nonce,
            pid: self.pid,
            dumpable: self.dumpable != 0,
            listeners: self.listeners,
            latch: self.latch,
            door: self.door,
            ambient_plugins_dropped: self.ambient_plugins == "dropped",
        }
    }
}
