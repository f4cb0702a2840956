//! A daemon with a session of its own that waits for a decision, and everything of it that bad input must leave alone.

use gatepost_tests::{Faked, LIMIT, Marker, Scene, Session, wait_until};
use serde_json::{Value, json};
use testkit::fake_server::Plan;

/// The session that the rows of the table name.
pub(crate) const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// The daemon, its server, and one waiting session.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    faked: Faked,
    pub(crate) session: Session,
    pub(crate) marker: Marker,
    pub(crate) approval_id: String,
}

/// What was so before, and must be so after.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing {
    sessions: Value,
    snapshot: Value,
    approvals: Value,
    events: Vec<String>,
    changes_upstream: Vec<String>,
    servers: Vec<(String, Option<u32>)>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let faked = Faked::new(Plan::default());
        let scene = faked.scene();
        let session = scene.create(&json!({"workspace": scene.workspace(), "session_id": SESSION, "title": "mine"}));
        let marker = scene.marker("bad-input");
        let approval_id = session.propose(&marker.directive()).approval_id;
        let stage = Self { scene, faked, session, marker, approval_id };
        // What is told of the batch comes a little after the batch itself.
        let is_told = || stage.session.events().iter().any(|event| event.kind.as_str() == "approval_requested");
        wait_until("the session to come to rest", LIMIT, || {
            (is_told() && stage.standing() == stage.standing()).then_some(())
        });
        stage
    }

    pub(crate) fn standing(&self) -> Standing {
        let get = |path: &str| self.scene.client().get(path).unwrap().expect_status(200).unwrap();
        let mut snapshot = get(&self.session.path(""));
        for moving in ["observed_at", "valid_until"] {
            snapshot[moving] = Value::Null;
        }
        Standing {
            sessions: get("/v1/sessions"),
            snapshot,
            approvals: get(&self.session.path("/approvals")),
            events: self.session.events().into_iter().map(|event| event.event_id).collect(),
            changes_upstream: self.faked.changes(),
            servers: self.scene.status().servers.into_iter().map(|server| (server.workspace, server.pid)).collect(),
        }
    }

    /// Nothing came of what was done since then.
    #[track_caller]
    pub(crate) fn nothing_came_of_it(&self, before: &Standing) {
        assert_eq!(&self.standing(), before);
        self.marker.assert_absent();
    }

    pub(crate) fn finish(self) {
        self.scene.finish();
    }
}
