//! The description of this surface (OpenAPI 3.1): schemas from the body types, paths from the route table.

use api_types as body;
use http::Method;
use rules::role::Role;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, PathItem, RefOr, Required, ResponseBuilder};
use utoipa::{OpenApi, ToSchema};

use crate::limits::{AUDIT_AFTER_MAX, AUDIT_LIMIT_DEFAULT, AUDIT_LIMIT_MAX};
use crate::limits::{CURSOR_MAX_BYTES, EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX, EVENTS_WAIT_MAX_MS};
use crate::routes::{Access, Endpoint};

const BEARER: &str = "bearer";
const JSON: &str = "application/json";

#[derive(OpenApi)]
#[openapi(components(schemas(
    body::ActionRequest,
    body::Approval,
    body::ApprovalList,
    body::BackgroundProcess,
    body::NamedFile,
    body::Attestation,
    body::AuditPage,
    body::AuditVerification,
    body::AttachSessionRequest,
    body::Catalog,
    body::Closed,
    body::CreateSessionRequest,
    body::EventPage,
    body::Health,
    body::Probe,
    body::Problem,
    body::Readiness,
    body::Receipt,
    body::SessionList,
    body::SessionSnapshot,
    body::Status,
)))]
struct Schemas;

/// The whole description.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Schemas::openapi();
    document.info = InfoBuilder::new()
        .title("gatepost")
        .version("1")
        .description(Some(
            "HTTP/1.1 over a Unix socket. Every error is `application/problem+json` with a stable `code`. \
             An operation carries a `client_action_id` and answers with a receipt.",
        ))
        .build();
    for endpoint in Endpoint::ALL {
        let item = PathItem::new(http_method(endpoint), operation(endpoint));
        document
            .paths
            .paths
            .entry(endpoint.template().to_owned())
            .and_modify(|there| there.merge_operations(item.clone()))
            .or_insert(item);
    }
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The owner token, or a client token with a set of roles."))
        .build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    document
}

fn http_method(endpoint: Endpoint) -> HttpMethod {
    match endpoint.method() {
        Method::POST => HttpMethod::Post,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(endpoint: Endpoint) -> Operation {
    let (id, summary, reply) = text(endpoint);
    let mut builder = OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .description(Some(role(endpoint)))
        .parameters(Some(parameters(endpoint)));
    if let Some(schema) = request_schema(endpoint) {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let request = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True)).build();
        builder = builder.request_body(Some(request));
    }
    for (status, description, content_type, schema) in replies(endpoint, reply) {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let mut response = ResponseBuilder::new().description(description).content(content_type, content);
        if endpoint == Endpoint::Events && content_type == JSON {
            let text = ObjectBuilder::new().schema_type(Type::String).build();
            let stream = ContentBuilder::new().schema(Some(Schema::Object(text))).build();
            response = response.content("text/event-stream", stream);
        }
        builder = builder.response(status, response.build());
    }
    if endpoint.access() != Access::Open {
        builder = builder.security(SecurityRequirement::new(BEARER, [] as [String; 0]));
    }
    builder.build()
}

/// Operation id, one sentence, and what a 200 says.
const fn text(endpoint: Endpoint) -> (&'static str, &'static str, &'static str) {
    match endpoint {
        Endpoint::Healthz => ("healthz", "Whether the daemon answers.", "It is alive."),
        Endpoint::Readyz => ("readyz", "Whether the daemon can take a session.", "It can."),
        Endpoint::OpenApi => ("openapi", "This description.", "The description."),
        Endpoint::Status => ("status", "One look at everything, with a remedy for each finding.", "The status."),
        Endpoint::Probe => ("probe", "Whether a session could be started now, and set-up actions.", "Availability."),
        Endpoint::Catalog => ("catalog", "The reviewed operations with inputs, risk and role.", "The catalog."),
        Endpoint::SessionList => ("list_sessions", "All sessions.", "The sessions."),
        Endpoint::SessionCreate => (
            "create_session",
            "Creates a session; never attaches. The same `session_id` again is the same session.",
            "The session that this `session_id` named already.",
        ),
        Endpoint::SessionAttach => (
            "attach_session",
            "Takes up a conversation that the server has: one read, nothing is created.",
            "The session's snapshot.",
        ),
        Endpoint::SessionShow => ("show_session", "What may be done with a session now.", "The snapshot."),
        Endpoint::SessionClose => {
            ("close_session", "Ends a session; with `delete=true` its conversation is removed too.", "It is closed.")
        }
        Endpoint::ApprovalList => ("list_approvals", "The batch that waits for a decision, whole.", "What is pending."),
        Endpoint::ApprovalShow => (
            "show_approval",
            "One batch. `full=true` (role approver) truncates nothing and lifts redaction by key name.",
            "The batch.",
        ),
        Endpoint::SessionAct => (
            "act_on_session",
            "Asks for an operation. The role is the operation's; only an approver accepts.",
            "The receipt, in a final state or repeated.",
        ),
        Endpoint::ProviderAct => (
            "act_on_provider",
            "Asks for an operation that has no session.",
            "The receipt, in a final state or repeated.",
        ),
        Endpoint::ReceiptShow => ("show_receipt", "A receipt again.", "The receipt."),
        Endpoint::Events => (
            "read_events",
            "Redacted events in order. Waits up to `wait_ms`, which bounds a page only. With \
             `Accept: text/event-stream` a stream: `id` is a cursor, `event` a kind, `data` an Event; a `resync` frame \
             says that the cursor belonged to an earlier epoch, a `problem` frame why the stream ends.",
            "A page, or the stream.",
        ),
        Endpoint::Attestation => {
            ("show_attestation", "Which canaries passed, with evidence digests, signed.", "The attestation.")
        }
        Endpoint::Audit => {
            ("read_audit", "Links of the chain of receipts, oldest first, and its signed head.", "A page.")
        }
        Endpoint::AuditVerification => (
            "verify_audit",
            "Walks the whole chain and compares every stored row with it; one such walk at a time.",
            "What was found; a broken chain is no problem reply.",
        ),
    }
}

fn role(endpoint: Endpoint) -> String {
    match endpoint.access() {
        Access::Open => "No token needed.".to_owned(),
        Access::Role(Role::Observer) => "Any token.".to_owned(),
        Access::Role(role @ (Role::Operator | Role::Approver)) => format!("Role: {role}."),
        Access::ByOperation => "Role: the operation's.".to_owned(),
    }
}

fn request_schema(endpoint: Endpoint) -> Option<RefOr<Schema>> {
    match endpoint {
        Endpoint::SessionCreate => Some(named::<body::CreateSessionRequest>()),
        Endpoint::SessionAttach => Some(named::<body::AttachSessionRequest>()),
        Endpoint::SessionAct | Endpoint::ProviderAct => Some(named::<body::ActionRequest>()),
        Endpoint::Healthz
        | Endpoint::Readyz
        | Endpoint::OpenApi
        | Endpoint::Status
        | Endpoint::Probe
        | Endpoint::Catalog
        | Endpoint::SessionList
        | Endpoint::SessionShow
        | Endpoint::SessionClose
        | Endpoint::ApprovalList
        | Endpoint::ApprovalShow
        | Endpoint::ReceiptShow
        | Endpoint::Events
        | Endpoint::Attestation
        | Endpoint::Audit
        | Endpoint::AuditVerification => None,
    }
}

type DocumentedReply = (&'static str, &'static str, &'static str, RefOr<Schema>);

fn replies(endpoint: Endpoint, ok: &'static str) -> Vec<DocumentedReply> {
    let schema = reply_schema(endpoint);
    let mut replies = vec![("200", ok, JSON, schema.clone())];
    match endpoint {
        Endpoint::SessionCreate => replies.push(("201", "The new session's snapshot.", JSON, schema)),
        Endpoint::SessionAct | Endpoint::ProviderAct => {
            replies.push(("202", "The receipt of an action that is queued or under way.", JSON, schema));
        }
        Endpoint::Readyz => replies.push(("503", "It cannot; the reasons say why.", JSON, schema)),
        Endpoint::Healthz
        | Endpoint::OpenApi
        | Endpoint::Status
        | Endpoint::Probe
        | Endpoint::Catalog
        | Endpoint::SessionList
        | Endpoint::SessionAttach
        | Endpoint::SessionShow
        | Endpoint::SessionClose
        | Endpoint::ApprovalList
        | Endpoint::ApprovalShow
        | Endpoint::ReceiptShow
        | Endpoint::Events
        | Endpoint::Attestation
        | Endpoint::Audit
        | Endpoint::AuditVerification => {}
    }
    replies.push(("default", "A problem.", "application/problem+json", named::<body::Problem>()));
    replies
}

fn reply_schema(endpoint: Endpoint) -> RefOr<Schema> {
    match endpoint {
        Endpoint::Healthz => named::<body::Health>(),
        Endpoint::Readyz => named::<body::Readiness>(),
        Endpoint::OpenApi => ObjectBuilder::new().schema_type(Type::Object).build().into(),
        Endpoint::Status => named::<body::Status>(),
        Endpoint::Probe => named::<body::Probe>(),
        Endpoint::Catalog => named::<body::Catalog>(),
        Endpoint::SessionList => named::<body::SessionList>(),
        Endpoint::SessionCreate | Endpoint::SessionAttach | Endpoint::SessionShow => named::<body::SessionSnapshot>(),
        Endpoint::SessionClose => named::<body::Closed>(),
        Endpoint::ApprovalList => named::<body::ApprovalList>(),
        Endpoint::ApprovalShow => named::<body::Approval>(),
        Endpoint::SessionAct | Endpoint::ProviderAct | Endpoint::ReceiptShow => named::<body::Receipt>(),
        Endpoint::Events => named::<body::EventPage>(),
        Endpoint::Attestation => named::<body::Attestation>(),
        Endpoint::Audit => named::<body::AuditPage>(),
        Endpoint::AuditVerification => named::<body::AuditVerification>(),
    }
}

fn named<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn parameters(endpoint: Endpoint) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = endpoint
        .template()
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let schema = match name {
                "session_id" => string().pattern(Some("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")),
                "approval_id" => string().pattern(Some("^[0-9a-f]{64}$")),
                _ => string().pattern(Some("^[A-Za-z0-9._:-]{1,128}$")),
            };
            parameter(name, ParameterIn::Path, path_text(name), schema)
        })
        .collect();
    parameters.extend(endpoint.query_names().iter().map(|name| query_parameter(endpoint, name)));
    match endpoint {
        Endpoint::SessionAct | Endpoint::ProviderAct => parameters.push(parameter(
            "Idempotency-Key",
            ParameterIn::Header,
            "The same as `client_action_id`; both and different is refused.",
            string().pattern(Some("^[A-Za-z0-9._:-]{1,128}$")),
        )),
        Endpoint::Events => parameters.push(parameter(
            "Last-Event-ID",
            ParameterIn::Header,
            "Where a stream goes on after a reconnect; it wins over `after`.",
            string().max_length(Some(CURSOR_MAX_BYTES)),
        )),
        Endpoint::Healthz
        | Endpoint::Readyz
        | Endpoint::OpenApi
        | Endpoint::Status
        | Endpoint::Probe
        | Endpoint::Catalog
        | Endpoint::SessionList
        | Endpoint::SessionCreate
        | Endpoint::SessionAttach
        | Endpoint::SessionShow
        | Endpoint::SessionClose
        | Endpoint::ApprovalList
        | Endpoint::ApprovalShow
        | Endpoint::ReceiptShow
        | Endpoint::Attestation
        | Endpoint::Audit
        | Endpoint::AuditVerification => {}
    }
    parameters
}

fn path_text(name: &str) -> &'static str {
    match name {
        "session_id" => "Canonical UUID of the session.",
        "approval_id" => "Digest of the batch, whole.",
        _ => "The idempotency key that the action was asked with.",
    }
}

fn query_parameter(endpoint: Endpoint, name: &str) -> Parameter {
    let number = |least: u64, greatest: u64| {
        let bound = |number: u64| u32::try_from(number).map_or(f64::MAX, f64::from);
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(bound(least))).maximum(Some(bound(greatest)))
    };
    let flag = || ObjectBuilder::new().schema_type(Type::Boolean);
    let (text, schema) = match name {
        "after" if endpoint == Endpoint::Audit => (
            "Number after which to read; from the first link when absent.",
            number(0, AUDIT_AFTER_MAX).default(Some(0.into())),
        ),
        "limit" if endpoint == Endpoint::Audit => {
            ("Most links of a page.", number(1, AUDIT_LIMIT_MAX).default(Some(AUDIT_LIMIT_DEFAULT.into())))
        }
        "after" => {
            ("Cursor after which to read; from the beginning when absent.", string().max_length(Some(CURSOR_MAX_BYTES)))
        }
        "limit" => {
            let greatest = u64::try_from(EVENTS_LIMIT_MAX).unwrap_or(u64::MAX);
            ("Most events of a page.", number(1, greatest).default(Some(EVENTS_LIMIT_DEFAULT.into())))
        }
        "wait_ms" => {
            ("Longest wait for a first event, in milliseconds.", number(0, EVENTS_WAIT_MAX_MS).default(Some(0.into())))
        }
        "full" => ("Show everything, untruncated.", flag().default(Some(false.into()))),
        _ => ("Remove the conversation as well.", flag().default(Some(false.into()))),
    };
    parameter(name, ParameterIn::Query, text, schema)
}

fn parameter(name: &str, place: ParameterIn, text: &str, schema: ObjectBuilder) -> Parameter {
    let required = if place == ParameterIn::Path { Required::True } else { Required::False };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(Some(text))
        .schema(Some(Schema::Object(schema.build())))
        .build()
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}
