//! What guards and daemon say to each other: the guards one JSON object a line, the daemon one byte an order.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use host::ExitStatus;
use rules::guard::Armament;
use serde::{Deserialize, Serialize};

/// A process, by number and the moment it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) pid: u32,
    pub(crate) start_time_ticks: u64,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Started {
    pub(crate) server: Named,
    /// The second guard, which the server and all that it starts hang below.
    pub(crate) second: Named,
    pub(crate) armament: Armament,
}

/// What a guard did at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    /// The server's exit code, if it ended by itself.
    pub(crate) code: Option<i32>,
    /// The signal that ended the server.
    pub(crate) signal: Option<i32>,
    /// Processes besides the server that a guard killed.
    pub(crate) killed: usize,
    /// From seeing the end to nothing being left below, in microseconds.
    pub(crate) took_us: u64,
}

impl Ended {
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.code.map(ExitStatus::Code).or_else(|| self.signal.map(ExitStatus::Signal))
    }
}

/// A word of a guard's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Said {
    /// The server runs.
    Started(Started),
    /// It does not, and never will.
    Failed(String),
    /// The tree was ended.
    Ended(Ended),
}

impl Said {
    /// Says it; nobody may listen any more.
    pub(super) fn say(&self, mut daemon: &UnixStream) {
        let said: io::Result<()> = serde_json::to_vec(self).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            daemon.write_all(&line)
        });
        drop(said);
    }
}

/// An order of the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// SIGTERM to the server's group.
    Terminate,
    /// End the tree.
    End,
}

impl Order {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::End => b'e',
        }
    }

    /// Whatever is not understood ends the tree.
    pub(super) const fn from_byte(byte: u8) -> Self {
        if byte == Self::Terminate.byte() { Self::Terminate } else { Self::End }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn words_are_lines_and_orders_bytes() {
        let (guard, mut daemon) = UnixStream::pair().expect("pair");
        let ended = Said::Ended(Ended { code: None, signal: Some(9), killed: 3, took_us: 20_000 });
        ended.say(&guard);
        Said::Failed("no\nsuch".to_owned()).say(&guard);
        drop(guard);
        let mut text = String::new();
        daemon.read_to_string(&mut text).expect("read");
        let read: Vec<Said> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(read, [ended, Said::Failed("no\nsuch".to_owned())]);
        for order in [Order::Terminate, Order::End] {
            assert_eq!(Order::from_byte(order.byte()), order);
        }
        assert_eq!(Order::from_byte(b'?'), Order::End);
    }

    #[test]
    fn how_the_server_ended_is_told() {
        let ended = |code, signal| Ended { code, signal, killed: 0, took_us: 0 }.status();
        assert_eq!(ended(Some(3), None), Some(ExitStatus::Code(3)));
        assert_eq!(ended(None, Some(9)), Some(ExitStatus::Signal(9)));
        assert_eq!(ended(None, None), None);
    }
}
