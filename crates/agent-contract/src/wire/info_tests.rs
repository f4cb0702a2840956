use serde_json::json;

use super::*;

const ID: &str = "11111111-1111-4111-8111-111111111111";

/// As a real server gave it, fields that decide nothing left out.
fn conversation() -> Value {
    json!({"id": ID, "workspace": {"working_dir": "/src/ws", "kind": "LocalWorkspace"}, "max_iterations": 500,
        "execution_status": "waiting_for_confirmation", "confirmation_policy": {"kind": "AlwaysConfirm"},
        "security_analyzer": null, "leaf_event_id": "0b23a082-3c53-4ae3-98a6-3fb16b88db40", "hook_config": null,
        "title": null, "parent_conversation_id": null,
        "launched_agent_profile": {"agent_profile_id": "e3ecc48b-e5af-409b-84d4-ae6811b541b0", "revision": 1},
        "agent": {"llm": {"model": "openai/scripted", "api_key": null}, "tools": [{"name": "terminal", "params": {}},
            {"name": "file_editor", "params": {}}], "mcp_config": {}, "include_default_tools": ["FinishTool", "ThinkTool"],
            "agent_context": {"skills": [], "registered_marketplaces": []}, "kind": "Agent"},
        "client_tools": []})
}

fn parse(value: &Value) -> Result<ConversationInfo, ContractError> {
    ConversationInfo::parse(RouteName::Conversation, &SessionId::parse(ID).unwrap(), value)
}

fn changed(change: impl FnOnce(&mut Value)) -> Result<ConversationInfo, ContractError> {
    let mut value = conversation();
    change(&mut value);
    parse(&value)
}

#[test]
fn a_native_conversation_is_read() {
    let info = parse(&conversation()).unwrap();
    assert_eq!(info.leaf_event_id.as_deref(), Some("0b23a082-3c53-4ae3-98a6-3fb16b88db40"));
    assert_eq!(info.status, ExecutionStatus::WaitingForConfirmation);
    assert_eq!(info.policy_kind, "AlwaysConfirm");
    assert!(!info.hook_config_present);
    assert_eq!((info.workspace_dir.as_str(), info.workspace_kind.as_str()), ("/src/ws", "LocalWorkspace"));
    assert_eq!(info.tools(), Some(["terminal".to_owned(), "file_editor".to_owned()].as_slice()));
    assert_eq!(info.model(), Some("openai/scripted"));
    assert_eq!(info.profile_id.as_deref(), Some("e3ecc48b-e5af-409b-84d4-ae6811b541b0"));
    assert_eq!((info.profile_revision, info.title, info.security_analyzer), (Some(1), None, None));
}

#[test]
fn what_a_canary_looks_for_is_shown() {
    let info = changed(|value| {
        value["hook_config"] = json!({"stop": []});
        value["confirmation_policy"] = json!({"kind": "NeverConfirm"});
        value["security_analyzer"] = json!({"kind": "LLMSecurityAnalyzer"});
        value["execution_status"] = json!("levitating");
        value["leaf_event_id"] = json!(null);
        value["client_tools"] = json!([{"name": "click"}]);
        value["agent"]["mcp_config"] = json!({"fetch": {"command": "x"}});
        value["agent"]["agent_context"]["registered_marketplaces"] = json!([{}]);
        value["launched_agent_profile"] = json!(null);
        value["parent_conversation_id"] = json!("2");
    })
    .unwrap();
    assert!(info.hook_config_present);
    assert_eq!(info.policy_kind, "NeverConfirm");
    assert_eq!(info.security_analyzer.as_deref(), Some("LLMSecurityAnalyzer"));
    assert_eq!((info.status, info.leaf_event_id), (ExecutionStatus::Unknown, None));
    assert_eq!((info.client_tools, info.parent_conversation_id.as_deref()), (vec!["click".to_owned()], Some("2")));
    let AgentInfo::Native { mcp_servers, marketplaces, default_tools, .. } = info.agent else { panic!("not native") };
    assert_eq!((mcp_servers, marketplaces), (vec!["fetch".to_owned()], 1));
    assert_eq!(default_tools, ["FinishTool", "ThinkTool"]);
    assert_eq!((info.profile_id, info.profile_revision), (None, None));
}

#[test]
fn an_agent_of_another_kind_shows_no_tools() {
    for kind in ["ACPAgent", "agent", "CustomAgent"] {
        let info = changed(|value| value["agent"] = json!({"kind": kind, "acp_command": ["x"]})).unwrap();
        assert_eq!((info.agent_kind.as_str(), info.agent.clone()), (kind, AgentInfo::Foreign));
        assert_eq!((info.tools(), info.model()), (None, None));
    }
}

#[test]
fn what_is_missing_or_of_another_form_is_never_guessed() {
    let strict = [
        "/id",
        "/execution_status",
        "/confirmation_policy",
        "/confirmation_policy/kind",
        "/workspace",
        "/workspace/working_dir",
        "/workspace/kind",
        "/agent",
        "/agent/kind",
        "/agent/tools",
        "/agent/mcp_config",
        "/agent/include_default_tools",
        "/agent/llm/model",
        "/client_tools",
    ];
    for pointer in strict {
        for wrong in [json!(null), json!(7), json!(""), json!(true)] {
            let outcome = changed(|value| *value.pointer_mut(pointer).unwrap() = wrong.clone());
            assert!(outcome.is_err(), "{pointer} = {wrong}");
        }
    }
    for field in ["leaf_event_id", "hook_config", "execution_status", "confirmation_policy", "workspace", "agent"] {
        assert!(changed(|value| drop(value.as_object_mut().unwrap().remove(field))).is_err(), "no {field}");
    }
    let forms: [(&str, Value); 6] = [
        ("/leaf_event_id", json!(7)),
        ("/agent/tools", json!([{"params": {}}])),
        ("/agent/tools", json!(["terminal"])),
        ("/agent/mcp_config", json!([])),
        ("/launched_agent_profile", json!({"agent_profile_id": "x"})),
        ("/id", json!("22222222-2222-4222-8222-222222222222")),
    ];
    for (pointer, wrong) in forms {
        assert!(changed(|value| *value.pointer_mut(pointer).unwrap() = wrong.clone()).is_err(), "{pointer} = {wrong}");
    }
    for value in [json!(null), json!([]), json!({})] {
        assert!(parse(&value).is_err());
    }
}

#[test]
fn the_server_says_all_four_versions_or_nothing() {
    let whole = json!({"title": "OpenHands Agent Server", "version": "1.40.0", "sdk_version": "1.40.0",
        "tools_version": "1.40.0", "workspace_version": "1.40.0", "capabilities": ["a"], "usable_tools": ["terminal"]});
    let info = ServerInfo::parse(&whole).unwrap();
    assert_eq!((info.title.as_str(), info.workspace_version.as_str()), ("OpenHands Agent Server", "1.40.0"));
    for field in ["title", "version", "sdk_version", "tools_version", "workspace_version", "capabilities"] {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(field);
        assert!(ServerInfo::parse(&part).is_err(), "{field}");
    }
}
