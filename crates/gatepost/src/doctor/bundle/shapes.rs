//! Secrets that nobody told of, known by their look: keys of well-known services, passwords in addresses, private keys.

use rules::redact::REDACTED;

/// What keys of well-known services, and signed tokens, begin with.
const BEGINNINGS: [&str; 17] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "npm_",
    "pypi-",
    "AKIA",
    "AIza",
    "eyJ",
];
/// Shorter than this is a word.
const MIN_KEY_CHARS: usize = 16;

/// The text without them.
pub(super) fn hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c: char| !is_of_key(c)).unwrap_or(rest.len());
        let (key, after) = rest.split_at(word);
        let is_key = key.len() >= MIN_KEY_CHARS && BEGINNINGS.iter().any(|beginning| key.starts_with(beginning));
        out.push_str(if is_key { REDACTED } else { key });
        rest = after;
        if let Some(address) = rest.strip_prefix("://") {
            let end = address.find(|c: char| c.is_whitespace() || "/\"'<>\\".contains(c)).unwrap_or(address.len());
            out.push_str("://");
            rest = address;
            if let Some(at) = address[..end].rfind('@') {
                out.push_str(REDACTED);
                rest = &address[at..];
            }
        } else if let Some(other) = rest.chars().next() {
            out.push(other);
            rest = &rest[other.len_utf8()..];
        }
    }
    out
}

fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// Follows private keys over the lines of a text.
#[derive(Debug, Default)]
pub(super) struct PrivateKeys {
    is_within: bool,
}

impl PrivateKeys {
    /// Whether this line belongs to one.
    pub(super) fn hide(&mut self, line: &str) -> bool {
        let (begins, ends) = (line.contains("-----BEGIN") && line.contains("PRIVATE KEY"), line.contains("-----END"));
        let belongs = self.is_within || begins;
        self.is_within = belongs && !ends;
        belongs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_of_addresses_go_and_words_stay() {
        for (text, shown) in [
            ("used sk-planted-0123456789abcd, twice", "used «redacted», twice"),
            ("{\"t\":\"ghp_planted0123456789abcd\"}", "{\"t\":\"«redacted»\"}"),
            ("eyJhbGciOi.eyJzdWIi.planted", "«redacted»"),
            ("clone https://me:planted@host.example/x and on", "clone https://«redacted»@host.example/x and on"),
            ("redis://:pl@nted@h ü", "redis://«redacted»@h ü"),
        ] {
            assert_eq!(hidden(text), shown);
        }
        for text in ["", "sk-short", "https://host.example/a@b", "a task-0123456789abcdef", "12:30 ü «secret:x»", "://"]
        {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn a_private_key_goes_with_all_its_lines() {
        let mut keys = PrivateKeys::default();
        let lines =
            ["a", "-----BEGIN OPENSSH PRIVATE KEY-----", "cGxhbnRlZA==", "-----END OPENSSH PRIVATE KEY-----", "b"];
        assert_eq!(lines.map(|line| keys.hide(line)), [false, true, true, true, false]);
        assert!(keys.hide("-----BEGIN RSA PRIVATE KEY-----\\ncGxh\\n-----END RSA PRIVATE KEY-----") && !keys.hide("c"));
        assert!(!keys.hide("-----BEGIN CERTIFICATE-----"));
    }
}
