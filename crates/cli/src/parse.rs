//! From arguments to a command, or to the words and the exit code of a mistake.

use std::ffi::OsString;
use std::io::Write;

use api_types::ExitCode;
use clap::Parser;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use crate::sanitize;

/// What the arguments came to.
#[derive(Debug)]
pub enum ParseOutcome {
    /// A command to carry out.
    Run(Box<Cli>),
    /// Help, the version or a mistake was printed: leave with this exit code.
    Exit(u8),
}

/// Parses `arguments` (the program's name first). Help and version go to `stdout` (exit code 0), a mistake to `stderr` (2), and
/// with `--json` a mistake is also the one object on `stdout`. A closed pipe is no error, and what cannot be written
/// otherwise is one (1).
pub fn parse<I, T>(arguments: I, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ParseOutcome
where
    I: IntoIterator<Item = T>,
    T: Into<OsString>,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let json = arguments.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json");
    let error = match Cli::try_parse_from(arguments) {
        Ok(cli) => return ParseOutcome::Run(Box::new(cli)),
        Err(error) => error,
    };
    // Plain text, whatever the terminal: the words may quote an argument.
    let rendered = error.render().to_string();
    let words = sanitize::lines(&rendered);
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let trouble = output::write(stdout, &words);
        return ParseOutcome::Exit(output::after_trouble(trouble.as_deref(), ExitCode::Done, stderr).code());
    }
    output::write_quietly(stderr, &words);
    if json {
        let failure = Failure::usage(words.trim_end());
        output::write_quietly(stdout, &output::json_line(&failure.object()));
    }
    ParseOutcome::Exit(ExitCode::Usage.code())
}
