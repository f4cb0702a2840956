//! What the running kernel offers for confinement: on macOS nothing that is used. Never run.

/// The kernel's release: not looked up.
#[must_use]
pub fn release() -> Option<String> {
    None
}

/// Landlock is Linux's.
#[must_use]
pub fn landlock_abi() -> Option<u32> {
    None
}

/// macOS has no user namespaces.
#[must_use]
pub fn user_namespaces_forbidden() -> Option<&'static str> {
    Some("macOS has none")
}
