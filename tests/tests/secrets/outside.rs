//! Where a key must not be: looked at from the outside, as root.

use crate::memory;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Base64 of a text that stands somewhere inside a longer one depends on where it stands: three beginnings.
const BASE64_SHIFTS: usize = 3;

/// Secrets by name, in every form in which they are looked for.
pub(crate) struct Secrets {
    forms: Vec<(String, Vec<u8>)>,
    /// Whether any form begins with this byte.
    begins: [bool; 256],
}

impl Secrets {
    /// These names and values.
    pub(crate) fn new(secrets: &[(&str, &str)]) -> Self {
        let mut forms = Vec::new();
        for (name, value) in secrets {
            assert!(value.len() >= 16, "{name} is too short to be looked for");
            forms.push(((*name).to_owned(), value.as_bytes().to_vec()));
            for shift in 0..BASE64_SHIFTS {
                forms.push((format!("{name}, base64"), base64_core(value.as_bytes(), shift)));
            }
            if let Some(bytes) = unhex(value) {
                forms.push((format!("{name}, bytes"), bytes));
            }
        }
        let mut begins = [false; 256];
        forms.iter().for_each(|(_, form)| begins[usize::from(form[0])] = true);
        Self { forms, begins }
    }

    /// Which of them stand in these bytes.
    pub(crate) fn in_bytes(&self, bytes: &[u8]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (at, byte) in bytes.iter().enumerate() {
            if self.begins[usize::from(*byte)] {
                let here = self.forms.iter().filter(|(_, form)| bytes[at..].starts_with(form));
                found.extend(here.map(|(name, _)| name.clone()));
            }
        }
        found
    }

    /// Where any of them stands in the environment or the arguments of any process.
    pub(crate) fn in_processes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut read = 0;
        for pid in all_pids() {
            for file in ["environ", "cmdline"] {
                let path = format!("/proc/{pid}/{file}");
                // One that ended meanwhile, or a thread of the kernel.
                let Ok(bytes) = fs::read(&path) else { continue };
                read += usize::from(!bytes.is_empty());
                found.extend(self.in_bytes(&bytes).into_iter().map(|name| format!("{name} in {path}")));
            }
        }
        assert!(read > 4, "only {read} environments and argument lists could be read");
        found
    }

    /// Where any of them stands in a file below a directory; links are not followed.
    pub(crate) fn in_files(&self, directory: &Path, left_out: &[PathBuf]) -> Vec<String> {
        let mut found = Vec::new();
        each_file(directory, &mut |path| {
            if left_out.iter().any(|other| other == path) {
                return;
            }
            // One that was removed meanwhile.
            let Ok(bytes) = fs::read(path) else { return };
            found.extend(self.in_bytes(&bytes).into_iter().map(|name| format!("{name} in {}", path.display())));
        });
        found
    }

    /// Which of them stand in the memory of a process.
    pub(crate) fn in_memory(&self, pid: u32) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        memory::each_piece(pid, |piece| found.extend(self.in_bytes(piece)));
        found
    }
}

/// Files that a user owns in a directory that all users share, and below those of its directories.
pub(crate) fn owned_by(user: u32, shared: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(shared).unwrap().flatten();
    entries.filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user)).map(|entry| entry.path()).collect()
}

fn all_pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect()
}

/// How many regular files there are below a directory.
pub(crate) fn count_files(directory: &Path) -> usize {
    let mut count = 0;
    each_file(directory, &mut |_| count += 1);
    count
}

fn each_file(path: &Path, look: &mut dyn FnMut(&Path)) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if metadata.is_file() {
        look(path);
    } else if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            each_file(&entry.path(), look);
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (text.len().is_multiple_of(2)).then(|| (0..text.len()).step_by(2).map(pair).collect())?
}

/// The digits of base64 that depend on the value alone when it begins `shift` bytes into a group of three.
fn base64_core(value: &[u8], shift: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let skip = (BASE64_SHIFTS - shift) % BASE64_SHIFTS;
    let whole = value[skip..].chunks_exact(3);
    let group = |chunk: &[u8]| {
        let bits = u32::from(chunk[0]) << 16 | u32::from(chunk[1]) << 8 | u32::from(chunk[2]);
        [18, 12, 6, 0].map(|place| DIGITS[(bits >> place & 63) as usize])
    };
    whole.flat_map(group).collect()
}

#[test]
fn a_secret_is_found_in_each_of_its_forms() {
    let secrets = Secrets::new(&[("key", "00112233445566778899aabbccddeeff")]);
    let plain = BTreeSet::from(["key".to_owned()]);
    assert_eq!(secrets.in_bytes(b"0x00112233445566778899aabbccddeeff0"), plain);
    assert!(secrets.in_bytes(b"00112233445566778899aabbccddeef").is_empty());
    let bytes: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
    assert_eq!(secrets.in_bytes(&[&b"a"[..], &bytes, b"b"].concat()), BTreeSet::from(["key, bytes".to_owned()]));
    // Of "x", "xy" and "" before the value.
    for encoded in [
        "eDAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZm",
        "eHkwMDExMjIzMzQ0NTU2Njc3ODg5OWFhYmJjY2RkZWVmZg==",
        "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=",
    ] {
        assert_eq!(secrets.in_bytes(encoded.as_bytes()), BTreeSet::from(["key, base64".to_owned()]), "{encoded}");
    }
}
