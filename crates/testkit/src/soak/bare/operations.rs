//! Carrying out one operation straight on the server.

use super::plan::Operation;
use super::sequence::{LOOK, Sequence};
use crate::daemon::Reply;
use crate::failure::Outcome;
use crate::guards::Conversation;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// How long an approved batch may take before what is left of its grant is taken back.
const TURN_LIMIT: Duration = Duration::from_secs(30);
/// How long a run may take to be seen after its accept.
const BEGIN_LIMIT: Duration = Duration::from_secs(3);

impl Sequence<'_> {
    pub(super) fn carry_out(&self, operation: Operation, id: &str, target: u64) {
        let conversation = self.conversation(id);
        let outcome = match operation {
            Operation::Say(shape) => {
                let text = shape.text(self.stage.marks().directory());
                words(&conversation.say(&text))
            }
            Operation::Run => words(&conversation.run()),
            Operation::Fork(run) => self.fork(&conversation, run),
            Operation::Condense => words(&conversation.condense()),
            Operation::Navigate => navigate(&conversation, target),
            Operation::Approve => self.approve(&conversation),
            Operation::AcceptUngranted => words(&conversation.answer(true)),
            Operation::AcceptHalfGranted => self.accept_half_granted(&conversation),
            Operation::Reject => words(&conversation.answer(false)),
            Operation::Interrupt => words(&conversation.interrupt()),
            Operation::NeverAsk => words(&conversation.set_policy("NeverConfirm")),
        };
        let at = self.known().conversations.iter().position(|own| own == id).unwrap_or(0);
        self.note(&format!("conversation {at}: {operation:?}: {outcome}"));
        self.known().outcomes.push((operation.kind().to_owned(), outcome));
    }

    fn fork(&self, conversation: &Conversation, run: bool) -> String {
        match conversation.fork() {
            Ok(fork) => {
                self.known().conversations.push(fork.id().to_owned());
                if run { words(&fork.run()) } else { "copied".to_owned() }
            }
            Err(_) => "not copied".to_owned(),
        }
    }

    /// What waits and was never granted; nothing when any of it was.
    fn fresh(&self, conversation: &Conversation) -> Vec<String> {
        let pending = conversation.pending().unwrap_or_default();
        let ids: Vec<String> = pending.iter().filter_map(|event| event["id"].as_str().map(str::to_owned)).collect();
        let mut known = self.known();
        if ids.iter().any(|id| known.granted.contains(id)) {
            return Vec::new();
        }
        known.granted.extend(ids.iter().cloned());
        ids
    }

    /// As the daemon approves: nothing runs, what waits is granted by its ids, then accepted.
    fn approve(&self, conversation: &Conversation) -> String {
        let begun = Instant::now();
        while !self.rests(conversation.id()) && begun.elapsed() < BEGIN_LIMIT {
            thread::sleep(LOOK);
        }
        let ids = self.fresh(conversation);
        if ids.is_empty() {
            return "nothing new waits".to_owned();
        }
        // Approved from here on: a grant can be in force although its acknowledgement was lost.
        self.known().approved.extend(ids.iter().cloned());
        if self.stage.server().grant(&ids).is_err() {
            return "not granted".to_owned();
        }
        let accepted = conversation.answer(true);
        let begun = Instant::now();
        thread::sleep(LOOK);
        while !self.rests(conversation.id()) && begun.elapsed() < TURN_LIMIT {
            thread::sleep(LOOK);
        }
        let withdrawn = if self.stage.latch { self.withdraw(&ids) } else { 0 };
        if withdrawn > 0 { format!("{} ({withdrawn} grants unused)", words(&accepted)) } else { words(&accepted) }
    }

    /// Takes back what was not used: an approval that came to nothing must not be good for a later step.
    fn withdraw(&self, ids: &[String]) -> u64 {
        let mut withdrawn = 0;
        for id in ids {
            if self.stage.server().revoke(std::slice::from_ref(id)).is_ok_and(|unused| unused == 1) {
                self.known().approved.remove(id);
                withdrawn += 1;
            }
        }
        self.known().withdrawn += withdrawn;
        withdrawn
    }

    /// A batch runs whole or not at all, so this approves nothing, unless it is a batch of one.
    fn accept_half_granted(&self, conversation: &Conversation) -> String {
        let ids = self.fresh(conversation);
        if ids.len() < 2 {
            return "no batch of several waits".to_owned();
        }
        if self.stage.server().grant(&ids[..1]).is_err() {
            return "not granted".to_owned();
        }
        let accepted = conversation.answer(true);
        let begun = Instant::now();
        thread::sleep(LOOK);
        while !self.rests(conversation.id()) && begun.elapsed() < TURN_LIMIT {
            thread::sleep(LOOK);
        }
        let unused = self.stage.server().revoke(&ids[..1]).unwrap_or(0);
        format!("{} ({unused} grants unused)", words(&accepted))
    }
}

fn navigate(conversation: &Conversation, target: u64) -> String {
    let events = conversation.events().unwrap_or_default();
    // State updates hang off the branch: the server takes them for a head too, and a branch is then cut there.
    let ids: Vec<&Value> = events.iter().map(|event| &event["id"]).collect();
    let count = u64::try_from(ids.len()).unwrap_or(0);
    let at = usize::try_from(target.checked_rem(count).unwrap_or(0)).unwrap_or(0);
    match ids.get(at).and_then(|id| id.as_str()) {
        Some(id) => words(&conversation.navigate(id)),
        None => "no event".to_owned(),
    }
}

fn words(reply: &Outcome<Reply>) -> String {
    match reply {
        Ok(reply) if reply.body["success"] == false => "declined".to_owned(),
        Ok(reply) => format!("status {}", reply.status),
        Err(_) => "no answer".to_owned(),
    }
}
