//! What clients were promised still holds: the description is held against the one that was kept at the last release.
//!
//! `docs/openapi-kept.json` is replaced by `docs/openapi.json` at a release, and by nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod promise;

use promise::breaks;
use serde_json::{Value, json};

fn kept() -> Value {
    serde_json::from_str(include_str!("../../../docs/openapi-kept.json")).unwrap()
}

#[test]
fn nothing_that_was_promised_is_broken() {
    let now: Value = serde_json::to_value(api::document()).unwrap();
    let found = breaks(&kept(), &now);
    assert!(found.is_empty(), "clients written for the kept description would break:\n{}", found.join("\n"));
    assert_eq!(now["info"]["version"], kept()["info"]["version"]);
}

/// A change to the description, and a word of what is said of it.
type Change = (&'static str, fn(&mut Value));

fn schema<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    document.pointer_mut(&format!("/components/schemas/{name}")).unwrap()
}

fn remove(object: &mut Value, name: &str) {
    assert!(object.as_object_mut().unwrap().remove(name).is_some(), "{name}");
}

fn without(list: &mut Value, word: &str) {
    let list = list.as_array_mut().unwrap();
    let before = list.len();
    list.retain(|one| one != word);
    assert_eq!(list.len() + 1, before, "{word}");
}

#[test]
fn each_breaking_change_is_noticed() {
    let changes: [Change; 14] = [
        ("/v1/catalog", |it| remove(&mut it["paths"], "/v1/catalog")),
        ("delete /v1/sessions/{session_id}", |it| remove(&mut it["paths"]["/v1/sessions/{session_id}"], "delete")),
        ("201", |it| remove(&mut it["paths"]["/v1/sessions"]["post"]["responses"], "201")),
        ("limit", |it| it["paths"]["/v1/audit"]["get"]["parameters"] = json!([])),
        ("needs a token", |it| it["paths"]["/v1/readyz"]["get"]["security"] = json!([{"bearer": []}])),
        ("is required now", |it| {
            let parameters = it["paths"]["/v1/audit"]["get"]["parameters"].as_array_mut().unwrap();
            parameters.push(json!({"name": "since", "in": "query", "required": true, "schema": {"type": "string"}}));
        }),
        ("seq", |it| remove(&mut schema(it, "Event")["properties"], "seq")),
        ("may be missing now", |it| without(&mut schema(it, "Receipt")["required"], "state")),
        ("crash_looping", |it| without(&mut schema(it, "ServerState")["enum"], "crash_looping")),
        ("another type", |it| schema(it, "Event")["properties"]["seq"]["type"] = json!("string")),
        ("title", |it| remove(&mut schema(it, "CreateSessionRequest")["properties"], "title")),
        ("is required now", |it| {
            schema(it, "CreateSessionRequest")["required"].as_array_mut().unwrap().push(json!("title"));
        }),
        ("maxLength", |it| schema(it, "CreateSessionRequest")["properties"]["title"]["maxLength"] = json!(20)),
        ("no form of it", |it| {
            schema(it, "SessionActionRequest")["oneOf"].as_array_mut().unwrap().remove(0);
        }),
    ];
    for (number, (words, change)) in changes.into_iter().enumerate() {
        let mut now = kept();
        change(&mut now);
        let found = breaks(&kept(), &now);
        assert!(found.iter().any(|one| one.contains(words)), "change {number}: {words} is not in {found:?}");
    }
}

#[test]
fn what_is_added_breaks_nobody() {
    let mut now = kept();
    now["paths"]["/v1/more"] = json!({"get": {"responses": {}}});
    schema(&mut now, "Event")["properties"]["more"] = json!({"type": "string"});
    schema(&mut now, "Event")["required"].as_array_mut().unwrap().push(json!("more"));
    schema(&mut now, "CreateSessionRequest")["properties"]["more"] = json!({"type": "string"});
    schema(&mut now, "ServerState")["enum"].as_array_mut().unwrap().push(json!("more"));
    schema(&mut now, "CreateSessionRequest")["properties"]["title"]["maxLength"] = json!(400);
    let parameters = now["paths"]["/v1/audit"]["get"]["parameters"].as_array_mut().unwrap();
    parameters.push(json!({"name": "since", "in": "query", "required": false, "schema": {"type": "string"}}));
    assert_eq!(breaks(&kept(), &now), [] as [String; 0]);
    assert_eq!(breaks(&kept(), &kept()), [] as [String; 0]);
}
