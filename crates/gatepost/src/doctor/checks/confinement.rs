//! The level of confinement, which is weak, and what the kernel would offer to a stronger one.

use std::ffi::OsStr;
use std::path::PathBuf;

use settings::Settings;

use super::super::finding::Finding;
use super::on_path;
use crate::serve::PROVED;

/// What is there to confine with. Nothing of it is used.
#[derive(Debug, Clone, Default)]
pub(super) struct Offered {
    pub(super) landlock_abi: Option<u32>,
    pub(super) user_namespaces_forbidden: Option<&'static str>,
    pub(super) bubblewrap: Option<PathBuf>,
}

impl Offered {
    /// By this kernel and on this search path.
    pub(super) fn now(path: &OsStr) -> Self {
        Self {
            landlock_abi: host::kernel::landlock_abi(),
            user_namespaces_forbidden: host::kernel::user_namespaces_forbidden(),
            bubblewrap: on_path(path, "bwrap"),
        }
    }
}

/// The level, then the kernel's offers as information.
pub(super) fn all(settings: Option<&Settings>, offered: &Offered) -> Vec<Finding> {
    let Offered { landlock_abi, user_namespaces_forbidden, bubblewrap } = offered;
    let landlock = landlock_abi.map_or_else(|| "not offered".to_owned(), |abi| format!("ABI {abi}"));
    let namespaces = user_namespaces_forbidden.map_or("allowed, as far as the kernel shows", |why| why);
    let bubblewrap = bubblewrap.as_ref().map_or_else(|| "not on PATH".to_owned(), |path| path.display().to_string());
    let unused = |what: String| format!("{what}; not used, since confinement is not built");
    vec![
        level(settings),
        Finding::ok("landlock", unused(landlock)),
        Finding::ok("user_namespaces", unused(namespaces.to_owned())),
        Finding::ok("bubblewrap", unused(bubblewrap)),
    ]
}

fn level(settings: Option<&Settings>) -> Finding {
    const CHECK: &str = "confinement";
    let proved = PROVED.as_str();
    if let Some(wanted) = settings.map(|settings| settings.confinement.level).filter(|wanted| *wanted > PROVED) {
        let detail = format!("the configuration accepts no level below {}, and the level is {proved}", wanted.as_str());
        return Finding::failed(CHECK, detail, format!("set [confinement] level = {proved:?} to go on with that"));
    }
    let detail = format!("the level is {proved}: an approved command runs as this user and can do what this user can");
    Finding::warning(
        CHECK,
        detail,
        "approve what you would run yourself; use an account or machine of its own for more",
    )
}

#[cfg(test)]
mod tests {
    use settings::Sources;

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn the_level_is_said_to_be_weak_whatever_the_kernel_offers() {
        let everything = Offered {
            landlock_abi: Some(6),
            user_namespaces_forbidden: None,
            bubblewrap: Some("/usr/bin/bwrap".into()),
        };
        let nothing = Offered { user_namespaces_forbidden: Some("switched off"), ..Offered::default() };
        for (offered, words) in [(everything, ["ABI 6", "allowed", "bwrap"]), (nothing, ["not", "switched off", "not"])]
        {
            let findings = all(None, &offered);
            assert_eq!(findings[0].state, State::Warning);
            assert!(findings[0].detail.contains("weak"), "{}", findings[0].detail);
            for (finding, word) in findings[1..].iter().zip(words) {
                assert_eq!(finding.state, State::Ok);
                assert!(finding.detail.contains(word) && finding.detail.contains("not used"), "{}", finding.detail);
            }
        }
    }

    #[test]
    fn more_than_is_proved_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("c.toml");
        host::secure_fs::write_private_new(&file, b"[confinement]\nlevel = \"full\"\n").unwrap();
        let sources = Sources { config_file: Some(file), home: home.path().to_path_buf(), ..Sources::default() };
        assert_eq!(level(Some(&Settings::load(&sources).unwrap())).state, State::Failed);
    }
}
