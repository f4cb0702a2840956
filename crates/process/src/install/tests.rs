//! The installer with a fabricated environment in place of the tools: locks, renames, manifests, findings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::place::{self, Building, Populated};
use super::*;

const LOCK: &str = "openhands-agent-server==1.2.3 \
                    --hash=sha256:233626748034896214de118f5cf5a319484ad2186705fd595219afee92237ccc\n";
const BUILD: &str = "wheel==1.0 --hash=sha256:233626748034896214de118f5cf5a319484ad2186705fd595219afee92237ccc\n";
pub(super) const PACKAGES: &str = "lib/python3.12/site-packages";

pub(super) fn request(state: &Path) -> InstallRequest<'static> {
    InstallRequest {
        state_dir: state.to_path_buf(),
        version: "1.2.3".to_owned(),
        requirements: LOCK,
        build_requirements: BUILD,
        python: None,
    }
}

/// An environment with one distribution, its RECORD, a link, bytecode and an empty directory.
fn fabricate(building: &Building<'_>, version: &str) -> Result<Populated, InstallError> {
    let root = building.root;
    let packages = root.join(PACKAGES);
    let info = packages.join(format!("openhands_agent_server-{version}.dist-info"));
    let source = "print('server')\n";
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(source));
    let record = format!(
        "openhands/server.py,sha256={hash},{}\n../../../bin/agent-server,sha256={hash},1\n{}/RECORD,,\n",
        source.len(),
        info.file_name().expect("name").to_string_lossy()
    );
    for (path, text) in [
        (packages.join("openhands/server.py"), source),
        (packages.join("openhands/__pycache__/server.cpython-312.pyc"), "bytecode"),
        (info.join("METADATA"), &format!("Name: openhands-agent-server\nVersion: {version}\n")),
        (info.join("RECORD"), &record),
        (root.join(REQUIREMENTS_NAME), building.request.requirements),
        (root.join(BUILD_REQUIREMENTS_NAME), building.request.build_requirements),
    ] {
        fs::create_dir_all(path.parent().expect("parent")).expect("dirs");
        fs::write(path, text).expect("write");
    }
    fs::create_dir_all(root.join("bin")).expect("bin");
    fs::create_dir_all(root.join("include")).expect("include");
    std::os::unix::fs::symlink("/bin/sh", root.join("bin/python")).expect("link");
    let interpreter = Path::new("/bin/sh").canonicalize().expect("sh");
    Ok(Populated { installer: "test", python_version: "3.12.0".to_owned(), interpreter })
}

fn reporter(listener: &dyn Fn(InstallProgress)) -> Reporter<'_> {
    Reporter { began: Instant::now(), listener }
}

pub(super) fn make(state: &Path) -> Installed {
    place::install(&request(state), &reporter(&|_| {}), &|building| fabricate(building, "1.2.3")).expect("installs")
}

fn names(state: &Path) -> Vec<String> {
    let entries = fs::read_dir(state.join("servers")).expect("servers");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("entry").file_name().into_string().expect("name")).collect();
    names.sort();
    names
}

fn findings(installed: &Installed) -> Vec<(FindingKind, String)> {
    verify(installed).findings.into_iter().map(|finding| (finding.kind, finding.path)).collect()
}

#[test]
fn a_whole_install_is_listed_found_and_verified() {
    let state = tempfile::tempdir().expect("dir");
    let installed = make(state.path());
    assert_eq!(installed.executable, installed.root.join("bin/python"));
    assert_eq!(list(state.path()), std::slice::from_ref(&installed));
    assert_eq!(find(state.path(), "1.2.3"), Some(installed.clone()));
    assert_eq!(find_for(&request(state.path())), Some(installed.clone()));
    assert_eq!(find(state.path(), "1.2"), None);
    let report = verify(&installed);
    assert!(report.passed(), "{report:?}");
    assert_eq!((report.files, report.manifest_sha256), (6, installed.manifest_sha256.clone()));
    assert!(!report.interpreter_changed);
    assert_eq!(fs::metadata(&installed.root).expect("root").permissions().mode() & 0o777, 0o700);
    let again = place::install(&request(state.path()), &reporter(&|_| {}), &|_| panic!("built again")).expect("found");
    assert_eq!(again, installed);
}

#[test]
fn every_kind_of_tampering_is_found_and_named() {
    let state = tempfile::tempdir().expect("dir");
    let installed = make(state.path());
    let packages = installed.root.join(PACKAGES);
    fs::write(packages.join("openhands/__pycache__/server.cpython-312.pyc"), "Bytecode").expect("tamper");
    fs::write(packages.join("openhands/server.py"), "print('evil!!')\n").expect("tamper");
    fs::write(packages.join("sitecustomize.py"), "import evil\n").expect("add");
    fs::create_dir(packages.join("shadow")).expect("add");
    fs::remove_dir(installed.root.join("include")).expect("remove");
    fs::remove_file(installed.root.join("bin/python")).expect("unlink");
    std::os::unix::fs::symlink("/tmp/evil", installed.root.join("bin/python")).expect("link");
    let found = findings(&installed);
    for expected in [
        (FindingKind::Missing, "include".to_owned()),
        (FindingKind::Unknown, format!("{PACKAGES}/shadow")),
        (FindingKind::Unknown, format!("{PACKAGES}/sitecustomize.py")),
        (FindingKind::Changed, "bin/python".to_owned()),
        (FindingKind::Changed, format!("{PACKAGES}/openhands/server.py")),
        (FindingKind::Changed, format!("{PACKAGES}/openhands/__pycache__/server.cpython-312.pyc")),
        (FindingKind::NotAsDistributed, format!("{PACKAGES}/openhands/server.py")),
    ] {
        assert!(found.contains(&expected), "{expected:?} not in {found:?}");
    }
    assert_eq!(found.len(), 7, "{found:?}");
}

#[test]
fn a_tampered_file_with_a_matching_manifest_still_differs_from_its_record() {
    let state = tempfile::tempdir().expect("dir");
    let installed = make(state.path());
    let file = installed.root.join(PACKAGES).join("openhands/server.py");
    fs::write(&file, "print('evil!!')\n").expect("tamper");
    let (mut forged, _) = manifest::read(&installed.root).expect("manifest");
    let entry = manifest::hash_file(&file).expect("hash");
    forged.files.insert(format!("{PACKAGES}/openhands/server.py"), entry);
    fs::remove_file(installed.root.join(manifest::MANIFEST_NAME)).expect("remove");
    manifest::write(&installed.root, &forged).expect("write");
    assert_eq!(findings(&installed), [(FindingKind::NotAsDistributed, format!("{PACKAGES}/openhands/server.py"))]);
}

#[test]
fn many_findings_are_counted_and_not_all_listed() {
    let state = tempfile::tempdir().expect("dir");
    let installed = make(state.path());
    for index in 0..80 {
        fs::write(installed.root.join(format!("extra{index:02}")), "x").expect("add");
    }
    let report = verify(&installed);
    assert_eq!((report.findings.len(), report.unlisted), (50, 30));
    assert!(!report.passed());
}

#[test]
fn a_removed_or_broken_manifest_never_passes() {
    let state = tempfile::tempdir().expect("dir");
    let installed = make(state.path());
    let path = installed.root.join(manifest::MANIFEST_NAME);
    let text = fs::read_to_string(&path).expect("manifest");
    fs::write(&path, &text[..text.len() / 2]).expect("cut");
    assert_eq!(list(state.path()), []);
    assert!(!verify(&installed).passed());
    fs::remove_file(&path).expect("remove");
    assert!(!verify(&installed).passed());
}

#[test]
fn a_failed_build_leaves_nothing_and_is_not_listed() {
    let state = tempfile::tempdir().expect("dir");
    let failing = |building: &Building<'_>| -> Result<Populated, InstallError> {
        fabricate(building, "1.2.3")?;
        Err(InstallError::Tool { what: "testing", detail: "broke".to_owned() })
    };
    assert!(place::install(&request(state.path()), &reporter(&|_| {}), &failing).is_err());
    assert_eq!(names(state.path()), [".lock"]);
    assert_eq!(list(state.path()), []);
}

#[test]
fn what_is_not_as_locked_is_not_put_into_place() {
    let state = tempfile::tempdir().expect("dir");
    let other = |building: &Building<'_>| fabricate(building, "1.2.4");
    let error = place::install(&request(state.path()), &reporter(&|_| {}), &other).expect_err("not locked");
    assert!(error.to_string().contains("openhands-agent-server 1.2.4"), "{error}");
    assert_eq!(names(state.path()), [".lock"]);
}

#[test]
fn leftovers_of_dead_installers_go_and_a_half_made_target_is_replaced() {
    let state = tempfile::tempdir().expect("dir");
    let servers = state.path().join("servers");
    fs::create_dir_all(servers.join(".building-dead/lib/python3.12")).expect("leftover");
    let target = place::target(&request(state.path())).expect("target");
    fs::create_dir_all(target.join("bin")).expect("half");
    assert_eq!(find(state.path(), "1.2.3"), None, "no manifest, no install");
    let installed = make(state.path());
    assert!(verify(&installed).passed());
    let name = target.file_name().expect("name").to_string_lossy().into_owned();
    assert_eq!(names(state.path()), [".lock".to_owned(), name]);
}

#[test]
fn two_at_once_build_once_and_the_second_says_that_it_waits() {
    let state = tempfile::tempdir().expect("dir");
    let builds = AtomicUsize::new(0);
    let waited = AtomicBool::new(false);
    let slow = |building: &Building<'_>| {
        builds.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(600));
        fabricate(building, "1.2.3")
    };
    let hear = |progress: InstallProgress| {
        if progress.phase == InstallPhase::Waiting {
            waited.store(true, Ordering::SeqCst);
        }
    };
    let both = std::thread::scope(|scope| {
        let run = || place::install(&request(state.path()), &reporter(&hear), &slow).expect("installs");
        let handles = [scope.spawn(run), scope.spawn(run)];
        handles.map(|handle| handle.join().expect("joins"))
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(builds.load(Ordering::SeqCst), 1);
    assert!(waited.load(Ordering::SeqCst));
}

#[test]
fn a_tool_that_outlives_its_installer_keeps_the_lock() {
    let state = tempfile::tempdir().expect("dir");
    let lock = state.path().join("lock");
    let file = fs::File::create(&lock).expect("lock");
    file.lock().expect("locked");
    let stdin = file.try_clone().expect("clone");
    let mut command = std::process::Command::new("/bin/sleep");
    command.arg("30").stdin(stdin);
    let spawned = crate::children::spawn_known(|| command.spawn(), std::process::Child::id);
    let mut tool = spawned.expect("tool");
    drop((file, command));
    let other = fs::File::open(&lock).expect("open");
    assert!(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock)));
    tool.kill().expect("kill");
    tool.wait().expect("wait");
    crate::children::forget(tool.id());
    other.try_lock().expect("free");
}

#[test]
fn other_locked_requirements_are_another_install() {
    let state = tempfile::tempdir().expect("dir");
    let first = make(state.path());
    let changed = format!("{LOCK}# reviewed again\n");
    let request = InstallRequest { requirements: &changed, ..request(state.path()) };
    assert_eq!(find_for(&request), None);
    let second =
        place::install(&request, &reporter(&|_| {}), &|building| fabricate(building, "1.2.3")).expect("second");
    assert_ne!(first.root, second.root);
    assert_eq!(list(state.path()).len(), 2);
}

#[test]
fn a_version_that_is_a_path_is_refused() {
    let state = tempfile::tempdir().expect("dir");
    for version in ["../1", "", ".hidden", "1/2", "1-2"] {
        let request = InstallRequest { version: version.to_owned(), ..request(state.path()) };
        assert!(matches!(place::target(&request), Err(InstallError::Version(_))), "{version}");
    }
}
