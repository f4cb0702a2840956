//! Showing text to the person who decides: nothing hidden, nothing that paints over something else.

use serde_json::{Map, Value};

/// Bound of one action's arguments in lists, in bytes of text.
pub const LIST_BYTES: usize = 4_096;

/// Makes characters visible that do not show, reorder or repaint text: `⟨U+202E⟩`. Line feeds and tabs stay.
///
/// Returns whether there were any.
pub fn visible(text: &str) -> (String, bool) {
    let mut deceptive = false;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            deceptive = true;
            out.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    (out, deceptive)
}

/// [`visible`] over every string and key of a value.
pub fn visible_value(value: &Value) -> (Value, bool) {
    let mut deceptive = false;
    let shown = map_strings(value, &mut |text| {
        let (text, found) = visible(text);
        deceptive |= found;
        text
    });
    (shown, deceptive)
}

/// Cuts a value to about `max_bytes` of text, keeping its shape as far as it goes; what was cut says how much is missing.
///
/// Returns whether anything was cut.
pub fn bounded(value: &Value, max_bytes: usize) -> (Value, bool) {
    let mut left = Budget { bytes: max_bytes, cut: false };
    let shown = left.take_value(value);
    (shown, left.cut)
}

struct Budget {
    bytes: usize,
    cut: bool,
}

impl Budget {
    fn take_value(&mut self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.bytes = self.bytes.saturating_sub(8);
                value.clone()
            }
            Value::String(text) => Value::String(self.take_text(text)),
            Value::Array(items) => {
                let mut kept = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    if self.bytes == 0 {
                        self.cut = true;
                        kept.push(Value::String(format!("… {} more items", items.len() - index)));
                        break;
                    }
                    self.bytes = self.bytes.saturating_sub(1);
                    kept.push(self.take_value(item));
                }
                Value::Array(kept)
            }
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (index, (name, item)) in fields.iter().enumerate() {
                    if self.bytes == 0 {
                        self.cut = true;
                        kept.insert("…".to_owned(), Value::String(format!("{} more fields", fields.len() - index)));
                        break;
                    }
                    self.bytes = self.bytes.saturating_sub(1);
                    let name = self.take_text(name);
                    kept.insert(name, self.take_value(item));
                }
                Value::Object(kept)
            }
        }
    }

    fn take_text(&mut self, text: &str) -> String {
        if text.len() <= self.bytes {
            self.bytes -= text.len();
            return text.to_owned();
        }
        self.cut = true;
        let end = (0..=self.bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.bytes = 0;
        format!("{}… {} more bytes", &text[..end], text.len() - end)
    }
}

/// Rebuilds a value with every string and key replaced.
pub(crate) fn map_strings(value: &Value, change: &mut impl FnMut(&str) -> String) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => Value::Array(items.iter().map(|item| map_strings(item, change)).collect()),
        Value::Object(fields) => {
            let mut mapped = Map::new();
            for (name, item) in fields {
                let name = free_name(&mapped, change(name));
                let item = map_strings(item, change);
                mapped.insert(name, item);
            }
            Value::Object(mapped)
        }
    }
}

/// The name, or the name with a number when it is taken: no field may vanish behind another.
pub(crate) fn free_name(taken: &Map<String, Value>, name: String) -> String {
    if !taken.contains_key(&name) {
        return name;
    }
    let mut number = 2_usize;
    loop {
        let numbered = format!("{name} ({number})");
        if !taken.contains_key(&numbered) {
            return numbered;
        }
        number += 1;
    }
}

fn is_deceptive(character: char) -> bool {
    if matches!(character, '\n' | '\t') {
        return false;
    }
    character.is_control()
        || matches!(character,
            // Soft hyphen, combining joiner, Arabic letter mark, invisible letters and vowels.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}'
            // Spaces that are not the space bar's.
            | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
            // Zero width, direction marks and overrides, line and paragraph separators, invisible operators.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            // Annotations, variation selectors, tags, shorthand and musical format controls.
            | '\u{fff0}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["ls -la\n\tcat 'ü €'", "日本語", "a\u{301}", ""] {
            assert_eq!(visible(text), (text.to_owned(), false));
        }
    }

    #[test]
    fn what_deceives_is_named() {
        for (text, shown) in [
            ("rm\u{202e}x", "rm⟨U+202E⟩x"),
            ("echo ok\rrm -rf", "echo ok⟨U+000D⟩rm -rf"),
            ("\u{1b}[2K", "⟨U+001B⟩[2K"),
            ("a\u{200b}b", "a⟨U+200B⟩b"),
            ("a\u{a0}b", "a⟨U+00A0⟩b"),
            ("a\u{e0041}", "a⟨U+E0041⟩"),
            ("a\u{7f}\u{9b}", "a⟨U+007F⟩⟨U+009B⟩"),
            ("\u{0}", "⟨U+0000⟩"),
        ] {
            assert_eq!(visible(text), (shown.to_owned(), true));
        }
        let (shown, deceptive) = visible_value(&json!({"k\u{200b}": ["\u{2066}x", 1, null], "k": true}));
        assert!(deceptive);
        assert_eq!(shown, json!({"k⟨U+200B⟩": ["⟨U+2066⟩x", 1, null], "k": true}));
    }

    #[test]
    fn fields_that_look_alike_do_not_swallow_each_other() {
        let (shown, _) = visible_value(&json!({"k\u{200b}": 1, "k⟨U+200B⟩": 2}));
        assert_eq!(shown, json!({"k⟨U+200B⟩": 1, "k⟨U+200B⟩ (2)": 2}));
    }

    #[test]
    fn long_values_are_cut_and_say_so() {
        assert_eq!(bounded(&json!("héllo"), 6), (json!("héllo"), false));
        assert_eq!(bounded(&json!("héllo"), 2), (json!("h… 5 more bytes"), true));
        assert_eq!(bounded(&json!(["abc", "def", 1]), 4), (json!(["abc", "… 2 more items"]), true));
        assert_eq!(bounded(&json!({"a": "bc", "d": 1}), 4), (json!({"a": "bc", "…": "1 more fields"}), true));
        assert_eq!(bounded(&json!([]), 0), (json!([]), false));
    }

    proptest! {
        #[test]
        fn nothing_deceptive_survives(text in any::<String>()) {
            let (shown, _) = visible(&text);
            prop_assert!(!shown.chars().any(is_deceptive));
        }

        #[test]
        fn a_bound_bounds(text in any::<String>(), max_bytes in 0_usize..64) {
            let (shown, cut) = bounded(&json!([text, {"k": text}]), max_bytes);
            prop_assert!(shown.to_string().len() <= 6 * max_bytes + 200);
            prop_assert_eq!(cut, bounded(&shown, usize::MAX).0 != json!([text, {"k": text}]));
        }
    }
}
