//! What is made from the definition of the commands: completions, manual pages, and the reference in the documentation.

use std::path::Path;

use api_types::ExitCode;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::{Value, json};

use crate::args::{Cli, PagesCommand, exit_codes};
use crate::failure::Failure;

/// Carries out a command: its text, and its object for `--json`.
///
/// # Errors
/// When a page cannot be written.
pub fn run(command: &PagesCommand) -> Result<(String, Value), Failure> {
    match command {
        PagesCommand::Completions { shell } => {
            let script = completions(*shell)?;
            let object = json!({"shell": shell.to_string(), "script": script});
            Ok((script, object))
        }
        PagesCommand::Man(args) => match &args.dir {
            Some(directory) => written(directory),
            None => {
                let page = manual_pages()?.into_iter().next().map(|page| page.text).unwrap_or_default();
                let object = json!({"page": page});
                Ok((page, object))
            }
        },
    }
}

/// The completions for a shell.
///
/// # Errors
/// When the script is no text.
pub fn completions(shell: Shell) -> Result<String, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gatepost", &mut script);
    text(script)
}

/// A manual page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Name of its file, such as `gatepost-session-start.1`.
    pub name: String,
    /// Its text, as `man` reads it.
    pub text: String,
}

/// The page of the whole, then one of each command.
///
/// # Errors
/// When a page cannot be made.
pub fn manual_pages() -> Result<Vec<Page>, Failure> {
    commands().into_iter().map(|(path, command)| page(&path, command)).collect()
}

fn page(path: &[String], command: Command) -> Result<Page, Failure> {
    let name = path.join("-");
    let man = Man::new(command.display_name(&name).after_help(exit_codes())).title(name.to_uppercase());
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| Failure::new(ExitCode::Failed, "internal", format!("{name}: {error}")))?;
    Ok(Page { name: format!("{name}.1"), text: text(page)? })
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| Failure::new(ExitCode::Failed, "internal", "what was made is no text"))
}

fn written(directory: &Path) -> Result<(String, Value), Failure> {
    let refuse = |path: &Path, error: std::io::Error| {
        Failure::new(ExitCode::Failed, "output_failed", format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| refuse(directory, error))?;
    let mut names = Vec::new();
    for page in manual_pages()? {
        let path = directory.join(&page.name);
        std::fs::write(&path, page.text).map_err(|error| refuse(&path, error))?;
        names.push(page.name);
    }
    let said = format!("{} pages in {}\n", names.len(), directory.display());
    Ok((crate::sanitize::lines(&said).into_owned(), json!({"directory": directory, "pages": names})))
}

/// Every command that is not hidden, the whole first, with the words that name it.
#[must_use]
pub fn commands() -> Vec<(Vec<String>, Command)> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    let mut found = Vec::new();
    collect(&[], &whole, &mut found);
    found
}

fn collect(before: &[String], command: &Command, found: &mut Vec<(Vec<String>, Command)>) {
    let mut path = before.to_vec();
    path.push(command.get_name().to_owned());
    found.push((path.clone(), command.clone()));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(&path, sub, found);
    }
}

/// The arguments of a command that are not hidden: its own, or those that every command takes.
pub fn arguments(command: &Command, everywhere: bool) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(move |argument| {
        !is_about_itself(argument) && !argument.is_hide_set() && argument.is_global_set() == everywhere
    })
}

/// Whether an argument only shows the help or the version.
fn is_about_itself(argument: &Arg) -> bool {
    use clap::ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(argument.get_action(), Help | HelpLong | HelpShort | Version)
}

/// `docs/commands.md`.
#[must_use]
pub fn reference() -> String {
    let mut out = "# Commands\n\nMade from the definition of the commands, as are `--help`, `gatepost man` and \
                   `gatepost completions`; a test compares them.\n"
        .to_owned();
    for (path, mut command) in commands() {
        out.push_str(&format!("\n## `{}`\n\n", path.join(" ")));
        if let Some(about) = command.get_about() {
            out.push_str(&format!("{}.\n\n", about.to_string().trim_end_matches('.')));
        }
        let usage = command.render_usage().to_string();
        out.push_str(&format!("```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim()));
        let whole = path.len() == 1;
        if whole {
            out.push_str("\nEvery command takes:\n");
        }
        table(&mut out, arguments(&command, whole));
    }
    out.push_str("\n## Exit codes\n\n| code | means |\n|---|---|\n");
    for exit in ExitCode::ALL {
        out.push_str(&format!("| {} | {} |\n", exit.code(), exit.meaning()));
    }
    out
}

fn table<'a>(out: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let rows: String = arguments.map(row).collect();
    if !rows.is_empty() {
        out.push_str(&format!("\n| argument | means |\n|---|---|\n{rows}"));
    }
}

fn row(argument: &Arg) -> String {
    let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let is_switch = matches!(argument.get_action(), clap::ArgAction::SetTrue);
    if !values.is_empty() && !is_switch {
        help = format!("{}. One of: {}", help.trim_end_matches('.'), values.join(", "));
    }
    if let Some(variable) = argument.get_env() {
        help = format!("{}. Also `{}`", help.trim_end_matches('.'), variable.to_string_lossy());
    }
    format!("| `{}` | {} |\n", argument.to_string().replace('|', "\\|"), help.replace('|', "\\|"))
}
