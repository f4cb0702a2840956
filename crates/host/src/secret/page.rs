//! Anonymous memory pages that hold one secret and nothing else.

use std::io;
use std::ptr::NonNull;

use zeroize::Zeroize;

/// One private mapping. It never shares a memory page with anything else, so unlocking it unlocks nothing else.
pub(super) struct Page {
    start: NonNull<u8>,
    used_bytes: usize,
    mapped_bytes: usize,
    is_locked: bool,
}

// SAFETY: the mapping belongs to this value alone and is written only before it is shared (`holding`) and while it is
// held exclusively (`drop`); shared access only reads.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Copies `content` into new pages.
    pub(super) fn holding(content: &[u8]) -> io::Result<Self> {
        // The kernel rounds up to whole pages; a mapping must not be empty.
        let mapped_bytes = content.len().max(1);
        // SAFETY: a fresh anonymous mapping; no existing memory is touched.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(address.cast::<u8>()) else {
            return Err(io::Error::other("a mapping at address zero"));
        };
        // SAFETY: the range was just mapped by us. Both calls only change how the kernel treats it.
        let is_locked = unsafe {
            #[cfg(target_os = "linux")]
            libc::madvise(address, mapped_bytes, libc::MADV_DONTDUMP);
            libc::mlock(address, mapped_bytes) == 0
        };
        // SAFETY: the mapping has room for `content.len()` bytes, is writable, new, and so does not overlap `content`.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), start.as_ptr(), content.len()) };
        Ok(Self { start, used_bytes: content.len(), mapped_bytes, is_locked })
    }

    /// Whether the kernel keeps it out of swap.
    pub(super) fn is_locked(&self) -> bool {
        self.is_locked
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `used_bytes` bytes were initialised in `holding`, live as long as `self`, and nobody writes them meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.used_bytes) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: `&mut self` makes this the only access; the bytes are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.used_bytes) }.zeroize();
        // SAFETY: exactly the mapping made in `holding`; no reference to it outlives `self`. Unmapping also unlocks.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// The flags the kernel shows for the mapping that holds `address`.
    fn vm_flags(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            if let Some((start, rest)) = line.split_once('-')
                && let Ok(start) = usize::from_str_radix(start, 16)
            {
                let end = usize::from_str_radix(rest.split(' ').next().unwrap(), 16).unwrap();
                inside = (start..end).contains(&address);
            } else if inside && line.starts_with("VmFlags:") {
                return line.to_owned();
            }
        }
        String::new()
    }

    #[test]
    fn a_page_is_locked_and_left_out_of_core_files() {
        let page = Page::holding(b"content").unwrap();
        let flags = vm_flags(page.start.as_ptr() as usize);
        assert!(flags.contains(" dd"), "not left out of core files: {flags}");
        assert!(flags.contains(" lo"), "not locked: {flags}");
        assert_eq!(page.bytes(), b"content");
    }
}
