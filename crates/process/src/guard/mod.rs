//! The guards of a server: two processes between the daemon and the server, which end the server's whole tree.
//!
//! The daemon starts the first; the first starts the second; the second starts the server. Each watches the other and a
//! pipe that only the daemon holds open. Whichever sees an end (of the server, of the other, of the pipe) ends the tree, by
//! what `rules::guard` decided. What this cannot reach, or both guards killed at once, falls to the daemon, which walks.

mod ending;
mod first;
mod second;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use rules::guard::Domain;

pub use first::run;
pub(crate) use words::{Named, Order, Said, Started};

/// The hidden command's name.
pub const COMMAND: &str = "__guard";
/// The number of the pipe's read end in the guards: above all that a server is given.
pub(crate) const LIFE_FD: i32 = 254;
/// The number of the socket to the daemon in the guards.
pub(crate) const STATUS_FD: i32 = 255;
/// Most descriptors that a server is given.
const MAX_FDS: usize = 16;

/// What the arguments after the command's name ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The descriptors that the server is given, under their numbers.
    pub(crate) fds: Vec<i32>,
    /// The domain of signals that the server's tree may stand in.
    pub(crate) domain: Domain,
    /// The cgroup that the server is put into.
    pub(crate) cgroup: Option<PathBuf>,
    /// The server's program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
}

impl Asked {
    /// As arguments, the command's name first.
    pub(crate) fn words(self) -> Vec<OsString> {
        let fds: Vec<String> = self.fds.iter().map(i32::to_string).collect();
        let mut words: Vec<OsString> = vec![COMMAND.into(), "--fds".into(), fds.join(",").into()];
        words.extend(["--domain".into(), self.domain.as_str().into()]);
        if let Some(cgroup) = self.cgroup {
            words.extend(["--cgroup".into(), cgroup.into()]);
        }
        words.extend(["--".into(), self.program.into()]);
        words.extend(self.args);
        words
    }

    /// From the arguments after the command's name.
    pub(crate) fn parse(words: &[OsString]) -> Option<Self> {
        let [option, numbers, domain_option, domain, rest @ ..] = words else { return None };
        let fds = numbers.to_str()?;
        let fds = fds.split(',').filter(|number| !number.is_empty()).map(|number| number.parse().ok());
        let fds: Vec<i32> = fds.collect::<Option<_>>()?;
        let domain = Domain::parse(domain.to_str()?).filter(|_| domain_option == "--domain")?;
        let (cgroup, rest) = match rest {
            [option, cgroup, rest @ ..] if option == "--cgroup" => (Some(PathBuf::from(cgroup)), rest),
            _ => (None, rest),
        };
        let [end, program, args @ ..] = rest else { return None };
        let is_own = |fd: &i32| [LIFE_FD, STATUS_FD].contains(fd);
        if option != "--fds" || end != OsStr::new("--") || fds.len() > MAX_FDS || fds.iter().any(is_own) {
            return None;
        }
        Some(Self { fds, domain, cgroup, program: program.into(), args: args.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_is_asked_for_is_read_as_it_was_said() {
        let cgroups = [None, Some(PathBuf::from("/sys/fs/cgroup/a/gatepost-x"))];
        for (domain, cgroup) in Domain::ALL.into_iter().flat_map(|domain| cgroups.clone().map(|one| (domain, one))) {
            let args = words("-c -- --fds --cgroup x");
            let asked = Asked { fds: vec![3, 4, 7], domain, cgroup, program: "/bin/sh".into(), args };
            let said = asked.clone().words();
            assert_eq!(said[0], COMMAND);
            assert_eq!(Asked::parse(&said[1..]), Some(asked));
        }
        let (domain, program) = (Domain::Signals, "/bin/sh".into());
        let bare = Asked { fds: Vec::new(), domain, cgroup: None, program, args: Vec::new() };
        assert_eq!(Asked::parse(&bare.clone().words()[1..]), Some(bare));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "--fds 3",
            "--fds 3 --domain none",
            "--fds 3 --domain none --",
            "--fds 3 -- /bin/sh",
            "--fds 3 --domain files -- /bin/sh",
            "--fds 3 --dom none -- /bin/sh",
            "--fds x --domain none -- /bin/sh",
            "--fds 3,254 --domain none -- /bin/sh",
            "--fds 255 --domain none -- /bin/sh",
            "--fd 3 --domain none -- /bin/sh",
            "--fds 3 --domain none --cgroup -- /bin/sh",
            "--fds 3 --domain none /bin/sh --",
        ] {
            assert_eq!(Asked::parse(&words(text)), None, "{text}");
        }
    }
}
