use super::*;
use crate::workspace::{ContentFinding, ContentReason};

/// Every canary, passed.
pub(crate) fn all_good() -> Vec<CanaryResult> {
    CanaryId::ALL.map(|canary| CanaryResult::pass(canary, "good", json!({}))).to_vec()
}

#[track_caller]
fn passes(result: &CanaryResult) {
    assert!(result.passed && result.code.is_none() && result.refusal().is_none(), "{}", result.detail);
}

#[track_caller]
fn fails(result: &CanaryResult, code: RefusalCode) {
    assert!(!result.passed && !result.detail.is_empty());
    assert_eq!(result.code, Some(code), "{}", result.detail);
    assert_eq!(result.refusal().map(|refusal| refusal.code), Some(code));
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn names_and_scopes() {
    let names: std::collections::BTreeSet<&str> = CanaryId::ALL.iter().map(|canary| canary.as_str()).collect();
    assert_eq!(names.len(), CanaryId::ALL.len());
    for canary in CanaryId::ALL {
        assert_eq!(serde_json::to_value(canary).unwrap(), canary.as_str());
        assert_eq!(canary.failure_ends_server(), canary.scope() == CanaryScope::Server);
    }
}

#[test]
fn all_of_a_scope_must_be_read_and_hold() {
    assert!(all_passed(&all_good()).is_ok());
    let code = |results: &[CanaryResult]| all_passed(results).unwrap_err().code;
    assert_eq!(code(&[]), RefusalCode::CanaryFailed);
    let mut twice = all_good();
    twice.push(policy("NeverConfirm"));
    assert_eq!(code(&twice), RefusalCode::PolicyWeak);
    assert!(passed(&twice, &[CanaryScope::Server]).is_ok());
    let only_server: Vec<CanaryResult> =
        all_good().into_iter().filter(|result| result.canary.scope() == CanaryScope::Server).collect();
    assert!(passed(&only_server, &[CanaryScope::Server]).is_ok());
    assert!(passed(&only_server, &[CanaryScope::Server, CanaryScope::Session]).is_err());
    let unclear = CanaryResult { passed: false, code: None, ..policy("AlwaysConfirm") };
    assert_eq!(unclear.refusal().map(|refusal| refusal.code), Some(RefusalCode::CanaryFailed));
}

#[test]
fn versions_are_exact() {
    let reviewed = ServerIdentity {
        title: "OpenHands Agent Server".into(),
        version: "1.40.0".into(),
        sdk_version: "1.40.0".into(),
        tools_version: "1.40.0".into(),
        workspace_version: "1.40.0".into(),
    };
    passes(&versions(&reviewed, &reviewed));
    let spoilt: [fn(&mut ServerIdentity); 6] = [
        |identity| identity.title = "Other".into(),
        |identity| identity.version = "1.40.1".into(),
        |identity| identity.sdk_version = "1.40".into(),
        |identity| identity.tools_version = String::new(),
        |identity| identity.workspace_version = "1.40.0 ".into(),
        |identity| identity.title = "openhands agent server".into(),
    ];
    for spoil in spoilt {
        let mut observed = reviewed.clone();
        spoil(&mut observed);
        fails(&versions(&observed, &reviewed), RefusalCode::VersionMismatch);
    }
}

#[test]
fn the_listener_is_the_inherited_one_and_the_only_one() {
    let listener = |family: &str, address: &str| Listener { family: family.into(), address: address.into() };
    let ours = listener("inet", "0100007F:4787");
    passes(&inherited_listener(std::slice::from_ref(&ours), 0x4787));
    passes(&inherited_listener(&[listener("inet", "0100007F:00ff")], 255));
    for wrong in [
        vec![],
        vec![listener("inet", "0100007F:4788")],
        vec![listener("inet", "00000000:4787")],
        vec![listener("inet6", "0100007F:4787")],
        vec![ours.clone(), ours.clone()],
        vec![ours.clone(), listener("inet", "00000000:1F41")],
        vec![ours.clone(), listener("inet6", "00000000000000000000000000000000:1F41")],
        vec![ours, listener("unix", "/tmp/x")],
    ] {
        fails(&inherited_listener(&wrong, 0x4787), RefusalCode::ListenerNotInherited);
    }
}

#[test]
fn the_startup_module_speaks_from_the_started_process() {
    let expected = StartupExpectation { contract: "1.40.0".into(), pid: 7 };
    let good = StartupEvidence {
        nonce_matches: true,
        contract: "1.40.0".into(),
        pid: 7,
        latch: true,
        door: Some(true),
        dumpable: Some(0),
        ambient_plugins: "dropped".into(),
    };
    passes(&startup_module(&good, &expected));
    passes(&startup_module(&StartupEvidence { door: None, ..good.clone() }, &expected));
    let spoilt: [fn(&mut StartupEvidence); 9] = [
        |evidence| evidence.nonce_matches = false,
        |evidence| evidence.contract = "1.58.2".into(),
        |evidence| evidence.pid = 8,
        |evidence| evidence.latch = false,
        |evidence| evidence.door = Some(false),
        |evidence| evidence.dumpable = Some(1),
        |evidence| evidence.dumpable = Some(2),
        |evidence| evidence.dumpable = None,
        |evidence| evidence.ambient_plugins = "loaded".into(),
    ];
    for spoil in spoilt {
        let mut evidence = good.clone();
        spoil(&mut evidence);
        fails(&startup_module(&evidence, &expected), RefusalCode::StartupModuleMissing);
    }
}

#[test]
fn only_the_right_key_is_let_in() {
    passes(&authentication(AuthStatuses { right: 200, missing: 401, wrong: 401 }));
    for (right, missing, wrong) in [(401, 401, 401), (200, 200, 401), (200, 401, 200), (200, 403, 401), (500, 401, 401)]
    {
        fails(&authentication(AuthStatuses { right, missing, wrong }), RefusalCode::AuthenticationOpen);
    }
}

#[test]
fn the_initialisation_route_turns_callers_away() {
    for closed in [401, 403, 404, 405] {
        passes(&init_closed(closed));
    }
    for open in [200, 202, 204, 400, 409, 422, 500, 503, 302, 0] {
        fails(&init_closed(open), RefusalCode::InitOpen);
    }
}

#[test]
fn installed_files_are_what_was_installed() {
    passes(&installation(&InstallationEvidence::Verified { files: 9 }));
    passes(&installation(&InstallationEvidence::Own { executable: "/opt/a".into() }));
    fails(&installation(&InstallationEvidence::Verified { files: 0 }), RefusalCode::InstallationAltered);
    let altered = installation(&InstallationEvidence::Altered { files: strings(&["lib/x.py", "lib/y.py"]) });
    fails(&altered, RefusalCode::InstallationAltered);
    assert!(altered.detail.contains("lib/x.py"));
    fails(&installation(&InstallationEvidence::Altered { files: vec![] }), RefusalCode::InstallationAltered);
}

#[test]
fn the_workspace_is_local_bound_and_within_the_roots() {
    let expected = WorkspaceExpectation { bound: "/home/u/src/p".into(), roots: strings(&["/home/u/src"]) };
    let at = |kind: &str, resolved: &str| WorkspaceEvidence { kind: kind.into(), resolved: resolved.into() };
    passes(&workspace(&at("LocalWorkspace", "/home/u/src/p"), &expected));
    fails(&workspace(&at("RemoteWorkspace", "/home/u/src/p"), &expected), RefusalCode::WorkspaceNotLocal);
    fails(&workspace(&at("LocalWorkspace", "/home/u/src"), &expected), RefusalCode::WorkspaceMismatch);
    fails(&workspace(&at("LocalWorkspace", "/home/u/src/p/"), &expected), RefusalCode::WorkspaceMismatch);
    let outside = WorkspaceExpectation { bound: "/home/u/srcs".into(), ..expected };
    fails(&workspace(&at("LocalWorkspace", "/home/u/srcs"), &outside), RefusalCode::WorkspaceOutsideRoots);
}

#[test]
fn content_blocks_unless_its_digest_is_listed() {
    let finding = |path: &str, digest: Option<&str>| ContentFinding {
        path: path.into(),
        reason: ContentReason::Hooks,
        digest: digest.map(str::to_owned),
    };
    passes(&workspace_content(&[], &[]));
    let both = [finding(".openhands/hooks.json", Some("d1")), finding(".openhands/hooks/x", Some("d2"))];
    passes(&workspace_content(&both, &strings(&["d2", "d1"])));
    let one = workspace_content(&both, &strings(&["d2"]));
    fails(&one, RefusalCode::WorkspaceContent);
    assert!(one.detail.contains(".openhands/hooks.json") && one.detail.contains("d1"), "{}", one.detail);
    assert!(workspace_content(&both, &[]).detail.contains("1 more"));
    fails(&workspace_content(&[finding("x", None)], &strings(&["", "d1"])), RefusalCode::WorkspaceContent);
}

#[test]
fn only_the_plain_agent_under_the_only_policy() {
    passes(&policy("AlwaysConfirm"));
    for weak in ["NeverConfirm", "ConfirmRisky", "", "alwaysconfirm", "AlwaysConfirm "] {
        fails(&policy(weak), RefusalCode::PolicyWeak);
    }
    passes(&agent_kind("Agent"));
    for other in ["ACPAgent", "", "agent", "RouterAgent"] {
        fails(&agent_kind(other), RefusalCode::AgentKindRefused);
    }
}

#[test]
fn tools_are_configured_and_start_no_agents() {
    let configured = strings(&["terminal", "file_editor", "task_tracker"]);
    passes(&tools(&strings(&["terminal"]), &configured));
    passes(&tools(&configured, &configured));
    passes(&tools(&[], &configured));
    fails(&tools(&strings(&["terminal", "browser"]), &configured), RefusalCode::ToolNotConfigured);
    for never in [
        "task",
        "task_tool_set",
        "TaskToolSet",
        "TaskTool",
        "workflow",
        "workflow_tool_set",
        "WorkflowToolSet",
        "delegate",
        "DelegateTool",
        "delegation",
        "Sub-Agent",
        "Task",
    ] {
        assert!(is_never_allowed(never), "{never}");
        fails(&tools(&strings(&[never]), &strings(&[never])), RefusalCode::ToolNotConfigured);
    }
    for fine in ["task_tracker", "terminal", "file_editor", "TaskTrackerTool", "glob", "grep"] {
        assert!(!is_never_allowed(fine), "{fine}");
    }
}

#[test]
fn no_hooks_no_mcp_no_plugins() {
    passes(&no_hooks(Presence::Absent));
    fails(&no_hooks(Presence::Present), RefusalCode::HooksPresent);
    passes(&no_mcp(&[]));
    fails(&no_mcp(&strings(&["fetch"])), RefusalCode::McpPresent);
    passes(&no_plugins(&[]));
    fails(&no_plugins(&strings(&["p"])), RefusalCode::PluginsPresent);
}

#[test]
fn the_profile_is_the_reviewed_revision() {
    let reviewed = ProfileRef { id: "p".into(), revision: 2 };
    passes(&profile(Some(&reviewed), &reviewed));
    fails(&profile(None, &reviewed), RefusalCode::ProfileMismatch);
    fails(&profile(Some(&ProfileRef { id: "p".into(), revision: 3 }), &reviewed), RefusalCode::ProfileMismatch);
    fails(&profile(Some(&ProfileRef { id: "q".into(), revision: 2 }), &reviewed), RefusalCode::ProfileMismatch);
}

#[test]
fn evidence_has_a_digest() {
    assert_eq!(policy("AlwaysConfirm").evidence_digest(), jcs::sha256_hex(br#"{"kind":"AlwaysConfirm"}"#));
    assert_ne!(policy("AlwaysConfirm").evidence_digest(), policy("NeverConfirm").evidence_digest());
    fails(&CanaryResult::unreadable(CanaryId::Policy, "timeout"), RefusalCode::CanaryFailed);
}
