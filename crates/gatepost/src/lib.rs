//! The gatepost program: parses, then carries out `demo`, `serve`, `server`, `service`, `doctor`, `audit` and `ledger` itself and hands every other
//! command to the command line's client. Ahead of all that, under hidden names, it is the wrapper that confines what
//! a server starts, what tries whether it does, and the guards that end a server's tree.
//!
//! A library, so that tests can link the same daemon with a guard taken out. The shipped binary is `main.rs`, which takes
//! out nothing.

mod audit;
mod clock;
mod confine;
mod demo;
mod doctor;
mod guard;
mod guards;
mod ledger;
mod notary;
mod places;
mod probe;
mod serve;
mod server;
mod service;
mod signals;

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

use agent_contract::Contract;
use cli::{Cli, ClientContext, Command, Failure, PagesCommand, ParseOutcome};
use rules::passage::Watch;
use serde_json::Value;

pub use guards::Guards;
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
    run_guarded(in_force, watch, Guards::ALL)
}

/// The same with some guards only.
#[must_use]
pub fn run_guarded(in_force: ContractInForce, watch: &Watch, guards: Guards) -> ExitCode {
    let confined = confine::run_if_asked(std::env::args_os(), guards.confinement);
    let hidden = confined
        .or_else(|| guard::run_if_asked(std::env::args_os(), guards.unreadable))
        .or_else(|| probe::run_if_asked(std::env::args_os()));
    if let Some(code) = hidden {
        return code;
    }
    // Before a token or key is read, whatever the command: from here on nobody of the same user can read this process, and it
    // leaves no core file.
    if guards.unreadable
        && let Err(error) = host::hygiene::harden_self()
    {
        writeln!(stderr(), "gatepost: this process cannot be hardened: {error}").ok();
        return api_types::ExitCode::Failed.into();
    }
    let cli = match cli::parse(std::env::args_os(), &mut stdout(), &mut stderr()) {
        ParseOutcome::Run(cli) => cli,
        ParseOutcome::Exit(code) => return code.into(),
    };
    match (Places::of(&cli), &cli.command) {
        (Ok(places), _) => dispatch(&cli, &places, in_force, watch, guards),
        // Also where nobody lives, as in the build of a package.
        (Err(_), Command::Pages(command)) => pages(&cli, command),
        (Err(failure), _) => conclude(&cli, &Err(failure)),
    }
}

fn dispatch(cli: &Cli, places: &Places, in_force: ContractInForce, watch: &Watch, guards: Guards) -> ExitCode {
    match &cli.command {
        Command::Client(command) => cli::client::run(command, &context(cli, places)).into(),
        Command::Pages(command) => pages(cli, command),
        Command::Demo(args) => conclude(cli, &demo::run(places, args, look(cli))),
        Command::Serve(args) => conclude(cli, &serve::run(places, args, in_force, watch, guards)),
        Command::Server(command) => conclude(cli, &server::run(places, command, look(cli))),
        Command::Doctor(args) => conclude(cli, &doctor::run(places, args, look(cli))),
        Command::Audit(args) => conclude(cli, &audit::run(places, args, look(cli))),
        Command::Service(command) => conclude(cli, &service::run(cli, places, command, look(cli))),
        Command::Ledger(command) => conclude(cli, &ledger::run(places, command, look(cli))),
    }
}

fn pages(cli: &Cli, command: &PagesCommand) -> ExitCode {
    let ended = cli::pages::run(command).map(|(text, object)| {
        if !cli.json {
            say(&text);
        }
        object
    });
    conclude(cli, &ended)
}

fn conclude(cli: &Cli, ended: &Result<Value, Failure>) -> ExitCode {
    let trouble = TROUBLE.get().map(String::as_str);
    cli::conclude(ended, cli.json, trouble, &mut stdout(), &mut stderr()).into()
}

/// What first kept text for people from being printed.
static TROUBLE: OnceLock<String> = OnceLock::new();

/// Prints text for people. A reader who left is no failure; anything else that keeps it from being written ends the command
/// with one.
pub(crate) fn say(text: &str) {
    if TROUBLE.get().is_none()
        && let Some(words) = cli::write(&mut stdout(), text)
    {
        TROUBLE.set(words).ok();
    }
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
    let set = |name| std::env::var_os(name);
    cli.color(stdout().is_terminal(), set("TERM").as_deref(), set("NO_COLOR").as_deref())
}

fn context(cli: &Cli, places: &Places) -> ClientContext {
    ClientContext {
        socket: places.paths.socket.clone(),
        token_file: places.token(),
        json: cli.json,
        color: color(cli),
        stdin_is_terminal: stdin().is_terminal(),
        stdout_is_terminal: stdout().is_terminal(),
        live_progress: look(cli).live_progress,
    }
}
