//! Content that is set aside on disk to save memory, readable to this very process alone.
//!
//! The file has no name, and what it holds is encrypted with a key that only this process has: whoever reads the disk, now
//! or later, finds noise, and when the process ends nobody can read it any more.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::{Secret, io_util, nameless};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
/// What the seal adds.
const TAG_BYTES: usize = 16;

/// Encrypts what a process sets aside. One is good for some thousand million contents: each has a random nonce of 96 bits.
#[derive(Debug)]
pub struct SealingKey {
    hex: Secret,
}

/// Content that was set aside. Dropping it gives its room on the disk back.
#[derive(Debug)]
pub struct SetAside {
    file: File,
    nonce: [u8; NONCE_BYTES],
    sealed_bytes: usize,
}

impl SealingKey {
    /// A new key, which never leaves this process.
    ///
    /// # Errors
    /// When the kernel gives no randomness.
    pub fn new() -> io::Result<Self> {
        Ok(Self { hex: Secret::random_hex(KEY_BYTES)? })
    }

    /// Writes `content` to a file without a name in `directory`, which must be private. `about` says what it is; only who
    /// says the same can take it up.
    ///
    /// # Errors
    /// When the file cannot be made or written, as on a full disk.
    pub fn set_aside(&self, directory: &Path, about: &str, mut content: Vec<u8>) -> io::Result<SetAside> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("the kernel gave no randomness"))?;
        self.cipher()?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(about), &mut content)
            .map_err(|_| io::Error::other("the content is too large to be encrypted"))?;
        let file: OwnedFd = nameless::make(directory, "aside", &content)?;
        Ok(SetAside { file: file.into(), nonce, sealed_bytes: content.len() })
    }

    /// The content as it was set aside.
    ///
    /// # Errors
    /// When the file cannot be read, or is not as it was written.
    pub fn take_up(&self, aside: &SetAside, about: &str) -> io::Result<Vec<u8>> {
        let mut content = io_util::read_whole(&aside.file, aside.sealed_bytes)?;
        let nonce = Nonce::assume_unique_for_key(aside.nonce);
        self.cipher()?
            .open_in_place(nonce, Aad::from(about), &mut content)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "what was set aside is not as it was written"))?;
        content.truncate(content.len().saturating_sub(TAG_BYTES));
        Ok(content)
    }

    fn cipher(&self) -> io::Result<LessSafeKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        for (byte, digits) in key.iter_mut().zip(self.hex.expose().as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).map_err(|_| io::Error::other("the key is not hexadecimal"))?;
        }
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*key).map_err(|_| io::Error::other("the key has no use"))?;
        Ok(LessSafeKey::new(key))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn content_of(file: &File) -> Vec<u8> {
        io_util::read_whole(file, 1000).unwrap()
    }

    #[test]
    fn what_is_set_aside_is_taken_up_as_it_was_and_the_disk_holds_none_of_it() {
        let (directory, key) = (tempfile::tempdir().unwrap(), SealingKey::new().unwrap());
        for content in [b"".to_vec(), b"sk-12345 in an event".to_vec()] {
            let aside = key.set_aside(directory.path(), "a session", content.clone()).unwrap();
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it has a name");
            let on_disk = content_of(&aside.file);
            assert_eq!(on_disk.len(), content.len() + TAG_BYTES);
            assert!(!on_disk.windows(8).any(|bytes| bytes == b"sk-12345"));
            for _ in 0..2 {
                assert_eq!(key.take_up(&aside, "a session").unwrap(), content);
            }
            let again = key.set_aside(directory.path(), "a session", content.clone()).unwrap();
            assert_ne!(content_of(&again.file), on_disk, "each is encrypted in its own way");
        }
    }

    #[test]
    fn what_is_not_as_it_was_written_is_not_taken_up() {
        let (directory, key) = (tempfile::tempdir().unwrap(), SealingKey::new().unwrap());
        let aside = || key.set_aside(directory.path(), "one", b"abc".to_vec()).unwrap();
        let refused = |key: &SealingKey, aside: &SetAside, about: &str| key.take_up(aside, about).unwrap_err().kind();
        assert_eq!(refused(&key, &aside(), "another"), io::ErrorKind::InvalidData);
        assert_eq!(refused(&SealingKey::new().unwrap(), &aside(), "one"), io::ErrorKind::InvalidData);
        for at in 0..aside().sealed_bytes {
            let path = directory.path().join("changed");
            let mut bytes = content_of(&aside().file);
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let changed = SetAside { file: File::open(&path).unwrap(), ..aside() };
            assert_eq!(refused(&key, &changed, "one"), io::ErrorKind::InvalidData, "byte {at}");
        }
        let path = directory.path().join("short");
        std::fs::write(&path, b"ab").unwrap();
        let short = SetAside { file: File::open(&path).unwrap(), ..aside() };
        assert_eq!(refused(&key, &short, "one"), io::ErrorKind::InvalidData);
        std::fs::write(&path, [0; 99]).unwrap();
        assert_eq!(refused(&key, &short, "one"), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn nobody_can_write_to_it() {
        let (directory, key) = (tempfile::tempdir().unwrap(), SealingKey::new().unwrap());
        let aside = key.set_aside(directory.path(), "one", b"abc".to_vec()).unwrap();
        assert!(aside.file.write_all_at(b"x", 0).is_err() && aside.file.set_len(0).is_err());
    }
}
