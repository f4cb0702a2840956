//! What surrounds a pending batch: the files its commands name, and the processes that earlier ones left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::view::{BackgroundProcess, NamedFile};

/// Largest file that is hashed.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Most left processes that are listed.
const MAX_PROCESSES: usize = 64;
/// Shown batches remembered for one session, by token.
const MAX_SHOWN: usize = 128;

/// The files of the workspace that these commands name, hashed now. Blocking.
pub(crate) fn hash_named(workspace: &Path, arguments: &[Value]) -> Vec<NamedFile> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for word in arguments.iter().flat_map(rules::scripts::named_files) {
        let Ok(resolved) = workspace.join(&word).canonicalize() else { continue };
        let Ok(relative) = resolved.strip_prefix(workspace) else { continue };
        if resolved.is_file() && found.len() < rules::scripts::MAX_NAMED_FILES {
            found.entry(relative.to_string_lossy().into_owned()).or_insert_with(|| sha256(&resolved));
        }
    }
    found.into_iter().map(|(path, sha256)| NamedFile { path, sha256 }).collect()
}

fn sha256(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    file.rewind().ok()?;
    let mut hasher = Sha256::new();
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).ok()?;
    hasher.update(&content);
    Some(hex::encode(hasher.finalize()))
}

/// Processes in the server's tree that earlier commands left: everything but tmux and the shells of its panes.
pub(crate) fn left_processes(server_pid: u32) -> Vec<BackgroundProcess> {
    let Ok(tree) = host::tree::descendants_of(server_pid) else { return Vec::new() };
    let is_tmux = |pid: u32| tree.iter().any(|process| process.pid == pid && process.name.starts_with("tmux"));
    tree.iter()
        .filter(|process| !process.name.starts_with("tmux") && !is_tmux(process.parent_pid))
        .take(MAX_PROCESSES)
        .map(|process| BackgroundProcess { pid: process.pid, name: process.name.clone() })
        .collect()
}

/// What each token was shown of the files that a batch names.
#[derive(Debug, Default)]
pub(crate) struct ShownFiles {
    shown: BTreeMap<(String, String), Vec<NamedFile>>,
}

impl ShownFiles {
    /// Notes what the holder of this token saw.
    pub(crate) fn note(&mut self, approval_id: &str, token_name: &str, files: Vec<NamedFile>) {
        if self.shown.len() >= MAX_SHOWN {
            self.shown.clear();
        }
        self.shown.insert((approval_id.to_owned(), token_name.to_owned()), files);
    }

    /// Whether the files are as this token's holder saw them.
    ///
    /// # Errors
    /// `approval_not_shown_in_full` when files are named and were never shown, `approval_superseded` naming the first
    /// that changed.
    pub(crate) fn check(&self, approval_id: &str, token_name: &str, now: &[NamedFile]) -> Result<(), Refusal> {
        let Some(seen) = self.shown.get(&(approval_id.to_owned(), token_name.to_owned())) else {
            if now.is_empty() {
                return Ok(());
            }
            let detail = "the commands name files of the workspace; look at the approval under this token, then accept";
            return Err(Refusal::new(RefusalCode::ApprovalNotShownInFull, detail));
        };
        let changed =
            now.iter().find(|file| !seen.contains(file)).or_else(|| seen.iter().find(|file| !now.contains(file)));
        match changed {
            None => Ok(()),
            Some(file) => {
                let detail = format!("{} changed since it was shown; look at the approval again", file.path);
                Err(Refusal::new(RefusalCode::ApprovalSuperseded, detail))
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
        assert_eq!(found, [NamedFile { path: "a.sh".to_owned(), sha256: Some(expected) }]);
    }

    #[test]
    fn a_changed_new_or_vanished_file_refuses_the_accept() {
        let workspace = tempfile::tempdir().unwrap();
        let script = workspace.path().join("a.sh");
        std::fs::write(&script, "echo a").unwrap();
        let mut shown = ShownFiles::default();
        let command = "sh a.sh b.sh";
        let refused = shown.check("x", "owner", &named(workspace.path(), command)).unwrap_err();
        assert_eq!(refused.code, RefusalCode::ApprovalNotShownInFull);
        shown.note("x", "owner", named(workspace.path(), command));
        shown.check("x", "owner", &named(workspace.path(), command)).unwrap();
        std::fs::write(&script, "echo b").unwrap();
        assert_eq!(
            shown.check("x", "owner", &named(workspace.path(), command)).unwrap_err().code,
            RefusalCode::ApprovalSuperseded
        );
        std::fs::write(&script, "echo a").unwrap();
        std::fs::write(workspace.path().join("b.sh"), "").unwrap();
        assert!(shown.check("x", "owner", &named(workspace.path(), command)).unwrap_err().detail.starts_with("b.sh"));
        std::fs::remove_file(workspace.path().join("b.sh")).unwrap();
        std::fs::remove_file(&script).unwrap();
        assert!(shown.check("x", "owner", &named(workspace.path(), command)).unwrap_err().detail.starts_with("a.sh"));
        assert!(shown.check("x", "other", &[]).is_ok());
    }
}
