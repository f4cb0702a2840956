//! The memory of this process.

/// Gives memory that was freed back to the system. What is freed in small pieces stays with the process otherwise, for
/// as long as anything behind it on its heap is used. Takes milliseconds on a large heap; does nothing where the allocator
/// is not glibc's.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time and from any thread; nothing that is allocated moves.
    unsafe {
        libc::malloc_trim(0);
    }
}
