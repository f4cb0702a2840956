//! A binding's data directory: one server at a time, and what does not stay in it.

use std::fs;

use super::*;

#[tokio::test]
async fn one_binding_has_one_server_and_can_start_again() {
    let stage = Stage::new();
    let first = stage.launch(&serving()).await.expect("launches");
    let error = stage.launch(&serving()).await.err().expect("refused");
    assert!(matches!(error, LaunchError::InUse(_)), "{error}");
    first.control().revoke(&[]).await.expect("the first is untouched");
    let (start, digest) = (first.server_start_id().to_owned(), first.launch_config_digest().to_owned());
    first.stop(Duration::from_secs(5)).await;
    let again = stage.launch(&serving()).await.expect("launches again");
    assert_ne!(again.server_start_id(), start);
    assert_eq!(again.launch_config_digest(), digest, "the same shape");
    again.stop(Duration::from_secs(5)).await;
    let mut spec = stage.spec(&serving());
    spec.startup_files = vec![("gatepost_startup.py".to_owned(), "# other\n".to_owned())];
    let other = launch(&spawner(), spec).await.expect("launches");
    assert_ne!(other.launch_config_digest(), digest, "another start-up module");
    other.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_foreign_module_in_the_start_up_directory_is_removed_and_temporary_files_do_not_stay() {
    let stage = Stage::new();
    let startup = stage.path("data/startup");
    fs::create_dir_all(&startup).expect("startup");
    for directory in [&stage.path("data"), &startup] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).expect("mode");
    }
    fs::write(startup.join("json.py"), "import evil\n").expect("planted");
    let server = stage.launch(&format!("touch $TMPDIR/x $TMUX_TMPDIR/y; {}", serving())).await.expect("launches");
    let ours = startup_of(&stage);
    let names: Vec<_> = fs::read_dir(ours).expect("dir").map(|entry| entry.expect("entry").file_name()).collect();
    assert_eq!(names, ["gatepost_startup.py"]);
    server.stop(Duration::from_secs(5)).await;
    assert!(!stage.path("data/tmp").exists() && !stage.path("data/tmux").exists());
}

#[tokio::test]
async fn sockets_go_to_a_short_private_directory_that_does_not_stay() {
    let stage = Stage::new();
    let runtime = stage.path("run");
    fs::create_dir(&runtime).expect("runtime");
    let mut spec = stage.spec(&format!("echo $TMUX_TMPDIR > $HOME/where; {}", serving()));
    spec.data_dir = stage.path(&"long".repeat(20));
    spec.runtime_dir = Some(runtime.clone());
    let server = launch(&spawner(), spec.clone()).await.expect("launches");
    let place = written(&spec.data_dir.join("home/where")).await;
    let place = Path::new(place.trim_end());
    assert!(place.starts_with(&runtime) && place.as_os_str().len() <= 67, "{}", place.display());
    let above = place.parent().expect("parent");
    assert_eq!(fs::metadata(above).expect("short").permissions().mode() & 0o777, 0o700);
    server.stop(Duration::from_secs(5)).await;
    assert_eq!(fs::read_dir(&runtime).expect("runtime").count(), 0);
    // What a killed daemon left goes at the next start.
    let left = runtime.join("gatepost-0-left");
    fs::create_dir(&left).expect("left");
    host::secure_fs::write_private_new(&spec.data_dir.join("short-directory"), left.as_os_str().as_encoded_bytes())
        .expect("note");
    let server = launch(&spawner(), spec).await.expect("launches");
    assert!(!left.exists());
    server.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let stage = Stage::new();
    let spec = stage.spec("true");
    fs::remove_file(stage.path("agent-server")).expect("remove");
    let error = launch(&spawner(), spec).await.err().expect("fails");
    assert!(error.to_string().contains("agent-server"), "{error}");
    assert!(!stage.path("data/tmp").exists());
}

#[test]
fn data_directories_are_told_apart_by_workspace() {
    let state = Path::new("/state");
    let first = data_dir(state, Path::new("/src/a"));
    assert!(first.starts_with("/state/bindings"));
    assert_eq!(first.file_name().expect("name").len(), 16);
    assert_ne!(first, data_dir(state, Path::new("/src/b")));
}
