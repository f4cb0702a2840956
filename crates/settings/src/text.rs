//! What a text may be. Each check answers what the text must be, never what it was.

use std::path::{Component, Path, PathBuf};

/// An absolute path, or one that begins with `~/`.
pub(crate) fn path(text: &str, home: &Path) -> Result<PathBuf, String> {
    let wanted = || Err("an absolute path or one that begins with ~/, without `..`".to_owned());
    if text.len() > 4096 || text.contains(char::is_control) {
        return wanted();
    }
    let path = match text.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) => match rest.strip_prefix('/') {
            // `join` would take a second slash for a new root.
            Some(below) => home.join(below.trim_start_matches('/')),
            None => return wanted(),
        },
        None => PathBuf::from(text),
    };
    if !path.is_absolute() || path.components().any(|component| component == Component::ParentDir) {
        return wanted();
    }
    // Repeated and closing slashes and single dots go, so that equal paths are equal.
    Ok(path.components().collect())
}

/// A version such as `1.40.0`.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('.').collect();
    let plain = |part: &&str| {
        (1..=6).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    if parts.len() == 3 && parts.iter().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("a version of three numbers, such as \"1.40.0\"".to_owned())
    }
}

/// A model as the server's client library names it.
pub(crate) fn model_name(text: &str) -> Result<String, String> {
    if (1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("a model's name of 1 to 200 printable characters without spaces, such as \"provider/model\"".to_owned())
    }
}

/// A name of a tool.
pub(crate) fn tool_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("a tool's name of lower-case letters, digits and underscores".to_owned())
    }
}

/// A canonical UUID.
pub(crate) fn uuid(text: &str) -> Result<String, String> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| is_lower_hex(group)) {
        Ok(text.to_owned())
    } else {
        Err("a UUID in lower case with its four dashes".to_owned())
    }
}

/// A SHA-256 digest.
pub(crate) fn digest(text: &str) -> Result<String, String> {
    if text.len() == 64 && is_lower_hex(text) {
        Ok(text.to_owned())
    } else {
        Err("a digest of 64 lower-case hexadecimal digits".to_owned())
    }
}

/// What is logged: a level, or levels by target.
pub(crate) fn log_levels(text: &str) -> Result<String, String> {
    let is_level = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word);
    let is_target =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    let is_one = |part: &str| match part.split_once('=') {
        Some((target, level)) => is_target(target) && is_level(level),
        None => is_level(part),
    };
    if text.len() <= 1024 && text.split(',').all(is_one) {
        Ok(text.to_owned())
    } else {
        Err("off, error, warn, info, debug or trace, alone or by target, such as \"info,session=debug\"".to_owned())
    }
}

/// A name of a service credential: a file's name.
pub(crate) fn credential_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=255).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("the name of a credential: letters, digits, `.`, `_` and `-`, not beginning with a dot".to_owned())
    }
}

/// An address of a model's API. A user, password or query in it would be a secret in the wrong place.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let wanted = || Err("an http:// or https:// address without user, password, query or fragment".to_owned());
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else { return wanted() };
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\^`{|}".contains(&byte);
    if text.len() > 2000 || !text.bytes().all(plain) || rest.contains(['@', '?', '#']) {
        return wanted();
    }
    if is_authority(rest.split('/').next().unwrap_or_default()) { Ok(text.to_owned()) } else { wanted() }
}

/// A host, or an IPv6 address in brackets, with or without a port.
fn is_authority(authority: &str) -> bool {
    let (host_is_right, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let Some((address, after)) = inner.split_once(']') else { return false };
            (address.parse::<std::net::Ipv6Addr>().is_ok(), after)
        }
        None => {
            let (host, after) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (!host.is_empty(), after)
        }
    };
    let port_is_right = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
    host_is_right && port_is_right
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests;
