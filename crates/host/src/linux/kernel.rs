//! What the running kernel offers for confinement. Nothing here confines anything.

use std::path::Path;

/// `LANDLOCK_CREATE_RULESET_VERSION`, from the kernel's `include/uapi/linux/landlock.h`.
const ASK_VERSION: libc::c_uint = 1;

/// The kernel's release, such as `6.8.0-45-generic`; `None` when it does not say.
#[must_use]
pub fn release() -> Option<String> {
    read("/proc/sys/kernel/osrelease")
}

/// The version of Landlock's interface, from 1; `None` when the kernel has none or it is turned off.
#[must_use]
pub fn landlock_abi() -> Option<u32> {
    // SAFETY: with no attributes, no size and this flag the call makes no ruleset and reads no memory: it answers a number.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// Whether what is started can be confined.
#[must_use]
pub fn can_confine() -> bool {
    landlock_abi().is_some()
}

/// Why an ordinary user cannot make a user namespace; `None` when nothing that the kernel shows forbids it.
#[must_use]
pub fn user_namespaces_forbidden() -> Option<&'static str> {
    forbidden(&read)
}

fn forbidden(read: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is = |file: &str, value: &str| read(file).as_deref() == Some(value);
    if read("/proc/sys/user/max_user_namespaces").is_none_or(|most| most == "0") {
        Some("user.max_user_namespaces is 0 or not there")
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Some("kernel.unprivileged_userns_clone is 0")
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Some("kernel.apparmor_restrict_unprivileged_userns is 1")
    } else {
        None
    }
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(file)).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_its_release() {
        let release = release().unwrap();
        assert!(release.starts_with(|first: char| first.is_ascii_digit()), "{release}");
    }

    #[test]
    fn landlock_answers_as_the_list_of_security_modules_says() {
        let Some(modules) = read("/sys/kernel/security/lsm") else {
            // Not mounted: then only the bound of the answer can be held.
            assert!(landlock_abi().is_none_or(|version| version < 1000));
            return;
        };
        assert_eq!(landlock_abi().is_some(), modules.split(',').any(|module| module == "landlock"), "{modules}");
    }

    #[test]
    fn each_switch_that_forbids_user_namespaces_is_named() {
        let with = |file: &'static str, value: &'static str| {
            forbidden(&move |asked: &str| {
                if asked == file {
                    return Some(value.to_owned());
                }
                (asked == "/proc/sys/user/max_user_namespaces").then(|| "1000".to_owned())
            })
        };
        assert_eq!(with("/proc/sys/user/max_user_namespaces", "1000"), None);
        for (file, value, word) in [
            ("/proc/sys/user/max_user_namespaces", "0", "max_user_namespaces"),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone"),
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor"),
        ] {
            assert!(with(file, value).unwrap().contains(word), "{file}");
        }
    }
}
