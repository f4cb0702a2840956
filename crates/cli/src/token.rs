//! Reading the token that the daemon is asked with.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use api_types::ExitCode;
use http::HeaderValue;
use rustix::fs::OFlags;

use crate::failure::Failure;

/// Most bytes of a token file.
const MAX_TOKEN_BYTES: u64 = 4_096;

/// Reads the token and makes the header of it. The open file is checked, not its path: regular, this user's, and closed to
/// everybody else.
pub(crate) fn authorization(path: &Path) -> Result<HeaderValue, Failure> {
    let refuse = |why: String| {
        Failure::new(ExitCode::NotPermitted, "token_unreadable", format!("the token file {}: {why}", path.display()))
            .hint("the daemon makes the owner's token at its first start; another one is named with --token-file or GATEPOST_TOKEN_FILE")
    };
    // Non-blocking, so that a pipe in its place cannot hold us.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file =
        OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| refuse(error.to_string()))?;
    let about = file.metadata().map_err(|error| refuse(error.to_string()))?;
    if !about.is_file() {
        return Err(refuse("not a regular file".to_owned()));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("belongs to another user".to_owned()));
    }
    if about.mode() & 0o077 != 0 {
        return Err(refuse("others may read it; `chmod 600` it".to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_BYTES + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    let token = text.trim_end_matches(['\n', '\r']);
    let fits =
        !token.is_empty() && token.len() as u64 <= MAX_TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(refuse("does not hold one line with a token".to_owned()));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| refuse("holds characters no token has".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}
