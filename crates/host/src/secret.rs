//! Text that must not be seen: wiped when dropped, kept out of swap and core files where the kernel allows it.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeroize::{Zeroize, Zeroizing};

mod page;

use page::Page;

/// Secrets alive that are not on locked memory.
static UNLOCKED: AtomicUsize = AtomicUsize::new(0);

/// What keeps them there.
pub const LOCKED_MEMORY_REMEDY: &str = "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)";

/// How many secrets of this process the kernel may write to swap, because the limit of locked memory (`RLIMIT_MEMLOCK`) is used up.
#[must_use]
pub fn unlocked_secrets() -> usize {
    UNLOCKED.load(Ordering::Relaxed)
}

/// A secret text. It has no `Clone`, `Display` or serialisation; share it with `Arc`.
///
/// The bytes live on memory pages of their own that are locked, left out of core files, and zeroed before they are given
/// back. Where the limit of locked memory is used up they are not locked, and [`unlocked_secrets`] counts them.
pub struct Secret {
    storage: Storage,
}

enum Storage {
    Page(Page),
    /// The kernel refused a page: still wiped, not locked.
    Heap(Zeroizing<Box<[u8]>>),
}

impl Secret {
    /// Takes over `text`; the given allocation is wiped.
    #[must_use]
    pub fn new(mut text: String) -> Self {
        let secret = Self::copy_of(&text);
        text.zeroize();
        secret
    }

    /// `random_bytes` bytes of the kernel's randomness as twice as many lower-case hex digits.
    ///
    /// # Errors
    /// When the kernel gives no randomness.
    pub fn random_hex(random_bytes: usize) -> io::Result<Self> {
        let text = Zeroizing::new(crate::sign::random_hex(random_bytes)?);
        Ok(Self::copy_of(&text))
    }

    /// The text itself. Do not store, log or format what this returns.
    #[must_use]
    pub fn expose(&self) -> &str {
        let bytes = match &self.storage {
            Storage::Page(page) => page.bytes(),
            Storage::Heap(bytes) => bytes,
        };
        // The bytes came from a `str` and are never changed, so the empty text is never the answer.
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Length of the text in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.expose().len()
    }

    /// Compares in a time that depends on the lengths only.
    #[must_use]
    pub fn eq_constant_time(&self, other: &str) -> bool {
        constant_time_eq(self.expose().as_bytes(), other.as_bytes())
    }

    fn copy_of(text: &str) -> Self {
        let storage = match Page::holding(text.as_bytes()) {
            Ok(page) => Storage::Page(page),
            Err(_) => Storage::Heap(Zeroizing::new(text.as_bytes().into())),
        };
        let secret = Self { storage };
        if !secret.is_locked() {
            UNLOCKED.fetch_add(1, Ordering::Relaxed);
        }
        secret
    }

    fn is_locked(&self) -> bool {
        match &self.storage {
            Storage::Page(page) => page.is_locked(),
            Storage::Heap(_) => false,
        }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        if !self.is_locked() {
            UNLOCKED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Compares two byte strings in a time that depends on their lengths only.
#[must_use]
pub fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let difference = left.iter().zip(right).fold(0_u8, |sum, (a, b)| black_box(sum | (a ^ b)));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_nothing_of_itself() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?} {secret:#?}"), "Secret(…) Secret(…)");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(secret.len_bytes(), 7);
    }

    #[test]
    fn empty_and_large_texts_are_kept_whole() {
        assert_eq!(Secret::new(String::new()).expose(), "");
        let large = "é".repeat(10_000);
        assert_eq!(Secret::new(large.clone()).expose(), large);
    }

    #[test]
    fn random_words_have_their_length_and_differ() {
        let first = Secret::random_hex(32).unwrap();
        let second = Secret::random_hex(32).unwrap();
        assert_eq!(first.len_bytes(), 64);
        assert!(first.expose().bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        assert!(!first.eq_constant_time(second.expose()));
    }

    #[test]
    fn equality_needs_every_byte() {
        let secret = Secret::new("abcd".to_owned());
        assert!(secret.eq_constant_time("abcd"));
        for other in ["", "abc", "abce", "bbcd", "abcde"] {
            assert!(!secret.eq_constant_time(other), "{other}");
        }
    }
}
