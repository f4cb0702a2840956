//! What may be asked for, operation by operation, from the catalog.

use rules::catalog::{InputField, MAX_CLIENT_ACTION_ID_CHARS, describe};
use rules::operation::{OperationId, OperationScope};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, Type};

/// A lower-case UUID with dashes.
pub(super) const UUID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";
/// SHA-256 in lower-case hexadecimal.
pub(super) const DIGEST: &str = "^[0-9a-f]{64}$";
/// The name of a token.
pub(super) const TOKEN_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
/// An idempotency key.
pub(super) const ACTION_ID: &str = "^[A-Za-z0-9._:-]{1,128}$";
/// Generations stay below 2^53, so that every client can hold one.
const MAX_GENERATION: f64 = 9_007_199_254_740_991.0;
/// Something to be read, without a NUL.
const TEXT: &str = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$";
/// The same on one line, without control characters.
const LINE: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]\
                    [^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";
/// An absolute path on one line.
const PATH: &str = "^/[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";

/// A request for an operation of that scope: one form for each way to ask.
pub(super) fn action_request(scope: OperationScope) -> RefOr<Schema> {
    let operations = OperationId::ALL.into_iter().filter(|operation| operation.scope() == scope);
    let forms = operations.flat_map(forms).fold(OneOfBuilder::new(), |all, form| all.item(form));
    Schema::OneOf(forms.build()).into()
}

/// What a form adds to the catalog's fields: a field left out, a field with one value, and whether a generation is needed.
struct Form {
    without: Option<&'static str>,
    decision: Option<&'static str>,
    needs_generation: bool,
}

fn forms(operation: OperationId) -> Vec<Schema> {
    let plain = |needs_generation| vec![Form { without: None, decision: None, needs_generation }];
    let forms = match operation {
        OperationId::ApprovalDecide => vec![
            Form { without: Some("reason"), decision: Some("accept"), needs_generation: true },
            Form { without: None, decision: Some("reject"), needs_generation: false },
        ],
        OperationId::TurnInterrupt
        | OperationId::BlockAcknowledge
        | OperationId::ProviderAuthRead
        | OperationId::ProviderConfigRead
        | OperationId::ProviderUsageRead
        | OperationId::ProviderDiagnosticsRead => plain(false),
        OperationId::PromptSend
        | OperationId::Fork
        | OperationId::Rewind
        | OperationId::Resume
        | OperationId::Compact
        | OperationId::ModelSet
        | OperationId::TitleSet => plain(true),
    };
    forms.into_iter().map(|form| request(operation, &form)).collect()
}

fn request(operation: OperationId, form: &Form) -> Schema {
    let mut request = closed()
        .description(Some(operation.summary()))
        .property("operation_id", choice(&[operation.as_str()]))
        .required("operation_id")
        .property("input", input(operation, form))
        .required("input")
        .property(
            "client_action_id",
            string().pattern(Some(ACTION_ID)).max_length(Some(MAX_CLIENT_ACTION_ID_CHARS)).description(Some(
                "Idempotency key. The header `Idempotency-Key` may carry it instead; one of the two must be given.",
            )),
        )
        .property(
            "capability_generation",
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(0.0))
                .maximum(Some(MAX_GENERATION))
                .description(Some("Generation of the snapshot that the caller decided on.")),
        );
    if form.needs_generation {
        request = request.required("capability_generation");
    }
    Schema::Object(request.build())
}

fn input(operation: OperationId, form: &Form) -> ObjectBuilder {
    let fields = describe().into_iter().find(|entry| entry.operation_id == operation).map(|entry| entry.inputs);
    let fields = fields.unwrap_or_default().into_iter().filter(|field| form.without != Some(field.name));
    fields.fold(closed(), |input, field| {
        let one = form.decision.filter(|_| field.name == "decision");
        let schema = one.map_or_else(|| value(&field), |only| choice(&[only]));
        let input = input.property(field.name, schema.description(Some(field.doc)));
        if field.required { input.required(field.name) } else { input }
    })
}

/// The lengths are in characters, which are never more than the bytes that the catalog bounds.
fn value(field: &InputField) -> ObjectBuilder {
    let bounded = || string().min_length(Some(1)).max_length(Some(field.max_bytes));
    match field.type_name {
        "text" => bounded().pattern(Some(TEXT)),
        "path" => bounded().pattern(Some(PATH)),
        "uuid" => string().pattern(Some(UUID)),
        "digest" => string().pattern(Some(DIGEST)),
        "choice" => choice(field.values),
        _ => bounded().pattern(Some(LINE)),
    }
}

fn choice(values: &[&'static str]) -> ObjectBuilder {
    string().enum_values(Some(values.iter().copied()))
}

fn closed() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

pub(super) fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}
