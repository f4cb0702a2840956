//! The contract's client against the fake server: what the fake answers, the strict reader takes.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use agent_contract::{
    Client, Contract, ContractError, EventId, KeyKind, LlmProfile, NewConversation, ProfileName, SessionId,
    SetupClient, StreamItem,
};
use host::Secret;
use rules::branch::active_branch;
use rules::canary::{CanaryId, CanaryResult};
use rules::gate::{GateInput, StepGrant, StepRequest, gate};
use rules::log::{ExecutionStatus, LogEvent};
use rules::quiet::QuietState;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use testkit::fake_server::{FakeServer, Fault, Plan};

const KEY: &str = "5e551000000000000000000000000000";

struct Fixture {
    server: FakeServer,
    client: Client,
    id: SessionId,
}

async fn fixture() -> Fixture {
    let contract = Contract::reviewed("1.40.0").unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = FakeServer::start(listener, Plan::default(), KEY).unwrap();
    let key = Arc::new(Secret::new(KEY.to_owned()));
    let set_up = SetupClient::new(contract, server.port(), Arc::clone(&key));
    let client = Client::new(contract, server.port(), key);
    let name = ProfileName::parse("gatepost").unwrap();
    let model_key = Secret::new("model-key".to_owned());
    let profile = LlmProfile { model: "openai/scripted", base_url: None, api_key: Some(&model_key) };
    set_up.put_llm_profile(&name, &profile).await.unwrap();
    assert!(set_up.llm_profile_status(&name).await.unwrap().unwrap().api_key_set);
    set_up.put_agent_profile(&name, &name, &["terminal".to_owned()]).await.unwrap();
    assert!(set_up.materialize(&name).await.unwrap().valid);
    let stored = set_up.find_agent_profile(&name).await.unwrap().unwrap();
    let id = SessionId::parse("11111111-1111-4111-8111-111111111111").unwrap();
    let new = NewConversation { id: id.clone(), workspace_dir: "/tmp".to_owned(), profile_id: stored.id.clone() };
    let created = client.create_conversation(&new).await.unwrap();
    assert!(created.is_new && !client.create_conversation(&new).await.unwrap().is_new);
    assert_eq!((created.info.policy_kind.as_str(), created.info.profile_id), ("AlwaysConfirm", Some(stored.id)));
    Fixture { server, client, id }
}

impl Fixture {
    async fn events(&self) -> Vec<LogEvent> {
        let page = self.client.events_page(&self.id, None).await.unwrap();
        page.events.into_iter().map(|event| event.log).collect()
    }

    /// A grant that the real gate gives for what stands in the log.
    async fn message_grant(&self) -> StepGrant {
        let events = self.events().await;
        let info = self.client.conversation(&self.id).await.unwrap();
        let branch = active_branch(&events, info.leaf_event_id.as_deref()).unwrap();
        let passed =
            |canary| CanaryResult { canary, passed: true, code: None, detail: String::new(), evidence: Value::Null };
        let input = GateInput {
            session_id: self.id.as_str(),
            request: StepRequest::Message,
            branch: &branch,
            status: info.status,
            quiet: QuietState::Quiet,
            sent: &BTreeSet::new(),
            blocked: None,
            canaries: &CanaryId::ALL.map(passed),
        };
        gate(&input).unwrap()
    }

    async fn say(&self, text: &str, until: ExecutionStatus) {
        let grant = self.message_grant().await;
        self.client.send_message(grant, &self.id, text).await.unwrap();
        for _ in 0..500 {
            if self.client.conversation(&self.id).await.unwrap().status == until {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.client.conversation(&self.id).await.unwrap().status, until);
    }

    async fn pending(&self) -> usize {
        let events = self.events().await;
        let leaf = self.client.conversation(&self.id).await.unwrap().leaf_event_id;
        active_branch(&events, leaf.as_deref()).unwrap().pending().len()
    }
}

#[tokio::test]
async fn every_call_that_causes_no_step_is_answered_as_the_reader_wants_it() {
    let fixture = fixture().await;
    let Fixture { client, id, .. } = &fixture;
    assert_eq!(client.server_info().await.unwrap().sdk_version, "1.40.0");
    assert_eq!(client.auth_probe(KeyKind::Right).await.unwrap(), 200);
    assert_eq!(client.auth_probe(KeyKind::Missing).await.unwrap(), 401);
    assert_eq!(client.auth_probe(KeyKind::Wrong).await.unwrap(), 401);
    assert_ne!(client.init_probe().await.unwrap(), 200);
    client.set_policy(id).await.unwrap();
    client.set_title(id, "a title").await.unwrap();
    assert_eq!(client.conversation(id).await.unwrap().title.as_deref(), Some("a title"));
    client.switch_profile(id, &ProfileName::parse("gatepost").unwrap()).await.unwrap();
    client.interrupt(id).await.unwrap();
    client.reject(id, Some("nothing is pending")).await.unwrap();
    client.delete(id).await.unwrap();
    assert!(client.conversation(id).await.is_err());
}

#[tokio::test]
async fn a_turn_is_streamed_rejected_forked_and_rewound() {
    let fixture = fixture().await;
    let Fixture { client, id, .. } = &fixture;
    let mut stream = client.open_stream(id).await.unwrap();
    let StreamItem::Event(state) = stream.next().await else { unreachable!("the stream was refused") };
    assert_eq!(state["key"], "full_state");
    fixture.say("run all: one ;; two", ExecutionStatus::WaitingForConfirmation).await;
    assert_eq!(fixture.pending().await, 2);
    let StreamItem::Event(message) = stream.next().await else { unreachable!("the stream ended") };
    assert_eq!((message["kind"].as_str(), message["source"].as_str()), (Some("MessageEvent"), Some("user")));
    client.reject(id, Some("no")).await.unwrap();
    assert_eq!(fixture.pending().await, 0);
    let message = EventId::parse(message["id"].as_str().unwrap()).unwrap();
    let fork = SessionId::parse("22222222-2222-4222-8222-222222222222").unwrap();
    let forked = client.fork(id, &fork, &message, Some("fork")).await.unwrap();
    assert_eq!(forked.leaf_event_id.as_deref(), Some(message.as_str()));
    let again = client.fork(id, &fork, &message, None).await.err().unwrap();
    assert_eq!(again.refused_status(), Some(409));
    assert_eq!(client.navigate(id, &message).await.unwrap().leaf_event_id.as_deref(), Some(message.as_str()));
    assert!(fixture.server.executed().is_empty());
}

#[tokio::test]
async fn each_fault_is_an_error_and_none_is_retried() {
    let fixture = fixture().await;
    let faults = [
        Fault::StatusInstead(500),
        Fault::StatusAfter(500),
        Fault::Redirect("http://127.0.0.1:1/".to_owned()),
        Fault::OversizeBytes(9 << 20),
        Fault::NotJson,
        Fault::CutAtByte(40),
        Fault::Drop,
    ];
    for fault in faults {
        fixture.server.set_plan(Plan::default().with_fault("set_policy", fault.clone()));
        let before = fixture.server.requests().len();
        let result: Result<(), ContractError> = fixture.client.set_policy(&fixture.id).await;
        assert!(result.is_err(), "{fault:?}");
        assert_eq!(fixture.server.requests().len(), before + 1, "{fault:?}");
    }
    fixture.server.set_plan(Plan::default().with_fault("conversation", Fault::WrongConversation));
    assert!(fixture.client.conversation(&fixture.id).await.is_err());
}
