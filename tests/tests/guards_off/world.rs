//! The server, its model, and what is expected of every way.

use gatepost_tests::{LIMIT, Marker, SETTLE, Scenarios, wait_until};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::guards::{BareServer, Conversation, Guard};
use testkit::model::ScriptedModel;

/// One server at a time: two on a small machine are slow enough to time out.
static TURN: Mutex<()> = Mutex::new(());

/// What a way comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The command runs.
    Runs,
    /// It does not.
    Stopped,
}

pub(crate) struct World {
    server: RefCell<BareServer>,
    model: ScriptedModel,
    expected: Expected,
    markers: Cell<usize>,
    scenarios: Scenarios,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    pub(crate) fn start(taken_out: &[Guard], expected: Expected) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let model = ScriptedModel::start().unwrap();
        let server = RefCell::new(BareServer::start(&model.base_url(), taken_out).unwrap());
        Self { server, model, expected, markers: Cell::new(0), scenarios: Scenarios::new(), _turn: turn }
    }

    pub(crate) fn go(&mut self, name: &str, way: fn(&World)) {
        let mut scenarios = std::mem::take(&mut self.scenarios);
        scenarios.play(name, || way(self));
        self.scenarios = scenarios;
    }

    /// Every way was gone and came to what was expected, and nothing is left.
    pub(crate) fn finish(self) {
        self.server.into_inner().stop().unwrap();
        self.scenarios.finish();
    }

    pub(crate) fn server(&self) -> std::cell::Ref<'_, BareServer> {
        self.server.borrow()
    }

    pub(crate) fn model(&self) -> &ScriptedModel {
        &self.model
    }

    /// A new directory for a conversation to work in.
    pub(crate) fn new_workspace(&self, name: &str) -> PathBuf {
        let path = self.server().workspace().canonicalize().unwrap().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// A marker of its own.
    pub(crate) fn marker(&self) -> Marker {
        self.markers.set(self.markers.get() + 1);
        let directory = self.server().root().canonicalize().unwrap();
        Marker::new(&directory, &format!("marker-{}", self.markers.get()))
    }

    /// A new conversation that asks before each action.
    pub(crate) fn conversation(&self) -> Conversation {
        let server = self.server();
        Conversation::create(&server.raw(), &server.ready().profile_id, &server.workspace()).unwrap()
    }

    /// A conversation whose agent waits with a command that leaves this marker; the ids of what waits.
    pub(crate) fn waiting(&self, marker: &Marker) -> (Conversation, Vec<String>) {
        let conversation = self.conversation();
        let pending = self.propose(&conversation, &marker.directive());
        marker.assert_absent();
        (conversation, pending)
    }

    pub(crate) fn propose(&self, conversation: &Conversation, text: &str) -> Vec<String> {
        ids(&conversation.propose(text, LIMIT).unwrap())
    }

    /// Lets these actions run once, as far as the latch goes.
    pub(crate) fn grant(&self, event_ids: &[String]) {
        self.server.borrow_mut().grant(event_ids).unwrap();
    }

    /// Grants exactly these actions, accepts, and waits until the turn is over: what the daemon does for an approval.
    pub(crate) fn approve(&self, conversation: &Conversation, event_ids: &[String]) {
        self.grant(event_ids);
        conversation.answer(true).unwrap().expect_status(200).unwrap();
        conversation.wait_status(&["finished"], LIMIT).unwrap();
        wait_until("the run to end", LIMIT, || {
            self.server.borrow_mut().settled(conversation.id()).unwrap().then_some(())
        });
    }

    /// The way was gone: the command that leaves this marker ran once more than it was approved, or did not.
    #[track_caller]
    pub(crate) fn judge(&self, marker: &Marker, approved_runs: usize) {
        match self.expected {
            Expected::Runs => {
                let ran = || (marker.runs() > approved_runs).then_some(());
                wait_until("the command that nobody approved, with no guard in its way", LIMIT, ran);
            }
            Expected::Stopped => {
                std::thread::sleep(SETTLE);
                marker.assert_runs(approved_runs);
            }
        }
    }

    /// As [`World::judge`] for what waits: when it was stopped, it still waits.
    #[track_caller]
    pub(crate) fn judge_waiting(&self, marker: &Marker, conversation: &Conversation, waited: &[String]) {
        self.judge(marker, 0);
        if self.expected == Expected::Stopped {
            assert_eq!(ids(&conversation.pending().unwrap()), waited, "what was held waits no more");
            assert_eq!(conversation.status().unwrap(), "waiting_for_confirmation");
        }
    }
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}
