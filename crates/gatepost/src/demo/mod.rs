//! `gatepost demo`: the whole job, on the real Agent Server, with a scripted model and no configuration.
//!
//! The binary starts itself as a daemon in a temporary directory and is its client, over the same socket and with the same
//! rules as any other. What it says was done, it has seen.

mod client;
mod leftovers;
mod scene;
mod stage;
mod story;

use std::time::Instant;

use api_types::ExitCode;
use cli::{DemoArgs, Failure};
use serde_json::{Value, json};

use crate::Look;
use crate::places::Places;
use crate::server;
use crate::signals::{Hangup, StopSignals};
use scene::Seen;
use stage::{Closed, Pace, Stage};
use story::Story;

/// Plays the demonstration and takes everything away again.
///
/// # Errors
/// What was not as it must be; everything is taken away all the same.
pub(crate) fn run(places: &Places, args: &DemoArgs, look: Look) -> Result<Value, Failure> {
    let broken = |error: std::io::Error| failed(format!("the demonstration cannot begin: {error}"));
    // Whatever outlives the daemon falls to this process, and is seen.
    host::hygiene::become_subreaper().map_err(broken)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let ended = runtime.block_on(async {
        let signals = StopSignals::listen(Hangup::Stops).map_err(broken)?;
        perform(places, args, look, &signals).await
    });
    runtime.shutdown_background();
    ended
}

async fn perform(places: &Places, args: &DemoArgs, look: Look, signals: &StopSignals) -> Result<Value, Failure> {
    let began = Instant::now();
    let mut story = Story::new(look);
    story.title("gatepost demo: an agent that is asked before it acts");
    let contract = server::reviewed(settings::DEFAULT_VERSION)?;
    let request = server::of_contract(contract, places, None);
    if process::install::find_for(&request).is_none() {
        story
            .note(&format!("Agent Server {} is not installed yet; this takes a few minutes, once", contract.version()));
    }
    let ready = server::install::ensure(request, look, signals).await?;
    story.installed(&ready);
    let mut stage = Stage::set(&places.paths.state_dir)?;
    let played = tokio::select! {
        played = play(&mut stage, &mut story) => Some(played),
        () = signals.asked() => None,
    };
    let pace = if played.is_some() { Pace::Orderly } else { Pace::Hurried };
    let played = match played {
        Some(Ok(seen)) => Ok(seen),
        Some(Err(failure)) => Err(story.at_this_step(failure)),
        None => Err(Failure::new(ExitCode::Failed, "interrupted", "the demonstration was interrupted, and ended")),
    };
    let stopping = Instant::now();
    story.stopping();
    let closed = stage.close(args.keep, pace, signals).await;
    story.timing("stop_ms", stopping);
    story.timing("total_ms", began);
    conclude(played, &closed, &mut story, ready.already_installed)
}

/// Starts the daemon and acts as its client.
async fn play(stage: &mut Stage, story: &mut Story) -> Result<Seen, Failure> {
    story.step("A daemon is started in a temporary directory, with a scripted model in place of a real one");
    story.note(&format!("directory    {}", stage.directory().display()));
    let starting = Instant::now();
    let client = stage.start_daemon().await?;
    story.timing("daemon_ready_ms", starting);
    scene::play(&client, stage, story).await
}

/// What the whole came to.
fn conclude(
    played: Result<Seen, Failure>,
    closed: &Closed,
    story: &mut Story,
    already_installed: bool,
) -> Result<Value, Failure> {
    let ended = match played {
        Err(failure) => Err(failure),
        Ok(_) if !closed.leftovers.is_empty() => {
            Err(failed(format!("processes were left after the stop:\n{}", closed.leftovers.join("\n"))))
        }
        Ok(seen) => closed.trouble.as_ref().map_or(Ok(seen), |trouble| Err(failed(trouble.clone()))),
    };
    match ended {
        Ok(seen) => {
            story.end(&seen, closed);
            Ok(object(&seen, closed, story.timings(), already_installed))
        }
        Err(failure) => {
            story.log_tail(&closed.log_tail);
            Err(with_evidence(failure, closed))
        }
    }
}

/// What helps to find out why it failed.
fn with_evidence(failure: Failure, closed: &Closed) -> Failure {
    failure
        .field("leftover_processes", closed.leftovers.len())
        .field("stop_trouble", closed.trouble.clone())
        .field("kept", closed.kept.as_ref().map(|kept| kept.display().to_string()))
        .field("log_tail", closed.log_tail.clone())
}

/// The one object of `--json`.
fn object(seen: &Seen, closed: &Closed, timings: &Value, already_installed: bool) -> Value {
    json!({
        "server_version": seen.server_version,
        "confinement_level": seen.confinement_level,
        "actions_proposed": seen.actions_proposed,
        "actions_approved": seen.actions_approved,
        "actions_rejected": seen.actions_rejected,
        "actions_executed": seen.actions_executed,
        "bypass_refused": seen.bypass_refused,
        "output": seen.output,
        "rewound_to_turn": seen.rewound_to_turn,
        "interrupted_after_ms": seen.interrupted_after_ms,
        "sessions": seen.sessions,
        "events": seen.events,
        "leftover_processes": closed.leftovers.len(),
        "processes_ended": closed.processes_ended,
        "already_installed": already_installed,
        "kept": closed.kept,
        "timings_ms": timings,
    })
}

/// Something of the demonstration is not as it must be.
fn failed(detail: impl Into<String>) -> Failure {
    Failure::new(ExitCode::Failed, "demo_failed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen {
            server_version: "1.2.3".to_owned(),
            confinement_level: "weak".to_owned(),
            actions_proposed: 2,
            actions_approved: 1,
            actions_rejected: 1,
            actions_executed: 1,
            bypass_refused: "approval_pending".to_owned(),
            output: "hello".to_owned(),
            rewound_to_turn: 1,
            interrupted_after_ms: 300,
            sessions: 2,
            events: 40,
        }
    }

    fn closed(leftovers: &[&str], trouble: Option<&str>) -> Closed {
        Closed {
            leftovers: leftovers.iter().map(|one| (*one).to_owned()).collect(),
            processes_ended: 3,
            trouble: trouble.map(str::to_owned),
            log_tail: vec!["last words".to_owned()],
            kept: None,
        }
    }

    fn quiet() -> Story {
        let look = Look { json: true, color: false, live_progress: false };
        Story::told_to(look, Box::new(std::io::sink()), Box::new(std::io::sink()))
    }

    #[test]
    fn the_object_holds_what_was_seen() {
        let object = conclude(Ok(seen()), &closed(&[], None), &mut quiet(), true).unwrap();
        for (name, value) in [
            ("actions_executed", json!(1)),
            ("actions_approved", json!(1)),
            ("bypass_refused", json!("approval_pending")),
            ("events", json!(40)),
            ("leftover_processes", json!(0)),
            ("confinement_level", json!("weak")),
            ("server_version", json!("1.2.3")),
            ("already_installed", json!(true)),
        ] {
            assert_eq!(object[name], value, "{name}");
        }
        assert!(object["timings_ms"].is_object());
    }

    #[test]
    fn a_leftover_process_a_bad_end_and_a_bad_act_each_fail_it_with_the_log() {
        let ended = [
            conclude(Ok(seen()), &closed(&["7 sleep 30"], None), &mut quiet(), true),
            conclude(Ok(seen()), &closed(&[], Some("the daemon ended with signal 9")), &mut quiet(), true),
            conclude(Err(failed("no")), &closed(&[], None), &mut quiet(), true),
        ];
        for ended in ended {
            let failure = ended.unwrap_err();
            assert_eq!((failure.exit, failure.code.as_str()), (ExitCode::Failed, "demo_failed"));
            let mut told = Vec::new();
            assert_eq!(cli::conclude(&Err(failure), true, None, &mut told, &mut std::io::sink()), ExitCode::Failed);
            let object: Value = serde_json::from_slice(&told).unwrap();
            assert_eq!((&object["ok"], &object["log_tail"]), (&json!(false), &json!(["last words"])));
        }
    }
}
