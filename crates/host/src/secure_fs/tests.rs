use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn file_with(directory: &tempfile::TempDir, mode: u32, content: &str) -> PathBuf {
    let path = directory.path().join("file");
    std::fs::write(&path, content).unwrap();
    set_mode(&path, mode);
    path
}

#[test]
fn reads_what_is_private_and_names_the_remedy_for_what_is_not() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o400, 0o700] {
        assert_eq!(**read_private(&file_with(&directory, mode, "content"), 7).unwrap(), *b"content");
        std::fs::remove_file(directory.path().join("file")).unwrap();
    }
    for mode in [0o640, 0o604, 0o620, 0o601] {
        let path = file_with(&directory, mode, "content");
        let error = read_private(&path, 7).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongMode { found, wanted: 0o600, .. } if found == mode), "{error}");
        let remedy =
            format!("{path} has mode {mode:04o} and must have 0600: run `chmod 600 {path}`", path = path.display());
        assert_eq!(error.to_string(), remedy);
    }
}

#[test]
fn refuses_links_pipes_directories_and_second_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = file_with(&directory, 0o600, "content");
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(matches!(read_private(&link, 7), Err(SecureFsError::Symlink { .. })));
    assert!(matches!(read_private(directory.path(), 7), Err(SecureFsError::NotRegular { .. })));
    std::fs::hard_link(&path, directory.path().join("second")).unwrap();
    assert!(matches!(read_private(&path, 7), Err(SecureFsError::SecondName { .. })));
    let pipe = directory.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: `name` is a valid C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(matches!(read_private(&pipe, 7), Err(SecureFsError::NotRegular { .. })));
}

#[test]
fn bounds_what_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = file_with(&directory, 0o600, "12345678");
    assert!(matches!(read_private(&path, 7), Err(SecureFsError::TooLarge { max_bytes: 7, .. })));
    assert_eq!(read_private(&path, 8).unwrap().len(), 8);
    assert_eq!(read_private(&path, u64::MAX).unwrap().len(), 8);
    assert!(read_private(&directory.path().join("none"), 8).unwrap_err().is_not_found());
}

#[test]
fn a_secret_is_read_without_the_line_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = file_with(&directory, 0o600, "hunter2\n");
    assert_eq!(read_secret(&path, 100).unwrap().expose(), "hunter2");
    for content in ["", "\n"] {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(read_secret(&path, 100), Err(SecureFsError::Malformed { .. })));
    }
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(read_secret(&path, 100), Err(SecureFsError::Malformed { .. })));
}

#[test]
fn a_new_file_is_private_and_never_replaces_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    write_private_new(&path, b"one").unwrap();
    assert_eq!(mode_of(&path), 0o600);
    assert!(write_private_new(&path, b"two").unwrap_err().is_already_there());
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    let link = directory.path().join("link");
    symlink(directory.path().join("elsewhere"), &link).unwrap();
    assert!(write_private_new(&link, b"two").is_err());
    assert!(!directory.path().join("elsewhere").exists());
}

#[test]
fn replacing_leaves_one_private_file_and_does_not_follow_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    write_private_atomic(&path, b"one").unwrap();
    write_private_atomic(&path, b"two").unwrap();
    assert_eq!(**read_private(&path, 10).unwrap(), *b"two");
    let other = directory.path().join("other");
    std::fs::write(&other, "untouched").unwrap();
    std::fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    write_private_atomic(&path, b"three").unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), b"untouched");
    assert_eq!(**read_private(&path, 10).unwrap(), *b"three");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_secret_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    let first = load_or_create_secret(&path, 32).unwrap();
    assert_eq!(first.len_bytes(), 64);
    assert_eq!(load_or_create_secret(&path, 32).unwrap().expose(), first.expose());
    // Another length, a part or anything else is not taken for the secret.
    assert!(matches!(load_or_create_secret(&path, 16), Err(SecureFsError::TooLarge { .. })));
    assert!(matches!(load_or_create_secret(&path, 64), Err(SecureFsError::Malformed { .. })));
    std::fs::write(&path, "g".repeat(64)).unwrap();
    assert!(matches!(load_or_create_secret(&path, 32), Err(SecureFsError::Malformed { .. })));
}

#[test]
fn a_private_directory_is_made_and_an_open_one_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/c");
    ensure_private_dir(&path).unwrap();
    ensure_private_dir(&path).unwrap();
    for made in ["a", "a/b", "a/b/c"] {
        assert_eq!(mode_of(&directory.path().join(made)), 0o700);
    }
    for mode in [0o755, 0o750, 0o701, 0o500] {
        set_mode(&path, mode);
        let error = ensure_private_dir(&path).unwrap_err();
        assert!(matches!(error, SecureFsError::WrongMode { found, wanted: 0o700, .. } if found == mode), "{error}");
        assert!(error.to_string().ends_with(&format!("run `chmod 700 {}`", path.display())), "{error}");
        assert_eq!(mode_of(&path), mode, "an existing directory was changed");
    }
}

#[test]
fn what_is_no_directory_of_its_own_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    ensure_private_dir(&real).unwrap();
    let link = directory.path().join("link");
    symlink(&real, &link).unwrap();
    assert!(matches!(ensure_private_dir(&link), Err(SecureFsError::Symlink { .. })));
    // A link of our own on the way is followed, and what it leads to is checked as well.
    ensure_private_dir(&link.join("below")).unwrap();
    set_mode(&real, 0o777);
    let error = ensure_private_dir(&link.join("below")).unwrap_err();
    assert!(matches!(&error, SecureFsError::UnsafeAncestor { ancestor, .. } if *ancestor == real), "{error}");
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(ensure_private_dir(&file), Err(SecureFsError::NotDirectory { .. })));
    for path in ["relative", "/tmp/../etc/x"] {
        assert!(matches!(ensure_private_dir(Path::new(path)), Err(SecureFsError::NotAbsolute { .. })));
    }
}
