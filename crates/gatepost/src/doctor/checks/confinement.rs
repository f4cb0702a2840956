//! What the machine has to confine the agent's processes with, and the level that can be proved with it.

use std::ffi::OsStr;
use std::path::PathBuf;

use rules::confinement::Level;
use settings::Settings;

use super::super::finding::Finding;
use super::on_path;

/// What is there to confine with.
#[derive(Debug, Clone, Default)]
pub(super) struct Offered {
    /// Not Linux: there is nothing to look at, and nothing that was ever run.
    pub(super) is_untried: bool,
    pub(super) is_root: bool,
    pub(super) landlock_abi: Option<u32>,
    pub(super) user_namespaces_forbidden: Option<&'static str>,
    pub(super) bubblewrap: Option<PathBuf>,
}

impl Offered {
    /// By this kernel and on this search path.
    pub(super) fn now(path: &OsStr) -> Self {
        Self {
            is_untried: cfg!(not(target_os = "linux")),
            is_root: host::hygiene::is_root(),
            landlock_abi: host::kernel::landlock_abi(),
            user_namespaces_forbidden: host::kernel::user_namespaces_forbidden(),
            bubblewrap: on_path(path, "bwrap"),
        }
    }

    /// Whether bubblewrap can make an outer namespace, as far as can be seen without trying.
    pub(super) fn has_outer(&self) -> bool {
        self.bubblewrap.is_some() && self.user_namespaces_forbidden.is_none()
    }
}

/// The level, then what it is made of.
pub(super) fn all(settings: Option<&Settings>, offered: &Offered) -> Vec<Finding> {
    if offered.is_untried {
        let detail = "written for this system by what others say of it, and never run: rely on none of it";
        let sandbox = Finding::warning("sandbox", detail, "use Linux, where each start of a server proves it");
        return vec![level(settings, highest(offered)), sandbox];
    }
    let Offered { landlock_abi, user_namespaces_forbidden, bubblewrap, .. } = offered;
    let landlock = match landlock_abi {
        Some(abi) => {
            Finding::ok("landlock", format!("ABI {abi}: every process that a server starts is confined with it"))
        }
        None => Finding::warning(
            "landlock",
            "not offered: what a server starts is not confined",
            "use a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in its lsm= list",
        ),
    };
    let namespaces = match user_namespaces_forbidden {
        None => Finding::ok("user_namespaces", "allowed, as far as the kernel shows"),
        Some(why) => Finding::warning(
            "user_namespaces",
            format!("forbidden to ordinary users: {why}"),
            "allow them, at least to bubblewrap: it hides the sockets of your other programs from the agent",
        ),
    };
    let bubblewrap = match bubblewrap {
        Some(path) => Finding::ok("bubblewrap", path.display().to_string()),
        None => Finding::warning(
            "bubblewrap",
            "bwrap is not on PATH: the sockets of your other programs are within the agent's reach",
            "install the package bubblewrap",
        ),
    };
    vec![level(settings, highest(offered)), landlock, namespaces, bubblewrap]
}

/// What can be proved here at best: other programs' sockets stay within reach where neither bubblewrap nor the kernel hides
/// them.
fn highest(offered: &Offered) -> Level {
    match offered.landlock_abi {
        _ if offered.is_untried => Level::Weak,
        None => Level::Weak,
        Some(_) if offered.is_root => Level::Weak,
        Some(abi) if host::confine::missing(Some(abi)).is_empty() => Level::Full,
        Some(_) if offered.has_outer() => Level::Full,
        Some(_) => Level::Partial,
    }
}

fn level(settings: Option<&Settings>, highest: Level) -> Finding {
    const CHECK: &str = "confinement";
    let most = highest.as_str();
    if let Some(wanted) = settings.map(|settings| settings.confinement.level).filter(|wanted| *wanted > highest) {
        let detail =
            format!("the configuration accepts no level below {}, and {most} is the most here", wanted.as_str());
        return Finding::failed(CHECK, detail, format!("set [confinement] level = {most:?} to go on with that"));
    }
    match highest {
        Level::Weak => Finding::warning(
            CHECK,
            "at most weak: an approved command can do what this user can".to_owned(),
            "approve what you would run yourself; run gatepost as an ordinary user, on a kernel with Landlock",
        ),
        Level::Partial | Level::Full => {
            Finding::ok(CHECK, format!("at most {most}; each start of a server proves what it is"))
        }
    }
}

#[cfg(test)]
mod tests {
    use settings::Sources;

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn the_most_that_can_be_proved_is_said() {
        let with = |is_root, landlock_abi| Offered { is_root, landlock_abi, ..Offered::default() };
        let bubblewrap = Some(PathBuf::from("/usr/bin/bwrap"));
        let cases = [
            (Offered { bubblewrap: bubblewrap.clone(), ..with(false, Some(7)) }, Level::Full, State::Ok),
            (
                Offered { bubblewrap, user_namespaces_forbidden: Some("switched off"), ..with(false, Some(7)) },
                Level::Partial,
                State::Ok,
            ),
            (with(false, None), Level::Weak, State::Warning),
            (with(true, Some(99)), Level::Weak, State::Warning),
            (with(false, Some(1)), Level::Partial, State::Ok),
            (with(false, Some(7)), Level::Partial, State::Ok),
            (with(false, Some(99)), Level::Full, State::Ok),
        ];
        for (offered, most, state) in cases {
            let findings = all(None, &offered);
            assert_eq!((highest(&offered), findings[0].state), (most, state), "{offered:?}");
            assert!(findings[0].detail.contains(most.as_str()), "{}", findings[0].detail);
            let landlock = offered.landlock_abi.map_or(State::Warning, |_| State::Ok);
            assert_eq!(findings[1].state, landlock);
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let everything = Offered { bubblewrap: Some("/usr/bin/bwrap".into()), ..Offered::default() };
        let nothing = Offered { user_namespaces_forbidden: Some("switched off"), ..Offered::default() };
        for (offered, state, words) in
            [(everything, State::Ok, ["allowed", "bwrap"]), (nothing, State::Warning, ["switched off", "not on PATH"])]
        {
            for (finding, word) in all(None, &offered)[2..].iter().zip(words) {
                assert_eq!(finding.state, state);
                assert!(finding.detail.contains(word), "{}", finding.detail);
                assert_eq!(finding.remedy.is_some(), state == State::Warning);
            }
        }
    }

    #[test]
    fn what_was_never_run_is_weak_and_says_so() {
        let offered = Offered { is_untried: true, landlock_abi: Some(99), ..Offered::default() };
        let findings = all(None, &offered);
        assert_eq!((highest(&offered), findings.len()), (Level::Weak, 2));
        assert!(findings.iter().all(|finding| finding.state == State::Warning));
        assert!(findings[1].detail.contains("never run"), "{}", findings[1].detail);
    }

    #[test]
    fn more_than_is_proved_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("c.toml");
        host::secure_fs::write_private_new(&file, b"[confinement]\nlevel = \"full\"\n").unwrap();
        let sources = Sources { config_file: Some(file), home: home.path().to_path_buf(), ..Sources::default() };
        let settings = Settings::load(&sources).unwrap();
        assert_eq!(level(Some(&settings), Level::Partial).state, State::Failed);
        assert_eq!(level(Some(&settings), Level::Full).state, State::Ok);
    }
}
