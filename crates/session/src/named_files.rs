//! What surrounds a pending batch: the files its commands name, and the processes that earlier ones left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;

use crate::view::{BackgroundProcess, NamedFile};

/// Largest file that is hashed.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Most files hashed for one batch.
const MAX_FILES: usize = 256;
/// Most left processes that are listed.
const MAX_PROCESSES: usize = 64;

/// The files of the workspace that these commands name, hashed now. Blocking.
pub(crate) fn hash_named(workspace: &Path, arguments: &[Value]) -> Vec<NamedFile> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for word in arguments.iter().flat_map(rules::scripts::named_files) {
        let Ok(resolved) = workspace.join(&word).canonicalize() else { continue };
        let Ok(relative) = resolved.strip_prefix(workspace) else { continue };
        if resolved.is_file() && found.len() < MAX_FILES {
            found.entry(relative.to_string_lossy().into_owned()).or_insert_with(|| sha256(&resolved));
        }
    }
    found.into_iter().map(|(path, sha256)| NamedFile { path, sha256, changed: false }).collect()
}

fn sha256(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(rules::jcs::sha256_hex(&content))
}

/// Processes below `root`, the top of the server's tree, that earlier commands left: everything but the server, tmux and the
/// shells of its panes.
pub(crate) fn left_processes(root: u32, server: u32) -> Vec<BackgroundProcess> {
    let Ok(tree) = host::tree::descendants_of(root) else { return Vec::new() };
    let is_tmux = |pid: u32| tree.iter().any(|process| process.pid == pid && process.name.starts_with("tmux"));
    tree.iter()
        .filter(|process| process.pid != server && !process.name.starts_with("tmux") && !is_tmux(process.parent_pid))
        .take(MAX_PROCESSES)
        .map(|process| BackgroundProcess { pid: process.pid, name: process.name.clone() })
        .collect()
}

/// The files that a batch names, as they were when it was first seen to wait: what is accepted must not have changed since.
#[derive(Debug, Default)]
pub(crate) struct PinnedFiles {
    approval_id: String,
    files: Vec<NamedFile>,
}

impl PinnedFiles {
    /// Pins the files of a batch; one that is pinned already stays as it was first seen.
    pub(crate) fn pin(&mut self, approval_id: &str, now: &[NamedFile]) {
        if self.approval_id != approval_id {
            *self = Self { approval_id: approval_id.to_owned(), files: now.to_vec() };
        }
    }

    /// The files as they are now, with those marked that are not as they were pinned.
    pub(crate) fn mark(&self, now: Vec<NamedFile>) -> Vec<NamedFile> {
        let gone = self.files.iter().filter(|file| !now.iter().any(|other| other.path == file.path));
        let gone: Vec<NamedFile> =
            gone.map(|file| NamedFile { path: file.path.clone(), sha256: None, changed: true }).collect();
        now.into_iter()
            .map(|file| {
                let changed = !self.files.contains(&file);
                NamedFile { changed, ..file }
            })
            .chain(gone)
            .collect()
    }

    /// Whether this is the batch that is pinned, and nothing changed since it was first seen.
    ///
    /// # Errors
    /// `named_file_changed`, naming the first that did.
    pub(crate) fn check(&self, approval_id: &str, now: Vec<NamedFile>) -> Result<(), Refusal> {
        if self.approval_id != approval_id {
            let detail = "the files that the batch names were not seen when it was shown; list the approvals again";
            return Err(Refusal::new(RefusalCode::NamedFileChanged, detail));
        }
        match self.mark(now).into_iter().find(|file| file.changed) {
            None => Ok(()),
            Some(file) => {
                let detail = format!("{} changed since the batch was shown; reject it and prompt again", file.path);
                Err(Refusal::new(RefusalCode::NamedFileChanged, detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(workspace: &Path, command: &str) -> Vec<NamedFile> {
        hash_named(&workspace.canonicalize().unwrap(), &[json!({"command": command})])
    }

    #[test]
    fn only_files_of_the_workspace_are_hashed() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.sh"), "echo a").unwrap();
        std::fs::create_dir(workspace.path().join("d")).unwrap();
        let found = named(workspace.path(), "sh ./a.sh && cat /etc/passwd d missing");
        let expected = rules::jcs::sha256_hex(b"echo a");
        assert_eq!(found, [NamedFile { path: "a.sh".to_owned(), sha256: Some(expected), changed: false }]);
    }

    #[test]
    fn a_padded_command_hides_no_file() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.sh"), "echo a").unwrap();
        let padding: String = (0..5000).map(|number| format!("w{number} ")).collect();
        assert_eq!(named(workspace.path(), &format!("echo {padding}; sh a.sh")).len(), 1);
    }

    #[test]
    fn a_changed_new_or_vanished_file_refuses_the_accept() {
        let workspace = tempfile::tempdir().unwrap();
        let script = workspace.path().join("a.sh");
        let now = || named(workspace.path(), "sh a.sh b.sh");
        let refused = |pinned: &PinnedFiles| {
            let refusal = pinned.check("x", now()).unwrap_err();
            assert_eq!(refusal.code, RefusalCode::NamedFileChanged);
            refusal.detail
        };
        std::fs::write(&script, "echo a").unwrap();
        let mut pinned = PinnedFiles::default();
        assert!(refused(&pinned).contains("not seen"));
        pinned.pin("x", &now());
        pinned.check("x", now()).unwrap();
        std::fs::write(&script, "echo b").unwrap();
        pinned.pin("x", &now());
        assert!(refused(&pinned).starts_with("a.sh"), "another look does not pin anew");
        assert!(pinned.mark(now()).iter().all(|file| file.changed));
        std::fs::write(&script, "echo a").unwrap();
        std::fs::write(workspace.path().join("b.sh"), "").unwrap();
        assert!(refused(&pinned).starts_with("b.sh"));
        std::fs::remove_file(workspace.path().join("b.sh")).unwrap();
        std::fs::remove_file(&script).unwrap();
        assert!(refused(&pinned).starts_with("a.sh"));
        pinned.pin("y", &now());
        pinned.check("y", now()).unwrap();
        assert!(refused(&pinned).contains("not seen"), "another batch is pinned");
    }
}
