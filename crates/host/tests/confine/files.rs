//! What no rule grants, and the ways around that were tried.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use host::confine::{ConfineError, Confinement, Missing};
use rules::confinement::{Plan, Policy};

use crate::common::{As, in_own_process};
use crate::stage::{Stage, confined_by_policy, failure, refused_if_known, write};

/// What the user may do, and a confined process may not: each with its name.
fn forbidden(stage: &Stage) -> Vec<(&'static str, io::Result<()>)> {
    let (home, outside, workspace) = (&stage.plan.home, stage.outside(), &stage.plan.workspace);
    let append = |path: PathBuf| OpenOptions::new().append(true).open(path).map(drop);
    let link = workspace.join("a-link");
    fs::remove_file(&link).ok();
    symlink(outside.join("data"), &link).unwrap();
    let device = |path: &Path| {
        let made = rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::CharacterDevice, 0o600.into(), 0);
        fs::remove_file(path).ok();
        made.map_err(io::Error::from)
    };
    vec![
        ("reading a file", File::open(outside.join("data")).map(drop)),
        ("listing a directory", fs::read_dir(&outside).map(drop)),
        ("writing a file", append(outside.join("data"))),
        ("cutting a file", truncate(&outside.join("data"))),
        ("creating a file", File::create(outside.join("new")).map(drop)),
        ("making a directory", fs::create_dir(outside.join("directory"))),
        ("removing a file", fs::remove_file(outside.join("removed"))),
        ("executing a file", Command::new(outside.join("true")).status().map(drop)),
        ("reading through a link in the workspace", File::open(&link).map(drop)),
        ("writing through a link in the workspace", append(link)),
        ("reading the home directory", fs::read_dir(home).map(drop)),
        ("writing the home directory", File::create(home.join(".new")).map(drop)),
        ("writing the shell's settings", append(home.join(".bashrc"))),
        ("reading a key", File::open(home.join(".ssh/id")).map(drop)),
        ("adding a key", append(home.join(".ssh/authorized_keys"))),
        ("reading git's credentials", File::open(home.join(".config/git/credentials")).map(drop)),
        ("writing git's settings", append(home.join(".gitconfig"))),
        ("writing where all write", File::create("/tmp/gatepost-test-confine").map(drop)),
        ("listing where all write", fs::read_dir("/tmp").map(drop)),
        ("writing a setting of the own process", append(PathBuf::from("/proc/self/comm"))),
        ("making a device", device(&workspace.join("device"))),
    ]
}

fn truncate(path: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is NUL-terminated and lives until the call is over.
    if unsafe { libc::truncate(path.as_ptr(), 1) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn fill(stage: &Stage) {
    fs::remove_dir(stage.outside().join("directory")).ok();
    for name in ["data", "removed"] {
        write(&stage.outside().join(name), "content");
    }
    fs::copy("/bin/true", stage.outside().join("true")).unwrap();
    fs::copy("/bin/true", stage.plan.readable[0].join("true")).unwrap();
    for name in [".bashrc", ".ssh/id", ".ssh/authorized_keys", ".config/git/credentials", ".gitconfig"] {
        write(&stage.plan.home.join(name), "content");
    }
}

#[test]
fn what_is_not_granted_is_refused() {
    in_own_process("files::what_is_not_granted_is_refused", As::Unprivileged, || {
        let stage = Stage::new();
        fill(&stage);
        for (what, attempt) in forbidden(&stage) {
            assert_eq!(failure(attempt), None, "{what}, not confined");
        }
        fs::remove_file("/tmp/gatepost-test-confine").unwrap();
        fill(&stage);
        confined_by_policy(&stage, || {
            for (what, attempt) in forbidden(&stage) {
                let part = if what == "cutting a file" { Missing::Truncate } else { Missing::Landlock };
                assert_eq!(failure(attempt), refused_if_known(part, libc::EACCES), "{what}");
            }
            assert!(Command::new(stage.plan.readable[0].join("true")).status().unwrap().success());
        });
    });
}

#[test]
fn nothing_is_moved_or_linked_over_the_border() {
    in_own_process("files::nothing_is_moved_or_linked_over_the_border", As::Unprivileged, || {
        let stage = Stage::new();
        let (data, inside) = (stage.outside().join("data"), stage.plan.workspace.join("inside"));
        let attempts = || {
            write(&data, "content");
            [
                failure(fs::hard_link(&data, stage.plan.workspace.join("hard"))),
                failure(fs::rename(&data, stage.plan.workspace.join("moved"))),
                failure(fs::rename(&inside, stage.outside().join("inside"))),
            ]
        };
        write(&inside, "content");
        assert_eq!(attempts(), [None; 3]);
        write(&inside, "content");
        write(&data, "content");
        let refused = confined_by_policy(&stage, || {
            [
                failure(fs::hard_link(&data, stage.plan.workspace.join("again"))),
                failure(fs::rename(&data, stage.plan.workspace.join("moved"))),
                failure(fs::rename(&inside, stage.outside().join("inside"))),
            ]
        });
        for error in refused {
            assert!(matches!(error, Some(libc::EACCES | libc::EXDEV)), "{refused:?}");
        }
    });
}

fn prepare(plan: &Plan) -> Result<Confinement, ConfineError> {
    process::confine::prepare(&Policy::reviewed().unwrap(), plan)
}

/// A process that may write the parent of a granted path could put a link there, for the next process to be granted
/// its target.
#[test]
fn a_link_in_place_of_a_granted_directory_grants_nothing() {
    in_own_process("files::a_link_in_place_of_a_granted_directory_grants_nothing", As::Unprivileged, || {
        let mut stage = Stage::new();
        let granted = stage.plan.workspace.join("cache");
        fs::create_dir(&granted).unwrap();
        stage.plan.writable = vec![granted.clone(), granted.join("below")];
        assert!(prepare(&stage.plan).is_ok());
        fs::remove_dir(&granted).unwrap();
        symlink(stage.outside(), &granted).unwrap();
        fs::create_dir(stage.outside().join("below")).unwrap();
        let refused = prepare(&stage.plan).err();
        assert!(matches!(&refused, Some(ConfineError::Link(path)) if *path == granted), "{refused:?}");
        // Also when the link stands further up.
        stage.plan.writable = vec![granted.join("below")];
        assert!(matches!(prepare(&stage.plan), Err(ConfineError::Link(_))));
    });
}

#[test]
fn a_link_below_home_grants_nothing_and_stops_nothing() {
    in_own_process("files::a_link_below_home_grants_nothing_and_stops_nothing", As::Unprivileged, || {
        let stage = Stage::new();
        let (settings, target) = (stage.plan.home.join(".gitconfig"), stage.outside().join("data"));
        write(&target, "content");
        symlink(&target, &settings).unwrap();
        confined_by_policy(&stage, || {
            assert_eq!(failure(File::open(&settings)), Some(libc::EACCES));
            assert_eq!(failure(File::open(&target)), Some(libc::EACCES));
        });
    });
}

#[test]
fn a_place_that_cannot_be_entered_is_as_good_as_missing() {
    in_own_process("files::a_place_that_cannot_be_entered_is_as_good_as_missing", As::Unprivileged, || {
        let mut stage = Stage::new();
        let closed = stage.outside().join("closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        stage.plan.readable = vec![closed.join("below"), stage.outside().join("nothing")];
        assert!(prepare(&stage.plan).is_ok());
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    });
}
