//! The daemon's log: lines on standard error, never a body and never a secret.

use cli::Failure;
use tracing_subscriber::EnvFilter;

/// What is logged, as `tracing` writes it: a level, or levels by target.
const VARIABLE: &str = "GATEPOST_LOG";
const DEFAULT: &str = "info";

/// Begins to log.
///
/// # Errors
/// When the variable cannot be understood.
pub(crate) fn start() -> Result<(), Failure> {
    let words = std::env::var(VARIABLE).ok().filter(|words| !words.is_empty());
    let filter = filter(words.as_deref().unwrap_or(DEFAULT))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // It would tell of a closed standard error on standard error, and panic.
        .log_internal_errors(false)
        .try_init()
        .map_err(|error| Failure::new(api_types::ExitCode::Failed, "internal", format!("no log: {error}")))
}

fn filter(words: &str) -> Result<EnvFilter, Failure> {
    EnvFilter::builder()
        .parse(words)
        .map_err(|error| Failure::usage(format!("{VARIABLE} is not understood ({error}); try info, debug or trace")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_and_levels_by_target_are_understood_and_nonsense_is_a_mistake() {
        for words in [DEFAULT, "debug", "session=trace,api=warn", "off"] {
            assert!(filter(words).is_ok(), "{words}");
        }
        let failure = filter("session=shouting").unwrap_err();
        assert_eq!(failure.exit, api_types::ExitCode::Usage);
        assert!(failure.detail.contains(VARIABLE));
    }
}
