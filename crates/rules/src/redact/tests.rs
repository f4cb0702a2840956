use super::*;
use proptest::prelude::*;
use serde_json::json;

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    Redactor::new(secrets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn values_are_replaced_and_named() {
    let redactor = redactor(&[("model", "sk-12345678"), ("session", "abcdefghij")]);
    assert_eq!(
        redactor.redact_text("a sk-12345678 b abcdefghij"),
        ("a «secret:model» b «secret:session»".to_owned(), true)
    );
    assert_eq!(redactor.redact_text("nothing"), ("nothing".to_owned(), false));
    assert_eq!(redactor.redact_text(""), (String::new(), false));
}

#[test]
fn short_secrets_are_ignored() {
    assert_eq!(redactor(&[("x", "1234567"), ("y", "")]).redact_text("1234567"), ("1234567".to_owned(), false));
    assert!(redactor(&[("x", "12345678")]).redact_text("12345678").1);
}

#[test]
fn overlapping_secrets_leave_no_rest() {
    let redactor = redactor(&[("short", "abcdefgh"), ("long", "abcdefghijkl"), ("tail", "ijklmnopqr")]);
    assert_eq!(redactor.redact_text("-abcdefghijkl-").0, "-«secret:long»-");
    assert_eq!(redactor.redact_text("-abcdefghijklmnopqr-").0, "-«secret:long»-");
    let selfish = self::redactor(&[("s", "abababab")]);
    assert_eq!(selfish.redact_text("xabababababababx").0, "x«secret:s»x");
    assert_eq!(selfish.redact_text("abababab abababab").0, "«secret:s» «secret:s»");
    let wide = self::redactor(&[("s", "ääää")]);
    assert_eq!(wide.redact_text("äääää!").0, "«secret:s»!");
}

#[test]
fn encoded_forms_are_found() {
    let secret = "p@ss \"wörd\"/123";
    let redactor = redactor(&[("k", secret)]);
    for text in [
        serde_json::to_string(secret).unwrap(),
        serde_json::to_string(&serde_json::to_string(secret).unwrap()).unwrap(),
        "p@ss \\\"w\\u00f6rd\\\"/123".to_owned(),
        "p%40ss%20%22w%C3%B6rd%22%2F123".to_owned(),
        "p%40ss+%22w%C3%B6rd%22%2F123".to_owned(),
        "cEBzcyAid8O2cmQiLzEyMw==".to_owned(),
        "Authorization: Basic dXNlcjpwQHNzICJ3w7ZyZCIvMTIz".to_owned(),
        "70407373202277c3b67264222f313233".to_owned(),
    ] {
        assert!(redactor.redact_text(&text).1, "{text}");
        assert!(redactor.contains_secret(&json!({"a": [text]})));
    }
}

#[test]
fn secret_names_hide_their_values() {
    let nothing_known = redactor(&[]);
    let value = json!({
        "api_key": "x", "max_tokens": 5, "password": ["a", "b"], "token": null, "secret": "", "credentials": {"a": 1},
        "nested": {"X-Api-Key": "y", "list": [{"Cookie": "z"}]}, "enabled_secret": true, "pin": 1, "passwd": 1234
    });
    let expected = json!({
        "api_key": REDACTED, "max_tokens": 5, "password": REDACTED, "token": null, "secret": "", "credentials": REDACTED,
        "nested": {"X-Api-Key": REDACTED, "list": [{"Cookie": REDACTED}]}, "enabled_secret": true, "pin": 1,
        "passwd": REDACTED
    });
    assert_eq!(nothing_known.redact_value(&value), (expected, true));
    assert_eq!(nothing_known.redact_known(&value), (value.clone(), false));
    assert!(!nothing_known.contains_secret(&value));
    let again = nothing_known.redact_value(&nothing_known.redact_value(&value).0);
    assert!(!again.1);
}

#[test]
fn json_inside_strings_is_opened() {
    let redactor = redactor(&[("k", "sk-12345678")]);
    let value = json!({"tool_call": {"arguments": "{\"command\": \"ls\", \"api_key\": \"abc\"}"}});
    let (redacted, found) = redactor.redact_value(&value);
    assert!(found);
    assert_eq!(redacted["tool_call"]["arguments"], "{\"command\":\"ls\",\"api_key\":\"«redacted»\"}");
    assert_eq!(redactor.redact_known(&value), (value, false));
    // Escapes that no list of forms foresees.
    let sly = json!({"arguments": "{\"command\": \"echo s\\u006b-12345678\"}"});
    assert!(redactor.contains_secret(&sly));
    assert!(!redactor.redact_known(&sly).0.to_string().contains("12345678"));
    // Nothing secret: kept to the byte.
    let plain = json!("{ \"command\" :  \"ls\" }");
    assert_eq!(redactor.redact_value(&plain), (plain.clone(), false));
    let deep = (0..20).fold(json!({"api_key": "abc"}), |inner, _| json!(inner.to_string()));
    assert!(!redactor.redact_value(&deep).0.to_string().is_empty());
}

#[test]
fn keys_and_numbers_can_be_secrets_too() {
    let redactor = redactor(&[("k", "1234567890"), ("n", "name-of-key")]);
    let (redacted, found) = redactor.redact_value(&json!({"name-of-key": 1_234_567_890_u64, "«secret:n»": 1}));
    assert!(found);
    assert_eq!(redacted, json!({"«secret:n»": "«secret:k»", "«secret:n» (2)": 1}));
}

#[test]
fn a_mark_never_spells_a_secret() {
    let redactor = redactor(&[("a", "12345678"), ("b", "x«secret:a»y")]);
    assert_eq!(redactor.redact_text("x12345678y").0, REDACTED);
}

#[test]
fn nothing_secret_is_printed() {
    let printed = format!("{:?}", redactor(&[("name", "sk-12345678")]));
    assert!(!printed.contains("sk-"));
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9+/=_-]{8,40}",
        "[ab]{8,12}",
        "[\\x20-\\x7e]{8,40}",
        "[\\PC]{8,20}",
        any::<String>().prop_filter("long enough", |text| text.len() >= MIN_SECRET_BYTES),
    ]
}

fn around() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,12}", any::<String>(), "[{\\[\"\\\\ :,a-z]{0,20}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_secret_survives_in_text(secrets in prop::collection::vec(secret(), 1..4), parts in prop::collection::vec((around(), any::<prop::sample::Index>()), 0..5)) {
        let named = secrets.iter().enumerate().map(|(number, value)| (format!("n{number}"), value.clone())).collect();
        let redactor = Redactor::new(named);
        let mut text = String::new();
        for (before, index) in &parts {
            text.push_str(before);
            text.push_str(&secrets[index.index(secrets.len())]);
        }
        let (redacted, found) = redactor.redact_text(&text);
        prop_assert!(found || parts.is_empty());
        for secret in &secrets {
            prop_assert!(!redacted.contains(secret.as_str()) || redacted == REDACTED);
        }
    }

    #[test]
    fn no_secret_survives_in_json(secret in secret(), before in around(), after in around(), nested in 0..4_u8) {
        let redactor = Redactor::new(vec![("n".to_owned(), secret.clone())]);
        let mut inner = json!({"command": format!("{before}{secret}{after}"), "list": [secret, {secret.as_str(): 1}]});
        for _ in 0..nested {
            inner = json!({"arguments": inner.to_string()});
        }
        for (redacted, found) in [redactor.redact_value(&inner), redactor.redact_known(&inner)] {
            prop_assert!(found);
            let mut rest = redacted.clone();
            for _ in 0..nested {
                let text = rest["arguments"].as_str().unwrap().to_owned();
                prop_assert!(!text.contains(&secret));
                let Ok(opened) = serde_json::from_str(&text) else { break };
                rest = opened;
            }
            let mut leaked = false;
            crate::display::map_strings(&rest, &mut |text| { leaked |= text.contains(&secret); text.to_owned() });
            prop_assert!(!leaked, "{redacted}");
            prop_assert!(!redactor.contains_secret(&redacted));
        }
    }

    #[test]
    fn text_without_a_secret_is_not_touched(text in any::<String>()) {
        let redactor = redactor(&[("n", "a-secret-that-chance-does-not-find")]);
        prop_assert_eq!(redactor.redact_text(&text), (text.clone(), false));
        prop_assert_eq!(redactor.redact_known(&json!({text.as_str(): text.as_str()})).1, false);
    }
}
