//! Canaries of a session: what fails one takes no step, and can still be rejected, interrupted and closed.

use api_types::{Approval, CanaryState};
use gatepost_tests::{Faked, Marker, Scene, Session, refusal_code};
use serde_json::{Value, json};
use testkit::fake_server::{Fault, Plan};

/// A conversation that must not go on.
struct Bad {
    name: &'static str,
    plan: Plan,
    code: &'static str,
    canary: &'static str,
}

fn table() -> Vec<Bad> {
    let plan = Plan::default;
    let bad = |name, plan, code, canary| Bad { name, plan, code, canary };
    let tools = |tool: &str| Plan { extra_tools: vec![tool.to_owned()], ..plan() };
    vec![
        bad("weak policy", Plan { policy: Some("NeverConfirm".into()), ..plan() }, "policy_weak", "policy"),
        bad("model decides", Plan { policy: Some("ConfirmRisky".into()), ..plan() }, "policy_weak", "policy"),
        bad("sub-agents", tools("task"), "tool_not_configured", "tools"),
        bad("tool set of sub-agents", tools("task_tool_set"), "tool_not_configured", "tools"),
        bad("a tool nobody configured", tools("browser"), "tool_not_configured", "tools"),
        bad("hooks", Plan { hook_config: true, ..plan() }, "hooks_present", "no_hooks"),
        bad("an MCP server", Plan { mcp_server: Some("fetch".into()), ..plan() }, "mcp_present", "no_mcp"),
        bad("an ACP agent", Plan { agent_kind: Some("ACPAgent".into()), ..plan() }, "agent_kind_refused", "agent_kind"),
        bad("another revision", Plan { profile_revision: Some(99), ..plan() }, "profile_mismatch", "profile"),
        bad(
            "another directory",
            Plan { shown_workspace: Some("/tmp".into()), ..plan() },
            "workspace_mismatch",
            "workspace",
        ),
        bad(
            "a remote workspace",
            Plan { workspace_kind: Some("RemoteWorkspace".into()), ..plan() },
            "workspace_not_local",
            "workspace",
        ),
    ]
}

/// Every operation that could make the agent act, or prepare it.
fn guarded(session: &Session, approval: &Approval) -> Vec<(&'static str, Value)> {
    let event = session.events().into_iter().find(|event| event.payload.to_string().contains("run: ")).unwrap();
    vec![
        ("session.prompt.send", json!({"text": "say: anything"})),
        ("session.prompt.send", json!({"text": "say: anything", "on_pending": "reject"})),
        ("session.approval.decide", json!({"approval_id": approval.approval_id, "decision": "accept"})),
        ("session.resume", json!({})),
        ("session.compact", json!({})),
        ("session.fork", json!({})),
        ("session.rewind", json!({"event_id": event.event_id})),
        ("session.model.set", json!({"model": "openai/scripted"})),
        ("session.title.set", json!({"title": "t"})),
    ]
}

fn waiting(scene: &Scene, name: &str) -> (Session, Marker, Approval) {
    let session = scene.session();
    let marker = scene.marker(&name.replace(' ', "-"));
    let approval = session.propose(&marker.directive());
    (session, marker, approval)
}

/// The session shows why it is blocked, and offers nothing but what can only prevent.
#[track_caller]
fn shows_its_block(session: &Session, code: &str) {
    let snapshot = session.snapshot();
    assert_eq!(snapshot.blocked_reason.as_ref().map(|reason| reason.code.as_str()), Some(code), "{snapshot:?}");
    let offered: Vec<&str> =
        snapshot.advertised_operations.iter().map(|operation| operation.operation_id.as_str()).collect();
    assert!(offered.contains(&"session.turn.interrupt"), "{offered:?}");
    let only = ["session.turn.interrupt", "session.approval.decide"];
    assert!(offered.iter().all(|operation| only.contains(operation)), "{offered:?}");
}

/// What is part of the server's own kind of agent only.
const UNREAD: [&str; 2] = ["no_mcp", "no_plugins"];

/// All nine, of which this one is blocked, and every other ready but what cannot be read of an agent of another kind.
#[track_caller]
fn shows_each_canary(session: &Session, failing: Option<(&str, &str)>) {
    let canaries = session.snapshot().canaries;
    assert_eq!(canaries.len(), 9, "{canaries:?}");
    for one in &canaries {
        let unread = failing.is_some_and(|(_, code)| code == "agent_kind_refused" && UNREAD.contains(&&*one.canary));
        let code = failing.and_then(|(canary, code)| (one.canary == canary).then_some(code));
        let code = code.or(unread.then_some("canary_failed"));
        let expected = if code.is_some() { CanaryState::Blocked } else { CanaryState::Ready };
        assert_eq!((one.state, one.code.as_deref()), (expected, code), "{canaries:?}");
        assert_eq!(one.remedy.is_none(), code.is_none(), "{one:?}");
    }
}

#[test]
fn a_session_that_fails_a_canary_takes_no_step_until_it_passes_again() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.model = "choices = [\"openai/scripted\"]".to_owned());
    for Bad { name, plan, code, canary } in table() {
        eprintln!("--- {name}");
        faked.follow(Plan::default());
        let (session, marker, approval) = waiting(&scene, name);
        let operations = guarded(&session, &approval);
        faked.follow(plan);
        let before = faked.changes();
        for (operation, input) in &operations {
            assert_eq!(session.refused(operation, input), code, "{name}: {operation} {input}");
        }
        assert_eq!(faked.changes(), before, "{name}: something went out");
        shows_its_block(&session, code);
        shows_each_canary(&session, Some((canary, code)));
        let status = scene.status();
        let line = status.sessions.iter().find(|line| line.session_id == session.id()).unwrap();
        assert_eq!(line.blocked_reason.as_ref().map(|reason| reason.code.as_str()), Some(code));
        let attested = scene.client().get(&session.path("/attestation")).unwrap().expect_status(200).unwrap();
        let results = attested["document"]["canaries"].as_array().unwrap();
        let own = results.iter().find(|result| result["canary"] == canary).unwrap();
        assert_eq!((&own["passed"], &own["code"]), (&json!(false), &json!(code)), "{own}");

        session.interrupt();
        // The policy is part of what an approval is of: under another one it goes by another id.
        session.reject(&session.pending().unwrap());
        let steps = |routes: Vec<String>| routes.iter().filter(|route| *route == "accept").count();
        assert_eq!(steps(faked.steps()), steps(before), "{name}: an accept went out");
        marker.assert_absent();

        faked.follow(Plan::default());
        session.turn("say: it goes on");
        assert_eq!(session.snapshot().blocked_reason, None);
        shows_each_canary(&session, None);
    }
    let blocked = waiting(&scene, "closing");
    faked.follow(Plan { hook_config: true, ..Plan::default() });
    assert_eq!(blocked.0.refused("session.resume", &json!({})), "hooks_present");
    let told = scene.home().run(&["status", "--json"]).unwrap();
    assert!(told.code == Some(4) && told.stdout.contains("hooks_present"), "{told:?}");
    assert_eq!(blocked.0.close(true).status, 200);
    blocked.1.assert_absent();
    scene.finish();
}

/// A session that fails from its first read on gets neither its prompt nor anything else, and stands there to be closed.
#[test]
fn a_new_session_that_fails_a_canary_gets_no_prompt() {
    for Bad { name, plan, code, .. } in table() {
        eprintln!("--- {name}");
        let faked = Faked::new(plan);
        let scene = faked.scene();
        let marker = scene.marker("first");
        let body = json!({"workspace": scene.workspace(), "prompt": marker.directive()});
        let reply = scene.client().post("/v1/sessions", &body).unwrap();
        assert_eq!(refusal_code(&reply), code, "{name}: {}", reply.text);
        assert_eq!(faked.steps(), Vec::<String>::new(), "{name}");
        let sessions = scene.status().sessions;
        let [line] = sessions.as_slice() else { panic!("{name}: {sessions:?}") };
        let session = scene.take_up(&line.session_id);
        shows_its_block(&session, code);
        assert_eq!(session.close(true).status, 200);
        marker.assert_absent();
        scene.finish();
    }
}

/// The policy is set at each binding; a server that does not take it has no session.
#[test]
fn a_policy_that_cannot_be_set_leaves_the_session_on_no_server() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let (session, marker, _) = waiting(&scene, "policy");
    let id = session.id().to_owned();
    scene.stop_daemon();
    faked.follow(Plan::default().with_fault("set_policy", Fault::StatusInstead(500)));
    scene.serve_again();
    let session = scene.take_up(&id);
    let before = faked.steps();
    let reason = session.snapshot().blocked_reason.unwrap();
    assert_eq!(reason.code, "upstream_refused", "{reason:?}");
    assert!(!session.offers("session.prompt.send") && !session.offers("session.resume"));
    for (operation, input) in [("session.resume", json!({})), ("session.prompt.send", json!({"text": "say: no"}))] {
        assert_eq!(session.refused(operation, &input), "upstream_refused", "{operation}");
    }
    assert_eq!(faked.steps(), before);
    marker.assert_absent();
    faked.follow(Plan::default());
    let approval = session.wait_pending();
    session.approve_to_end(&approval);
    marker.assert_runs(1);
    scene.finish();
}

/// What cannot be read proves nothing: no step goes out on it, and an interrupt does not need it.
#[test]
fn a_state_or_log_that_cannot_be_read_lets_nothing_out() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    for (route, fault, code) in [
        ("conversation", Fault::StatusInstead(500), "upstream_refused"),
        ("conversation", Fault::NotJson, "upstream_malformed"),
        ("conversation", Fault::WrongConversation, "upstream_malformed"),
        ("conversation", Fault::Redirect("http://127.0.0.1:9/".to_owned()), "upstream_malformed"),
        ("conversation", Fault::OversizeBytes(9 << 20), "upstream_malformed"),
        ("conversation", Fault::Drop, "upstream_unreachable"),
        ("events_page", Fault::StatusInstead(500), "upstream_refused"),
        ("events_page", Fault::NotJson, "upstream_malformed"),
    ] {
        eprintln!("--- {route}: {fault:?}");
        let (session, marker, approval) = waiting(&scene, "unreadable");
        let generation = session.snapshot().capability_generation;
        let decide = json!({"approval_id": approval.approval_id, "decision": "accept"});
        faked.follow(Plan::default().with_fault(route, fault));
        let before = faked.steps();
        for (number, (operation, input)) in [
            ("session.prompt.send", json!({"text": "say: no"})),
            ("session.approval.decide", decide),
            ("session.resume", json!({})),
        ]
        .iter()
        .enumerate()
        {
            let key = format!("{route}-{number}-{}", session.id());
            let reply = session.request(operation, input, Some(generation), &key);
            assert_eq!(refusal_code(&reply), code, "{operation}: {}", reply.text);
        }
        session.interrupt();
        assert_eq!(faked.steps(), before);
        faked.follow(Plan::default());
        session.reject(&session.wait_pending());
        marker.assert_absent();
    }
    scene.finish();
}
