//! Canaries that fail on a server that was proved: it is killed, whatever it was doing.

use api_types::{CanaryState, Problem, ServerState, Status};
use gatepost_tests::{Faked, Marker, typed, wait_until};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::daemon::{Client, Daemon, Home, Setup};
use testkit::fake_server::{Keys, Plan};

/// The daemon looks again every second.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// One daemon, with a server that has a pending command and then changes.
struct Turned {
    name: &'static str,
    code: &'static str,
    faked: Faked,
    home: Home,
    daemon: Daemon,
    session: String,
    marker: Marker,
    pid: u32,
    steps: Vec<String>,
}

fn status(client: &Client) -> Status {
    typed(&client.get("/v1/status").unwrap(), &[200])
}

impl Turned {
    fn new(name: &'static str, plan: Plan, code: &'static str) -> Self {
        let faked = Faked::new(Plan::default());
        let mut setup = Setup::new("http://127.0.0.1:9/v1").with_executable(&faked.executable);
        setup.agent_server = "probe_interval_s = 1\n".to_owned();
        let home = Home::new(setup).unwrap();
        let daemon = home.serve().unwrap();
        let marker = Marker::new(&home.workspace(), name);
        let body = json!({"workspace": home.workspace(), "prompt": marker.directive()});
        let session = daemon.client().post("/v1/sessions", &body).unwrap().expect_status(201).unwrap();
        let session = session["session_id"].as_str().unwrap().to_owned();
        let pid = status(daemon.client()).servers[0].pid.unwrap();
        let turned = Self { name, code, faked, home, daemon, session, marker, pid, steps: Vec::new() };
        wait_until("a batch", Duration::from_secs(30), || {
            turned.approvals().as_array().is_some_and(|batches| !batches.is_empty()).then_some(())
        });
        turned.faked.follow(plan);
        Self { steps: turned.faked.steps(), ..turned }
    }

    fn approvals(&self) -> Value {
        let path = format!("/v1/sessions/{}/approvals", self.session);
        self.daemon.client().get(&path).unwrap().expect_status(200).unwrap()["approvals"].clone()
    }

    fn is_killed(&self) {
        wait_until(&format!("the server of {} to be killed", self.name), LOOK_AGAIN, || {
            let alive = self.daemon.processes().iter().any(|process| process.pid == self.pid);
            (!alive).then_some(())
        });
        let server = wait_until("the failure to show", Duration::from_secs(20), || {
            // It is started again by itself, and fails again.
            let failed = [ServerState::Failed, ServerState::CrashLooping];
            status(self.daemon.client()).servers.into_iter().find(|server| failed.contains(&server.state))
        });
        assert_eq!(server.reason.as_ref().map(|reason| reason.code.as_str()), Some(self.code), "{server:?}");
        let failed = server.canaries.iter().find(|result| result.code.is_some());
        assert_eq!(failed.and_then(|result| result.code.as_deref()), Some(self.code), "{server:?}");
        let looping = server.state == ServerState::CrashLooping;
        let expected = if looping { CanaryState::CrashLooping } else { CanaryState::Blocked };
        assert_eq!(failed.map(|result| result.state), Some(expected), "{server:?}");
        let prompt = json!({"operation_id": "session.prompt.send", "input": {"text": "say: no"},
                            "capability_generation": 1, "client_action_id": "after"});
        let path = format!("/v1/sessions/{}/actions", self.session);
        let reply = self.daemon.client().post(&path, &prompt).unwrap();
        let problem: Problem = typed(&reply, &[reply.status]);
        let looping = problem.code == "server_crash_looping" && problem.detail.contains(self.code);
        assert!(problem.code == self.code || looping, "{}: the next server is as bad: {}", self.name, reply.text);
        assert_eq!(self.faked.steps(), self.steps, "{}: a step went out", self.name);
        self.marker.assert_absent();
    }

    fn finish(self) {
        let stopped = self.daemon.stop().unwrap();
        assert!(stopped.status.success() && stopped.leftovers.is_empty(), "{stopped:?}");
        drop(self.home);
    }
}

#[test]
fn a_server_that_turns_bad_is_killed() {
    let plan = Plan::default;
    let turned = [
        Turned::new("any-key", Plan { keys: Keys::Open, ..plan() }, "authentication_open"),
        Turned::new("second-listener", Plan { second_listener: true, ..plan() }, "listener_not_inherited"),
        Turned::new("latch-gone", Plan { says_no_latch: true, ..plan() }, "startup_module_missing"),
        Turned::new("another-version", Plan { version: Some("1.58.2".into()), ..plan() }, "version_mismatch"),
    ];
    turned.iter().for_each(Turned::is_killed);
    turned.into_iter().for_each(Turned::finish);
}
