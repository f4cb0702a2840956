//! What a server makes in the directory for temporary files that everybody shares.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use gatepost_tests::Scene;
use testkit::daemon::UNPRIVILEGED_USER;

/// Entries of that user. Root has an ordinary one to itself; anyone else shares it with what runs beside the tests, so only
/// what servers are known to make is looked at.
fn entries(is_root: bool) -> BTreeSet<String> {
    let entries = fs::read_dir("/tmp").unwrap().flatten();
    let owned = entries.filter(|entry| !is_root || entry.metadata().is_ok_and(|data| data.uid() == UNPRIVILEGED_USER));
    let names = owned.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| is_root || name.starts_with("browser-use")).collect()
}

#[test]
fn a_server_leaves_nothing_among_the_temporary_files_of_all() {
    let is_root = host::hygiene::is_root();
    let before = entries(is_root);
    let scene = Scene::ordinary();
    let session = scene.session();
    session.turn("say: hello");
    let own = scene.home().path().file_name().unwrap().to_string_lossy().into_owned();
    let meanwhile: BTreeSet<String> = entries(is_root).into_iter().filter(|name| *name != own).collect();
    assert_eq!(meanwhile, before, "while it runs");
    scene.finish();
    assert_eq!(entries(is_root), before, "when it has ended");
}
