//! Columns of plain text.

use crate::sanitize;

/// Longest cell, in characters; the whole value stands in `--json` and in the command that shows one thing.
const MAX_CELL_CHARS: usize = 60;

/// Lays rows out in columns under a heading. Cells are made visible and cut; the last column is not padded.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| cut(cell)).collect()).collect();
    let mut widths: Vec<usize> = heading.iter().map(|word| word.chars().count()).collect();
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heading: Vec<String> = heading.iter().map(|word| (*word).to_owned()).collect();
    std::iter::once(&heading).chain(&cells).map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
    format!("{}\n", padded.join("  ").trim_end())
}

fn cut(cell: &str) -> String {
    let visible = sanitize::line(cell);
    if visible.chars().count() <= MAX_CELL_CHARS {
        return visible.into_owned();
    }
    visible.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_hides_in_a_cell() {
        let rows =
            vec![vec!["a\u{1b}[2J".to_owned(), "x\ny".to_owned()], vec!["longer one".to_owned(), "z".repeat(200)]];
        let text = table(&["ONE", "TWO"], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ONE         TWO");
        assert_eq!(lines[1], "a␛[2J       x␊y");
        assert_eq!(lines[2], format!("longer one  {}…", "z".repeat(59)));
    }
}
