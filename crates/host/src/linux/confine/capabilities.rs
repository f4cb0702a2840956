//! All capabilities, in every set.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities};

use crate::confine::ConfineError;

/// Capabilities are numbered up to 63 at most; the kernel knows fewer.
const MAX_CAPABILITIES: libc::c_ulong = 64;

/// Gives up the bounding set where that is allowed (root), then the ambient, inheritable, permitted and effective sets.
///
/// Whoever may not empty the bounding set has no use of it: without new privileges no program brings capabilities.
pub(super) fn drop_all() -> Result<(), ConfineError> {
    let held = capabilities(None).map_err(ConfineError::step("reading the capabilities"))?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        drop_bounding_set()?;
    }
    clear_ambient_capability_set().map_err(ConfineError::step("the ambient capabilities"))?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(ConfineError::step("the capabilities"))
}

fn drop_bounding_set() -> Result<(), ConfineError> {
    for number in 0..MAX_CAPABILITIES {
        // SAFETY: the call takes a number and reads no memory.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, number) } {
            // The kernel knows no capability of this number, nor of a greater one.
            -1 => break,
            0 => {}
            _ => {
                // SAFETY: as above.
                if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number) } != 0 {
                    let error = std::io::Error::last_os_error();
                    return Err(ConfineError::step("the bounding set of capabilities")(error));
                }
            }
        }
    }
    Ok(())
}
