//! What root sees in the memory of a process: the only outside way to learn a session key, which is given to nobody.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Digits of a key.
const KEY_DIGITS: usize = 64;
/// More are not tried.
const MAX_CANDIDATES: usize = 1000;
/// Read at once.
const CHUNK_BYTES: usize = 1 << 20;
/// A longer region holds file pages or nothing at all.
const MAX_REGION_BYTES: u64 = 1 << 30;

/// Hands each readable piece of a process's memory to `look`; pieces overlap, so that nothing short is cut in two. Whether
/// anything could be read.
pub(crate) fn each_piece(pid: u32, mut look: impl FnMut(&[u8])) -> bool {
    let (Ok(table), Ok(memory)) =
        (fs::read_to_string(format!("/proc/{pid}/maps")), File::open(format!("/proc/{pid}/mem")))
    else {
        return false;
    };
    let mut any = false;
    let mut buffer = vec![0_u8; CHUNK_BYTES + 2 * KEY_DIGITS];
    for (begin, end) in table.lines().filter_map(region) {
        let mut at = begin;
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            let Ok(read) = memory.read_at(&mut buffer[..length], at) else { break };
            if read == 0 {
                break;
            }
            look(&buffer[..read]);
            any = true;
            at += CHUNK_BYTES as u64;
        }
    }
    any
}

fn region(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let readable = fields.next()?.starts_with('r');
    let special = line.ends_with("[vvar]") || line.ends_with("[vvar_vclock]") || line.ends_with("[vsyscall]");
    let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    (readable && !special && end - begin <= MAX_REGION_BYTES).then_some((begin, end))
}

/// Everything in a process's memory that looks like a key.
pub(crate) fn key_like(pid: u32) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let read = each_piece(pid, |piece| collect(piece, &mut found));
    assert!(read, "the memory of process {pid} cannot be read: is this root?");
    found
}

/// The same in bytes at hand.
pub(crate) fn key_like_in(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(bytes, &mut found);
    found
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Runs of exactly as many digits as a key has. One of them covers a multiple of its length, so only those are looked at.
fn collect(piece: &[u8], found: &mut BTreeSet<String>) {
    for at in (0..piece.len()).step_by(KEY_DIGITS) {
        if !is_digit(piece[at]) {
            continue;
        }
        let begin = piece[..at].iter().rposition(|byte| !is_digit(*byte)).map_or(0, |before| before + 1);
        let end = piece[at..].iter().position(|byte| !is_digit(*byte)).map_or(piece.len(), |after| at + after);
        if end - begin == KEY_DIGITS {
            found.insert(String::from_utf8_lossy(&piece[begin..end]).into_owned());
        }
    }
}

/// The status with which the server on this port answers a request with this key.
pub(crate) fn status_with_key(port: u16, key: &str) -> u16 {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!(
        "GET /api/conversations/count HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Session-API-Key: {key}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no reply: {reply}"))
}

/// The one text in the daemon's memory, hashes that everybody knows aside, that the server takes for its key.
pub(crate) fn session_key(daemon: u32, port: u16, public: &BTreeSet<String>) -> String {
    let candidates: BTreeSet<String> = key_like(daemon).difference(public).cloned().collect();
    assert!(candidates.len() <= MAX_CANDIDATES, "{} texts in the daemon's memory look like keys", candidates.len());
    let taken: Vec<&String> = candidates.iter().filter(|key| status_with_key(port, key) == 200).collect();
    assert_eq!(taken.len(), 1, "of {} texts in the daemon's memory, the server took {}", candidates.len(), taken.len());
    taken[0].clone()
}

#[test]
fn runs_of_exactly_a_keys_length_are_seen_wherever_they_stand() {
    let key = "0123456789abcdef".repeat(4);
    for before in [0, 1, 63, 64, 65, 200] {
        for (text, expected) in [(key.clone(), 1), (format!("{key}0"), 0), (key[1..].to_owned(), 0)] {
            let found = key_like_in(format!("{}{text}.", "-".repeat(before)).as_bytes());
            assert_eq!(found.len(), expected, "{before} {text}");
        }
    }
}
