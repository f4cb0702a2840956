//! Foreign text in full, so that none of it can pass for ours: every line of it stands behind a bar, and a line too long for
//! a terminal is broken here, with another bar, rather than by the terminal without one.

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::sanitize;

/// Fewest columns of text behind a bar, however narrow the place is.
const MIN_COLUMNS: usize = 10;
/// Longest name that shares a line with its value.
const MAX_NAME_CHARS: usize = 16;

/// A named value behind bars, indented, in lines of at most `columns`.
pub(crate) fn named(name: &str, text: &str, columns: usize) -> String {
    let shown = sanitize::line(name);
    if shown.chars().count() > MAX_NAME_CHARS {
        return format!("{}{}", bars("name", &shown, columns), bars("", text, columns));
    }
    bars(&shown, text, columns)
}

fn bars(label: &str, text: &str, columns: usize) -> String {
    let width = label.chars().count().max(8);
    let mut out = String::new();
    let mut margin = format!("    {label:width$} ");
    let columns = columns.saturating_sub(width + "     │ ".chars().count()).max(MIN_COLUMNS);
    for line in text.split('\n') {
        let mut bar = '│';
        for part in broken(&sanitize::line(line), columns) {
            out.push_str(format!("{margin}{bar} {part}").trim_end_matches(' '));
            out.push('\n');
            bar = '┆';
            margin = format!("    {:width$} ", "");
        }
    }
    out
}

/// Breaks a visible line into parts that a terminal shows on one row each; an empty line is one empty part. Spaces at a part's
/// end are shown, for they could push something out of sight.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let trailing = line.len() - line.trim_end_matches(' ').len();
    let mut parts = vec![String::new()];
    let mut column = 0;
    for (at, c) in line.char_indices() {
        // Where terminals disagree on a width, the wider one only breaks earlier.
        let width = c.width_cjk().unwrap_or(1);
        if column + width > columns {
            parts.push(String::new());
            column = 0;
        }
        if let Some(part) = parts.last_mut() {
            part.push(if at >= line.len() - trailing { '·' } else { c });
        }
        column += width;
    }
    parts
}

/// The fields of an object each behind bars, strings as text, everything else as JSON; other values as JSON.
pub(crate) fn value(value: &Value, columns: usize) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().map(|(name, field)| named(name, &text_of(field), columns)).collect()
        }
        Value::Object(_) | Value::Null => named("", "(none)", columns),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => named("", &text_of(value), columns),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_of_foreign_text_stands_behind_a_bar() {
        let text = named("command", "echo a\n\nApprove these 0 actions? [y/N] y\n", 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "    command  │ echo a",
                "             │",
                "             │ Approve these 0 actions? [y/N] y",
                "             │"
            ]
        );
    }

    #[test]
    fn a_long_line_is_broken_with_a_bar_of_its_own() {
        let hidden = format!("ls{}rm -rf ~", " ".repeat(150));
        let text = named("command", &hidden, 80);
        assert!(text.contains("rm -rf ~"));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80 && (line.contains('│') || line.contains('┆'))),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3);
        let wide = named("command", &"漢".repeat(40), 80);
        assert_eq!(wide.lines().count(), 2);
    }

    #[test]
    fn spaces_at_the_end_are_shown() {
        assert_eq!(named("a", "x  ", 80), "    a        │ x··\n");
    }

    #[test]
    fn a_name_cannot_break_out_of_its_column() {
        let text = named("command │ ls\n  real", "rm", 80);
        assert_eq!(text, "    name     │ command │ ls␊  real\n             │ rm\n");
    }

    #[test]
    fn nested_values_are_json_behind_bars() {
        let text = value(&json!({"path": "a", "edits": [{"old": "x\u{202e}"}], "n": 3}), 80);
        assert!(text.contains("    path     │ a\n"));
        assert!(text.contains("    n        │ 3\n"));
        assert!(text.contains("\"old\": \"x\\u{202e}\""));
        assert!(text.lines().all(|line| line.contains('│')));
    }
}
