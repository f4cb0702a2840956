//! Carries out the commands that talk to a running daemon.

mod acknowledge;
mod act;
mod app;
mod approve;
mod console;
mod events;
mod look;
mod prompt;
mod resolve;
mod session;
mod token;
mod wait;

use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;

use api_types::ExitCode;

use crate::args::{ClientCommand, SessionCommand, TokenCommand};
use crate::failure::Failure;
use crate::token::TokenFile;
use app::App;

/// What the binary has settled before a command runs.
#[derive(Debug, Clone)]
pub struct ClientContext {
    /// The daemon's Unix socket.
    pub socket: PathBuf,
    /// The token to use: the owner's unless another was named.
    pub token_file: TokenFile,
    /// Print JSON instead of text.
    pub json: bool,
    /// Colour the text.
    pub color: bool,
    /// A person may answer on standard input.
    pub stdin_is_terminal: bool,
    /// A person sees standard output.
    pub stdout_is_terminal: bool,
    /// A person sees standard error, on a terminal that can go back in a line.
    pub live_progress: bool,
}

/// The three standard streams, or what stands in for them.
pub struct Console {
    stdin: Box<dyn Read + Send>,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
    /// Throws away what was typed before a question stood on the screen.
    discard_typed: fn(),
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl Console {
    /// The process's own streams.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            stdin: Box::new(std::io::stdin()),
            stdout: Box::new(std::io::stdout()),
            stderr: Box::new(std::io::stderr()),
            discard_typed: || {
                // Fails where standard input is no terminal; then there is nothing to throw away.
                rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
            },
        }
    }

    /// Other streams, for callers that keep what is printed.
    #[must_use]
    pub fn new(stdin: Box<dyn Read + Send>, stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>) -> Self {
        Self { stdin, stdout, stderr, discard_typed: || {} }
    }
}

/// Carries out a command on the standard streams and returns its exit code (`api_types::exit_code`). It runs its own
/// asynchronous runtime: call it from a thread that is in none.
#[must_use]
pub fn run(command: &ClientCommand, context: &ClientContext) -> u8 {
    run_with(command, context, Console::standard())
}

/// As [`run`], on the given streams.
#[must_use]
pub fn run_with(command: &ClientCommand, context: &ClientContext, mut console: Console) -> u8 {
    let app = App::new(context, &mut console);
    let mut runtime = if matches!(command, ClientCommand::Console(_)) {
        // It draws on one thread, which may wait for the terminal, and hears of the daemon and of signals on another.
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let result = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime.block_on(dispatch(&app, command)),
        Err(error) => Err(Failure::new(ExitCode::Failed, "internal", format!("no asynchronous runtime: {error}"))),
    };
    let exit = match result {
        Ok(exit) => exit,
        Err(failure) => app.tell_failure(&failure),
    };
    app.finish(exit).code()
}

async fn dispatch(app: &App<'_>, command: &ClientCommand) -> Result<ExitCode, Failure> {
    match command {
        ClientCommand::Status => look::status(app).await,
        ClientCommand::Session(SessionCommand::Start(args)) => session::start(app, args).await,
        ClientCommand::Session(SessionCommand::Attach(args)) => session::attach(app, args).await,
        ClientCommand::Session(SessionCommand::List) => session::list(app).await,
        ClientCommand::Session(SessionCommand::Show { session }) => session::show(app, session).await,
        ClientCommand::Session(SessionCommand::Close(args)) => session::close(app, args).await,
        ClientCommand::Prompt(args) => prompt::prompt(app, args).await,
        ClientCommand::Approvals { session, full } => look::approvals(app, session, *full).await,
        ClientCommand::Approve(args) => approve::approve(app, args).await,
        ClientCommand::Reject(args) => approve::reject(app, args).await,
        ClientCommand::Acknowledge(args) => acknowledge::acknowledge(app, args).await,
        ClientCommand::Console(args) => console::console(app, args).await,
        ClientCommand::Events(args) => events::events(app, args).await,
        ClientCommand::Interrupt(args) => act::interrupt(app, args).await,
        ClientCommand::Resume(args) => act::resume(app, args).await,
        ClientCommand::Compact(args) => act::compact(app, args).await,
        ClientCommand::Fork(args) => act::fork(app, args).await,
        ClientCommand::Rewind(args) => act::rewind(app, args).await,
        ClientCommand::Model(args) => act::model(app, args).await,
        ClientCommand::Title(args) => act::title(app, args).await,
        ClientCommand::Token(TokenCommand::Create(args)) => token::create(app, args).await,
        ClientCommand::Token(TokenCommand::List) => token::list(app).await,
        ClientCommand::Token(TokenCommand::Revoke { name }) => token::revoke(app, name).await,
        ClientCommand::Receipt { action_id } => look::receipt(app, action_id).await,
    }
}
