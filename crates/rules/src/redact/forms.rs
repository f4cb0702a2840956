//! The ways one secret is written.

use std::collections::BTreeSet;

use crate::jcs::hex;

use super::MIN_SECRET_BYTES;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The secret itself; escaped for JSON once and twice, with and without escapes beyond ASCII; in hexadecimal digits;
/// percent-encoded; and in base64 at each of the three places it can have within longer encoded data.
pub(super) fn written_forms(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([secret.to_owned()]);
    for escape in [escape_json, escape_json_ascii, escape_json_slash] {
        let once = escape(secret);
        forms.insert(escape(&once));
        forms.insert(once);
    }
    let lower = hex(secret.as_bytes());
    forms.insert(lower.to_ascii_uppercase());
    forms.insert(lower);
    for keep in [is_unreserved, is_form_safe, is_uri_safe] {
        let encoded = percent_encode(secret, keep);
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(lower_escapes(&encoded));
        forms.insert(encoded);
    }
    for offset in 0..3 {
        let core = base64_core(secret.as_bytes(), offset);
        forms.insert(core.replace('+', "-").replace('/', "_"));
        forms.insert(core);
    }
    forms.retain(|form| form.len() >= MIN_SECRET_BYTES);
    forms
}

fn escape_json(text: &str) -> String {
    escape(text, |character| character < ' ')
}

/// As Python writes JSON by default.
fn escape_json_ascii(text: &str) -> String {
    escape(text, |character| !(' '..='\u{7e}').contains(&character))
}

/// As PHP and some JavaScript write it.
fn escape_json_slash(text: &str) -> String {
    escape_json(text).replace('/', "\\/")
}

fn escape(text: &str, as_number: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            other if as_number(other) => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => out.push(other),
        }
    }
    out
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_form_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._*".contains(&byte)
}

fn is_uri_safe(byte: u8) -> bool {
    is_unreserved(byte) || b"!*'();:@&=+$,/?#[]".contains(&byte)
}

fn percent_encode(text: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if keep(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn lower_escapes(encoded: &str) -> String {
    let mut out = String::with_capacity(encoded.len());
    let mut escape_left = 0;
    for character in encoded.chars() {
        if character == '%' {
            escape_left = 3;
        }
        out.push(if escape_left > 0 { character.to_ascii_lowercase() } else { character });
        escape_left = i32::max(escape_left - 1, 0);
    }
    out
}

/// The base64 digits that depend on the secret alone when `offset` bytes stand before it.
fn base64_core(secret: &[u8], offset: usize) -> String {
    let mut bits = 0_u32;
    let mut held = 0_u32;
    let mut digits = String::new();
    let padded = std::iter::repeat_n(0_u8, offset).chain(secret.iter().copied());
    for byte in padded {
        bits = (bits << 8) | u32::from(byte);
        held += 8;
        while held >= 6 {
            held -= 6;
            let digit = (bits >> held) & 63;
            digits.push(BASE64.get(digit as usize).map_or('A', |digit| char::from(*digit)));
            bits &= (1 << held) - 1;
        }
    }
    // The digits that the bytes before the secret take part in: 0, 2 or 3.
    let shared = (offset * 8).div_ceil(6);
    digits.split_off(shared.min(digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_cores_stand_in_every_encoding_of_longer_data() {
        // base64("secret-value"), base64("xsecret-value"), base64("xysecret-value")
        for (offset, whole) in [(0, "c2VjcmV0LXZhbHVl"), (1, "eHNlY3JldC12YWx1ZQ=="), (2, "eHlzZWNyZXQtdmFsdWU=")] {
            let core = base64_core(b"secret-value", offset);
            assert!(whole.contains(&core), "{core} in {whole}");
            assert!(core.len() >= 14, "{core}");
        }
    }

    #[test]
    fn the_usual_forms_are_there() {
        let forms = written_forms("pa\"ß/ +\n1234");
        for form in [
            "pa\"ß/ +\n1234",
            "pa\\\"ß/ +\\n1234",
            "pa\\\\\\\"ß/ +\\\\n1234",
            "pa\\\"\\u00df/ +\\n1234",
            "pa\\\"ß\\/ +\\n1234",
            "pa%22%C3%9F%2F%20%2B%0A1234",
            "pa%22%c3%9f%2f%20%2b%0a1234",
            "pa%22%C3%9F%2F+%2B%0A1234",
            "pa%22%C3%9F/%20+%0A1234",
            "706122c39f2f202b0a31323334",
            "706122C39F2F202B0A31323334",
        ] {
            assert!(forms.contains(form), "{form}");
        }
    }
}
