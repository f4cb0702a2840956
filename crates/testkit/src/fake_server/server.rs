//! What one fake server holds: conversations, profiles, keys, its plan; and what it shows of them.

use super::conversation::{Conversation, Record};
use super::environment::Environment;
use super::journal::{Entry, Journal};
use super::latch::Latch;
use super::log::Log;
use super::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The version that the fake server says unless its plan says otherwise.
pub(super) const VERSION: &str = "1.40.0";
/// How many requests are remembered.
const MAX_RECORDED: usize = 4096;

/// A request that arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The route's name in the contract; empty for a request outside it.
    pub route: String,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// The body as JSON, null when there was none.
    pub body: Value,
    /// The session key that was sent, if any.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Profiles {
    pub(super) models: HashMap<String, Value>,
    pub(super) agents: HashMap<String, Value>,
}

pub(super) struct Server {
    pub(super) plan: Mutex<Plan>,
    pub(super) keys: Vec<String>,
    pub(super) latch: Arc<Latch>,
    /// Where a launched server stands; only such a one may end its process.
    pub(super) environment: Option<Environment>,
    storage: Option<PathBuf>,
    journal: Journal,
    conversations: Mutex<HashMap<String, Arc<Conversation>>>,
    profiles: Mutex<Profiles>,
    requests: Mutex<(u64, VecDeque<RecordedRequest>)>,
    matched: Mutex<HashMap<usize, u64>>,
    /// Streams that were opened, for the plan's breaks.
    pub(super) streams: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    pub(super) fn new(
        plan: Plan,
        keys: Vec<String>,
        latch: Arc<Latch>,
        storage: Option<PathBuf>,
        environment: Option<Environment>,
    ) -> Self {
        let storage = storage.filter(|_| !plan.forgets);
        let own = Self {
            plan: Mutex::new(plan),
            keys,
            latch,
            environment,
            storage,
            journal: Journal::default(),
            conversations: Mutex::default(),
            profiles: Mutex::default(),
            requests: Mutex::default(),
            matched: Mutex::default(),
            streams: AtomicU64::new(0),
        };
        own.load();
        own
    }

    /// The same server, which notes in this journal what it does from now on.
    pub(super) fn with_journal(mut self, journal: Journal) -> Self {
        self.journal = journal;
        self
    }

    /// Notes that a conversation was asked about.
    pub(super) fn note_asked(&self, conversation_id: &str, route: &str) {
        self.journal.note(&Entry::Asked { conversation_id: conversation_id.to_owned(), route: route.to_owned() });
    }

    pub(super) fn plan(&self) -> Plan {
        match self.environment.as_ref().map(Environment::changed_plan) {
            Some(Ok(Some(plan))) => self.set_plan(plan),
            Some(Err(why)) => eprintln!("fake server: {why}"),
            Some(Ok(None)) | None => {}
        }
        lock(&self.plan).clone()
    }

    pub(super) fn set_plan(&self, plan: Plan) {
        *lock(&self.plan) = plan;
        lock(&self.matched).clear();
    }

    /// Counts a request, and answers its number from 1.
    pub(super) fn note_request(&self, request: RecordedRequest) -> u64 {
        if let Some(environment) = &self.environment {
            environment.note_route(&request.route);
        }
        let mut requests = lock(&self.requests);
        requests.0 += 1;
        if requests.1.len() == MAX_RECORDED {
            requests.1.pop_front();
        }
        requests.1.push_back(request);
        requests.0
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.requests).1.iter().cloned().collect()
    }

    /// The fault that this request to the route meets, if any.
    pub(super) fn fault(&self, route: &str) -> Option<super::plan::Fault> {
        let plan = self.plan();
        let mut matched = lock(&self.matched);
        for (position, rule) in plan.faults.iter().enumerate() {
            if rule.route != route && rule.route != "*" {
                continue;
            }
            let seen = matched.entry(position).or_insert(0);
            *seen += 1;
            let number = *seen;
            if number > rule.after && rule.times.is_none_or(|times| number <= rule.after + times) {
                return Some(rule.fault.clone());
            }
        }
        None
    }

    fn load(&self) {
        let Some(storage) = &self.storage else { return };
        std::fs::create_dir_all(storage).ok();
        let Ok(entries) = std::fs::read_dir(storage) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(text) = std::fs::read(&path) else { continue };
            if path.file_name().is_some_and(|name| name == "profiles.json") {
                *lock(&self.profiles) = serde_json::from_slice(&text).unwrap_or_default();
            } else if let Ok(mut record) = serde_json::from_slice::<Record>(&text) {
                // What was under way when the process died comes back as an error.
                if record.status == "running" {
                    "error".clone_into(&mut record.status);
                }
                self.keep(record);
            }
        }
    }

    pub(super) fn keep(&self, record: Record) -> Arc<Conversation> {
        let id = record.id.clone();
        let conversation =
            Conversation::new(record, Arc::clone(&self.latch), self.storage.as_deref(), self.journal.clone());
        lock(&self.conversations).insert(id, Arc::clone(&conversation));
        conversation
    }

    pub(super) fn conversation(&self, id: &str) -> Option<Arc<Conversation>> {
        lock(&self.conversations).get(id).cloned()
    }

    /// Begins the turns that the plan has begun by nobody that the daemon knows of.
    pub(super) fn begin_by_itself(&self) {
        let plan = self.plan();
        let Some(text) = &plan.begins_by_itself else { return };
        let conversations: Vec<Arc<Conversation>> = lock(&self.conversations).values().cloned().collect();
        for conversation in conversations.iter().filter(|conversation| !conversation.was_told(text)) {
            conversation.send_message(text, true, &plan);
        }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.conversations).len()
    }

    /// Forgets a conversation; false when there is none.
    pub(super) fn delete(&self, id: &str) -> bool {
        let removed = lock(&self.conversations).remove(id);
        removed.inspect(|conversation| conversation.forget_file()).is_some()
    }

    pub(super) fn profiles(&self) -> Profiles {
        lock(&self.profiles).clone()
    }

    fn change_profiles(&self, change: impl FnOnce(&mut Profiles)) {
        let mut profiles = lock(&self.profiles);
        change(&mut profiles);
        if let Some(storage) = &self.storage
            && let Ok(text) = serde_json::to_vec(&*profiles)
        {
            std::fs::write(storage.join("profiles.json"), text).ok();
        }
    }

    pub(super) fn put_model(&self, name: &str, llm: Value) {
        self.change_profiles(|profiles| {
            profiles.models.insert(name.to_owned(), llm);
        });
    }

    /// Stores an agent profile: the id stays, the revision grows.
    pub(super) fn put_agent(&self, name: &str, mut profile: Map<String, Value>) {
        self.change_profiles(|profiles| {
            let old = profiles.agents.get(name);
            let id = old.map_or_else(|| json!(Uuid::new_v4().to_string()), |old| old["id"].clone());
            let revision = old.and_then(|old| old["revision"].as_u64()).unwrap_or(0) + 1;
            profile.insert("id".into(), id);
            profile.insert("name".into(), json!(name));
            profile.insert("revision".into(), json!(revision));
            profiles.agents.insert(name.to_owned(), Value::Object(profile));
        });
    }

    /// A new conversation from a request, or the one that has this id already; `None` when the profile is unknown.
    pub(super) fn create(&self, body: &Value) -> Option<(Arc<Conversation>, bool)> {
        let given = body["conversation_id"].as_str().map(str::to_owned);
        let id = given.unwrap_or_else(|| Uuid::new_v4().to_string());
        if let Some(existing) = self.conversation(&id) {
            return Some((existing, false));
        }
        let profiles = self.profiles();
        let profile = profiles.agents.values().find(|profile| profile["id"] == body["agent_profile_id"])?;
        let llm = profile["llm_profile_ref"].as_str().and_then(|name| profiles.models.get(name));
        let model = llm.and_then(|llm| llm["model"].as_str()).unwrap_or_default().to_owned();
        let record = Record {
            id,
            workspace: body["workspace"]["working_dir"].as_str().unwrap_or_default().to_owned(),
            profile_id: profile["id"].clone(),
            profile_revision: profile["revision"].as_u64().unwrap_or(0),
            model,
            tools: profile["tools"].clone(),
            title: None,
            policy: body["confirmation_policy"].clone(),
            status: "idle".to_owned(),
            forked_from: None,
            forked_event: None,
            log: Log::of_talk(self.plan().begins_with_events),
        };
        Some((self.keep(record), true))
    }

    /// What `GET /api/conversations/{id}` shows, the plan's lies included.
    pub(super) fn info(&self, conversation: &Conversation) -> Value {
        let plan = self.plan();
        let record = conversation.record().clone();
        let or = |lie: &Option<String>, truth: &str| lie.clone().unwrap_or_else(|| truth.to_owned());
        let mut tools: Vec<Value> = record.tools.as_array().cloned().unwrap_or_default();
        tools.extend(plan.extra_tools.iter().map(|name| json!({"name": name, "params": {}})));
        let policy = plan.policy.as_ref().map_or(record.policy, |kind| json!({"kind": kind}));
        let hooks = json!({"session_start": [{"matcher": "*", "hooks": [{"type": "command", "command": "true"}]}]});
        let mcp = plan.mcp_server.map_or_else(|| json!({}), |name| json!({name: {"command": "true"}}));
        json!({
            "id": record.id,
            "workspace": {"working_dir": or(&plan.shown_workspace, &record.workspace),
                          "kind": or(&plan.workspace_kind, "LocalWorkspace")},
            "execution_status": or(&plan.shown_status, &record.status),
            "confirmation_policy": policy,
            "security_analyzer": null,
            "leaf_event_id": record.log.leaf(),
            "hook_config": if plan.hook_config { hooks } else { Value::Null },
            "title": record.title,
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "forked_from_conversation_id": record.forked_from,
            "forked_from_event_id": record.forked_event,
            "launched_agent_profile": {"agent_profile_id": record.profile_id,
                "revision": plan.profile_revision.unwrap_or(record.profile_revision)},
            "parent_conversation_id": null,
            "sub_conversation_ids": [],
            "client_tools": [],
            "stats": {"usage_to_metrics": {}},
            "agent": {"kind": or(&plan.agent_kind, "Agent"), "llm": {"model": record.model, "api_key": null},
                "tools": tools, "mcp_config": mcp, "include_default_tools": ["FinishTool", "ThinkTool"],
                "agent_context": {"skills": [], "load_user_skills": false, "load_public_skills": false,
                    "load_project_skills": true, "load_memory": false, "registered_marketplaces": []},
                "condenser": {"kind": "LLMSummarizingCondenser"}, "tool_concurrency_limit": 1},
        })
    }

    /// Where a launched server keeps its state, from its configuration.
    pub(super) fn storage_of(config: &Value) -> Option<PathBuf> {
        config["conversations_path"].as_str().map(|path| Path::new(path).join("fake"))
    }
}
