//! No text can make the terminal do anything but show it.

use cli::sanitize::{json, line, lines};
use proptest::prelude::*;

/// Unicode category Cf, written down independently of the code under test.
const FORMAT: [(u32, u32); 21] = [
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x180e, 0x180e),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0001, 0xe0001),
    (0xe0020, 0xe007f),
];

/// Invisible though not of category Cf: fillers, joiners, selectors, blanks.
const INVISIBLE: [(u32, u32); 15] = [
    (0x34f, 0x34f),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2065, 0x2065),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xffa0, 0xffa0),
    (0xe0100, 0xe01ef),
    (0xa0, 0xa0),
    (0x2000, 0x200a),
    (0x2028, 0x2029),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
];

fn forbidden(c: char) -> bool {
    let code = u32::from(c);
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    c.is_control() || within(&FORMAT) || within(&INVISIBLE)
}

fn all_chars() -> impl Iterator<Item = char> {
    (0..=0x10_ffff).filter_map(char::from_u32)
}

#[test]
fn every_forbidden_character_of_unicode_is_made_visible() {
    let mut seen = 0;
    for c in all_chars().filter(|c| forbidden(*c)) {
        let text = format!("a{c}b");
        let shown = line(&text);
        assert!(!shown.chars().any(forbidden), "U+{:04X} came through as {shown:?}", u32::from(c));
        assert!(shown.chars().count() >= 3, "U+{:04X} vanished", u32::from(c));
        assert!(shown.starts_with('a') && shown.ends_with('b'));
        seen += 1;
    }
    assert!(seen > 400, "only {seen} characters were tried");
}

#[test]
fn every_character_is_kept_or_escaped_and_never_dropped() {
    for c in all_chars() {
        let text = format!("x{c}");
        let shown = line(&text);
        let kept = shown == text;
        let escape = format!("x\\u{{{:x}}}", u32::from(c));
        let picture = shown.chars().nth(1).is_some_and(|p| ('\u{2400}'..='\u{2421}').contains(&p));
        assert!(kept || shown == escape || (picture && c.is_ascii_control()), "U+{:04X}: {shown:?}", u32::from(c));
    }
}

#[test]
fn known_tricks_are_shown_for_what_they_are() {
    for (trick, shown) in [
        ("\u{1b}[2J\u{1b}[H", "␛[2J␛[H"),
        ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
        ("\u{1b}]8;;http://x\u{1b}\\y", "␛]8;;http://x␛\\y"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("\u{90}q", "\\u{90}q"),
        ("rm -rf /\rls       ", "rm -rf /␍ls       "),
        ("ab\u{8}\u{8}cd", "ab␈␈cd"),
        ("a\tb", "a␉b"),
        ("a\0b\u{7f}", "a␀b␡"),
        ("exe.\u{202e}gpj", "exe.\\u{202e}gpj"),
        ("\u{2066}x\u{2069}\u{200f}", "\\u{2066}x\\u{2069}\\u{200f}"),
        ("pay\u{200b}pal", "pay\\u{200b}pal"),
        ("\u{feff}x\u{2060}y\u{ad}", "\\u{feff}x\\u{2060}y\\u{ad}"),
        ("a\u{a0}b\u{2028}c", "a\\u{a0}b\\u{2028}c"),
        ("\u{e0041}", "\\u{e0041}"),
        ("one\ntwo", "one␊two"),
    ] {
        assert_eq!(line(trick), shown);
    }
    assert_eq!(lines("one\ntwo\r\n"), "one\ntwo␍\n");
}

#[test]
fn ordinary_text_of_many_scripts_is_left_alone() {
    for text in [
        "",
        "ls -la /tmp && echo \"done\"",
        "déjà vu — ‘quoted’",
        "日本語のテキスト",
        "Привет",
        "שלום",
        "مرحبا",
        "e\u{301}",
        "✅ 🚀",
    ] {
        assert_eq!(line(text), text);
    }
}

#[test]
fn a_pile_of_combining_marks_cannot_grow_over_other_lines() {
    let pile = format!("a{}", "\u{30d}".repeat(50));
    assert_eq!(line(&pile).matches('\u{30d}').count(), 2);
    assert_eq!(line("\u{338}a"), "\\u{338}a", "a mark with nothing to stand on");
    assert_eq!(lines("a\n\u{338}"), "a\n\\u{338}");
}

/// Text in which the dangerous characters are not rare.
fn nasty_text() -> impl Strategy<Value = String> {
    let dangerous = prop::sample::select(vec![
        '\u{1b}',
        '\u{9b}',
        '\r',
        '\n',
        '\t',
        '\u{8}',
        '\0',
        '\u{7f}',
        '\u{85}',
        '\u{202e}',
        '\u{2066}',
        '\u{200b}',
        '\u{200d}',
        '\u{feff}',
        '\u{ad}',
        '\u{2028}',
        '\u{e0020}',
        '\u{30d}',
        '\u{3164}',
        '[',
        ']',
        ';',
        'm',
        '\\',
        '"',
        '{',
    ]);
    prop::collection::vec(prop_oneof![dangerous, any::<char>(), prop::char::range(' ', '~')], 0..60)
        .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one_line_holds_nothing_forbidden_and_no_break(text in nasty_text()) {
        let shown = line(&text);
        prop_assert!(!shown.chars().any(forbidden), "{:?}", shown);
        prop_assert!(shown.chars().count() >= text.chars().count());
        prop_assert_eq!(line(&shown), shown.as_ref());
    }

    #[test]
    fn several_lines_keep_their_breaks_and_nothing_else(text in nasty_text()) {
        let shown = lines(&text);
        prop_assert!(!shown.chars().any(|c| forbidden(c) && c != '\n'));
        prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        prop_assert_eq!(lines(&shown), shown.as_ref());
    }

    #[test]
    fn json_keeps_its_meaning_and_holds_nothing_forbidden(text in nasty_text(), key in nasty_text()) {
        let value = serde_json::json!({ key: [text] });
        let serialised = value.to_string();
        let shown = json(&serialised);
        prop_assert!(!shown.chars().any(forbidden), "{:?}", shown);
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
