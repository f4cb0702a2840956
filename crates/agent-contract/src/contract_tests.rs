use serde_json::{Value, json};

use super::*;
use crate::testing::changed;

/// The one start-up file that has this in it.
fn text_with(contract: &Contract, wanted: &str) -> &'static str {
    let found: Vec<&'static str> =
        contract.startup_files().iter().map(|(_, text)| *text).filter(|text| text.contains(wanted)).collect();
    assert_eq!(found.len(), 1, "{wanted}");
    found[0]
}

#[test]
fn every_folder_is_embedded_and_fit_for_use() {
    let folders = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/contracts");
    let mut on_disk: Vec<String> =
        std::fs::read_dir(folders).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    on_disk.sort();
    assert_eq!(on_disk, Contract::versions());
    for contract in Contract::all().unwrap() {
        assert_eq!(contract.folder.version, contract.version());
        assert_eq!(contract.distributions().len(), 4);
        let startup = format!("{folders}/{}/startup", contract.version());
        let mut on_disk: Vec<String> = std::fs::read_dir(startup)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "__pycache__")
            .collect();
        on_disk.sort();
        let mut embedded: Vec<&str> = contract.startup_files().iter().map(|(name, _)| *name).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, on_disk);
        assert!(text_with(contract, "CONTRACT = ").contains(&format!("CONTRACT = \"{}\"", contract.version())));
        for (name, version) in contract.distributions() {
            assert!(contract.requirements_lock().contains(&format!("{name}=={version}")), "{name}");
        }
        assert!(contract.build_requirements_lock().contains("--hash=sha256:"));
    }
}

#[test]
fn a_version_that_was_not_reviewed_has_no_contract() {
    assert!(Contract::reviewed("1.40.0").is_some());
    for version in ["", "1.40", "1.40.00", "1.58.2", "1.40.0 ", "../1.40.0", "v1.40.0", "1.40.0rc1"] {
        assert!(Contract::reviewed(version).is_none(), "{version:?}");
    }
}

#[test]
fn the_bounds_are_those_of_the_design() {
    let contract = Contract::reviewed("1.40.0").unwrap();
    let seconds = |class| contract.timeout(class).as_secs();
    assert_eq!(seconds(TimeoutClass::Read), 5);
    assert_eq!(seconds(TimeoutClass::Mutation), 30);
    assert_eq!(seconds(TimeoutClass::Start), 300);
    assert_eq!(seconds(TimeoutClass::Message), 300);
    assert!(contract.routes().iter().all(|route| route.max_reply_bytes() <= 8 << 20));
}

#[test]
fn steps_and_set_up_are_told_apart() {
    let contract = Contract::reviewed("1.40.0").unwrap();
    let named = |wanted: fn(&Route) -> bool| -> Vec<&str> {
        contract.routes().iter().filter(|route| wanted(route)).map(|route| route.name().as_str()).collect()
    };
    assert_eq!(named(Route::causes_steps), ["send_message", "run", "accept", "condense"]);
    assert_eq!(
        named(Route::is_set_up),
        ["put_llm_profile", "llm_profile_status", "put_agent_profile", "find_agent_profile", "materialize"]
    );
}

fn route<'a>(data: &'a mut Value, name: &str) -> &'a mut Value {
    data["routes"].as_array_mut().unwrap().iter_mut().find(|route| route["name"] == name).unwrap()
}

type Change = fn(&mut Value);

#[test]
fn data_that_says_too_little_or_too_much_is_refused() {
    let refused: Vec<(&str, Change)> = vec![
        ("another format", |data| data["format"] = json!(2)),
        ("an unknown field", |data| data["proxy"] = json!("http://127.0.0.1:1")),
        ("an unknown field of a route", |data| route(data, "run")["host"] = json!("example.org")),
        ("no title", |data| data["title"] = json!("")),
        ("no distributions", |data| data["distributions"] = json!({})),
        ("a missing timeout", |data| drop(data["timeouts_ms"].as_object_mut().unwrap().remove("read"))),
        ("an endless timeout", |data| data["timeouts_ms"]["message"] = json!(600_001)),
        ("no timeout", |data| data["timeouts_ms"]["read"] = json!(0)),
        ("a missing route", |data| drop(data["routes"].as_array_mut().unwrap().pop())),
        ("a route twice", |data| {
            let again = data["routes"][0].clone();
            data["routes"].as_array_mut().unwrap().push(again);
        }),
        ("an unknown route", |data| route(data, "run")["name"] = json!("goal")),
        ("another method", |data| route(data, "run")["method"] = json!("CONNECT")),
        ("an absolute target", |data| route(data, "run")["path"] = json!("http://example.org/")),
        ("a path that climbs", |data| route(data, "run")["path"] = json!("/api/../x")),
        ("an empty segment", |data| route(data, "run")["path"] = json!("//example.org/x")),
        ("a query in a path", |data| route(data, "run")["path"] = json!("/api/run?x=1")),
        ("an unknown placeholder", |data| route(data, "run")["path"] = json!("/api/{event_id}")),
        ("a larger answer", |data| route(data, "run")["max_reply_bytes"] = json!((8 << 20) + 1)),
        ("no success", |data| route(data, "run")["success"] = json!([])),
        ("a read that steps", |data| route(data, "conversation")["causes_steps"] = json!(true)),
        ("a read with a body", |data| route(data, "conversation")["body"] = json!({"whole": {}})),
        ("a set-up that steps", |data| route(data, "materialize")["causes_steps"] = json!(true)),
        ("a query that needs escaping", |data| {
            route(data, "events_page")["query"]["limit"] = json!({"exact": "1&x=2"});
        }),
        ("a free query value", |data| route(data, "events_page")["query"]["page_id"] = json!({"type": "string"})),
        ("an unknown type", |data| route(data, "set_title")["body"]["fields"]["title"] = json!({"type": "any"})),
    ];
    for (what, change) in refused {
        assert!(changed(change).is_err(), "{what}");
    }
    assert!(changed(|_data| {}).is_ok());
}

/// The start-up module lets nothing else through, so a stolen key reaches no route that the contract does not review.
#[test]
fn the_start_up_module_serves_exactly_the_routes_of_the_contract() {
    for contract in Contract::all().unwrap() {
        let file: serde_json::Value = serde_json::from_str(contract.folder.contract).unwrap();
        let reviewed: BTreeSet<String> = file["routes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|route| {
                let path = route["path"].as_str().unwrap().replace("{conversation_id}", "{}").replace("{name}", "{}");
                format!("{} {path}", route["method"].as_str().unwrap())
            })
            .collect();
        let module = text_with(contract, "\nROUTES = (\n");
        let (_, list) = module.split_once("\nROUTES = (\n").unwrap();
        let (list, _) = list.split_once("\n)").unwrap();
        let served: BTreeSet<String> =
            list.lines().map(|line| line.trim().trim_matches(['"', ',']).to_owned()).collect();
        assert_eq!(served, reviewed);
    }
}
