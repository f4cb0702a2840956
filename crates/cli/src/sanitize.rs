//! Makes text from elsewhere safe to print on a terminal: nothing in it can move the cursor, change a colour, reorder what is
//! read, or hide. What is replaced stays visible: control characters as their pictures (`␛`), the rest as `\u{202e}`.
//!
//! Text that already holds such a picture or such an escape is shown as it is: the two look alike, and both are harmless.

use std::borrow::Cow;

/// How many combining marks may follow one character: more could paint over neighbouring lines.
const MAX_MARKS: usize = 2;

/// One line: line breaks are made visible too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    made_visible(text, false)
}

/// Several lines: `\n` stays a line break, everything else is treated as in [`line()`].
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    made_visible(text, true)
}

fn made_visible(text: &str, keep_breaks: bool) -> Cow<'_, str> {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) || (keep_breaks && byte == b'\n');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut marks = MAX_MARKS; // A mark with nothing to stand on would land on what we printed before.
    for c in text.chars() {
        if keep_breaks && c == '\n' {
            out.push(c);
            marks = MAX_MARKS;
        } else if is_mark(c) {
            if marks < MAX_MARKS {
                out.push(c);
            } else {
                push_escape(&mut out, c);
            }
            marks = marks.saturating_add(1);
        } else if let Some(picture) = control_picture(c) {
            out.push(picture);
            marks = MAX_MARKS;
        } else if is_unsafe(c) {
            push_escape(&mut out, c);
            marks = MAX_MARKS;
        } else {
            out.push(c);
            marks = 0;
        }
    }
    Cow::Owned(out)
}

fn push_escape(out: &mut String, c: char) {
    out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
}

fn control_picture(c: char) -> Option<char> {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('\u{2421}'),
        _ => None,
    }
}

/// Whether a character could mislead who reads it on a terminal: control, format and bidirectional characters, blanks that are
/// not the space, characters without a shape, private use, and what is no character at all.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    let code = u32::from(c);
    c.is_control() || (c.is_whitespace() && c != ' ') || (code & 0xfffe) == 0xfffe || in_ranges(&UNSAFE, code)
}

fn is_mark(c: char) -> bool {
    in_ranges(&MARKS, u32::from(c))
}

fn in_ranges(ranges: &[(u32, u32)], code: u32) -> bool {
    ranges
        .binary_search_by(|(first, last)| {
            if *last < code {
                std::cmp::Ordering::Less
            } else if *first > code {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// Format characters (Unicode category Cf), default-ignorable characters, fillers, private use and noncharacters, in order.
const UNSAFE: [(u32, u32); 33] = [
    (0x00ad, 0x00ad),     // soft hyphen
    (0x034f, 0x034f),     // combining grapheme joiner
    (0x0600, 0x0605),     // Arabic number signs
    (0x061c, 0x061c),     // Arabic letter mark
    (0x06dd, 0x06dd),     // Arabic end of ayah
    (0x070f, 0x070f),     // Syriac abbreviation mark
    (0x0890, 0x0891),     // Arabic pound and piastre marks
    (0x08e2, 0x08e2),     // Arabic disputed end of ayah
    (0x115f, 0x1160),     // Hangul fillers
    (0x17b4, 0x17b5),     // Khmer inherent vowels
    (0x180b, 0x180f),     // Mongolian variation selectors
    (0x200b, 0x200f),     // zero width, direction marks
    (0x202a, 0x202e),     // embeddings and overrides
    (0x2060, 0x206f),     // joiners, isolates, deprecated format
    (0x2800, 0x2800),     // blank Braille pattern
    (0x3164, 0x3164),     // Hangul filler
    (0xe000, 0xf8ff),     // private use
    (0xfdd0, 0xfdef),     // noncharacters
    (0xfe00, 0xfe0f),     // variation selectors
    (0xfeff, 0xfeff),     // byte order mark
    (0xffa0, 0xffa0),     // half-width Hangul filler
    (0xfff0, 0xfffb),     // interlinear annotation and unassigned ignorables
    (0x110bd, 0x110bd),   // Kaithi number sign
    (0x110cd, 0x110cd),   // Kaithi number sign above
    (0x13430, 0x1343f),   // Egyptian hieroglyph format
    (0x13440, 0x13440),   // Egyptian hieroglyph mirror
    (0x16fe4, 0x16fe4),   // Khitan small script filler
    (0x1bca0, 0x1bca3),   // shorthand format
    (0x1d159, 0x1d159),   // musical null notehead
    (0x1d173, 0x1d17a),   // musical format
    (0xe0000, 0xe0fff),   // tags and variation selectors
    (0xf0000, 0xffffd),   // private use
    (0x100000, 0x10fffd), // private use
];

/// The common blocks of combining marks, in order.
const MARKS: [(u32, u32); 8] = [
    (0x0300, 0x034e),
    (0x0350, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x20d0, 0x20ff),
    (0xfe20, 0xfe2f),
];

/// Escapes what a terminal could act on inside serialised JSON, without changing its meaning: such characters stand only inside
/// strings there, where `\uXXXX` is the same.
#[must_use]
pub fn json(serialised: &str) -> Cow<'_, str> {
    if serialised.bytes().all(|byte| byte < 0x7f) {
        return Cow::Borrowed(serialised);
    }
    let mut out = String::with_capacity(serialised.len() + 16);
    let mut units = [0_u16; 2];
    for c in serialised.chars() {
        // The structure itself holds line breaks and tabs only when it was pretty-printed; they are ASCII and stay.
        if u32::from(c) >= 0x7f && (is_unsafe(c) || is_mark(c)) {
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}
