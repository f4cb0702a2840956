//! `gatepost ledger set-aside`: the way on from a ledger that is not to be trusted.

use api_types::ExitCode;
use cli::{Failure, LedgerCommand};
use serde_json::{Value, json};
use store::{JOURNAL_FILE, Journal, LEDGER_FILE, Ledger};

use crate::places::Places;
use crate::{Look, audit, clock, say};

/// Carries the command out.
///
/// # Errors
/// A daemon runs; the ledger is good; it was not said that what was accepted may be forgotten; the system refuses.
pub(crate) fn run(places: &Places, command: &LedgerCommand, look: Look) -> Result<Value, Failure> {
    match command {
        LedgerCommand::SetAside { forget_what_was_accepted } => set_aside(places, *forget_what_was_accepted, look),
    }
}

fn set_aside(places: &Places, may_forget: bool, look: Look) -> Result<Value, Failure> {
    let state_dir = &places.paths.state_dir;
    let why = damage(places)?;
    if !may_forget {
        let detail = format!("with the ledger every session and what was accepted in it is forgotten; it is so: {why}");
        return Err(Failure::usage(detail).hint("if that is meant, add --forget-what-was-accepted"));
    }
    let _lock = audit::lock_existing(state_dir)?;
    let stamp = clock::stamp();
    let ledger = Ledger::set_aside(state_dir, &stamp).map_err(|error| audit::unusable(&error))?;
    // Without the sessions its events are of nothing; and a journal without a ledger says that the ledger was lost.
    let journal = Journal::set_aside(state_dir, &stamp).map_err(|error| audit::unusable(&error))?;
    let aside = ledger.or(journal);
    let aside = aside.ok_or_else(|| Failure::new(ExitCode::Failed, "not_found", "there is no ledger to set aside"))?;
    if !look.json {
        say(&format!(
            "set aside as {}\nthe next `gatepost serve` begins a new ledger, which knows no session: look at what each \
             conversation did before you attach to it\n",
            cli::sanitize::line(&aside.to_string_lossy())
        ));
    }
    Ok(json!({"set_aside": aside, "reason": why}))
}

/// What is wrong with the ledger; a failure when nothing is. The lock is given up again: nothing is changed in between that
/// would make a good ledger of a damaged one.
fn damage(places: &Places) -> Result<String, Failure> {
    let is_there = |name: &str| places.paths.state_dir.join(name).symlink_metadata().is_ok();
    if is_there(JOURNAL_FILE) && !is_there(LEDGER_FILE) {
        return Ok("it is missing, while the journal is there".to_owned());
    }
    let opened = match audit::open(&places.paths.state_dir, &places.paths.signing_key) {
        Ok(opened) => opened,
        Err(failure) if failure.exit == ExitCode::Blocked => return Ok(failure.detail),
        Err(failure) => return Err(failure),
    };
    match opened.ledger.verify() {
        Ok(verdict) => match verdict.broken {
            Some(broken) => Ok(broken.to_string()),
            None => {
                Err(Failure::new(ExitCode::Conflict, "ledger_good", "the ledger is not damaged; it stays where it is"))
            }
        },
        Err(error) => match audit::unusable(&error) {
            failure if failure.exit == ExitCode::Blocked => Ok(failure.detail),
            failure => Err(failure),
        },
    }
}
