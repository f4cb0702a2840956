//! The gatepost program: parses, then carries out `demo`, `serve`, `server`, `doctor`, `audit` and `ledger` itself and hands every other
//! command to the command line's client. Ahead of all that, under hidden names, it is the wrapper that confines what
//! a server starts, and what tries whether it does.
//!
//! A library, so that tests can link the same daemon with a guard taken out. The shipped binary is `main.rs`, which takes
//! out nothing.

mod audit;
mod clock;
mod confine;
mod demo;
mod doctor;
mod ledger;
mod notary;
mod places;
mod probe;
mod progress;
mod serve;
mod server;
mod signals;

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::process::ExitCode;

use agent_contract::Contract;
use cli::{Cli, ClientContext, Command, Failure, ParseOutcome};
use rules::passage::Watch;
use serde_json::Value;

use places::Places;

/// What the daemon runs with in place of a reviewed contract; [`as_reviewed`] everywhere but in tests.
pub type ContractInForce = fn(&'static Contract) -> &'static Contract;

/// The reviewed contract itself.
#[must_use]
pub fn as_reviewed(contract: &'static Contract) -> &'static Contract {
    contract
}

/// The whole program, with the arguments and environment of this process.
#[must_use]
pub fn run(in_force: ContractInForce) -> ExitCode {
    run_watched(in_force, &Watch::default())
}

/// The same with a daemon that is watched.
#[must_use]
pub fn run_watched(in_force: ContractInForce, watch: &Watch) -> ExitCode {
    let hidden = confine::run_if_asked(std::env::args_os()).or_else(|| probe::run_if_asked(std::env::args_os()));
    if let Some(code) = hidden {
        return code;
    }
    let cli = match cli::parse(std::env::args_os(), &mut stdout(), &mut stderr()) {
        ParseOutcome::Run(cli) => cli,
        ParseOutcome::Exit(code) => return code.into(),
    };
    match Places::of(&cli) {
        Ok(places) => dispatch(&cli, &places, in_force, watch),
        Err(failure) => conclude(&cli, &Err(failure)),
    }
}

fn dispatch(cli: &Cli, places: &Places, in_force: ContractInForce, watch: &Watch) -> ExitCode {
    match &cli.command {
        Command::Client(command) => cli::client::run(command, &context(cli, places)).into(),
        Command::Demo(args) => conclude(cli, &demo::run(places, args, look(cli))),
        Command::Serve(args) => conclude(cli, &serve::run(places, args, in_force, watch)),
        Command::Server(command) => conclude(cli, &server::run(places, command, look(cli))),
        Command::Doctor(args) => conclude(cli, &doctor::run(places, args, look(cli))),
        Command::Audit(args) => conclude(cli, &audit::run(places, args, look(cli))),
        Command::Ledger(command) => conclude(cli, &ledger::run(places, command, look(cli))),
    }
}

fn conclude(cli: &Cli, ended: &Result<Value, Failure>) -> ExitCode {
    cli::conclude(ended, cli.json, &mut stdout(), &mut stderr()).into()
}

/// Prints text for people. A reader who left is no failure: the exit code still tells.
pub(crate) fn say(text: &str) {
    let mut stdout = stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}

/// How a command shows what it does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// One object on standard output, nothing else.
    pub(crate) json: bool,
    /// Text may be coloured.
    pub(crate) color: bool,
    /// A person sees standard error, on a terminal that can go back in a line.
    pub(crate) live_progress: bool,
}

fn look(cli: &Cli) -> Look {
    let can_go_back = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    Look { json: cli.json, color: color(cli), live_progress: can_go_back && stderr().is_terminal() }
}

fn color(cli: &Cli) -> bool {
    cli.color(stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

fn context(cli: &Cli, places: &Places) -> ClientContext {
    ClientContext {
        socket: places.paths.socket.clone(),
        token_file: places.token_file.clone(),
        json: cli.json,
        color: color(cli),
        stdin_is_terminal: stdin().is_terminal(),
        stdout_is_terminal: stdout().is_terminal(),
    }
}
