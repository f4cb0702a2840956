//! Text as rows of a place on the screen. Nothing of it is lost, and a row that goes on from the one before says so.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a row begins with that goes on from the one before: no line of ours does.
const GOES_ON: &str = "    ┆ ";
/// Most characters that are drawn as one.
const MAX_JOINED: usize = 6;

/// Breaks text, made visible by `sanitize`, into rows of at most `columns`; an empty line is an empty row.
pub(super) fn rows(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.lines() {
        break_line(&drawable(line), columns.max(GOES_ON.width() + 2), &mut rows);
    }
    rows
}

/// Text on one row, cut to `columns` with a mark where something is left out.
pub(super) fn row(line: &str, columns: usize) -> String {
    let line = drawable(line);
    if line.width() <= columns {
        return line;
    }
    let mut out = String::new();
    for piece in line.graphemes(true) {
        if out.width() + piece.width() + 1 > columns {
            break;
        }
        out.push_str(piece);
    }
    out.push('…');
    out
}

/// What has no width of its own would not be drawn at all, and much that is joined could be anything: it is written out.
pub(super) fn drawable(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for piece in line.graphemes(true) {
        if piece.width() == 0 || piece.chars().count() > MAX_JOINED {
            piece.chars().for_each(|c| out.push_str(&format!("\\u{{{:x}}}", u32::from(c))));
        } else {
            out.push_str(piece);
        }
    }
    out
}

fn break_line(line: &str, columns: usize, rows: &mut Vec<String>) {
    let mut row = String::new();
    let mut used = 0;
    for piece in line.graphemes(true) {
        if used + piece.width() > columns {
            // After a word, when one ended not long ago; its blank stays on the row.
            let end = row.rfind(' ').map(|at| at + 1).filter(|end| row[..*end].width() > columns / 2);
            let rest = row.split_off(end.unwrap_or(row.len()));
            rows.push(std::mem::replace(&mut row, format!("{GOES_ON}{rest}")));
            used = row.width();
        }
        row.push_str(piece);
        used += piece.width();
    }
    rows.push(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_behind_a_mark_and_nothing_is_lost() {
        assert_eq!(rows("abcdefghijkl\n\nx", 10), ["abcdefghij", "    ┆ kl", "", "x"]);
        assert_eq!(rows("漢漢漢漢漢漢", 10), ["漢漢漢漢漢", "    ┆ 漢"]);
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(rows("one two three four", 14), ["one two three ", "    ┆ four"]);
    }

    #[test]
    fn what_would_not_be_drawn_is_written_out() {
        assert_eq!(rows("e\u{301}", 10), ["e\u{301}"]);
        assert_eq!(rows("\u{1161}a", 20), ["\\u{1161}a"]);
        assert_eq!(rows("\u{11941}\u{20d0}0", 40), ["\\u{11941}\\u{20d0}0"]);
        assert_eq!(row(&format!("a{}", "\u{e31}".repeat(6)), 9), "\\u{61}\\u…");
    }

    #[test]
    fn a_cut_is_marked() {
        assert_eq!(row("abcdef", 6), "abcdef");
        assert_eq!(row("abcdefg", 6), "abcde…");
        assert_eq!(row("漢漢漢漢", 6), "漢漢…");
    }
}
