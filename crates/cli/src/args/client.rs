//! The commands that talk to a running daemon.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::values::{self, ApprovalDigits, IdPrefix};

/// A command for a running daemon.
#[derive(Debug, Clone, Subcommand)]
pub enum ClientCommand {
    /// One look: daemon, servers, canaries, sessions, confinement
    Status,
    /// Start, take up, list, show or close sessions
    #[command(subcommand, arg_required_else_help = false)]
    Session(SessionCommand),
    /// Send a prompt; with --wait, follow until the turn ends
    Prompt(PromptArgs),
    /// Show what waits for a decision
    Approvals {
        /// Session, or a unique prefix of it.
        #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
        session: IdPrefix,
        /// Cut nothing and lift redaction by name (needs the approver role).
        #[arg(long)]
        full: bool,
    },
    /// Approve the pending batch; without APPROVAL it is shown whole and asked for, at a terminal only
    Approve(ApproveArgs),
    /// Reject the pending batch
    Reject(RejectArgs),
    /// Lift the block put on a session because an action ran that nobody accepted; without BLOCK it is asked for, at a
    /// terminal only
    Acknowledge(AcknowledgeArgs),
    /// Watch sessions, prompt and decide on a full screen; at a terminal only
    Console(ConsoleArgs),
    /// Print the redacted events
    Events(EventsArgs),
    /// Stop the running turn; always available
    Interrupt(FollowArgs),
    /// Go on after a pause
    Resume(FollowArgs),
    /// Condense the conversation
    Compact(FollowArgs),
    /// Fork the session at its last safe point
    Fork(ForkArgs),
    /// Go back to before a turn
    Rewind(RewindArgs),
    /// Choose another reviewed model
    Model(ModelArgs),
    /// Set the title
    Title(TitleArgs),
    /// Make, list or revoke tokens of clients (with the owner's token)
    #[command(subcommand, arg_required_else_help = false)]
    Token(TokenCommand),
    /// Look up what became of an action
    Receipt {
        /// The action id that was printed or given with --action-id.
        #[arg(value_name = "ACTION_ID", value_parser = values::action_id)]
        action_id: String,
    },
}

/// What to do with sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionCommand {
    /// Start a session in a workspace
    Start(StartArgs),
    /// Take up a conversation that the workspace's server already has
    Attach(AttachArgs),
    /// List the sessions
    List,
    /// Show what a session is and offers now
    Show {
        /// Session, or a unique prefix of it.
        #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
        session: IdPrefix,
    },
    /// Close a session
    Close(CloseArgs),
}

/// What to do with tokens.
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once
    Create(TokenArgs),
    /// List the tokens, without what they are
    List,
    /// End a token, and what waits with it
    Revoke {
        /// Name of the token.
        #[arg(long, value_name = "N", value_parser = values::token_name)]
        name: String,
    },
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenRole {
    /// Reads.
    Observer,
    /// Prompts, interrupts, rejects, forks, rewinds.
    Operator,
    /// Accepts; also rejects and interrupts.
    Approver,
}

impl TokenRole {
    /// The API's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Operator => "operator",
            Self::Approver => "approver",
        }
    }
}

/// Arguments of `token create`.
#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    /// What it may do; several are separated by commas, or the option is repeated.
    #[arg(
        long = "role",
        value_enum,
        required = true,
        value_delimiter = ',',
        value_name = "observer|operator|approver"
    )]
    pub roles: Vec<TokenRole>,
    /// Its name, under which the records say what was done with it; never used again, also after it was revoked.
    #[arg(long, value_name = "N", value_parser = values::token_name)]
    pub name: String,
}

/// Arguments of `session start`.
#[derive(Debug, Clone, Args)]
pub struct StartArgs {
    /// Directory the agent works in; inside a configured root.
    #[arg(long, value_name = "DIR", value_parser = values::path)]
    pub workspace: PathBuf,
    /// Title, 1 to 200 characters.
    #[arg(long, value_name = "T", value_parser = values::title)]
    pub title: Option<String>,
    /// First prompt, at most 200,000 bytes.
    #[arg(long, value_name = "TEXT", value_parser = values::prompt)]
    pub prompt: Option<String>,
    /// Identifier to use (a UUID): the same one again is the same session. Random when left out.
    #[arg(long, value_name = "UUID", value_parser = values::uuid)]
    pub session_id: Option<String>,
}

/// Arguments of `session attach`.
#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    /// Directory whose server holds the conversation.
    #[arg(long, value_name = "DIR", value_parser = values::path)]
    pub workspace: PathBuf,
    /// The conversation's id (a whole UUID).
    #[arg(value_name = "CONVERSATION", value_parser = values::uuid)]
    pub conversation_id: String,
}

/// Arguments of `session close`.
#[derive(Debug, Clone, Args)]
pub struct CloseArgs {
    /// Session, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
    pub session: IdPrefix,
    /// Delete the conversation too.
    #[arg(long)]
    pub delete: bool,
}

/// What every operation on a session takes.
#[derive(Debug, Clone, Args)]
pub struct FollowArgs {
    /// Session, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
    pub session: IdPrefix,
    /// How the action is recorded, and how it is done at most once: 1 to 128 of [A-Za-z0-9._:-]. Random when left out.
    #[arg(long, value_name = "ACTION_ID", value_parser = values::action_id)]
    pub action_id: Option<String>,
    /// Seconds to wait for the outcome; 60 when left out (600 with --wait).
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout_s: Option<u32>,
}

/// What a prompt does to actions that wait for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnPending {
    /// The prompt is refused.
    Refuse,
    /// They are rejected first.
    Reject,
}

impl OnPending {
    /// The API's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Reject => "reject",
        }
    }
}

/// Arguments of `prompt`.
#[derive(Debug, Clone, Args)]
pub struct PromptArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// The prompt, at most 200,000 bytes; `-` reads it from standard input.
    #[arg(value_name = "TEXT|-", value_parser = values::prompt)]
    pub text: String,
    /// What happens to actions that wait for a decision.
    #[arg(long, value_enum, default_value_t = OnPending::Refuse, value_name = "refuse|reject")]
    pub on_pending: OnPending,
    /// Follow the events until the turn ends.
    #[arg(long)]
    pub wait: bool,
}

/// Arguments of `approve`.
#[derive(Debug, Clone, Args)]
pub struct ApproveArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// The digest of the pending batch, or at least its first 12 digits.
    #[arg(value_name = "APPROVAL", value_parser = ApprovalDigits::parse)]
    pub approval: Option<ApprovalDigits>,
}

/// Arguments of `reject`.
#[derive(Debug, Clone, Args)]
pub struct RejectArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// The digest of the pending batch, or at least its first 12 digits.
    #[arg(value_name = "APPROVAL", value_parser = ApprovalDigits::parse)]
    pub approval: Option<ApprovalDigits>,
    /// Why, for the agent; at most 2000 bytes.
    #[arg(long, value_name = "R", value_parser = values::reason)]
    pub reason: Option<String>,
}

/// Arguments of `acknowledge`.
#[derive(Debug, Clone, Args)]
pub struct AcknowledgeArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// The digest of the block (`gatepost session show ID`), or at least its first 12 digits.
    #[arg(value_name = "BLOCK", value_parser = ApprovalDigits::parse)]
    pub block: Option<ApprovalDigits>,
}

/// Arguments of `console`.
#[derive(Debug, Clone, Args)]
pub struct ConsoleArgs {
    /// Session to open, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
    pub session: Option<IdPrefix>,
}

/// Arguments of `events`.
#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// Session, or a unique prefix of it.
    #[arg(value_name = "ID", value_parser = IdPrefix::parse)]
    pub session: IdPrefix,
    /// Keep waiting for new events.
    #[arg(long)]
    pub follow: bool,
    /// Only what comes after this cursor.
    #[arg(long, value_name = "CURSOR", value_parser = values::cursor)]
    pub after: Option<String>,
}

/// Arguments of `fork`.
#[derive(Debug, Clone, Args)]
pub struct ForkArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// Title of the fork, 1 to 200 characters.
    #[arg(long, value_name = "T", value_parser = values::title)]
    pub title: Option<String>,
    /// Identifier of the fork (a UUID). Chosen by the daemon when left out.
    #[arg(long, value_name = "UUID", value_parser = values::uuid)]
    pub session_id: Option<String>,
}

/// Arguments of `rewind`.
#[derive(Debug, Clone, Args)]
pub struct RewindArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// A turn that `session show` offers.
    #[arg(value_name = "TURN", value_parser = clap::value_parser!(u32).range(1..))]
    pub turn: u32,
}

/// Arguments of `model`.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// One of the reviewed models that `session show` offers.
    #[arg(value_name = "MODEL", value_parser = values::model)]
    pub model: String,
}

/// Arguments of `title`.
#[derive(Debug, Clone, Args)]
pub struct TitleArgs {
    /// Session and how to wait.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// The title, 1 to 200 characters.
    #[arg(value_name = "T", value_parser = values::title)]
    pub title: String,
}
