//! What the owner grants beyond the workspace, as it stands when a server is started, and what is to be said of it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rules::confinement::Plan;

use super::layout::is_resolved;

/// A `.git` file and the one that points back are a path.
const MAX_POINTER_BYTES: u64 = 8192;
/// What git writes of a repository when it works in a linked worktree; hooks and settings are not among it.
const WRITTEN_BY_WORKTREES: [&str; 3] = ["objects", "refs", "logs"];

/// Directories beyond the workspace that the configuration grants. They were resolved when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FurtherGrants {
    /// Read.
    pub read: Vec<PathBuf>,
    /// Read and written.
    pub write: Vec<PathBuf>,
    /// Git directories that workspaces of their repositories may use.
    pub git_dirs: Vec<PathBuf>,
}

/// Adds what of it can be granted now to the plan, and says what was and what was not.
pub(super) fn add(grants: &FurtherGrants, plan: &mut Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for (key, what, paths, list) in [
        ("read", "read", &grants.read, &mut plan.readable),
        ("write", "read and write", &grants.write, &mut plan.writable),
    ] {
        for path in paths {
            if is_resolved(path) {
                notes.push(format!("Commands may {what} the further directory {}.", path.display()));
                list.push(path.clone());
            } else {
                notes.push(format!(
                    "{} of [confinement] {key} is not granted: it is gone, or a symbolic link stands there by now.",
                    path.display()
                ));
            }
        }
    }
    notes.extend(add_git(grants, plan));
    notes
}

fn add_git(grants: &FurtherGrants, plan: &mut Plan) -> Option<String> {
    let outside = Outside::of(&plan.workspace)?;
    let directory = outside.common().to_path_buf();
    let is_granted = grants.git_dirs.contains(&directory) && is_resolved(&directory);
    let shown = directory.display();
    Some(match (outside, is_granted) {
        (Outside::Worktree { own, .. }, true) => {
            plan.writable.extend(WRITTEN_BY_WORKTREES.map(|name| directory.join(name)));
            plan.writable.push(own);
            plan.readable.push(directory.clone());
            format!(
                "Commands may use the git directory {shown} for this worktree: they read it and write its objects, references \
                 and logs, not its hooks and settings."
            )
        }
        (Outside::Enclosing { .. }, true) => {
            plan.readable.push(directory.clone());
            format!("Commands may read the git directory {shown}, whose repository this workspace is a part of.")
        }
        (Outside::Worktree { .. }, false) => format!(
            "Git does not work here: the git directory of this worktree lies outside the workspace. \
             [workspaces] git_dirs = [\"{shown}\"] would let commands use it."
        ),
        (Outside::Enclosing { .. }, false) => format!(
            "Git does not work here: the workspace is a part of a repository, whose git directory lies outside it. Work in \
             the repository's root, or let commands read it by [workspaces] git_dirs = [\"{shown}\"]."
        ),
    })
}

/// A git directory that is not in the workspace.
#[derive(Debug, PartialEq, Eq)]
enum Outside {
    /// The workspace is a linked worktree.
    Worktree {
        /// The repository's.
        common: PathBuf,
        /// Below it, this worktree's own.
        own: PathBuf,
    },
    /// The workspace is a part of a repository's only worktree.
    Enclosing {
        /// The repository's.
        common: PathBuf,
    },
}

impl Outside {
    fn common(&self) -> &Path {
        match self {
            Self::Worktree { common, .. } | Self::Enclosing { common } => common,
        }
    }

    /// What the workspace says of itself is not trusted: a worktree is one when the repository points back at it.
    fn of(workspace: &Path) -> Option<Self> {
        let pointer = workspace.join(".git");
        let Ok(found) = pointer.symlink_metadata() else {
            let mut above = workspace.ancestors().skip(1).map(|directory| directory.join(".git"));
            let common = above.find(|git| git.join("HEAD").is_file())?.canonicalize().ok()?;
            return Some(Self::Enclosing { common });
        };
        if !found.is_file() {
            return None;
        }
        let own = workspace.join(read_path(&pointer, "gitdir: ")?).canonicalize().ok()?;
        let common = own.parent()?.parent()?.to_path_buf();
        let points_back = read_path(&own.join("gitdir"), "")? == pointer;
        let is_worktree =
            own.parent() == Some(&*common.join("worktrees")) && points_back && !own.starts_with(workspace);
        is_worktree.then_some(Self::Worktree { common, own })
    }
}

/// The path that such a file holds in its only line.
fn read_path(file: &Path, before: &str) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_POINTER_BYTES).read_to_string(&mut text).ok()?;
    let line = text.trim_end_matches(['\r', '\n']);
    line.strip_prefix(before).filter(|path| !path.is_empty() && !path.contains('\n')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Repository {
        directory: tempfile::TempDir,
    }

    impl Repository {
        fn new() -> Self {
            let repository = Self { directory: tempfile::tempdir().expect("dir") };
            for name in ["repo/.git/worktrees/x", "repo/.git/hooks", "repo/.git/objects", "repo/sub", "linked", "out"] {
                fs::create_dir_all(repository.at(name)).expect("dir");
            }
            fs::write(repository.at("repo/.git/HEAD"), "ref: refs/heads/main\n").expect("HEAD");
            repository.write("linked/.git", &format!("gitdir: {}\n", repository.at("repo/.git/worktrees/x").display()));
            repository.write("repo/.git/worktrees/x/gitdir", &format!("{}\n", repository.at("linked/.git").display()));
            repository
        }

        fn at(&self, name: &str) -> PathBuf {
            self.directory.path().canonicalize().expect("root").join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.at(name), text).expect("file");
        }

        fn plan(&self, workspace: &str, git_dirs: &[&str]) -> (Plan, Vec<String>) {
            let mut plan = Plan::new(self.at(workspace), self.at("out"), self.at("out"));
            let git_dirs = git_dirs.iter().map(|name| self.at(name)).collect();
            let notes = add(&FurtherGrants { git_dirs, ..FurtherGrants::default() }, &mut plan);
            (plan, notes)
        }
    }

    #[test]
    fn what_is_configured_is_granted_and_told_and_what_is_gone_or_a_link_is_passed_over() {
        let repository = Repository::new();
        std::os::unix::fs::symlink(repository.at("out"), repository.at("link")).expect("link");
        let mut plan = Plan::new(repository.at("out"), repository.at("out"), repository.at("out"));
        let (read, write) = (["repo/sub", "gone"], ["linked", "link"]);
        let grants = FurtherGrants {
            read: read.map(|name| repository.at(name)).into(),
            write: write.map(|name| repository.at(name)).into(),
            git_dirs: Vec::new(),
        };
        let notes = add(&grants, &mut plan);
        assert_eq!((plan.readable, plan.writable), (vec![repository.at("repo/sub")], vec![repository.at("linked")]));
        assert_eq!(notes.len(), 4);
        for (note, word) in notes.iter().zip(["may read the", "is not granted", "may read and write", "is not granted"])
        {
            assert!(note.contains(word), "{notes:?}");
        }
    }

    #[test]
    fn a_worktree_s_git_directory_is_used_when_it_is_granted_and_named_when_it_is_not() {
        let repository = Repository::new();
        let git = |name: &str| repository.at("repo/.git").join(name);
        let (plan, notes) = repository.plan("linked", &[]);
        assert_eq!((plan.readable.len(), plan.writable.len()), (0, 0));
        assert!(
            notes[0].contains("does not work")
                && notes[0].contains(&format!("[\"{}\"]", repository.at("repo/.git").display()))
        );
        let (plan, notes) = repository.plan("linked", &["repo/.git"]);
        assert_eq!(plan.readable, [repository.at("repo/.git")]);
        assert_eq!(plan.writable, ["objects", "refs", "logs", "worktrees/x"].map(git));
        assert!(notes[0].contains("may use"), "{notes:?}");
        let (plan, notes) = repository.plan("repo/sub", &["repo/.git"]);
        assert_eq!((plan.readable, plan.writable.len()), (vec![repository.at("repo/.git")], 0));
        assert!(notes[0].contains("may read"), "{notes:?}");
        assert!(repository.plan("repo/sub", &[]).1[0].contains("does not work"));
        // Its own git directory is a part of the workspace, and where there is none, there is nothing to say.
        assert_eq!(repository.plan("repo", &["repo/.git"]).1, Vec::<String>::new());
        assert_eq!(repository.plan("out", &["repo/.git"]).1, Vec::<String>::new());
    }

    /// The file in the workspace is the agent's to write.
    #[test]
    fn a_workspace_that_names_another_one_s_git_directory_is_granted_nothing() {
        let repository = Repository::new();
        let pointer = |name: &str| format!("gitdir: {}\n", repository.at(name).display());
        for text in [
            pointer("repo/.git"),
            pointer("repo/.git/hooks"),
            pointer("repo/.git/worktrees"),
            "gitdir: ".to_owned(),
            "nonsense".to_owned(),
        ] {
            repository.write("linked/.git", &text);
            let (plan, notes) = repository.plan("linked", &["repo/.git"]);
            assert_eq!((plan.readable.len(), plan.writable.len(), notes.len()), (0, 0, 0), "{text}");
        }
        fs::remove_file(repository.at("linked/.git")).expect("removed");
        repository.write("out/.git", &pointer("repo/.git/worktrees/x"));
        let (plan, _) = repository.plan("out", &["repo/.git"]);
        assert_eq!(plan.writable.len(), 0, "it points back at another workspace");
    }
}
