//! An install that is killed in the middle is never taken for a whole one, and two at once make one.

use crate::{State, site_packages};
use gatepost_tests::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;
use std::time::Duration;
use testkit::daemon::{SERVER_VERSION, processes_of};

/// For an install to be under way.
const BEGIN_LIMIT: Duration = Duration::from_secs(180);
/// For a tool of a killed install to be gone.
const TOOL_LIMIT: Duration = Duration::from_secs(20);

#[test]
fn an_interrupted_install_is_never_taken_for_whole_and_two_at_once_make_one() {
    let state = State::new();
    kill_in_the_middle(&state);
    assert_eq!(state.listed(), [] as [std::path::PathBuf; 0]);
    let names = state.names();
    assert!(names.len() == 1 && names[0].starts_with('.'), "{names:?}");
    let (code, said_then) = state.run(&["verify"]);
    assert_eq!((code, said_then["error"]["code"].as_str()), (Some(1), Some("server_not_installed")), "{said_then}");

    let both = [(); 2].map(|()| state.start(&["install"]));
    let [first, second] = both.map(|started| {
        let (code, said) = started.finish();
        assert_eq!(code, Some(0), "{said}");
        said
    });
    assert_eq!(first["root"], second["root"]);
    assert_eq!(first["manifest_sha256"], second["manifest_sha256"]);
    assert_eq!(first["version"], SERVER_VERSION);
    let names = state.names();
    assert!(names.len() == 1 && names[0].starts_with(&format!("{SERVER_VERSION}-")), "{names:?}");
    assert_eq!(state.listed(), [state.path().join("servers").join(&names[0])]);
    let (code, verified) = state.run(&["verify"]);
    assert_eq!((code, &verified["passed"]), (Some(0), &true.into()), "{verified}");
    assert!(verified["files"].as_u64().unwrap() > 10_000);
    assert_eq!(processes_of(state.path(), &[]), []);
}

/// Kills the installing process once packages are being installed, and then, as nothing else would end it soon, the tool
/// that it had started.
fn kill_in_the_middle(state: &State) {
    let log = fs::File::create(state.path().join("log")).unwrap();
    // A killed tool removes nothing.
    let temporary = tempfile::tempdir().unwrap();
    let mut installing = state.command(&["install"]);
    installing.env("TMPDIR", temporary.path()).stdout(Stdio::null()).stderr(log);
    let mut installing = installing.spawn().unwrap();
    wait_until("the install to be under way", BEGIN_LIMIT, || {
        assert_eq!(
            installing.try_wait().unwrap(),
            None,
            "it ended: {:?}",
            fs::read_to_string(state.path().join("log"))
        );
        let building = state.path().join("servers").join(state.names().pop()?);
        let begun = building.join("requirements.lock").is_file() && site_packages(&building).join("wheel").is_dir();
        begun.then_some(())
    });
    installing.kill().unwrap();
    installing.wait().unwrap();
    for tool in processes_of(state.path(), &[]) {
        kill_process(Pid::from_raw(tool.pid.cast_signed()).unwrap(), Signal::KILL).ok();
    }
    wait_until("the tools to be gone", TOOL_LIMIT, || processes_of(state.path(), &[]).is_empty().then_some(()));
}
