//! The units of a package: the same for every user of a machine, and below those that a user installs.

use std::path::{Path, PathBuf};

use super::units::{Blanks, Unit};

/// Where a package puts the program.
pub(crate) const PROGRAM: &str = "/usr/bin/gatepost";
/// Where a package puts units of users.
pub(crate) const DIRECTORY: &str = "/usr/lib/systemd/user";
/// Where the programs of any user are, root's before the user's own.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin:%h/.local/bin:%h/.cargo/bin";
/// Where the daemon's socket is in the runtime directory of any user.
const SOCKET_DIRECTORY: &str = "%t/gatepost";

/// The units, the one that others need first.
pub(crate) fn units() -> Vec<Unit> {
    units_with(SEARCH_PATH)
}

/// The same with another search path.
pub(crate) fn units_with(search_path: &str) -> Vec<Unit> {
    let blanks = Blanks {
        serve: format!("{PROGRAM} serve"),
        environment: format!("PATH={search_path}"),
        credentials: "# A credential is loaded by a drop-in, or by the units of `gatepost service install`.".to_owned(),
        paths: SOCKET_DIRECTORY.to_owned(),
        socket: format!("{SOCKET_DIRECTORY}/gatepost.sock"),
    };
    blanks.units()
}

/// Those of the units' files that are there.
pub(super) fn present() -> Vec<PathBuf> {
    let files = units().into_iter().map(|unit| Path::new(DIRECTORY).join(unit.name));
    files.filter(|file| file.symlink_metadata().is_ok()).collect()
}

/// What `gatepost` is for a user to whom a package's units are enough.
#[cfg(test)]
pub(crate) fn installation() -> super::Installation {
    super::Installation {
        binary: PROGRAM.into(),
        options: Vec::new(),
        socket: "/run/user/1/gatepost/gatepost.sock".into(),
        credential: None,
        path: "/usr/bin".to_owned(),
        home: "/home/a".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::units::{Manager, is_ours};
    use super::*;

    /// The lines that one text has and the other has not.
    fn only_in<'a>(one: &'a str, other: &str) -> Vec<&'a str> {
        one.lines().filter(|line| !other.lines().any(|own| own == *line)).collect()
    }

    #[test]
    fn they_are_those_of_an_installation_but_for_what_is_particular_to_a_user() {
        let own = installation().units(Manager::Systemd).unwrap();
        let shared = units();
        assert_eq!(own.len(), shared.len());
        for (own, shared) in own.iter().zip(&shared) {
            assert_eq!(own.name, shared.name);
            assert!(is_ours(&shared.text));
            assert!(!shared.text.contains("/home") && !shared.text.contains("/run/user"), "{}", shared.text);
        }
        let different = |one, other| -> Vec<&str> {
            only_in(one, other).iter().map(|line| line.split('=').next().unwrap_or_default()).skip(1).collect()
        };
        assert_eq!(different(&shared[0].text, &own[0].text), ["ListenStream"]);
        let service = different(&shared[1].text, &own[1].text);
        assert_eq!(service[..2], ["ExecStart", "Environment"]);
        assert_eq!(service.last(), Some(&"BindPaths"));
        assert_eq!(service.len(), 4, "{service:?}");
        for line in ["ExecStart=/usr/bin/gatepost serve", "BindPaths=%h %t/systemd/notify %t/gatepost"] {
            assert!(shared[1].text.lines().any(|found| found == line), "{line}\n{}", shared[1].text);
        }
        assert!(shared[0].text.contains("\nListenStream=%t/gatepost/gatepost.sock\n"));
    }
}
