//! What the log tells of a request. A program of its own: whether a place of the code logs at all is decided for the whole
//! process, by whichever thread comes to it first.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;

use api::Limits;
use serde_json::json;
use support::{GENERATION, Request, Running, SESSION};

#[tokio::test]
async fn the_log_names_the_request_and_never_its_body() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let running = Running::start(Limits::default());
    let actions = format!("/v1/sessions/{SESSION}/actions");
    let prompt = json!({"operation_id": "session.prompt.send", "input": {"text": "sesame-prompt"},
                        "capability_generation": GENERATION, "client_action_id": "a1"})
    .to_string();
    running.send(&Request::post(&actions, &prompt)).await;
    running.send(&Request::post(&actions, "{\"sesame\":").token(Some("sesame-token"))).await;
    running.send(&Request::get("/v1/sesame-path?sesame=1")).await;
    drop(guard);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains(r#"method="POST" route="/v1/sessions/{session_id}/actions" status=200"#), "{text}");
    assert!(text.contains(r#"caller="owner""#) && text.contains("ms="), "{text}");
    assert!(text.contains(r#"route="unmatched" status=404"#), "{text}");
    assert!(!text.contains("sesame") && !text.contains(support::OWNER) && !text.contains(SESSION), "{text}");
}

#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
