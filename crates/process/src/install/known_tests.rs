//! What is known again, and that nothing that was changed is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::tests::{PACKAGES, make, request};
use super::*;
use crate::install::{FindingKind, verify};

/// Longer than a tick of any file system's clock.
const TICK: Duration = Duration::from_millis(50);

/// As it is for an old install, wherever the tests run.
fn of_old() -> KnownInstall {
    KnownInstall { margin: Duration::ZERO, keeps_ctime: |_| true, ..KnownInstall::default() }
}

fn settled(state: &Path) -> Installed {
    let installed = make(state);
    std::thread::sleep(TICK);
    installed
}

fn knows(known: &KnownInstall) -> bool {
    known.known.lock().expect("no panic").is_some()
}

#[test]
fn an_install_is_hashed_once_and_known_again() {
    let state = tempfile::tempdir().expect("dir");
    let (installed, known) = (settled(state.path()), of_old());
    let (first, is_hashed) = known.look(&installed);
    assert!(first.passed() && is_hashed, "{first:?}");
    for _ in 0..3 {
        assert_eq!(known.look(&installed), (first.clone(), false));
    }
    assert_eq!(of_old().look(&installed), (first, true), "evidence is of one process");
}

/// As long as what stands there.
const OTHER: &str = "print('servel')\n";

/// A change of an install of which its content, kind, place or owner may say nothing.
type Change = fn(&Path);

fn file(root: &Path) -> PathBuf {
    root.join(PACKAGES).join("openhands/server.py")
}

/// The times of a file as any process may set them: those of the file before.
fn set_times(path: &Path, of: &fs::Metadata) {
    let times =
        fs::FileTimes::new().set_accessed(of.accessed().expect("time")).set_modified(of.modified().expect("time"));
    fs::File::open(path).expect("open").set_times(times).expect("utimensat");
    assert_eq!(fs::metadata(path).expect("file").modified().expect("time"), of.modified().expect("time"));
}

#[test]
fn whatever_is_changed_after_it_was_hashed_is_found_as_if_it_had_not_been() {
    let changes: [(&str, Change, &[FindingKind]); 9] = [
        (
            "same size, its old times put back",
            |root| {
                let before = fs::metadata(file(root)).expect("file");
                fs::write(file(root), OTHER).expect("write");
                set_times(&file(root), &before);
            },
            &[FindingKind::Changed, FindingKind::NotAsDistributed],
        ),
        (
            "another file in its place, with its size and times",
            |root| {
                let (before, aside) = (fs::metadata(file(root)).expect("file"), root.join("../../aside"));
                fs::write(&aside, OTHER).expect("write");
                set_times(&aside, &before);
                fs::rename(&aside, file(root)).expect("rename");
            },
            &[FindingKind::Changed, FindingKind::NotAsDistributed],
        ),
        (
            "a directory in its place",
            |root| {
                let (directory, aside) = (file(root).parent().expect("parent").to_owned(), root.join("../../aside"));
                fs::rename(&directory, &aside).expect("rename");
                fs::create_dir_all(directory.join("__pycache__")).expect("dirs");
                for name in ["server.py", "__pycache__/server.cpython-312.pyc"] {
                    fs::write(directory.join(name), OTHER).expect("write");
                    set_times(&directory.join(name), &fs::metadata(aside.join(name)).expect("file"));
                }
            },
            &[FindingKind::Changed, FindingKind::Changed, FindingKind::NotAsDistributed],
        ),
        ("a file added", |root| fs::write(root.join("lib/new.py"), "").expect("write"), &[FindingKind::Unknown]),
        ("a directory added", |root| fs::create_dir(root.join("lib/new")).expect("dir"), &[FindingKind::Unknown]),
        ("a file removed", |root| fs::remove_file(file(root)).expect("remove"), &[FindingKind::Missing]),
        ("a directory removed", |root| fs::remove_dir(root.join("include")).expect("remove"), &[FindingKind::Missing]),
        (
            "another link",
            |root| {
                fs::remove_file(root.join("bin/python")).expect("remove");
                symlink("/bin/ls", root.join("bin/python")).expect("link");
            },
            &[FindingKind::Changed],
        ),
        (
            "a link in the place of a file, to the same content",
            |root| {
                fs::rename(file(root), root.join("../../aside")).expect("rename");
                symlink(root.join("../../aside"), file(root)).expect("link");
            },
            &[FindingKind::Missing, FindingKind::Unknown],
        ),
    ];
    for (what, change, kinds) in changes {
        let state = tempfile::tempdir().expect("dir");
        let (installed, known) = (settled(state.path()), of_old());
        assert!(known.verify(&installed).passed() && !known.look(&installed).1, "{what}");
        change(&installed.root);
        let (report, is_hashed) = known.look(&installed);
        assert!(is_hashed, "{what}");
        assert_eq!(report, verify(&installed), "{what}");
        let mut found: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
        found.sort();
        let mut kinds = kinds.to_vec();
        kinds.sort();
        assert_eq!(found, kinds, "{what}");
        assert!(!knows(&known), "{what}: what was known before is forgotten");
    }
}

#[test]
fn what_makes_no_finding_is_hashed_again_all_the_same() {
    let changes: [(&str, Change); 4] = [
        ("a mode", |root| {
            let mode = fs::metadata(file(root)).expect("file").permissions().mode();
            fs::set_permissions(file(root), fs::Permissions::from_mode(mode ^ 0o100)).expect("mode");
        }),
        ("a further name", |root| fs::hard_link(file(root), root.join("../../aside")).expect("link")),
        ("the same content written again", |root| fs::write(file(root), "print('server')\n").expect("write")),
        ("the manifest written again", |root| {
            let path = root.join(manifest::MANIFEST_NAME);
            let text = fs::read(&path).expect("manifest");
            fs::remove_file(&path).expect("remove");
            fs::write(&path, text).expect("write");
        }),
    ];
    for (what, change) in changes {
        let state = tempfile::tempdir().expect("dir");
        let (installed, known) = (settled(state.path()), of_old());
        assert!(known.verify(&installed).passed() && !known.look(&installed).1, "{what}");
        change(&installed.root);
        let (report, is_hashed) = known.look(&installed);
        assert!(report.passed() && is_hashed, "{what}: {report:?}");
    }
}

#[test]
fn what_was_changed_within_the_margin_or_where_ctime_may_lie_is_not_known() {
    let state = tempfile::tempdir().expect("dir");
    let installed = settled(state.path());
    for known in [KnownInstall { margin: MARGIN, ..of_old() }, KnownInstall { keeps_ctime: |_| false, ..of_old() }] {
        for _ in 0..2 {
            let (report, is_hashed) = known.look(&installed);
            assert!(report.passed() && is_hashed && !knows(&known));
        }
    }
    let ahead = SystemTime::now() + Duration::from_secs(3600);
    let handle = fs::File::open(file(&installed.root)).expect("open");
    handle.set_times(fs::FileTimes::new().set_modified(ahead)).expect("utimensat");
    std::thread::sleep(TICK);
    let known = of_old();
    assert!(known.verify(&installed).passed() && !knows(&known), "a time ahead of the clock");
}

#[test]
fn another_manifest_or_root_is_another_install() {
    let state = tempfile::tempdir().expect("dir");
    let (installed, known) = (settled(state.path()), of_old());
    known.verify(&installed);
    let other = Installed { manifest_sha256: "0".repeat(64), ..installed.clone() };
    assert!(known.look(&other).1);
    let elsewhere = settled(&state.path().join("elsewhere"));
    assert!(known.look(&elsewhere).1);
    assert!(known.look(&installed).1, "one is known at a time");
}

#[test]
fn what_is_altered_when_it_is_hashed_is_never_known() {
    let state = tempfile::tempdir().expect("dir");
    let (installed, known) = (settled(state.path()), of_old());
    fs::write(file(&installed.root), OTHER).expect("write");
    std::thread::sleep(TICK);
    for _ in 0..2 {
        let (report, is_hashed) = known.look(&installed);
        assert!(!report.passed() && is_hashed && !knows(&known));
    }
}

#[test]
fn a_manifest_is_read_again_once_it_or_its_directory_was_changed() {
    let state = tempfile::tempdir().expect("dir");
    let (installed, known) = (settled(state.path()), of_old());
    let request = request(state.path());
    let holds = |known: &KnownInstall| known.found.lock().expect("no panic").is_some();
    assert_eq!(known.find_for(&request), Some(installed.clone()));
    assert!(holds(&known));
    assert_eq!(known.find_for(&request), Some(installed.clone()));
    let path = installed.root.join(manifest::MANIFEST_NAME);
    let (before, text) = (fs::metadata(&path).expect("manifest"), fs::read_to_string(&path).expect("manifest"));
    fs::write(&path, text.replace("3.12.0", "3.12.9")).expect("write");
    set_times(&path, &before);
    assert_eq!(known.find_for(&request).map(|installed| installed.python), Some("3.12.9".to_owned()));
    fs::write(&path, text.replace('{', "[")).expect("write");
    assert_eq!((known.find_for(&request), holds(&known)), (None, false));
    fs::remove_file(&path).expect("remove");
    assert_eq!(known.find_for(&request), None);
    let young = KnownInstall { margin: MARGIN, ..of_old() };
    fs::write(&path, text).expect("write");
    assert_eq!((young.find_for(&request), holds(&young)), (Some(installed), false));
}
