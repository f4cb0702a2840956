//! What a person sees of work that takes long: one line that is written over on a terminal, otherwise a line now and then.

use std::io::Write;

use cli::sanitize;

/// Columns of a line that is written over: a longer one would wrap, and then could not be.
const COLUMNS: usize = 79;
/// Without a terminal, one phase is told of again at most this often.
const LINE_EVERY_MS: u64 = 5_000;

/// Turns reports into what is to be written.
#[derive(Debug)]
pub(crate) struct Progress {
    live: bool,
    last: Option<Said>,
}

#[derive(Debug)]
struct Said {
    what: String,
    at_ms: u64,
}

impl Progress {
    /// `live`: on a terminal that can go back in a line.
    pub(crate) fn new(live: bool) -> Self {
        Self { live, last: None }
    }

    /// What to write for this report, if anything. `elapsed_ms` counts from the beginning of the work.
    pub(crate) fn report(&mut self, what: &str, detail: &str, elapsed_ms: u64) -> Option<String> {
        let line = line(what, detail, elapsed_ms);
        let due = match &self.last {
            Some(said) => said.what != what || elapsed_ms.saturating_sub(said.at_ms) >= LINE_EVERY_MS,
            None => true,
        };
        if self.live || due {
            self.last = Some(Said { what: what.to_owned(), at_ms: elapsed_ms });
        }
        if self.live {
            let cut: String = line.chars().take(COLUMNS).collect();
            return Some(format!("\r\u{1b}[2K{cut}"));
        }
        due.then(|| format!("{line}\n"))
    }

    /// What takes the line that is being written over away again.
    pub(crate) fn end(&mut self) -> Option<String> {
        let said = self.last.take().is_some();
        (self.live && said).then(|| "\r\u{1b}[2K".to_owned())
    }

    /// [`Self::report`], written.
    pub(crate) fn tell(&mut self, stream: &mut dyn Write, what: &str, detail: &str, elapsed_ms: u64) {
        write(stream, self.report(what, detail, elapsed_ms));
    }

    /// [`Self::end`], written.
    pub(crate) fn clear(&mut self, stream: &mut dyn Write) {
        write(stream, self.end());
    }
}

fn write(stream: &mut dyn Write, text: Option<String>) {
    if let Some(text) = text {
        // Progress that nobody can see is no failure of the work.
        stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok();
    }
}

fn line(what: &str, detail: &str, elapsed_ms: u64) -> String {
    let (what, detail, elapsed) = (sanitize::line(what), sanitize::line(detail), duration(elapsed_ms));
    // The time first: it must not be what is cut off.
    if detail.is_empty() { format!("[{elapsed}] {what}") } else { format!("[{elapsed}] {what}: {detail}") }
}

/// A duration in words, to the second.
pub(crate) fn duration(elapsed_ms: u64) -> String {
    let seconds = elapsed_ms / 1_000;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_terminal_one_line_is_written_over_and_taken_away() {
        let mut progress = Progress::new(true);
        assert_eq!(progress.end(), None);
        assert_eq!(progress.report("install", "a", 1_500).unwrap(), "\r\u{1b}[2K[1 s] install: a");
        let long = progress.report("install", &"x".repeat(500), 61_000).unwrap();
        assert_eq!(long.trim_start_matches("\r\u{1b}[2K").chars().count(), COLUMNS);
        assert!(long.contains("[1 min 1 s]"));
        assert_eq!(progress.end().unwrap(), "\r\u{1b}[2K");
        assert_eq!(progress.end(), None);
    }

    #[test]
    fn elsewhere_a_phase_is_a_line_and_is_repeated_rarely() {
        let mut progress = Progress::new(false);
        let said: Vec<bool> = [("a", 0), ("a", 1_000), ("a", 4_999), ("a", 5_000), ("b", 5_100), ("b", 6_000)]
            .into_iter()
            .map(|(what, at)| progress.report(what, "", at).is_some())
            .collect();
        assert_eq!(said, [true, false, false, true, true, false]);
        assert_eq!(progress.report("b", "d", 99_000).unwrap(), "[1 min 39 s] b: d\n");
        assert_eq!(progress.end(), None);
    }

    #[test]
    fn what_a_tool_said_cannot_act_on_the_terminal() {
        let text = Progress::new(false).report("a", "x\u{1b}[2J\ny", 0).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert!(!text.contains('\u{1b}'));
    }
}
