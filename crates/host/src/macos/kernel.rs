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

/// Whether what is started can be confined: always, since the wrapper executes nothing where it cannot.
#[must_use]
pub fn can_confine() -> bool {
    true
}

/// macOS has no user namespaces.
#[must_use]
pub fn user_namespaces_forbidden() -> Option<&'static str> {
    Some("macOS has none")
}
