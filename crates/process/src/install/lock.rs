//! The locked requirements: what may be installed, and the digest that names an install.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// A lock file that does not pin everything by hash.
#[derive(Debug, thiserror::Error)]
#[error("the locked requirements cannot be used: line {line} {what}")]
pub struct LockError {
    /// 1-based line where the requirement begins.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// One pin: `name==version`, possibly with alternatives for other platforms.
pub(crate) type Pins = BTreeMap<String, Vec<String>>;

/// The names of the Python packaging standard are compared lower case, with runs of `-`, `_`, `.` as one `-`.
pub(crate) fn normalize(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.extend(character.to_lowercase());
        }
    }
    out
}

/// Read a lock file; every requirement must be pinned to one version and carry SHA-256 hashes, and nothing but
/// requirements may stand in it (no index, no option).
pub(crate) fn parse(text: &str) -> Result<Pins, LockError> {
    let mut pins = Pins::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let mut whole = first.trim().to_owned();
        while let Some(head) = whole.strip_suffix('\\') {
            let next = lines.next().map_or("", |(_, next)| next.trim());
            whole = format!("{} {next}", head.trim_end());
        }
        if whole.is_empty() || whole.starts_with('#') {
            continue;
        }
        let fail = |what| LockError { line: index + 1, what };
        let mut parts = whole.split(" --hash=");
        let requirement = parts.next().unwrap_or_default();
        let hashes: Vec<&str> = parts.map(str::trim).collect();
        let is_sha256 = |hash: &&str| {
            hash.strip_prefix("sha256:")
                .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        if hashes.is_empty() || !hashes.iter().all(is_sha256) {
            return Err(fail("has no SHA-256 hash or another option"));
        }
        let pinned = requirement.split(';').next().unwrap_or_default().trim();
        let (name, version) = pinned.split_once("==").ok_or_else(|| fail("is not pinned with =="))?;
        let name = name.split('[').next().unwrap_or_default();
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+' | b'!'))
        };
        if !plain(name) || !plain(version) {
            return Err(fail("is not a plain name==version"));
        }
        pins.entry(normalize(name)).or_default().push(version.to_owned());
    }
    Ok(pins)
}

/// SHA-256 of a text, in lower-case hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The digest that names an install: of both lock files.
pub(crate) fn install_digest(requirements: &str, build_requirements: &str) -> String {
    digest(&format!("{}\n{}\n", digest(requirements), digest(build_requirements)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "--hash=sha256:233626748034896214de118f5cf5a319484ad2186705fd595219afee92237ccc";

    #[test]
    fn pins_with_markers_extras_and_several_hashes_are_read() {
        let text = format!(
            "# made by a tool\nA_b==1.0 \\\n    {HASH} \\\n    {HASH}\nc.d[x]==2 ; sys_platform == 'win32' \\\n    {HASH}\nc-d==3 {HASH}\n"
        );
        let pins = parse(&text).expect("parses");
        assert_eq!(pins["a-b"], ["1.0"]);
        assert_eq!(pins["c-d"], ["2", "3"]);
    }

    #[test]
    fn what_is_not_pinned_by_hash_is_refused() {
        for bad in [
            "a==1".to_owned(),
            format!("a>=1 {HASH}"),
            "--index-url https://example.invalid".to_owned(),
            format!("a @ https://example.invalid/a.whl {HASH}"),
            format!("-e . {HASH}"),
            "a==1 --hash=md5:00".to_owned(),
            format!("a==1 {HASH} --config-settings=x"),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_reviewed_locks_are_whole() {
        let requirements = include_str!("../../../../config/contracts/1.40.0/requirements.lock");
        let build = include_str!("../../../../config/contracts/1.40.0/build-requirements.lock");
        let pins = parse(requirements).expect("parses");
        for name in ["agent-server", "sdk", "tools", "workspace"] {
            assert_eq!(pins[&format!("openhands-{name}")], ["1.40.0"]);
        }
        assert!(pins.contains_key("func-timeout"));
        assert_eq!(parse(build).expect("parses").len(), 3);
        assert!(!requirements.contains("://") && !build.contains("://"), "a lock names no host");
        // Pip fails on such a marker wherever the kernel's release is no Python version, as most are.
        assert!(!requirements.contains("platform_release"), "a marker that pip cannot evaluate");
    }
}
