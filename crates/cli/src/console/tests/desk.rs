//! A console on a screen in memory, and replies for it.

use api_types::{Approval, Event, EventKind, EventPage, SessionSnapshot, SessionSummary};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use crate::console::input::Input;
use crate::console::keys::Key;
use crate::console::model::{Effect, Look, Message, Shown, Size, State, Waits};
use crate::console::update::{open, update};
use crate::console::view;

pub(super) const S1: &str = "0b23a082-3c53-4ae3-98a6-3fb16b88db40";
const S2: &str = "7c51ffff-3c53-4ae3-98a6-3fb16b88db41";
pub(super) const A1: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
pub(super) const USUAL: Size = Size::LEAST;
pub(super) const GENERATION: u64 = 7;

/// The console, its screen, and what it wanted done.
pub(super) struct Desk {
    pub(super) state: State,
    screen: Terminal<TestBackend>,
    /// The stage that stands on the screen.
    pub(super) stage: u64,
    pub(super) effects: Vec<Effect>,
}

impl Desk {
    pub(super) fn new(size: Size) -> Self {
        let state = State::new(size, false, vec![summary(S1, "Mend the build"), summary(S2, "Read\u{202e} me")]);
        let screen = Terminal::new(TestBackend::new(size.columns, size.rows)).unwrap();
        Self { state, screen, stage: 0, effects: Vec::new() }
    }

    /// With a session open, looked at, and followed.
    pub(super) fn open(size: Size) -> Self {
        let mut desk = Self::new(size);
        desk.effects = open(&mut desk.state, S1.to_owned());
        desk.hear(look(0, Waits::Nothing));
        desk.hear(page(vec![
            event(1, EventKind::UserMessage, json!({"text": "run the tests"})),
            event(2, EventKind::Status, json!({"status": "running"})),
        ]));
        desk
    }

    /// With this batch waiting, drawn.
    pub(super) fn pending(size: Size, approval: Approval) -> Self {
        let mut desk = Self::open(size);
        desk.wait_for(approval, true);
        desk
    }

    pub(super) fn wait_for(&mut self, approval: Approval, in_full: bool) {
        let count = approval.actions.len();
        self.hear(look(count, Waits::Batch { approval: Box::new(approval), in_full }));
    }

    /// Something is heard, and everything is drawn.
    pub(super) fn hear(&mut self, message: Message) {
        let effects = update(&mut self.state, message);
        self.effects.extend(effects);
        self.draw();
    }

    /// Draws as often as it takes until what stands there is what is known.
    pub(super) fn draw(&mut self) {
        loop {
            let (stage, size) = (self.state.stage, self.state.size);
            self.screen.backend_mut().resize(size.columns, size.rows);
            let mut shown = Shown::default();
            self.screen.draw(|frame| shown = view::draw(frame, &self.state)).unwrap();
            self.stage = stage;
            update(&mut self.state, Message::Drawn(shown));
            if self.state.stage == stage {
                break;
            }
        }
    }

    pub(super) fn press(&mut self, key: Key) {
        self.press_at(self.stage, key);
    }

    /// A key pressed while this stage stood on the screen.
    pub(super) fn press_at(&mut self, stage: u64, key: Key) {
        self.hear(Message::Typed { input: Input::Key(key), stage });
    }

    pub(super) fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(Key::Char(c)));
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.hear(Message::Typed { input: Input::Paste(text.to_owned()), stage: self.stage });
    }

    /// Goes to the batch and turns its pages to the end.
    pub(super) fn read(&mut self) {
        self.go_to_batch();
        for _ in 0..100 {
            if self.state.batch().is_none_or(|batch| batch.is_read) {
                break;
            }
            self.press(Key::PageDown);
        }
    }

    pub(super) fn go_to_batch(&mut self) {
        self.state.pane = crate::console::model::Pane::Batch;
        self.draw();
    }

    /// The inputs of the decisions that were sent.
    pub(super) fn decisions(&self) -> Vec<Value> {
        self.sent("session.approval.decide")
    }

    pub(super) fn sent(&self, wanted: &str) -> Vec<Value> {
        let inputs = self.effects.iter().filter_map(|effect| match effect {
            Effect::Act(asked) if asked.operation == wanted => Some(asked.input.clone()),
            Effect::Act(_) | Effect::Follow { .. } | Effect::Look { .. } | Effect::LookLater { .. } | Effect::Leave => {
                None
            }
        });
        inputs.collect()
    }

    /// The screen as text.
    pub(super) fn screen(&self) -> String {
        let buffer = self.screen.backend().buffer();
        let mut out = String::new();
        for y in 0..buffer.area.height {
            let row: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }

    pub(super) fn words(&self) -> String {
        self.state.notice.as_ref().map(|notice| notice.words.clone()).unwrap_or_default()
    }
}

pub(super) fn summary(id: &str, title: &str) -> SessionSummary {
    serde_json::from_value(json!({"session_id": id, "workspace": "/home/u/src/app", "title": title, "state": "ready", "remedy": null, "status": "idle",
        "pending_actions": 0, "blocked_reason": null, "created_at": "2026-01-01T00:00:00Z"}))
    .unwrap()
}

pub(super) fn snapshot(pending: usize) -> SessionSnapshot {
    let status = if pending > 0 { "waiting_for_confirmation" } else { "running" };
    serde_json::from_value(json!({"session_id": S1, "workspace": "/home/u/src/app", "title": "Mend the build",
        "state": "ready", "remedy": null, "status": status, "pending_actions": pending, "created_at": "2026-01-01T00:00:00Z",
        "capability_generation": GENERATION, "observed_at": "2026-01-01T00:00:01Z",
        "valid_until": "2026-01-01T00:00:31Z", "advertised_operations": [], "choices": {"rewind": [], "model": []},
        "values": {"confinement_level": "full"}, "blocked_reason": null, "cursor": "1-0"}))
    .unwrap()
}

pub(super) fn look(pending: usize, waits: Waits) -> Message {
    Message::Looked { opening: 1, look: Ok(Box::new(Look { snapshot: snapshot(pending), waits })) }
}

pub(super) fn event(seq: u64, kind: EventKind, payload: Value) -> Event {
    serde_json::from_value(json!({"cursor": format!("1-{seq}"), "seq": seq, "session_id": S1,
        "event_id": format!("e{seq}"), "at": "2026-01-01T00:00:00Z", "kind": kind, "payload": payload}))
    .unwrap()
}

pub(super) fn page(events: Vec<Event>) -> Message {
    Message::Page { opening: 1, page: Ok(EventPage { events, next_cursor: "c".to_owned(), resync: None }) }
}

/// One action that fits a screen.
pub(super) fn short_batch(approval_id: &str) -> Approval {
    approval(approval_id, json!([action("terminal", json!({"command": "cargo test"}))]))
}

/// Several actions of many rows, with everything that can be said of them.
pub(super) fn long_batch() -> Approval {
    let script: String = (1..=12).map(|line| format!("echo line {line}\n")).collect();
    let mut first =
        action("terminal", json!({"command": format!("{script}rm -rf target \u{202e}# \u{1b}[2J"), "timeout": 30}));
    first["agent_risk"] = json!("LOW");
    first["agent_summary"] = json!("only prints\u{200b} something");
    first["deceptive_text"] = json!(true);
    let mut second = action("file_editor", json!({"path": "/home/u/src/app/Makefile", "new_str": "x".repeat(150)}));
    second["redacted"] = json!(true);
    let mut approval = approval(A1, json!([first, second]));
    approval.notes =
        vec!["A shell keeps its state: what an earlier command left behind decides what this one means.".to_owned()];
    approval.background_processes = serde_json::from_value(json!([{"pid": 4711, "name": "sleep"}])).unwrap();
    approval.named_files =
        serde_json::from_value(json!([{"path": "build.sh", "sha256": "ab".repeat(32), "changed": false}])).unwrap();
    approval
}

pub(super) fn action(tool: &str, arguments: Value) -> Value {
    json!({"event_id": "e1", "tool": tool, "arguments": arguments, "agent_risk": null, "agent_summary": null,
        "redacted": false, "truncated": false, "deceptive_text": false, "in_doubt": false})
}

fn approval(approval_id: &str, actions: Value) -> Approval {
    serde_json::from_value(json!({"approval_id": approval_id, "session_id": S1, "expires_at": "2026-01-01T01:00:00Z",
        "actions": actions, "holds_secret": false, "complete": true, "confinement_level": "full",
        "named_files": [], "background_processes": [], "notes": []}))
    .unwrap()
}
