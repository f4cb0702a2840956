//! Reading the token that the daemon is asked with.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use api_types::ExitCode;
use bytes::Bytes;
use http::HeaderValue;
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// Most bytes of a token file.
const MAX_TOKEN_BYTES: usize = 4_096;
const SCHEME: &str = "Bearer ";

/// The file that a token is in, and where the token is kept while it is used.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
    keep: fn(String) -> Bytes,
}

impl TokenFile {
    /// This user's file, mode 0600, read at each request. `keep` takes over what is read: it is to keep it from being seen or
    /// swapped out, and to wipe it at last.
    #[must_use]
    pub fn new(path: PathBuf, keep: fn(String) -> Bytes) -> Self {
        Self { path, keep }
    }
}

/// Reads the token and makes the header of it. The open file is checked, not its path: regular, this user's, and closed to
/// everybody else.
pub(crate) fn authorization(TokenFile { path, keep }: &TokenFile) -> Result<HeaderValue, Failure> {
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
    // With room for all of it, so that nothing is moved and left behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(SCHEME.len() + MAX_TOKEN_BYTES + 2));
    bytes.extend_from_slice(SCHEME.as_bytes());
    file.take(MAX_TOKEN_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
    while bytes.last().is_some_and(|last| b"\n\r".contains(last)) {
        bytes.pop();
    }
    let token = &bytes[SCHEME.len()..];
    let fits = !token.is_empty() && token.len() <= MAX_TOKEN_BYTES && token.iter().all(u8::is_ascii_graphic);
    let text = String::from_utf8(std::mem::take(&mut *bytes)).ok().filter(|_| fits);
    let text = text.ok_or_else(|| refuse("does not hold one line with a token".to_owned()))?;
    let mut header =
        HeaderValue::from_maybe_shared(keep(text)).map_err(|_| refuse("holds characters no token has".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}
