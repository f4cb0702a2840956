//! What a person sees of work that takes long: a bar on one line that is written over on a terminal, otherwise a line now and then.

use std::io::Write;

use crate::sanitize;

/// Columns of a line that is written over: a longer one would wrap, and then could not be.
const COLUMNS: usize = 79;
/// Without a terminal, one phase is told of again at most this often.
const LINE_EVERY_MS: u64 = 5_000;
/// Cells of the bar, and of the part that moves through it while nobody knows how much is left.
const BAR_CELLS: u64 = 16;
const MOVING_CELLS: u64 = 4;
/// How long the moving part stays on a cell.
const CELL_MS: u64 = 250;

/// Turns reports into what is to be written.
#[derive(Debug)]
pub struct Progress {
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
    #[must_use]
    pub fn new(live: bool) -> Self {
        Self { live, last: None }
    }

    /// What to write for this report, if anything. `elapsed_ms` counts from the beginning of the work; `percent` of it is done,
    /// where that is known.
    fn report(&mut self, what: &str, detail: &str, elapsed_ms: u64, percent: Option<u8>) -> Option<String> {
        let line = line(what, detail, elapsed_ms);
        let due = match &self.last {
            Some(said) => said.what != what || elapsed_ms.saturating_sub(said.at_ms) >= LINE_EVERY_MS,
            None => true,
        };
        if self.live || due {
            self.last = Some(Said { what: what.to_owned(), at_ms: elapsed_ms });
        }
        if self.live {
            let cut: String = format!("{} {line}", bar(elapsed_ms, percent)).chars().take(COLUMNS).collect();
            return Some(format!("\r\u{1b}[2K{cut}"));
        }
        due.then(|| format!("{line}\n"))
    }

    /// What takes the line that is being written over away again.
    fn end(&mut self) -> Option<String> {
        let said = self.last.take().is_some();
        (self.live && said).then(|| "\r\u{1b}[2K".to_owned())
    }

    /// Writes what there is to say of work that has gone on for so long, of which nobody knows how much is left.
    pub fn tell(&mut self, stream: &mut dyn Write, what: &str, detail: &str, elapsed_ms: u64) {
        write(stream, self.report(what, detail, elapsed_ms, None));
    }

    /// The same of work of which so many percent are done, where that is known.
    pub fn tell_share(
        &mut self,
        stream: &mut dyn Write,
        what: &str,
        detail: &str,
        elapsed_ms: u64,
        percent: Option<u8>,
    ) {
        write(stream, self.report(what, detail, elapsed_ms, percent));
    }

    /// Takes away the line that is being written over.
    pub fn clear(&mut self, stream: &mut dyn Write) {
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

fn bar(elapsed_ms: u64, percent: Option<u8>) -> String {
    let filled = match percent {
        Some(percent) => 0..u64::from(percent.min(100)) * BAR_CELLS / 100,
        None => {
            let first = elapsed_ms / CELL_MS % (BAR_CELLS - MOVING_CELLS + 1);
            first..first + MOVING_CELLS
        }
    };
    let cells: String = (0..BAR_CELLS).map(|cell| if filled.contains(&cell) { '#' } else { '.' }).collect();
    format!("[{cells}]")
}

/// A duration in words, to the second.
#[must_use]
pub fn duration(elapsed_ms: u64) -> String {
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
        assert_eq!(
            progress.report("install", "a", 1_500, None).unwrap(),
            "\r\u{1b}[2K[......####......] [1 s] install: a"
        );
        let long = progress.report("install", &"x".repeat(500), 61_000, None).unwrap();
        assert_eq!(long.trim_start_matches("\r\u{1b}[2K").chars().count(), COLUMNS);
        assert!(long.contains("[1 min 1 s]"));
        assert_eq!(progress.end().unwrap(), "\r\u{1b}[2K");
        assert_eq!(progress.end(), None);
    }

    #[test]
    fn the_bar_is_filled_as_far_as_is_known_and_moves_otherwise() {
        assert_eq!(bar(0, Some(0)), "[................]");
        assert_eq!(bar(0, Some(50)), "[########........]");
        assert_eq!(bar(0, Some(255)), "[################]");
        assert_eq!(bar(0, None), "[####............]");
        assert_eq!(bar(12 * CELL_MS, None), "[............####]");
        assert_eq!(bar(13 * CELL_MS, None), "[####............]");
    }

    #[test]
    fn elsewhere_a_phase_is_a_line_and_is_repeated_rarely() {
        let mut progress = Progress::new(false);
        let said: Vec<bool> = [("a", 0), ("a", 1_000), ("a", 4_999), ("a", 5_000), ("b", 5_100), ("b", 6_000)]
            .into_iter()
            .map(|(what, at)| progress.report(what, "", at, Some(50)).is_some())
            .collect();
        assert_eq!(said, [true, false, false, true, true, false]);
        assert_eq!(progress.report("b", "d", 99_000, Some(50)).unwrap(), "[1 min 39 s] b: d\n");
        assert_eq!(progress.end(), None);
    }

    #[test]
    fn what_a_tool_said_cannot_act_on_the_terminal() {
        let text = Progress::new(false).report("a", "x\u{1b}[2J\ny", 0, None).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert!(!text.contains('\u{1b}'));
    }
}
