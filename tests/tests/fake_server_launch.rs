//! The launcher against the fake server: what it accepts, and what it refuses and ends.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use host::{Secret, Spawner};
use process::launch::{LaunchError, LaunchSpec, OwnedServer, Program, data_dir, launch};
use process::own::inspect_executable;
use rules::redact::Redactor;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use testkit::fake_server::{self, Announcement, ControlAnswer, Plan};

const VERSION: &str = "1.40.0";

/// One spawner for all tests: its thread must outlive every child.
fn spawner() -> Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    let start = || {
        host::hygiene::become_subreaper().unwrap();
        Spawner::start().unwrap()
    };
    SPAWNER.get_or_init(start).clone()
}

fn spec(directory: &Path, start_timeout: Duration) -> LaunchSpec {
    let executable = fake_server::install(&directory.join("env"), VERSION).unwrap();
    let own = inspect_executable(&executable).unwrap();
    assert_eq!(own.distributions.len(), 4);
    assert!(own.distributions.values().all(|version| version == VERSION));
    host::secure_fs::ensure_private_dir(&directory.join("state")).unwrap();
    host::secure_fs::ensure_private_dir(&directory.join("state/bindings")).unwrap();
    LaunchSpec {
        program: Program::Own(own),
        version: VERSION.to_owned(),
        startup_files: vec![("gatepost_startup.py".to_owned(), "# not read by the fake server\n".to_owned())],
        data_dir: data_dir(&directory.join("state"), Path::new("/workspace")),
        runtime_dir: None,
        path: "/usr/bin:/bin".into(),
        session_key: Arc::new(Secret::new("5e551000000000000000000000000000".to_owned())),
        secret_key: Arc::new(Secret::new("5ec2e700000000000000000000000000".to_owned())),
        redactor: Arc::new(Redactor::new(Vec::new())),
        start_timeout,
        guard: None,
        confining: None,
    }
}

async fn launched(directory: &TempDir, plan: &Plan, timeout_s: u64) -> Result<OwnedServer, LaunchError> {
    let spec = spec(directory.path(), Duration::from_secs(timeout_s));
    fake_server::set_plan(&directory.path().join("env"), plan).unwrap();
    launch(&spawner(), spec).await
}

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("gp-").tempdir().unwrap()
}

#[tokio::test]
async fn a_proper_server_is_inspected_granted_and_stopped() {
    let directory = directory();
    let server = launched(&directory, &Plan::default(), 20).await.unwrap();
    let control = server.control();
    let inspection = control.inspect().await.unwrap();
    assert!(inspection.nonce_matches && inspection.latch && inspection.ambient_plugins_dropped);
    assert!(!inspection.dumpable && inspection.listens_only_on(server.port()));
    control.grant(&["event".to_owned()]).await.unwrap();
    assert_eq!(control.revoke(&["event".to_owned()]).await.unwrap(), 1);
    let report = server.stop(Duration::from_secs(5)).await;
    assert_eq!(report.leftover_processes, 0);
    assert_eq!(testkit::daemon::processes_of(directory.path(), &[]), []);
}

#[tokio::test]
async fn a_second_listener_and_a_missing_latch_are_seen() {
    let directory = directory();
    let plan = Plan { second_listener: true, says_no_latch: true, says_dumpable: true, ..Plan::default() };
    let server = launched(&directory, &plan, 20).await.unwrap();
    let inspection = server.control().inspect().await.unwrap();
    assert!(!inspection.listens_only_on(server.port()));
    assert!(!inspection.latch && inspection.dumpable);
    assert_eq!(server.stop(Duration::from_secs(5)).await.leftover_processes, 0);
}

#[tokio::test]
async fn a_running_server_follows_a_new_plan_and_can_lie_on_its_channel() {
    let directory = directory();
    let server = launched(&directory, &Plan::default(), 20).await.unwrap();
    let control = server.control();
    assert!(control.settled("nobody").await.unwrap());
    let plan = Plan {
        settled_answer: ControlAnswer::Lie,
        grant_answer: ControlAnswer::Lie,
        inspect_answer: ControlAnswer::Lie,
        second_listener: true,
        ..Plan::default()
    };
    fake_server::set_plan(&directory.path().join("env"), &plan).unwrap();
    assert!(!control.settled("nobody").await.unwrap());
    assert!(control.grant(&["event".to_owned()]).await.is_err());
    let inspection = control.inspect().await.unwrap();
    assert!(!inspection.nonce_matches && !inspection.listens_only_on(server.port()));
    let plan = Plan { settled_answer: ControlAnswer::Silence, ..Plan::default() };
    fake_server::set_plan(&directory.path().join("env"), &plan).unwrap();
    let silence = control.settled("nobody").await.err().unwrap();
    assert!(matches!(silence, process::launch::ControlError::TimedOut { .. }), "{silence}");
    assert!(control.inspect().await.unwrap().nonce_matches, "the channel is still of use");
    assert_eq!(server.stop(Duration::from_secs(5)).await.leftover_processes, 0);
}

#[tokio::test]
async fn what_does_not_announce_itself_as_reviewed_is_ended() {
    let announced = |announcement| Plan { announcement, ..Plan::default() };
    for (plan, timeout_s, words) in [
        (announced(Announcement::WrongNonce), 20, "not as reviewed"),
        (announced(Announcement::WrongContract), 20, "not as reviewed"),
        (announced(Announcement::Garbage), 20, "not as reviewed"),
        (announced(Announcement::Never), 1, "within 1 s"),
        (Plan { exit_at_once: Some(7), ..Plan::default() }, 20, "fake server: ending with 7, as planned"),
    ] {
        let directory = directory();
        let error = launched(&directory, &plan, timeout_s).await.err().unwrap();
        assert!(error.to_string().contains(words), "{plan:?}: {error}");
        assert_eq!(testkit::daemon::processes_of(directory.path(), &[]), [], "{plan:?}");
    }
}
