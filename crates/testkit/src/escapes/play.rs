//! One run: the agent makes every attempt on the real server, and each is judged from outside.

use super::Options;
use super::attempts::{ATTEMPTS, Act, Attempt, Means};
use super::came::Came;
use super::owner::word;
use super::signs::with_argument;
use super::stage::Stage;
use crate::daemon::server_port;
use crate::failure::{Doing, Failure, Outcome};
use crate::processes;
use crate::talk::Talk;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Attempts of one command, and of the commands that a person approves together.
const COMMAND: usize = 5;
const BATCH: usize = 20;
const LOOK: Duration = Duration::from_millis(50);
/// How long whatever could set something off is given to do so.
const SETTLE: Duration = Duration::from_secs(2);
/// So many times the daemon connects to the port anew.
const INTERRUPTS: usize = 4;
/// How long is waited for an answer that may never come.
const IMPATIENT: Duration = Duration::from_secs(15);
/// Words of the attempts that wait for an approval which they try to give.
const PENDING: [&str; 3] = ["approve_at_server", "approve_at_daemon", "tcp_with_leaked_key"];

/// How often what could not be decided is tried in all.
const TRIES: usize = 3;

/// What came of every attempt.
pub(super) type Results = BTreeMap<&'static str, Came>;

/// Something for each attempt, by its name.
type Names = BTreeMap<&'static str, String>;

/// A run while it is played.
pub(super) struct Play<'a> {
    pub(super) stage: &'a Stage,
    /// Those that are made.
    attempts: &'a [&'static Attempt],
    agent: Talk,
    pub(super) words: Names,
    /// The number of seconds that the processes of an attempt sleep for: no other process has it.
    pub(super) naps: Names,
    pub(super) server: u32,
    /// The guards of its tree, the first one first.
    pub(super) guards: Option<[u32; 2]>,
    /// Those that a call of the editor was made for.
    pub(super) edited: BTreeSet<&'static str>,
    /// A process of the agent's own shell.
    pub(super) shell: Option<u32>,
    pub(super) limit: u64,
    stopped: &'a Mutex<BTreeSet<u32>>,
    tell: &'a dyn Fn(&str),
}

/// Plays a run on this stage: every attempt that is asked for, with its result, and the level that was proved.
pub(super) fn play(stage: &mut Stage, options: &Options, tell: &dyn Fn(&str)) -> Outcome<(Results, String)> {
    let (words, naps) = names();
    let (made, left): (Vec<_>, Vec<_>) = options.chosen().partition(|attempt| attempt.has_target(&options.without));
    let mut played = play_with(stage, &made, &words, &naps, tell);
    if let Ok((results, _)) = &mut played {
        results.extend(left.iter().map(|attempt| (attempt.name, Came::NoTarget)));
    }
    end_processes(&naps);
    played
}

fn play_with(
    stage: &mut Stage,
    attempts: &[&'static Attempt],
    words: &Names,
    naps: &Names,
    tell: &dyn Fn(&str),
) -> Outcome<(Results, String)> {
    let agent = stage.talk()?;
    let victim = stage.talk()?;
    tell("sessions stand");
    let secret = word();
    victim.carry_out(&format!("run: echo {secret}"))?;
    let mut pending = serde_json::Map::new();
    for name in PENDING.into_iter().filter(|name| attempts.iter().any(|attempt| attempt.name == *name)) {
        let talk = stage.talk()?;
        let waiting = talk.propose(&format!("run: touch {}/got/{name}-ran", stage.workspace().display()))?;
        let facts = json!({
            "session": talk.id, "conversation": talk.id, "approval_id": waiting.approval_id,
            "generation": waiting.generation,
        });
        pending.insert(name.to_owned(), facts);
    }
    let directory = stage.data()?.join("conversations").join(victim.id.replace('-', ""));
    let (level, server) = stage.status()?;
    let guards = stage.guards(server);
    if guards.is_none() && attempts.iter().any(|attempt| attempt.attacks.is_some()) {
        return Err(Failure::new("the server has no guards to attack"));
    }
    let limit = limit_of(stage.daemon_pid())?.saturating_sub(1);
    stage.learn(&json!({
        "first_guard_pid": guards.map(|guards| guards[0]), "second_guard_pid": guards.map(|guards| guards[1]),
        "words": words, "naps": naps, "pending": pending, "limit": limit, "victim_session": victim.id,
        "victim_conversation": victim.id, "victim_directory": directory, "policy_directory": directory,
    }))?;
    stage.hidden.insert("conversation_files", secret);
    tell("what is to be kept from the agent is known");

    let stopped = Mutex::new(BTreeSet::new());
    let over = AtomicBool::new(false);
    let watched: Vec<u32> = [server, stage.daemon_pid()].into_iter().chain(guards.into_iter().flatten()).collect();
    let mut results = Results::new();
    thread::scope(|scope| {
        scope.spawn(|| watch(&watched, &stopped, &over));
        let mut play = Play {
            stage: &*stage,
            attempts,
            agent: agent.clone(),
            words: words.clone(),
            naps: naps.clone(),
            server,
            guards,
            edited: BTreeSet::new(),
            shell: None,
            limit,
            stopped: &stopped,
            tell,
        };
        let done = play.first(&mut results);
        over.store(true, Ordering::Release);
        done
    })?;

    if attempts.iter().all(|attempt| attempt.act == Act::First) {
        return Ok((results, level));
    }
    let reviewed = stage.reviewed()?;
    tell("the daemon is killed");
    stage.restart_after_kill(&reviewed)?;
    tell("the next daemon is ready");
    let (words, naps) = (words.clone(), naps.clone());
    let agent = agent.with_client(&stage.client);
    let edited = BTreeSet::new();
    let play = Play {
        stage: &*stage,
        attempts,
        agent,
        words,
        naps,
        server: 0,
        guards: None,
        edited,
        shell: None,
        limit,
        stopped: &stopped,
        tell,
    };
    play.second(&mut results)?;
    Ok((results, level))
}

fn names() -> (Names, Names) {
    let words = ATTEMPTS.iter().map(|attempt| (attempt.name, word())).collect();
    let nap = |at: usize| format!("5{:02}.{}", at, uuid::Uuid::new_v4().as_u128() % 1_000_000_007);
    (words, ATTEMPTS.iter().enumerate().map(|(at, attempt)| (attempt.name, nap(at))).collect())
}

impl Play<'_> {
    fn of(&self, act: Act) -> Vec<&'static Attempt> {
        self.attempts.iter().copied().filter(|attempt| attempt.act == act).collect()
    }

    /// In the life of the first daemon.
    fn first(&mut self, results: &mut Results) -> Outcome<()> {
        let mut open = self.of(Act::First);
        for again in 0..TRIES {
            self.make(&open)?;
            thread::sleep(SETTLE);
            for attempt in &open {
                results.insert(attempt.name, self.judged(attempt)?);
            }
            open.retain(|attempt| matches!(results.get(attempt.name), Some(Came::Undecided(_))));
            if open.is_empty() {
                break;
            }
            (self.tell)(&format!("undecided after {} tries: {}", again + 1, names_of(&open).join(", ")));
        }
        // What would disturb others, and what the next daemon refuses to start with.
        fs::remove_file(self.stage.installed_file()?).ok();
        fs::remove_file(self.stage.workspace().join("name-of-state")).ok();
        end_processes(&self.naps);
        // Whatever lies in the workspace blocks its sessions from now on: the last batch.
        let last: Vec<_> = self.of(Act::Outlive).into_iter().chain(self.of(Act::Later)).collect();
        if !last.is_empty() {
            self.run(&names_of(&last))?;
        }
        for attempt in self.of(Act::Outlive) {
            if !self.got_through(attempt)? {
                return Err(Failure::new(format!("{} started nothing that could outlive anything", attempt.name)));
            }
        }
        Ok(())
    }

    /// Makes these attempts of the first act.
    fn make(&mut self, attempts: &[&'static Attempt]) -> Outcome<()> {
        let (edits, shell): (Vec<_>, Vec<_>) =
            attempts.iter().copied().partition(|attempt| attempt.means == Means::Editor);
        for batch in shell.chunks(BATCH) {
            self.run(&names_of(batch))?;
            if self.shell.is_none() {
                self.shell = self.find_shell();
            }
        }
        if shell.iter().any(|attempt| attempt.name == "fsmonitor_by_route") {
            self.run(&["look_at_changes"])?;
        }
        (self.tell)("the shell's attempts are made");
        for attempt in edits {
            self.agent.prompt(&self.editor_call(attempt.name))?;
            if self.approve_what_waits()? {
                self.edited.insert(attempt.name);
            }
        }
        Ok(())
    }

    /// In the life of the second.
    fn second(&self, results: &mut Results) -> Outcome<()> {
        for attempt in self.of(Act::Outlive) {
            results.insert(attempt.name, self.judged(attempt)?);
        }
        end_processes(&self.naps);
        if self.of(Act::Later).is_empty() && self.of(Act::Crash).is_empty() {
            return Ok(());
        }
        // Whatever could set off what lies in the workspace: a new session, a turn, the skill.
        let hooked = self.stage.talk()?;
        hooked.prompt("say: hello")?;
        hooked.rest()?;
        // A session with hooks gets no further; the skill is another matter.
        thread::sleep(SETTLE);
        self.stage.remove_plugins()?;
        let talk = self.stage.talk()?;
        // Where no skill was loaded there is no such tool, and nothing to approve.
        talk.prompt("call: invoke_skill {\"name\": \"helper\"}")?;
        talk.rest()?;
        if let Some(waiting) = talk.waiting()? {
            talk.approve(&waiting)?;
        }
        thread::sleep(SETTLE);
        for attempt in self.of(Act::Later) {
            results.insert(attempt.name, self.judged(attempt)?);
        }
        (self.tell)("what lies in the workspace is judged");
        if self.of(Act::Crash).is_empty() { Ok(()) } else { self.crash(&talk, results) }
    }

    fn crash(&self, talk: &Talk, results: &mut Results) -> Outcome<()> {
        let (_, server) = self.stage.status()?;
        let mut targets = self.stage.targets.clone();
        targets["port"] = json!(server_port(server)?);
        self.stage.write(&self.stage.workspace().join("attempts/targets.json"), &targets.to_string())?;
        talk.carry_out(&format!("run: {}", program(&["port_squatting"])))?;
        // The daemon asks the server as ever, also when it is gone; whoever has the port may answer what it likes.
        let impatient = self.stage.client.clone().with_timeout(IMPATIENT);
        let talk = talk.clone().with_client(&impatient);
        // Each has a connection of its own, which shows the key.
        let interrupt = || talk.act("session.turn.interrupt", &json!({})).ok();
        for _ in 0..INTERRUPTS {
            interrupt();
        }
        self.stage.kill_server()?;
        interrupt();
        talk.prompt("say: one").ok();
        thread::sleep(SETTLE);
        for attempt in self.of(Act::Crash) {
            results.insert(attempt.name, self.judged(attempt)?);
        }
        Ok(())
    }

    /// Lets the agent make these attempts, approved together.
    fn run(&self, names: &[&'static str]) -> Outcome<()> {
        let commands: Vec<String> = names.chunks(COMMAND).map(program).collect();
        self.agent.carry_out(&format!("run all: {}", commands.join(" ;; ")))
    }

    /// Whether something waited.
    fn approve_what_waits(&self) -> Outcome<bool> {
        self.agent.rest()?;
        let waiting = self.agent.waiting()?;
        waiting.map_or(Ok(false), |waiting| self.agent.approve(&waiting).map(|()| true))
    }

    fn editor_call(&self, name: &str) -> String {
        let targets = &self.stage.targets;
        let link = self.stage.workspace().join("link-to-state");
        let view = |path: &Value| json!({"command": "view", "path": path, "security_risk": "LOW"});
        let arguments = match name {
            "editor_owner_token" => view(&targets["owner_token_file"]),
            "editor_link_to_state" => view(&json!(link)),
            "editor_server_environ" => view(&json!("/proc/self/environ")),
            _ => json!({
                "command": "create", "path": self.stage.owner.directory().join(".profile"), "security_risk": "LOW",
                "file_text": self.words.get(name),
            }),
        };
        format!("call: file_editor {arguments}")
    }

    /// A process of the agent's that no attempt made.
    fn find_shell(&self) -> Option<u32> {
        let data = self.stage.data().ok()?;
        processes::all().into_iter().find(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            name.trim() == "bash" && environment.contains(&*data.to_string_lossy())
        })
    }

    pub(super) fn was_stopped(&self, pid: u32) -> bool {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
    }
}

/// Ends what attempts started.
fn end_processes(naps: &Names) {
    for _ in 0..40 {
        let left: Vec<u32> = naps.values().flat_map(|nap| with_argument(nap)).collect();
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

fn names_of(attempts: &[&'static Attempt]) -> Vec<&'static str> {
    attempts.iter().map(|attempt| attempt.name).collect()
}

fn program(names: &[&str]) -> String {
    format!("python3.12 -B attempts/attempt.py {}", names.join(" "))
}

/// Notes which of these processes a signal stopped, and lets them go on.
fn watch(pids: &[u32], stopped: &Mutex<BTreeSet<u32>>, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        for pid in pids {
            if processes::stat(*pid).is_some_and(|stat| stat.state == 'T') {
                stopped.lock().unwrap_or_else(PoisonError::into_inner).insert(*pid);
                if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                    kill_process(pid, Signal::CONT).ok();
                }
            }
        }
        thread::sleep(LOOK);
    }
}

/// The hard limit on descriptors.
fn limit_of(pid: u32) -> Outcome<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).doing("the daemon is gone")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let mut words = line.split_whitespace().rev().skip(1);
    words
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| Failure::new("the daemon has no limit on descriptors"))
}
