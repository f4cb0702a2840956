//! Reads about the model provider.

use api_types::{Receipt, ReceiptState};
use gatepost_tests::{Scene, refusal_code, typed};
use serde_json::{Value, json};

fn read(scene: &Scene, operation_id: &str, input: &Value) -> Value {
    let id = format!("read-{}", uuid::Uuid::new_v4());
    let body = json!({"operation_id": operation_id, "input": input, "client_action_id": id});
    let reply = scene.client().post("/v1/actions", &body).unwrap();
    assert!(!reply.text.contains(scene.home().model_key()), "the credential was shown: {}", reply.text);
    let receipt: Receipt = typed(&reply, &[200]);
    assert_eq!((receipt.state, receipt.session_id, receipt.steps), (ReceiptState::Applied, None, vec![]));
    receipt.result
}

pub(super) fn reads(scene: &Scene) {
    let session = scene.session();
    session.turn("say: some tokens");
    let here = json!({"workspace": scene.workspace()});

    let auth = read(scene, "provider.auth.read", &here);
    assert_eq!((&auth["configured"], &auth["api_key_set"]), (&json!(true), &json!(true)), "{auth}");
    assert_eq!(auth["model"], "openai/scripted");
    assert_eq!(auth["base_url"], json!(scene.model().base_url()));

    let config = read(scene, "provider.config.read", &json!({}));
    assert_eq!((&config["configured"], &config["sub_agents"]), (&json!(true), &json!(false)), "{config}");
    assert_eq!(config["tools"], json!(["terminal", "file_editor", "task_tracker"]));
    assert_eq!(config["agent_kind"], "openhands");

    let usage = read(scene, "provider.usage.read", &here);
    assert!(usage["sessions"][session.id()].is_object(), "{usage}");

    let diagnostics = read(scene, "provider.diagnostics.read", &here);
    assert_eq!((&diagnostics["valid"], &diagnostics["api_key_set"]), (&json!(true), &json!(true)), "{diagnostics}");
    assert_eq!((&diagnostics["failed_canaries"], &diagnostics["errors"]), (&json!([]), &json!([])), "{diagnostics}");

    let reply = session.ask("provider.auth.read", &json!({}));
    assert_eq!((reply.status, refusal_code(&reply).as_str()), (422, "invalid_value"));
}
