use std::os::unix::net::UnixDatagram;
use std::sync::Mutex;

use serde_json::Value;

use super::*;

const SECRET: &str = "sk-hunter2-hunter2";

/// An error whose cause holds the secret.
#[derive(Debug)]
struct Outer(Inner);
#[derive(Debug)]
struct Inner;

impl std::fmt::Display for Outer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("it failed")
    }
}
impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
impl std::fmt::Display for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "refused with {SECRET}")
    }
}
impl std::error::Error for Inner {}

/// What is written while something is told.
fn written(sink: Option<Sink>, secrets: &[&str], tell: impl FnOnce()) -> Vec<String> {
    let known = KnownSecrets::default();
    known.learn(&secrets.iter().map(|secret| ("model_key".to_owned(), (*secret).to_owned())).collect::<Vec<_>>());
    let writer = Writer { secrets: Arc::new(known), sink: OnceLock::new() };
    if let Some(sink) = sink {
        writer.sink.get_or_init(|| sink);
    }
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let told = Told::new(move |entry| kept.lock().unwrap().extend(writer.take(entry)));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(told), tell);
    Arc::try_unwrap(lines).unwrap().into_inner().unwrap()
}

/// The secret in every place that a line has.
fn tell_everything() {
    let span = tracing::error_span!("request", request_id = "abc", given = SECRET, later = tracing::field::Empty);
    span.record("later", SECRET);
    let _inside = span.enter();
    let failed = Outer(Inner);
    tracing::warn!(
        plain = SECRET,
        displayed = %format!("a {SECRET} b"),
        debugged = ?vec![SECRET],
        error = &failed as &dyn std::error::Error,
        count = 3,
        whole = true,
        "a message with {SECRET}"
    );
}

#[test]
fn no_secret_gets_into_a_line_of_any_format_or_into_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listening = UnixDatagram::bind(&path).unwrap();
    let journal = || Sink::Journal(Journal::connect(&path).unwrap());
    let formats = [None, Some(Sink::Lines(LogFormat::Text)), Some(Sink::Lines(LogFormat::Json))];
    let mut said: Vec<String> =
        formats.into_iter().flat_map(|sink| written(sink, &[SECRET], tell_everything)).collect();
    assert_eq!(said.len(), 3);
    assert_eq!(written(Some(journal()), &[SECRET], tell_everything), [""; 0]);
    let mut bytes = vec![0; 1 << 16];
    let length = listening.recv(&mut bytes).unwrap();
    said.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
    for said in &said {
        assert!(!said.contains(SECRET), "{said}");
        // All seven were there, and the rest still is.
        assert!(said.matches("«secret:model_key»").count() >= 7, "{said}");
        for kept in ["abc", "it failed: refused with", "count", "a message with"] {
            assert!(said.contains(kept), "{kept}: {said}");
        }
    }
    // A test that cannot fail says nothing.
    for line in written(None, &["another-secret"], tell_everything) {
        assert_eq!(line.matches(SECRET).count(), 7, "{line}");
    }
    // A journal that is gone: the line goes to standard error, with its priority.
    let sink = journal();
    drop(listening);
    let [line] = written(Some(sink), &[SECRET], tell_everything).try_into().unwrap();
    assert!(line.starts_with("<4>") && !line.contains(SECRET), "{line}");
}

#[test]
fn a_line_of_json_has_the_request_and_typed_fields() {
    let [line] = written(Some(Sink::Lines(LogFormat::Json)), &[], tell_everything).try_into().unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&object["level"], &object["request_id"]), (&"WARN".into(), &"abc".into()));
    assert_eq!((&object["fields"]["count"], &object["fields"]["whole"]), (&3.into(), &true.into()));
    assert_eq!(object["spans"][0]["name"], "request");
    let [line] = written(Some(Sink::Lines(LogFormat::Json)), &[], || tracing::info!("alone")).try_into().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["request_id"], Value::Null);
}

#[test]
fn what_comes_from_outside_moves_no_cursor_and_begins_no_line() {
    let hostile = "a\u{1b}[2J\r\nINFO forged: line\u{202e}\u{0}";
    let tell = || {
        let _inside = tracing::error_span!("request", given = hostile).entered();
        tracing::info!(field = hostile, shown = %hostile, "{hostile}");
    };
    let [line] = written(None, &[], tell).try_into().unwrap();
    assert!(!line.chars().any(|character| character.is_control() || character == '\u{202e}'), "{line:?}");
    let [line] = written(Some(Sink::Lines(LogFormat::Json)), &[], tell).try_into().unwrap();
    assert!(!line.chars().any(char::is_control), "{line:?}");
}

#[test]
fn what_is_too_long_is_cut_after_it_was_redacted() {
    // The secret lies across the bound.
    let long = format!("{}{SECRET}{}", "x".repeat(8190), "y".repeat(100_000));
    for sink in [None, Some(Sink::Lines(LogFormat::Json))] {
        let [line] = written(sink, &[SECRET], || tracing::info!(field = long.as_str(), "{long}")).try_into().unwrap();
        assert!(line.len() < 20_000 && !line.contains("sk-h") && line.contains('…'), "{}", line.len());
    }
}
