//! The system, the user and the tools.

use std::ffi::OsStr;

use super::super::finding::Finding;
use super::on_path;

/// The oldest kernel that tells which process is at the other end of a socket.
const OLDEST_KERNEL: (u32, u32) = (6, 5);

/// The system and its kernel.
pub(super) fn kernel(system: &str, release: Option<&str>) -> Finding {
    const CHECK: &str = "kernel";
    const WANTED: &str = "use Linux 6.5 or later";
    if system != "linux" {
        let detail = format!("{system}: servers cannot be started on it yet, and its confinement was never run");
        return Finding::failed(CHECK, detail, WANTED);
    }
    let Some(release) = release else {
        return Finding::warning(CHECK, "Linux, which does not say its release", "mount /proc, and look again");
    };
    match version(release) {
        Some(version) if version >= OLDEST_KERNEL => Finding::ok(CHECK, format!("Linux {release}")),
        Some(_) => {
            let detail = format!("Linux {release} cannot tell which process is at the other end of a socket");
            Finding::failed(CHECK, detail, WANTED)
        }
        None => Finding::warning(CHECK, format!("Linux {release:?}, whose version cannot be read"), WANTED),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|other: char| !other.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Who runs this.
pub(super) fn user(is_root: bool) -> Finding {
    if is_root {
        let detail = "running as root: an approved command could do anything to this machine";
        return Finding::warning("user", detail, "run gatepost as an ordinary user");
    }
    Finding::ok("user", "an ordinary user")
}

/// Whether secrets are kept out of swap: tried with one.
pub(super) fn locked_memory() -> Finding {
    const CHECK: &str = "locked_memory";
    let tried = host::Secret::new("nothing secret".to_owned());
    let unlocked = host::secret::unlocked_secrets();
    drop(tried);
    if unlocked > 0 {
        let detail = "secrets cannot be put on locked memory and may be written to swap";
        return Finding::warning(CHECK, detail, host::secret::LOCKED_MEMORY_REMEDY);
    }
    Finding::ok(CHECK, "secrets stay out of swap")
}

/// The programs that are needed beside Python.
pub(super) fn tools(path: &OsStr) -> Vec<Finding> {
    let needed = [("tmux", "the agent's terminal runs in it"), ("git", "the Agent Server keeps its changes with it")];
    let mut findings: Vec<Finding> = needed
        .into_iter()
        .map(|(name, why)| match on_path(path, name) {
            Some(found) => Finding::ok(name, found.display().to_string()),
            None => Finding::failed(name, format!("{name} is not on PATH; {why}"), format!("install {name}")),
        })
        .collect();
    let uv = on_path(path, "uv").map(|found| found.display().to_string());
    findings
        .push(Finding::ok("uv", uv.unwrap_or_else(|| "not on PATH; installing takes longer without it".to_owned())));
    findings
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn kernels_before_the_oldest_fail() {
        for (release, state) in [
            ("6.5.0-1-generic", State::Ok),
            ("6.12.1", State::Ok),
            ("10.0", State::Ok),
            ("6.4.16", State::Failed),
            ("5.15.0-91-generic", State::Failed),
            ("odd", State::Warning),
        ] {
            assert_eq!(kernel("linux", Some(release)).state, state, "{release}");
        }
        assert_eq!(kernel("linux", None).state, State::Warning);
        let macos = kernel("macos", None);
        assert_eq!(macos.state, State::Failed);
        assert!(macos.detail.contains("never run"), "{}", macos.detail);
    }

    #[test]
    fn root_is_warned() {
        assert_eq!(user(true).state, State::Warning);
        assert_eq!(user(false).state, State::Ok);
    }

    #[test]
    fn a_tool_counts_when_it_may_be_run_and_uv_is_never_missed() {
        let directory = tempfile::tempdir().unwrap();
        for (name, mode) in [("git", 0o755), ("tmux", 0o644)] {
            let file = directory.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = tools(directory.path().as_os_str());
        let states: Vec<_> = found.iter().map(|finding| (finding.check, finding.state)).collect();
        assert_eq!(states, [("tmux", State::Failed), ("git", State::Ok), ("uv", State::Ok)]);
    }
}
