//! The checked-in description is the generated one, and describes every route.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use api::routes::Endpoint;
use serde_json::Value;

const CHECKED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

fn generated() -> String {
    let mut text = api::document().to_pretty_json().unwrap();
    text.push('\n');
    text
}

/// `UPDATE_OPENAPI=1` rewrites the file.
#[test]
fn docs_hold_the_generated_description() {
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(CHECKED_IN, generated()).unwrap();
    }
    let checked_in = std::fs::read_to_string(CHECKED_IN).unwrap();
    assert!(
        checked_in == generated(),
        "docs/openapi.json is out of date: UPDATE_OPENAPI=1 cargo test -p api --test openapi"
    );
}

#[test]
fn every_route_is_described_with_its_parameters_and_security() {
    let document: Value = serde_json::from_str(&generated()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = 0;
    for endpoint in Endpoint::ALL {
        let method = endpoint.method().as_str().to_lowercase();
        let operation = &document["paths"][endpoint.template()][&method];
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 10), "{endpoint:?}");
        let open = endpoint.access() == api::routes::Access::Open;
        assert_eq!(operation["security"].is_array(), !open, "{endpoint:?}");
        assert!(operation["responses"]["default"].is_object(), "{endpoint:?}");
        let names: Vec<&str> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        for name in endpoint.query_names() {
            assert!(names.contains(name), "{endpoint:?} {name}");
        }
        assert_eq!(
            endpoint.template().matches('{').count(),
            endpoint
                .template()
                .split('/')
                .filter(|segment| {
                    segment
                        .strip_prefix('{')
                        .and_then(|name| name.strip_suffix('}'))
                        .is_some_and(|name| names.contains(&name))
                })
                .count(),
            "{endpoint:?}"
        );
        described += 1;
    }
    let written: usize =
        document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(written, described);
}

#[test]
fn every_reference_leads_somewhere() {
    let text = generated();
    let document: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        text.split("\"#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(names.len() > 30, "{}", names.len());
    for name in names {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[test]
fn every_operation_is_described_as_the_catalog_reads_it() {
    let document: Value = serde_json::from_str(&generated()).unwrap();
    let forms = |name: &str| document["components"]["schemas"][name]["oneOf"].as_array().unwrap().clone();
    let all = [forms("SessionActionRequest"), forms("ProviderActionRequest")].concat();
    for entry in rules::catalog::describe() {
        let id = entry.operation_id.as_str();
        let own: Vec<&Value> =
            all.iter().filter(|form| form["properties"]["operation_id"]["enum"] == Value::from(vec![id])).collect();
        assert_eq!(own.len(), if id == "session.approval.decide" { 2 } else { 1 }, "{id}");
        for form in own {
            let input = &form["properties"]["input"];
            assert_eq!((&form["additionalProperties"], &input["additionalProperties"]), (&false.into(), &false.into()));
            for field in &entry.inputs {
                let left_out = field.name == "reason" && input["properties"]["decision"]["enum"][0] == "accept";
                assert_eq!(input["properties"][field.name].is_object(), !left_out, "{id} {}", field.name);
            }
        }
    }
}

/// What stands twice, as an attribute of a type and as a pattern of the catalog's fields, is the same.
#[test]
fn a_title_a_prompt_and_a_path_are_the_same_everywhere() {
    let document: Value = serde_json::from_str(&generated()).unwrap();
    let schemas = &document["components"]["schemas"];
    let field = |name: &str, operation: &str, field: &str| {
        let forms = schemas[name]["oneOf"].as_array().unwrap();
        let form = forms.iter().find(|form| form["properties"]["operation_id"]["enum"][0] == operation).unwrap();
        form["properties"]["input"]["properties"][field]["pattern"].clone()
    };
    let create = &schemas["CreateSessionRequest"]["properties"];
    assert_eq!(create["title"]["pattern"], field("SessionActionRequest", "session.title.set", "title"));
    assert_eq!(create["prompt"]["pattern"], field("SessionActionRequest", "session.prompt.send", "text"));
    assert_eq!(create["workspace"]["pattern"], field("ProviderActionRequest", "provider.auth.read", "workspace"));
    assert_eq!(create["session_id"]["pattern"], field("SessionActionRequest", "session.fork", "session_id"));
    let attach = &schemas["AttachSessionRequest"]["properties"];
    assert_eq!(attach["workspace"]["pattern"], create["workspace"]["pattern"]);
    assert_eq!(attach["conversation_id"]["pattern"], create["session_id"]["pattern"]);
}
