//! An operation over the same call made directly, both on a kept connection to a real server.
//!
//! The direct call goes to a second server that was launched in the same way without a daemon, since nobody but the daemon has
//! the key of its own. What the daemon must read before a change, the floor reads too: the end of the log and the state.

use super::figure::median;
use super::line::Line;
use super::{Figure, Options, Tell};
use crate::daemon::{Home, Setup};
use crate::failure::Doing;
use crate::failure::{Failure, Outcome};
use crate::guards::{BareServer, Conversation};
use crate::model::ScriptedModel;
use crate::talk::Talk;
use serde_json::{Value, json};
use std::time::Duration;

const BOUND: f64 = 1.15;
/// How long a turn may take.
const TURN: Duration = Duration::from_secs(60);
/// How a conversation stands when a turn has ended.
const ENDED: [&str; 2] = ["finished", "idle"];

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let model = ScriptedModel::start().doing("no model")?;
    tell("  a server without a daemon, and a daemon with one");
    let bare = BareServer::start(&model.base_url(), &[])?;
    let home = Home::new(Setup::new(&model.base_url()))?;
    let daemon = home.serve()?;
    let workspace = home.workspace().canonicalize().doing("no workspace")?;
    let session = Talk::start(daemon.client(), &workspace.to_string_lossy())?;
    let conversation = Conversation::create(&bare.raw(), &bare.ready().profile_id, &bare.workspace())?;
    let mut both = Both {
        direct: Line::to_server(bare.ready().port, &bare.ready().session_key)?,
        through: Line::to_daemon(&home.socket(), &home.owner_token()?)?,
        conversation,
        session,
    };
    both.turn("say: hello")?;
    tell("  titles");
    let (mut titles, mut prompts) = (Took::default(), Took::default());
    for number in 0..options.size(200, 3) {
        both.title(number, &mut titles)?;
    }
    tell("  prompts");
    for number in 0..options.size(30, 1) {
        both.prompt(number, &mut prompts)?;
    }
    drop(both);
    daemon.stop()?;
    bare.stop()?;
    Ok(vec![titles.figure("latency_title"), prompts.figure("latency_prompt")])
}

/// What calls took, in milliseconds.
#[derive(Default)]
struct Took {
    direct: Vec<f64>,
    read: Vec<f64>,
    through: Vec<f64>,
}

impl Took {
    fn figure(&self, name: &'static str) -> Figure {
        let [direct, read, through] = [&self.direct, &self.read, &self.through].map(|took| median(took));
        let made_of = json!({
            "through_the_daemon_p50_ms": through, "direct_call_p50_ms": direct, "one_read_of_the_branch_p50_ms": read,
            "tries": self.direct.len(),
        });
        Figure::new(name, (through - read) / direct, "ratio", BOUND, &made_of)
    }
}

struct Both {
    direct: Line,
    through: Line,
    conversation: Conversation,
    session: Talk,
}

impl Both {
    fn path(&self) -> String {
        format!("/api/conversations/{}", self.conversation.id())
    }

    /// A turn in both conversations, to its end.
    fn turn(&mut self, text: &str) -> Outcome<()> {
        self.conversation.say(text)?.expect_status(200)?;
        self.session.prompt(text)?;
        self.rest()
    }

    fn rest(&self) -> Outcome<()> {
        self.conversation.wait_status(&ENDED, TURN)?;
        self.session.rest()
    }

    fn title(&mut self, number: usize, took: &mut Took) -> Outcome<()> {
        let title = json!({"title": format!("title {number}")});
        self.read(took)?;
        let direct = self.direct.ask("PATCH", &self.path(), Some(&title))?;
        direct.json()?;
        took.direct.push(direct.ms());
        self.act("session.title.set", &title, took)
    }

    fn prompt(&mut self, number: usize, took: &mut Took) -> Outcome<()> {
        let text = format!("say: {number}");
        self.read(took)?;
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "run": true});
        let direct = self.direct.ask("POST", &format!("{}/events", self.path()), Some(&message))?;
        direct.json()?;
        took.direct.push(direct.ms());
        // Each has the machine to itself.
        self.conversation.wait_status(&ENDED, TURN)?;
        self.act("session.prompt.send", &json!({"text": text}), took)?;
        self.rest()
    }

    fn act(&mut self, operation_id: &str, input: &Value, took: &mut Took) -> Outcome<()> {
        let generation = self.session.snapshot()?["capability_generation"].clone();
        let body = json!({
            "operation_id": operation_id, "input": input, "capability_generation": generation,
            "client_action_id": format!("bench-{}", uuid::Uuid::new_v4()),
        });
        let answer = self.through.ask("POST", &format!("{}/actions", self.session.path()), Some(&body))?;
        let receipt = answer.json()?;
        if receipt["state"] != "applied" {
            return Err(Failure::new(format!("{operation_id} was answered with {receipt}")));
        }
        took.through.push(answer.ms());
        Ok(())
    }

    /// The end of the log, then the state: what a decision rests on.
    fn read(&mut self, took: &mut Took) -> Outcome<()> {
        let last = self.conversation.events()?.pop().and_then(|event| event["id"].as_str().map(str::to_owned));
        let last = last.ok_or_else(|| Failure::new("the log is empty"))?;
        let log = format!("{}/events/search?limit=100&sort_order=TIMESTAMP&page_id={last}", self.path());
        let (log, state) = (self.direct.ask("GET", &log, None)?, self.direct.ask("GET", &self.path(), None)?);
        log.json().and(state.json())?;
        took.read.push(log.ms() + state.ms());
        Ok(())
    }
}
