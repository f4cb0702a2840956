//! One route of a contract: what may be sent, where, with which values, and what may come back.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ids::{ProfileName, SessionId, is_canonical_uuid, is_event_id, is_profile_name};
use crate::{ContractDataError, ContractError};

macro_rules! route_names {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Every call that the client can make. A contract must describe each of them, and nothing else.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
        pub enum RouteName {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }
        impl RouteName {
            /// All of them, in the order of the contract file.
            pub const ALL: &'static [RouteName] = &[$(RouteName::$variant,)*];
            /// The name in the contract file.
            pub fn as_str(self) -> &'static str {
                match self { $(RouteName::$variant => $text,)* }
            }
        }
    };
}

route_names! {
    /// Title and versions.
    ServerInfo = "server_info",
    /// Whether a key is accepted.
    AuthProbe = "auth_probe",
    /// Whether the set-up endpoint is closed.
    InitProbe = "init_probe",
    /// One conversation's state.
    Conversation = "conversation",
    /// One page of the event log.
    EventsPage = "events_page",
    /// A new conversation.
    CreateConversation = "create_conversation",
    /// The confirmation policy, asserted again.
    SetPolicy = "set_policy",
    /// A rejection of everything pending.
    Reject = "reject",
    /// An interrupt.
    Interrupt = "interrupt",
    /// Moving the head of the branch.
    Navigate = "navigate",
    /// A copy of a branch.
    Fork = "fork",
    /// The title.
    SetTitle = "set_title",
    /// Another model profile.
    SwitchProfile = "switch_profile",
    /// Removing a conversation.
    Delete = "delete",
    /// A prompt that starts a turn.
    SendMessage = "send_message",
    /// Going on with a turn.
    Run = "run",
    /// Running what is pending.
    Accept = "accept",
    /// Condensing the history.
    Condense = "condense",
    /// The WebSocket of events.
    EventsStream = "events_stream",
    /// Storing a model profile.
    PutLlmProfile = "put_llm_profile",
    /// Reading a model profile.
    LlmProfileStatus = "llm_profile_status",
    /// Storing an agent profile.
    PutAgentProfile = "put_agent_profile",
    /// Reading an agent profile.
    FindAgentProfile = "find_agent_profile",
    /// A dry run of an agent profile.
    Materialize = "materialize",
}

impl fmt::Display for RouteName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutClass {
    /// A read.
    Read,
    /// A change that starts no long work.
    Mutation,
    /// Starting or copying a conversation.
    Start,
    /// A message, which may wait for a running tool.
    Message,
}

/// What one query parameter or body field may hold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ValueRule {
    Exact(ExactRule),
    Typed(TypedRule),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExactRule {
    exact: Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypedRule {
    #[serde(rename = "type")]
    value_type: ValueType,
    #[serde(default)]
    optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ValueType {
    Uuid,
    EventId,
    Name,
    String,
    Array,
    Object,
}

impl ValueType {
    fn admits(self, value: &Value) -> bool {
        match self {
            Self::Uuid => value.as_str().is_some_and(is_canonical_uuid),
            Self::EventId => value.as_str().is_some_and(is_event_id),
            Self::Name => value.as_str().is_some_and(is_profile_name),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// What a request's body is made of.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum BodyRule {
    /// Exactly this value.
    Whole(Value),
    /// An object of these fields.
    Fields(BTreeMap<String, ValueRule>),
}

/// A reviewed route.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub(crate) name: RouteName,
    #[serde(deserialize_with = "method")]
    pub(crate) method: Method,
    path: String,
    #[serde(default)]
    query: BTreeMap<String, ValueRule>,
    #[serde(default)]
    body: Option<BodyRule>,
    pub(crate) timeout: TimeoutClass,
    pub(crate) success: Vec<u16>,
    pub(crate) max_reply_bytes: usize,
    pub(crate) sends_key: bool,
    causes_steps: bool,
    set_up: bool,
}

fn method<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(serde::de::Error::custom(format!("method {text:?} is not one a contract may name"))),
    }
}

/// The values that fill a path template.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathValue<'a> {
    None,
    Session(&'a SessionId),
    Name(&'a ProfileName),
}

/// Names with the values that the caller chose; those with one exact value come from the contract.
pub(crate) type Chosen = Vec<(&'static str, Value)>;

impl Route {
    /// Which call it is.
    pub fn name(&self) -> RouteName {
        self.name
    }

    /// Whether a call of it can make the agent take a step, and so needs a grant.
    pub fn causes_steps(&self) -> bool {
        self.causes_steps
    }

    /// Whether it belongs to setting a server up and is out of a session's reach.
    pub fn is_set_up(&self) -> bool {
        self.set_up
    }

    /// Most bytes of an answer.
    pub fn max_reply_bytes(&self) -> usize {
        self.max_reply_bytes
    }

    /// Whether it changes nothing, so that it may be asked again on a connection that turned out to be dead.
    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    pub(crate) fn validate(&self) -> Result<(), ContractDataError> {
        let fault = |what: &str| ContractDataError::Route { route: self.name, what: what.to_owned() };
        let segments = self.path.strip_prefix('/').ok_or_else(|| fault("the path must begin with '/'"))?;
        for segment in segments.split('/') {
            let literal = !segment.is_empty()
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'));
            if !(literal || segment == CONVERSATION || segment == NAME) {
                return Err(fault("a path segment must be lower-case words or a known placeholder"));
            }
        }
        let queries_are_plain = self.query.iter().all(|(name, rule)| {
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            plain(name)
                && match rule {
                    ValueRule::Exact(ExactRule { exact }) => exact.as_str().is_some_and(plain),
                    ValueRule::Typed(rule) => matches!(rule.value_type, ValueType::Uuid | ValueType::EventId),
                }
        });
        if !queries_are_plain {
            return Err(fault("a query name or value needs escaping, which no contract may ask for"));
        }
        if self.success.is_empty() || self.max_reply_bytes == 0 || self.max_reply_bytes > crate::MAX_REPLY_BYTES {
            return Err(fault("it needs a success status and a bound of at most 8 MiB"));
        }
        if self.is_read() && (self.body.is_some() || self.causes_steps) {
            return Err(fault("a read has no body and causes no step"));
        }
        if self.set_up && self.causes_steps {
            return Err(fault("setting up causes no step"));
        }
        Ok(())
    }

    /// The request target: path and query, in origin form.
    pub(crate) fn target(&self, path_value: PathValue<'_>, chosen: &Chosen) -> Result<String, ContractError> {
        let mut target = match path_value {
            PathValue::None => self.path.clone(),
            PathValue::Session(id) => self.path.replacen(CONVERSATION, id.as_str(), 1),
            PathValue::Name(name) => self.path.replacen(NAME, name.as_str(), 1),
        };
        let left_or_unused = target.contains('{') || (target == self.path && !matches!(path_value, PathValue::None));
        if left_or_unused {
            return Err(self.outside("the path's placeholder and the value given do not agree"));
        }
        for (index, (name, value)) in self.fill(&self.query, chosen)?.into_iter().enumerate() {
            let Value::String(text) = value else {
                return Err(self.outside("a query value is not text"));
            };
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(&name);
            target.push('=');
            target.push_str(&text);
        }
        Ok(target)
    }

    /// The body, or none where the route has none.
    pub(crate) fn body(&self, chosen: &Chosen) -> Result<Option<Value>, ContractError> {
        match &self.body {
            None if chosen.is_empty() => Ok(None),
            Some(BodyRule::Whole(value)) if chosen.is_empty() => Ok(Some(value.clone())),
            None | Some(BodyRule::Whole(_)) => Err(self.outside("it takes no fields")),
            Some(BodyRule::Fields(rules)) => Ok(Some(Value::Object(self.fill(rules, chosen)?))),
        }
    }

    fn fill(&self, rules: &BTreeMap<String, ValueRule>, chosen: &Chosen) -> Result<Map<String, Value>, ContractError> {
        if let Some((name, _)) = chosen.iter().find(|(name, _)| !rules.contains_key(*name)) {
            return Err(self.outside(&format!("it has no field {name}")));
        }
        let mut filled = Map::new();
        for (name, rule) in rules {
            let given = chosen.iter().find(|(chosen_name, _)| chosen_name == name).map(|(_, value)| value);
            match (rule, given) {
                (ValueRule::Exact(ExactRule { exact }), None) => filled.insert(name.clone(), exact.clone()),
                (ValueRule::Exact(_), Some(_)) => return Err(self.outside(&format!("{name} is not for the caller"))),
                (ValueRule::Typed(rule), None) if rule.optional => None,
                (ValueRule::Typed(_), None) => return Err(self.outside(&format!("{name} is missing"))),
                (ValueRule::Typed(rule), Some(value)) if rule.value_type.admits(value) => {
                    filled.insert(name.clone(), value.clone())
                }
                (ValueRule::Typed(_), Some(_)) => return Err(self.outside(&format!("{name} has the wrong form"))),
            };
        }
        Ok(filled)
    }

    fn outside(&self, what: &str) -> ContractError {
        ContractError::OutsideContract { route: self.name, what: what.to_owned() }
    }
}

const CONVERSATION: &str = "{conversation_id}";
const NAME: &str = "{name}";
