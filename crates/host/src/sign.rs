//! The daemon's own signing key, and random words.

use std::io;
use std::path::Path;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::secure_fs::{self, SecureFsError};

/// Larger than any PKCS#8 document of an Ed25519 key.
const MAX_KEY_FILE_BYTES: u64 = 1024;
/// Upper bound of [`random_hex`]; nothing needs more, and a wrong argument must not allocate without bound.
const MAX_RANDOM_BYTES: usize = 1024;

/// Why a signing key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The key file cannot be used.
    #[error(transparent)]
    File(#[from] SecureFsError),
    /// The file holds something that is no Ed25519 key.
    #[error("{path} holds no Ed25519 key in PKCS#8 form: restore it, or move it away to have a new key made")]
    NotAKey {
        /// The key file.
        path: std::path::PathBuf,
    },
    /// The kernel gave no randomness.
    #[error("the kernel gave no randomness for a new key")]
    NoRandomness,
}

/// The signature does not belong to this message and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not match the message and the key")]
pub struct BadSignature;

/// An Ed25519 key pair. Its file holds PKCS#8, mode 0600.
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SigningKey(…)")
    }
}

impl SigningKey {
    /// Reads the key of `path`, or makes a new one there when the file does not exist.
    ///
    /// # Errors
    /// When the file is not private, is no key, or cannot be written.
    pub fn load_or_create(path: &Path) -> Result<Self, SignError> {
        match secure_fs::read_private(path, MAX_KEY_FILE_BYTES) {
            Ok(document) => Self::from_pkcs8(path, &document),
            Err(error) if error.is_not_found() => {
                let random = ring::rand::SystemRandom::new();
                let document = Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| SignError::NoRandomness)?;
                secure_fs::write_private_new(path, document.as_ref())?;
                Self::from_pkcs8(path, document.as_ref())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The signature (64 bytes) of `message`.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// The public key (32 bytes) to verify with.
    #[must_use]
    pub fn public_key(&self) -> Vec<u8> {
        self.pair.public_key().as_ref().to_vec()
    }

    fn from_pkcs8(path: &Path, document: &[u8]) -> Result<Self, SignError> {
        let pair = Ed25519KeyPair::from_pkcs8(document).map_err(|_| SignError::NotAKey { path: path.to_path_buf() })?;
        Ok(Self { pair })
    }
}

/// Checks a signature made by [`SigningKey::sign`].
///
/// # Errors
/// [`BadSignature`] when key, message and signature do not belong together or have the wrong size.
pub fn verify(public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
    UnparsedPublicKey::new(&ED25519, public_key).verify(message, signature).map_err(|_| BadSignature)
}

/// Fills `buffer` with the kernel's randomness.
///
/// # Errors
/// When the kernel gives none.
pub fn random_bytes(buffer: &mut [u8]) -> io::Result<()> {
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), buffer)
        .map_err(|_| io::Error::other("the kernel gave no randomness"))
}

/// `count_bytes` random bytes (at most 1024) as lower-case hex digits, two a byte.
///
/// # Errors
/// When the kernel gives no randomness, or more than 1024 bytes are asked for.
pub fn random_hex(count_bytes: usize) -> io::Result<String> {
    if count_bytes > MAX_RANDOM_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "at most 1024 random bytes can be asked for"));
    }
    let mut raw = zeroize::Zeroizing::new(vec![0_u8; count_bytes]);
    random_bytes(&mut raw)?;
    // Sized at once: growing would leave copies of a secret behind.
    let mut text = String::with_capacity(count_bytes * 2);
    for byte in raw.iter() {
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_signs_the_same_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        let first = SigningKey::load_or_create(&path).unwrap();
        let second = SigningKey::load_or_create(&path).unwrap();
        assert_eq!(first.public_key(), second.public_key());
        assert_eq!(first.public_key().len(), 32);
        let signature = first.sign(b"head");
        assert_eq!(signature, second.sign(b"head"));
        assert_eq!(verify(&first.public_key(), b"head", &signature), Ok(()));
        assert_eq!(verify(&first.public_key(), b"tail", &signature), Err(BadSignature));
        assert_eq!(verify(b"short", b"head", &signature), Err(BadSignature));
        assert_eq!(format!("{first:?}"), "SigningKey(…)");
    }

    #[test]
    fn a_file_that_is_no_key_is_named_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        secure_fs::write_private_new(&path, b"not a key").unwrap();
        let error = SigningKey::load_or_create(&path).unwrap_err();
        assert!(matches!(error, SignError::NotAKey { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"not a key");
    }

    #[test]
    fn random_words_are_bounded() {
        assert_eq!(random_hex(16).unwrap().len(), 32);
        assert_eq!(random_hex(1025).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
