//! The description of this surface (OpenAPI 3.1): schemas from the body types, paths from the route table.

mod requests;
mod texts;

use api_types as body;
use http::Method;
use rules::operation::OperationScope;
use rules::request_id::MAX_REQUEST_ID_BYTES;
use rules::role::Role;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Header, HeaderBuilder, InfoBuilder, PathItem, RefOr, Required, ResponseBuilder};
use utoipa::{OpenApi, ToSchema};

use crate::limits::{AUDIT_AFTER_MAX, AUDIT_LIMIT_DEFAULT, AUDIT_LIMIT_MAX};
use crate::limits::{CURSOR_MAX_BYTES, EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX, EVENTS_WAIT_MAX_MS};
use crate::routes::{Access, Endpoint};
use requests::{ACTION_ID, DIGEST, TOKEN_NAME, UUID, string};
use texts::{path_text, text};

/// The requests for operations, by what they are for.
const ACTION_REQUESTS: [(&str, OperationScope); 2] =
    [("SessionActionRequest", OperationScope::Session), ("ProviderActionRequest", OperationScope::Provider)];
const BEARER: &str = "bearer";
const JSON: &str = "application/json";

#[derive(OpenApi)]
#[openapi(components(schemas(
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
    body::CreateTokenRequest,
    body::CreatedToken,
    body::EventPage,
    body::Health,
    body::Probe,
    body::Problem,
    body::Readiness,
    body::Receipt,
    body::SessionList,
    body::SessionSnapshot,
    body::Status,
    body::Token,
    body::TokenList,
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
    for (name, scope) in ACTION_REQUESTS {
        components.schemas.insert(name.to_owned(), requests::action_request(scope));
    }
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
        let mut response = ResponseBuilder::new()
            .description(description)
            .content(content_type, content)
            .header("X-Request-Id", request_id_header());
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

/// What every reply carries, and every request may.
fn request_id_header() -> Header {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_REQUEST_ID_BYTES))
        .pattern(Some("^[A-Za-z0-9._-]+$"));
    HeaderBuilder::new()
        .schema(Some(Schema::Object(text.build())))
        .description(Some(
            "The request's own `X-Request-Id`, or one that it got: also in receipts and in the daemon's log.",
        ))
        .build()
}

fn role(endpoint: Endpoint) -> String {
    match endpoint.access() {
        Access::Open => "No token needed.".to_owned(),
        Access::Role(Role::Observer) => "Any token.".to_owned(),
        Access::Role(role @ (Role::Operator | Role::Approver)) => format!("Role: {role}."),
        Access::Owner => "The owner's token alone.".to_owned(),
        Access::ByOperation => "Role: the operation's.".to_owned(),
    }
}

fn request_schema(endpoint: Endpoint) -> Option<RefOr<Schema>> {
    match endpoint {
        Endpoint::SessionCreate => Some(named::<body::CreateSessionRequest>()),
        Endpoint::SessionAttach => Some(named::<body::AttachSessionRequest>()),
        Endpoint::TokenCreate => Some(named::<body::CreateTokenRequest>()),
        Endpoint::SessionAct => Some(Ref::from_schema_name("SessionActionRequest").into()),
        Endpoint::ProviderAct => Some(Ref::from_schema_name("ProviderActionRequest").into()),
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
        | Endpoint::AuditVerification
        | Endpoint::TokenList
        | Endpoint::TokenRevoke => None,
    }
}

type DocumentedReply = (&'static str, &'static str, &'static str, RefOr<Schema>);

fn replies(endpoint: Endpoint, ok: &'static str) -> Vec<DocumentedReply> {
    let schema = reply_schema(endpoint);
    let mut replies = vec![("200", ok, JSON, schema.clone())];
    match endpoint {
        // A name is used once, so there is nothing to answer again.
        Endpoint::TokenCreate => replies = vec![("201", ok, JSON, schema)],
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
        | Endpoint::AuditVerification
        | Endpoint::TokenList
        | Endpoint::TokenRevoke => {}
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
        Endpoint::TokenList => named::<body::TokenList>(),
        Endpoint::TokenCreate => named::<body::CreatedToken>(),
        Endpoint::TokenRevoke => named::<body::Token>(),
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
                "session_id" => string().pattern(Some(UUID)),
                "approval_id" => string().pattern(Some(DIGEST)),
                "token_name" => string().pattern(Some(TOKEN_NAME)),
                _ => string().pattern(Some(ACTION_ID)),
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
            string().pattern(Some(ACTION_ID)),
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
        | Endpoint::AuditVerification
        | Endpoint::TokenList
        | Endpoint::TokenCreate
        | Endpoint::TokenRevoke => {}
    }
    parameters
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
