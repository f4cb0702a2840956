//! Where an agent may work, and what lies there that would run by itself.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rules::refusal::{Refusal, RefusalCode};
use rules::workspace::{ContentFinding, INSTRUCTION_FILES, SCAN_PATHS, WorkspaceFile};

/// Most entries looked at below one content folder; more is itself a reason to refuse.
const MAX_CONTENT_ENTRIES: usize = 4096;
/// Most bytes of a file that are read to look for embedded commands; a longer one counts as unreadable.
const MAX_CONTENT_BYTES: u64 = 1024 * 1024;
/// Deepest nesting below a content folder.
const MAX_DEPTH: usize = 16;

/// The directory as the kernel resolves it, when it lies within one of the roots, which are resolved already.
///
/// # Errors
/// `workspace_outside_roots` when it resolves elsewhere, `workspace_not_found` when it is no directory, `invalid_value` when
/// the path is not absolute or not UTF-8.
pub(crate) fn resolve(requested: &str, roots: &[String]) -> Result<PathBuf, Refusal> {
    let path = Path::new(requested);
    if !path.is_absolute() {
        return Err(Refusal::new(
            RefusalCode::InvalidValue,
            format!("workspace must be an absolute path: {requested}"),
        ));
    }
    let resolved = path
        .canonicalize()
        .map_err(|error| Refusal::new(RefusalCode::WorkspaceNotFound, format!("workspace {requested}: {error}")))?;
    if !resolved.is_dir() {
        return Err(Refusal::new(RefusalCode::WorkspaceNotFound, format!("workspace {requested} is not a directory")));
    }
    if rules::workspace::is_within(&resolved.to_string_lossy(), roots) {
        return Ok(resolved);
    }
    Err(Refusal::new(
        RefusalCode::WorkspaceOutsideRoots,
        format!(
            "{} lies in none of the configured workspace roots; add one under [workspaces] roots",
            resolved.display()
        ),
    ))
}

/// A file that a scan came upon.
struct Found {
    path: String,
    text: Option<String>,
}

/// Everything in the workspace and its enclosing git root that would run or load by itself.
///
/// # Errors
/// `workspace_content` when the tree cannot be read whole: what cannot be seen is not trusted.
pub(crate) fn scan(workspace: &Path) -> Result<Vec<ContentFinding>, Refusal> {
    let mut findings = scan_directory(workspace)?;
    if let Some(root) = enclosing_git_root(workspace) {
        for mut finding in scan_directory(&root)? {
            finding.path = root.join(&finding.path).to_string_lossy().into_owned();
            findings.push(finding);
        }
    }
    Ok(findings)
}

/// The nearest ancestor that holds `.git`, when it is not the workspace itself.
fn enclosing_git_root(workspace: &Path) -> Option<PathBuf> {
    workspace.ancestors().skip(1).find(|ancestor| ancestor.join(".git").exists()).map(Path::to_path_buf)
}

fn scan_directory(root: &Path) -> Result<Vec<ContentFinding>, Refusal> {
    let mut items = Vec::new();
    for path in SCAN_PATHS {
        if root.join(path).symlink_metadata().is_ok() {
            walk(&root.join(path), path, 0, &mut items)?;
        }
    }
    let entries = fs::read_dir(root).map_err(|error| unreadable(&root.to_string_lossy(), &error.to_string()))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&root.to_string_lossy(), &error.to_string()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if INSTRUCTION_FILES.contains(&name.to_lowercase().as_str()) {
            items.push(read_item(&entry.path(), name)?);
        }
    }
    let files: Vec<WorkspaceFile<'_>> =
        items.iter().map(|item| WorkspaceFile { path: &item.path, text: item.text.as_deref() }).collect();
    Ok(rules::workspace::content_findings(&files))
}

fn walk(path: &Path, label: &str, depth: usize, items: &mut Vec<Found>) -> Result<(), Refusal> {
    if depth > MAX_DEPTH || items.len() > MAX_CONTENT_ENTRIES {
        return Err(unreadable(label, "too deep or too many entries"));
    }
    // Symbolic links are followed: the server follows them too.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(label, &error.to_string())),
    };
    if !metadata.is_dir() {
        items.push(read_item(path, label.to_owned())?);
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|error| unreadable(label, &error.to_string()))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(label, &error.to_string()))?;
        let name = entry.file_name();
        walk(&entry.path(), &format!("{label}/{}", name.to_string_lossy()), depth + 1, items)?;
    }
    Ok(())
}

fn read_item(path: &Path, label: String) -> Result<Found, Refusal> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&label, &error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_CONTENT_BYTES {
        return Ok(Found { path: label, text: None });
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_CONTENT_BYTES).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&label, &error.to_string()))?;
    Ok(Found { path: label, text: String::from_utf8(bytes).ok() })
}

fn unreadable(label: &str, why: &str) -> Refusal {
    Refusal::new(
        RefusalCode::WorkspaceContent,
        format!("{label} cannot be checked for content that runs by itself: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(path: &Path) -> String {
        path.canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_symbolic_link_out_of_the_root_is_outside() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        let roots = [resolved(root.path())];
        let refusal = resolve(root.path().join("link").to_str().unwrap(), &roots).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::WorkspaceOutsideRoots);
    }

    #[test]
    fn a_directory_within_the_root_is_resolved() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        let found = resolve(root.path().join("a/../a").to_str().unwrap(), &[resolved(root.path())]).unwrap();
        assert_eq!(found, root.path().canonicalize().unwrap().join("a"));
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("src")).unwrap();
        fs::create_dir(parent.path().join("src-evil")).unwrap();
        let refusal =
            resolve(parent.path().join("src-evil").to_str().unwrap(), &[resolved(&parent.path().join("src"))])
                .unwrap_err();
        assert_eq!(refusal.code, RefusalCode::WorkspaceOutsideRoots);
    }

    #[test]
    fn a_plugin_in_the_workspace_and_in_the_git_root_are_both_named() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        let workspace = root.path().join("project");
        for base in [root.path(), workspace.as_path()] {
            let hooks = base.join(".openhands/plugins/p/hooks");
            fs::create_dir_all(&hooks).unwrap();
            fs::write(hooks.join("hooks.json"), "{}").unwrap();
        }
        let named: Vec<String> = scan(&workspace).unwrap().into_iter().map(|finding| finding.path).collect();
        assert!(named.iter().any(|path| path == ".openhands/plugins/p/hooks/hooks.json"), "{named:?}");
        assert!(named.iter().any(|path| path.starts_with(root.path().to_str().unwrap())), "{named:?}");
    }

    #[test]
    fn a_plain_workspace_has_no_findings() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("README.md"), "hello").unwrap();
        assert!(scan(root.path()).unwrap().is_empty());
    }
}
