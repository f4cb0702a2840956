//! The outer namespace: with bubblewrap, a process sees no file but those it may reach, so neither the sockets of the
//! owner's other programs.
//!
//! Each process that a server starts gets one of its own, and the wrapper confines it within. There is no namespace of
//! processes: the agent's terminal is a daemon that outlives what started it, and would be ended with it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::confine::{Access, FileGrant, Links};

use super::layout::is_resolved;
use crate::install::is_roots;
use crate::install::tool::{self, Tool};

const PROGRAM: &str = "bwrap";
/// What is executed to see whether a namespace can be made.
const TRIAL: &str = "/bin/true";
const TRIAL_LIMIT: Duration = Duration::from_secs(10);
/// Made anew, with terminals and shared memory of its own: the owner's other terminals are not there.
const DEVICES: &str = "/dev";
/// There as it is: the inner rules say what of it can be opened.
const PROCESSES: &str = "/proc";

/// What starts a process in an outer namespace.
#[derive(Debug)]
pub(crate) struct Outer {
    /// The words before the wrapper's, bubblewrap's own name first.
    pub(crate) words: Vec<OsString>,
    /// Bubblewrap itself, the one that passed the trial.
    pub(crate) program: OwnedFd,
}

/// Why there is no outer namespace, with what would mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoOuter(pub(crate) String);

/// What starts a process in such a namespace.
///
/// # Errors
/// When bubblewrap is not there, or may not make it.
pub(crate) fn find(path: &OsStr, grants: &[FileGrant]) -> Result<Outer, NoOuter> {
    // It is run by the daemon itself, ahead of all that confines.
    find_with(path, grants, is_roots)
}

fn find_with(path: &OsStr, grants: &[FileGrant], is_trusted: fn(&Path) -> bool) -> Result<Outer, NoOuter> {
    let file = std::env::split_paths(path)
        .filter_map(|directory| directory.join(PROGRAM).canonicalize().ok())
        .find(|program| crate::install::is_executable(program) && is_trusted(program))
        .ok_or_else(|| NoOuter("bubblewrap is not installed: install the package bubblewrap".to_owned()))?;
    let unusable = |error: io::Error| NoOuter(format!("bubblewrap cannot be opened: {error}"));
    let program = host::confine::open_program(&file).map_err(unusable)?;
    let mut words = vec![file.clone().into_os_string()];
    // Not tied to its parent: that is a thread of the server, which may end long before the process.
    words.extend(["--unshare-ipc", "--cap-drop", "ALL"].map(OsString::from));
    words.extend(mounts(grants));
    words.push("--".into());
    try_it(&words)?;
    // What passed the trial by its name is what will be executed by the descriptor.
    let tried = fs::metadata(&file).map_err(unusable)?;
    let opened = program.try_clone().and_then(|program| fs::File::from(program).metadata()).map_err(unusable)?;
    if (tried.dev(), tried.ino()) != (opened.dev(), opened.ino()) {
        return Err(NoOuter("bubblewrap was replaced meanwhile: start again".to_owned()));
    }
    Ok(Outer { words, program })
}

/// Parents before what is below them, so that what is granted within a tree is put into it. What its tree grants already is
/// left out: where that may be written, a link could be put in its place, which would then be mounted, or stop every start.
fn mounts(grants: &[FileGrant]) -> Vec<OsString> {
    let mut grants: Vec<&FileGrant> = grants.iter().filter(|grant| is_there(grant)).collect();
    grants.sort_by_key(|grant| grant.path.components().count());
    let mut words: Vec<OsString> = ["--dev", DEVICES, "--bind", PROCESSES, PROCESSES].map(OsString::from).to_vec();
    let mut mounted: Vec<&FileGrant> = Vec::new();
    for grant in grants {
        let covers = |tree: &&FileGrant| {
            grant.path.starts_with(&tree.path) && (tree.access == Access::Write || tree.access == grant.access)
        };
        if [DEVICES, PROCESSES].iter().any(|tree| grant.path.starts_with(tree)) || mounted.iter().any(covers) {
            continue;
        }
        let option = match grant.access {
            // What is only read may go meanwhile, and the rest must work.
            Access::Read => "--ro-bind-try",
            Access::Write => "--bind",
            Access::Device => "--dev-bind",
        };
        match at_root(&grant.path) {
            Some(target) => words.extend(["--symlink".into(), target.into(), grant.path.clone().into()]),
            None => {
                words.extend([option.into(), grant.path.clone().into(), grant.path.clone().into()]);
                mounted.push(grant);
            }
        }
    }
    words
}

fn is_there(grant: &FileGrant) -> bool {
    match grant.links {
        Links::Followed => grant.path.exists(),
        // As the inner rules take it: what a link leads to is not granted.
        Links::Refused | Links::Skipped => is_resolved(&grant.path),
    }
}

/// Where a link directly below the root leads, as `/bin` does on many systems.
fn at_root(path: &Path) -> Option<PathBuf> {
    (path.parent() == Some(Path::new("/"))).then(|| fs::read_link(path).ok()).flatten()
}

fn try_it(words: &[OsString]) -> Result<(), NoOuter> {
    let Some((program, arguments)) = words.split_first() else { return Err(NoOuter("no words".to_owned())) };
    let mut args = arguments.to_vec();
    args.push(TRIAL.into());
    let tool =
        Tool { program: Path::new(program), args, env: &[], cwd: Path::new("/"), stdin: None, limit: TRIAL_LIMIT };
    let ended = tool::run(tool, &|_| {}).map_err(|error| NoOuter(format!("bubblewrap cannot be run: {error}")))?;
    if ended.status.success() {
        return Ok(());
    }
    let said: String = ended.tail.chars().take(200).collect();
    Err(NoOuter(format!("bubblewrap may not make namespaces here ({said}): allow unprivileged user namespaces")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(directory: &Path, text: &str) -> PathBuf {
        let program = directory.join(PROGRAM);
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).expect("script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode");
        program
    }

    fn grant(path: &Path, access: Access, links: Links) -> FileGrant {
        FileGrant { path: path.to_path_buf(), access, links, identity: None }
    }

    #[test]
    fn parents_are_mounted_before_what_is_below_them_and_what_is_not_there_is_left_out() {
        let directory = tempfile::tempdir().expect("dir");
        let root = directory.path().canonicalize().expect("root");
        let below = root.join("below");
        fs::create_dir_all(below.join("read")).expect("dir");
        fs::create_dir(root.join("again")).expect("dir");
        std::os::unix::fs::symlink(&below, root.join("link")).expect("link");
        let grants = [
            grant(&below, Access::Write, Links::Refused),
            grant(&below.join("read"), Access::Read, Links::Skipped),
            grant(&root.join("again"), Access::Read, Links::Skipped),
            grant(&root.join("link"), Access::Write, Links::Skipped),
            grant(&root.join("missing"), Access::Read, Links::Followed),
            grant(Path::new("/dev/null"), Access::Device, Links::Followed),
            grant(&root, Access::Read, Links::Followed),
        ];
        let words: Vec<String> = mounts(&grants).into_iter().map(|word| word.into_string().expect("text")).collect();
        let (root, below) = (root.to_str().expect("text"), below.to_str().expect("text"));
        let expected =
            ["--dev", "/dev", "--bind", "/proc", "/proc", "--ro-bind-try", root, root, "--bind", below, below];
        assert_eq!(words, expected);
    }

    #[test]
    fn without_bubblewrap_its_package_is_named() {
        let directory = tempfile::tempdir().expect("dir");
        let refused = find(directory.path().as_os_str(), &[]).expect_err("refused");
        assert!(refused.0.contains("install the package bubblewrap"), "{refused:?}");
    }

    #[test]
    fn a_program_that_the_agent_could_have_put_there_is_not_run() {
        let directory = tempfile::tempdir().expect("dir");
        let program = script(directory.path(), "exit 0");
        assert!(find_with(directory.path().as_os_str(), &[], |_| true).is_ok());
        let refused = find_with(directory.path().as_os_str(), &[], |_| false).expect_err("refused");
        assert!(refused.0.contains("not installed"));
        // Others could write beside it.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("mode");
        assert!(!is_roots(&program));
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("mode");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o775)).expect("mode");
        assert!(!is_roots(&program));
        assert!(is_roots(Path::new("/bin/sh").canonicalize().expect("shell").as_path()));
    }

    #[test]
    fn one_that_fails_is_told_with_its_words() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("dir");
        let program = directory.path().join(PROGRAM);
        fs::write(&program, "#!/bin/sh\necho 'no permissions to create a new namespace' >&2\nexit 1\n")
            .expect("script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode");
        let refused = find(directory.path().as_os_str(), &[]).expect_err("refused");
        assert!(refused.0.contains("no permissions to create") && refused.0.contains("user namespaces"), "{refused:?}");
    }
}
