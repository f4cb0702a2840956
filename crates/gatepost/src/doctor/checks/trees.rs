//! How all that a server started is ended, when it or the daemon ends.

use rules::guard::{Armament, Means, NotArmed, expected};

use super::super::finding::Finding;
use super::confinement::Offered;

const CHECK: &str = "server_trees";
const RUN_DELEGATED: &str = "run it as a service (`gatepost service install`), or give whatever starts it a delegated \
                             cgroup (`Delegate=yes` in a unit of your own)";

/// By which means a daemon that is started as this program was, why by no better one, and what would change that.
pub(super) fn ending(offered: &Offered, has_cgroup: bool) -> Finding {
    let Armament { means, not_armed } = expected(rules::guard::Offered {
        is_root: offered.is_root,
        landlock_abi: offered.landlock_abi,
        has_outer: offered.has_outer(),
        has_cgroup,
    });
    let why = not_armed.map(|why| format!(", not by one signal to all of it: {}", why.meaning())).unwrap_or_default();
    match means {
        Means::Scope => Finding::ok(CHECK, "ended whole, by one signal to all of a server's processes (scope)"),
        Means::Cgroup => Finding::ok(CHECK, format!("ended whole, by the server's own cgroup{why} (cgroup)")),
        Means::Walk => {
            let detail = format!("ended process by process, by a daemon that is started from here{why} (walk)");
            Finding::warning(CHECK, detail, remedy(not_armed))
        }
    }
}

fn remedy(not_armed: Option<NotArmed>) -> String {
    match not_armed {
        Some(NotArmed::Root) => "run gatepost as an ordinary user".to_owned(),
        Some(NotArmed::OldKernel) => {
            format!("{RUN_DELEGATED}; Linux 6.12 or later needs neither where bubblewrap is not used")
        }
        Some(NotArmed::LinksKept | NotArmed::NotEntered | NotArmed::NothingToTry | NotArmed::NotProved) | None => {
            RUN_DELEGATED.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn the_means_is_told_with_why_and_what_would_change_it() {
        let bubblewrap = Some(PathBuf::from("/usr/bin/bwrap"));
        let with = |is_root, landlock_abi, bubblewrap: &Option<PathBuf>| Offered {
            is_root,
            landlock_abi,
            bubblewrap: bubblewrap.clone(),
            ..Offered::default()
        };
        let cases = [
            (with(false, Some(7), &None), false, State::Ok, ["one signal", "(scope)"], None),
            (with(false, Some(7), &bubblewrap), true, State::Ok, ["with bubblewrap", "(cgroup)"], None),
            (
                with(false, Some(7), &bubblewrap),
                false,
                State::Warning,
                ["with bubblewrap", "(walk)"],
                Some("Delegate=yes"),
            ),
            (with(false, Some(5), &None), false, State::Warning, ["Linux 6.12", "(walk)"], Some("6.12 or later")),
            (with(false, None, &None), true, State::Ok, ["Linux 6.12", "(cgroup)"], None),
            (with(true, Some(7), &None), false, State::Warning, ["as root", "(walk)"], Some("ordinary user")),
        ];
        for (offered, has_cgroup, state, words, remedy) in cases {
            let finding = ending(&offered, has_cgroup);
            assert_eq!(finding.state, state, "{finding:?}");
            assert!(words.iter().all(|word| finding.detail.contains(word)), "{finding:?}");
            assert_eq!(finding.remedy.is_some(), remedy.is_some(), "{finding:?}");
            assert!(remedy.is_none_or(|word| finding.remedy.as_ref().unwrap().contains(word)), "{finding:?}");
        }
    }
}
