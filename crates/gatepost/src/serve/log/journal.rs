//! The service manager's journal, by its native protocol: one datagram an entry, with fields.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tracing::Level;

use super::entry::Entry;
use super::text;

/// Where it listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Says which socket of its own a service's standard error is.
const VARIABLE: &str = "JOURNAL_STREAM";
/// Before the names of our own fields.
const PREFIX: &str = "GATEPOST_";
/// Longest name of a field that it takes.
const MAX_NAME_BYTES: usize = 64;

/// A connection to it.
pub(super) struct Journal {
    socket: UnixDatagram,
}

impl Journal {
    /// When standard error is the journal's.
    pub(super) fn of_standard_error() -> Option<Self> {
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        let stream = std::env::var(VARIABLE).ok()?;
        if !is_stream(&stream, stderr.dev(), stderr.ino()) {
            return None;
        }
        Self::connect(Path::new(SOCKET)).ok()
    }

    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // A journal that does not read must not stop the daemon.
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Sends it.
    ///
    /// # Errors
    /// When it is not taken at once.
    pub(super) fn send(&self, entry: &Entry) -> io::Result<()> {
        self.socket.send(&datagram(entry)).map(drop)
    }
}

fn is_stream(variable: &str, device: u64, inode: u64) -> bool {
    variable.split_once(':').is_some_and(|(left, right)| left.parse() == Ok(device) && right.parse() == Ok(inode))
}

/// As syslog counts.
pub(super) fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

fn datagram(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |name: &str, value: &str| {
        // With its length: a value that holds a newline begins no other field.
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
        out.extend_from_slice(value.as_bytes());
        out.push(b'\n');
    };
    put("MESSAGE", &text::said(entry));
    put("PRIORITY", &priority(entry.level).to_string());
    put("SYSLOG_IDENTIFIER", "gatepost");
    put("TARGET", &entry.target);
    if let Some(file) = &entry.file {
        put("CODE_FILE", file);
    }
    if let Some(line) = entry.line {
        put("CODE_LINE", &line.to_string());
    }
    for fields in entry.spans.iter().map(|(_, fields)| fields).chain([&entry.fields]) {
        for (field, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            put(&name_of(field), &value);
        }
    }
    out
}

/// A field's name may hold capital letters, digits and underscores.
fn name_of(field: &str) -> String {
    let plain =
        field.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' });
    PREFIX.chars().chain(plain).take(MAX_NAME_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The fields of a datagram, as the journal reads them.
    fn read(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let name = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = usize::try_from(u64::from_le_bytes(bytes[end + 1..end + 9].try_into().unwrap())).unwrap();
            let value = &bytes[end + 9..end + 9 + length];
            fields.push((name, String::from_utf8(value.to_vec()).unwrap()));
            assert_eq!(bytes[end + 9 + length], b'\n');
            bytes = &bytes[end + 10 + length..];
        }
        fields
    }

    #[test]
    fn an_entry_arrives_with_its_fields_and_no_value_makes_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listening = UnixDatagram::bind(&path).unwrap();
        let object = |value: Value| value.as_object().unwrap().clone();
        let entry = Entry {
            level: Level::WARN,
            target: "session::act".to_owned(),
            file: Some("act.rs".to_owned()),
            line: Some(7),
            message: "it failed".to_owned(),
            fields: object(json!({"error": "a\nPRIORITY=0\n", "count": 3})),
            spans: vec![("request".to_owned(), object(json!({"request_id": "abc"})))],
        };
        Journal::connect(&path).unwrap().send(&entry).unwrap();
        let mut bytes = [0; 4096];
        let length = listening.recv(&mut bytes).unwrap();
        let fields = read(&bytes[..length]);
        let value = |name: &str| {
            let values: Vec<&str> =
                fields.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect();
            assert_eq!(values.len(), 1, "{name}: {fields:?}");
            values[0]
        };
        assert!(value("MESSAGE").contains("session::act: it failed"));
        assert!(!value("MESSAGE").contains('\n'));
        assert_eq!((value("PRIORITY"), value("CODE_FILE"), value("CODE_LINE")), ("4", "act.rs", "7"));
        assert_eq!((value("GATEPOST_REQUEST_ID"), value("GATEPOST_COUNT")), ("abc", "3"));
        assert_eq!(value("GATEPOST_ERROR"), "a\nPRIORITY=0\n");
    }

    #[test]
    fn only_the_journal_s_own_standard_error_is_it() {
        assert!(is_stream("8:1234", 8, 1234));
        for variable in ["", "8", "8:", "8:1235", "9:1234", "8:1234:1", "x:y"] {
            assert!(!is_stream(variable, 8, 1234), "{variable}");
        }
    }

    #[test]
    fn names_are_what_the_journal_takes() {
        assert_eq!(name_of("request_id"), "GATEPOST_REQUEST_ID");
        assert_eq!(name_of("a.b-ü"), "GATEPOST_A_B__");
        assert_eq!(name_of(&"x".repeat(99)).len(), MAX_NAME_BYTES);
    }
}
