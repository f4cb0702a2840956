//! The routes of the contract: which one a request is, and what it does.

use super::conversation::Conversation;
use super::server::{Server, VERSION};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// The most events that a page holds.
const MAX_PAGE: usize = 100;

/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// A request, taken apart.
pub(super) struct Parsed {
    pub(super) route: &'static str,
    /// The conversation's id or the profile's name.
    pub(super) subject: String,
}

/// Which route a request is; `None` outside the contract.
pub(super) fn parse(method: &Method, path: &str, body: &Value) -> Option<Parsed> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let get = method == Method::GET;
    let post = method == Method::POST;
    let (route, subject) = match parts.as_slice() {
        ["server_info"] if get => ("server_info", ""),
        ["api", "init"] if post => ("init_probe", ""),
        ["api", "conversations", "count"] if get => ("auth_probe", ""),
        ["api", "conversations"] if post => ("create_conversation", ""),
        ["api", "conversations", id] if get => ("conversation", *id),
        ["api", "conversations", id] if method == Method::PATCH => ("set_title", *id),
        ["api", "conversations", id] if method == Method::DELETE => ("delete", *id),
        ["api", "conversations", id, "events"] if post => ("send_message", *id),
        ["api", "conversations", id, "events", "search"] if get => ("events_page", *id),
        ["api", "conversations", id, "events", "respond_to_confirmation"] if post => {
            (if body["accept"] == true { "accept" } else { "reject" }, *id)
        }
        ["api", "conversations", id, "confirmation_policy"] if post => ("set_policy", *id),
        ["api", "conversations", id, "switch_profile"] if post => ("switch_profile", *id),
        ["api", "conversations", id, "interrupt"] if post => ("interrupt", *id),
        ["api", "conversations", id, "navigate"] if post => ("navigate", *id),
        ["api", "conversations", id, "condense"] if post => ("condense", *id),
        ["api", "conversations", id, "fork"] if post => ("fork", *id),
        ["api", "conversations", id, "run"] if post => ("run", *id),
        ["api", "profiles", name] if post => ("put_llm_profile", *name),
        ["api", "profiles", name] if get => ("llm_profile_status", *name),
        ["api", "agent-profiles", name] if post => ("put_agent_profile", *name),
        ["api", "agent-profiles", name] if get => ("find_agent_profile", *name),
        ["api", "agent-profiles", name, "materialize"] if post => ("materialize", *name),
        ["sockets", "events", id] if get => ("events_stream", *id),
        _ => return None,
    };
    Some(Parsed { route, subject: subject.to_owned() })
}

pub(super) type Answer = (StatusCode, Value);

pub(super) fn detail(status: StatusCode, words: &str) -> Answer {
    (status, json!({"detail": words}))
}

fn success() -> Answer {
    (StatusCode::OK, json!({"success": true}))
}

fn not_found() -> Answer {
    detail(StatusCode::NOT_FOUND, "Not Found")
}

/// Does what the route does, and answers as the real server does.
pub(super) async fn perform(server: &Server, parsed: &Parsed, query: &str, body: &Value) -> Answer {
    match parsed.route {
        "server_info" => {
            server.begin_by_itself();
            (StatusCode::OK, server_info(server))
        }
        "init_probe" if server.plan().init_open => (StatusCode::OK, json!({"state": "ready"})),
        "init_probe" => detail(StatusCode::UNAUTHORIZED, "Unauthorized"),
        "auth_probe" => (StatusCode::OK, json!(server.count())),
        "create_conversation" => match server.create(body) {
            Some((created, true)) => (StatusCode::CREATED, server.info(&created)),
            Some((existing, false)) => (StatusCode::OK, server.info(&existing)),
            None => detail(StatusCode::NOT_FOUND, "Agent profile not found"),
        },
        "put_llm_profile" | "llm_profile_status" | "put_agent_profile" | "find_agent_profile" | "materialize" => {
            profile(server, parsed, body)
        }
        _ => {
            // A conversation goes by its canonical id alone; other words there would be other routes.
            if !Uuid::parse_str(&parsed.subject).is_ok_and(|id| id.to_string() == parsed.subject) {
                return not_found();
            }
            match server.conversation(&parsed.subject) {
                Some(conversation) => on_conversation(server, &conversation, parsed.route, query, body).await,
                None if matches!(parsed.route, "interrupt" | "delete") => {
                    detail(StatusCode::BAD_REQUEST, "Bad Request")
                }
                None if parsed.route == "set_title" => (StatusCode::OK, json!({"success": false})),
                None => not_found(),
            }
        }
    }
}

fn server_info(server: &Server) -> Value {
    let plan = server.plan();
    let version = plan.version.unwrap_or_else(|| VERSION.to_owned());
    let title = plan.title.unwrap_or_else(|| "OpenHands Agent Server".to_owned());
    json!({"uptime": 1.0, "idle_time": 0.0, "title": title, "version": version, "sdk_version": version,
           "tools_version": version, "workspace_version": version, "usable_tools": ["terminal", "file_editor"],
           "capabilities": [], "docs": "/docs", "redoc": "/redoc"})
}

fn profile(server: &Server, parsed: &Parsed, body: &Value) -> Answer {
    let name = &parsed.subject;
    let saved = |what: &str| json!({"name": name, "message": format!("{what} '{name}' saved")});
    let profiles = server.profiles();
    match parsed.route {
        "put_llm_profile" => {
            server.put_model(name, body["llm"].clone());
            (StatusCode::CREATED, saved("Profile"))
        }
        "put_agent_profile" => {
            server.put_agent(name, body.as_object().cloned().unwrap_or_else(Map::new));
            (StatusCode::CREATED, saved("Agent profile"))
        }
        "llm_profile_status" => profiles.models.get(name).map_or_else(not_found, |llm| {
            let mut config = llm.clone();
            config["api_key"] = Value::Null;
            (StatusCode::OK, json!({"name": name, "config": config, "api_key_set": llm["api_key"].is_string()}))
        }),
        "find_agent_profile" => {
            let found = profiles.agents.get(name);
            found.map_or_else(not_found, |found| (StatusCode::OK, json!({"name": name, "profile": found})))
        }
        _ => profiles.agents.get(name).map_or_else(not_found, |found| {
            let llm = found["llm_profile_ref"].as_str().and_then(|name| profiles.models.get(name));
            let tools = found["tools"].clone();
            (
                StatusCode::OK,
                json!({"agent_kind": "openhands", "valid": llm.is_some(), "errors": [],
                       "llm_profile_ref": found["llm_profile_ref"], "llm_profile_resolved": llm.is_some(),
                       "llm_api_key_set": llm.is_some_and(|llm| llm["api_key"].is_string()),
                       "resolved_mcp_servers": [], "resolved_mcp_config_keys": [], "resolved_skills": [],
                       "resolved_settings": {"agent_kind": "openhands", "tools": tools, "mcp_config": {},
                            "enable_sub_agents": false, "enable_switch_llm_tool": false}}),
            )
        }),
    }
}

async fn on_conversation(
    server: &Server,
    conversation: &Arc<Conversation>,
    route: &str,
    query: &str,
    body: &Value,
) -> Answer {
    let plan = server.plan();
    server.note_asked(&conversation.record().id, route);
    match route {
        "conversation" => (StatusCode::OK, server.info(conversation)),
        "events_page" => page(conversation, query),
        "set_title" if !is_title(&body["title"]) => detail(StatusCode::UNPROCESSABLE_ENTITY, "title"),
        "set_title" => {
            conversation.change(|record| record.title = body["title"].as_str().map(str::to_owned));
            success()
        }
        "delete" => {
            conversation.interrupt().await;
            server.delete(&conversation.record().id.clone());
            success()
        }
        "send_message" => {
            let text = body["content"][0]["text"].as_str().unwrap_or_default();
            conversation.send_message(text, body["run"] == true, &plan);
            success()
        }
        "run" => {
            if conversation.start_run(&plan) {
                return success();
            }
            let words = "Conversation already running. Wait for completion or pause first.";
            detail(StatusCode::CONFLICT, words)
        }
        "accept" => {
            // Like the real one: accepting while a run is under way answers success and does nothing.
            conversation.start_run(&plan);
            success()
        }
        "reject" => {
            conversation.reject(body["reason"].as_str().unwrap_or("User rejected the action."));
            success()
        }
        "set_policy" => {
            conversation.change(|record| record.policy = body["policy"].clone());
            success()
        }
        "switch_profile" => switch_profile(server, conversation, body),
        "interrupt" => {
            conversation.interrupt().await;
            success()
        }
        "navigate" => {
            let event_id = body["event_id"].as_str().unwrap_or_default();
            if conversation.change(|record| record.log.navigate(event_id)) {
                return (StatusCode::OK, server.info(conversation));
            }
            detail(StatusCode::NOT_FOUND, &format!("Unknown event_id: {event_id}"))
        }
        "condense" => {
            conversation.condense(&plan).await;
            success()
        }
        "fork" => fork(server, conversation, body),
        _ => not_found(),
    }
}

/// A title has 1 to 200 characters.
fn is_title(title: &Value) -> bool {
    title.as_str().is_some_and(|title| (1..=MAX_TITLE_CHARS).contains(&title.chars().count()))
}

fn page(conversation: &Conversation, query: &str) -> Answer {
    let mut page_id = None;
    let mut limit = MAX_PAGE;
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "page_id" => page_id = Some(value),
            "limit" => limit = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    if !(1..=MAX_PAGE).contains(&limit) {
        return detail(StatusCode::UNPROCESSABLE_ENTITY, "limit");
    }
    (StatusCode::OK, conversation.record().log.page(page_id, limit))
}

fn switch_profile(server: &Server, conversation: &Conversation, body: &Value) -> Answer {
    let name = body["profile_name"].as_str().unwrap_or_default();
    let profiles = server.profiles();
    let Some(llm) = profiles.models.get(name) else {
        return detail(StatusCode::NOT_FOUND, &format!("Profile '{name}' not found"));
    };
    let model = llm["model"].as_str().unwrap_or_default().to_owned();
    conversation.change(|record| record.model = model);
    success()
}

fn fork(server: &Server, conversation: &Conversation, body: &Value) -> Answer {
    let given = body["id"].as_str().map(str::to_owned);
    let id = given.unwrap_or_else(|| Uuid::new_v4().to_string());
    if server.conversation(&id).is_some() {
        return detail(StatusCode::CONFLICT, &format!("Conversation with id {id} already exists"));
    }
    let mut record = conversation.record().clone();
    let from = body["from_event_id"].as_str();
    if let Some(from) = from {
        let Some(cut) = record.log.cut_at(from) else {
            return detail(StatusCode::NOT_FOUND, &format!("Unknown from_event_id: {from}"));
        };
        record.log = cut;
    }
    record.forked_from = Some(std::mem::replace(&mut record.id, id));
    record.forked_event = from.map(str::to_owned);
    record.title = body["title"].as_str().map(str::to_owned).or(record.title);
    "idle".clone_into(&mut record.status);
    let fork = server.keep(record);
    (StatusCode::CREATED, server.info(&fork))
}
