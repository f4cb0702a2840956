use super::*;
use proptest::prelude::*;

const UUID: &str = "0b23a082-3c53-4ae3-98a6-3fb16b88db40";
const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The smallest valid input of every operation.
fn smallest(operation: OperationId) -> Value {
    match operation {
        OperationId::PromptSend => json!({"text": "hi"}),
        OperationId::ApprovalDecide => json!({"approval_id": DIGEST, "decision": "accept"}),
        OperationId::Rewind => json!({"event_id": UUID}),
        OperationId::ModelSet => json!({"model": "openai/x"}),
        OperationId::TitleSet => json!({"title": "T"}),
        OperationId::BlockAcknowledge => json!({"block_id": DIGEST}),
        OperationId::TurnInterrupt
        | OperationId::Fork
        | OperationId::Resume
        | OperationId::Compact
        | OperationId::ProviderAuthRead
        | OperationId::ProviderConfigRead
        | OperationId::ProviderUsageRead
        | OperationId::ProviderDiagnosticsRead => json!({}),
    }
}

fn refusal(operation: OperationId, input: &Value) -> (RefusalCode, String) {
    let refusal = validate(operation, input).expect_err("refused");
    (refusal.code, refusal.detail)
}

#[track_caller]
fn refused(operation: OperationId, input: Value, code: RefusalCode, names: &str) {
    let (seen, detail) = refusal(operation, &input);
    assert_eq!(seen, code, "{detail}");
    assert!(detail.contains(&format!("`{names}`")), "{detail}");
}

#[test]
fn every_operation_takes_its_smallest_input_and_nothing_else() {
    for operation in OperationId::ALL {
        let input = smallest(operation);
        let read = validate(operation, &input).unwrap();
        assert_eq!(read.operation(), operation);
        assert_eq!(validate(operation, &read.canonical()).unwrap(), read);

        let mut more = input.clone();
        more["extra"] = json!(1);
        refused(operation, more, RefusalCode::UnknownField, "extra");
        for wrong in [json!(null), json!([]), json!("text"), json!(1), json!(true)] {
            assert_eq!(refusal(operation, &wrong).0, RefusalCode::WrongType);
        }
    }
}

#[test]
fn every_field_is_a_string_and_every_required_one_must_be_there() {
    for entry in describe() {
        for field in &entry.inputs {
            let mut input = smallest(entry.operation_id);
            for wrong in [json!(null), json!(1), json!(true), json!([]), json!({})] {
                input[field.name] = wrong;
                refused(entry.operation_id, input.clone(), RefusalCode::WrongType, field.name);
                let (_, detail) = refusal(entry.operation_id, &input);
                let given = &input[field.name];
                let word = match given {
                    Value::Null => "null",
                    Value::Bool(_) => "a boolean",
                    Value::Number(_) => "a number",
                    Value::String(_) => "a string",
                    Value::Array(_) => "an array",
                    Value::Object(_) => "an object",
                };
                assert!(detail.ends_with(&format!("not {word}")), "{detail}");
            }
            let mut input = smallest(entry.operation_id);
            input.as_object_mut().unwrap().remove(field.name);
            if field.required {
                refused(entry.operation_id, input.clone(), RefusalCode::MissingField, field.name);
                let (_, detail) = refusal(entry.operation_id, &input);
                assert!(detail.contains(field.doc), "it says what is missing: {detail}");
            } else {
                assert!(validate(entry.operation_id, &input).is_ok());
            }
        }
    }
}

#[test]
fn every_free_text_is_bounded_and_says_something() {
    for entry in describe() {
        for field in entry.inputs.iter().filter(|field| ["text", "line", "path"].contains(&field.type_name)) {
            let with = |text: String| {
                let mut input = smallest(entry.operation_id);
                if field.name == "reason" {
                    input["decision"] = json!("reject");
                }
                input[field.name] = json!(text);
                input
            };
            for blank in ["", " ", "\n\t "] {
                refused(entry.operation_id, with(blank.into()), RefusalCode::Empty, field.name);
            }
            refused(entry.operation_id, with("a\0b".into()), RefusalCode::InvalidValue, field.name);
            let longest = if field.name == "title" { MAX_TITLE_CHARS } else { field.max_bytes };
            assert!(validate(entry.operation_id, &with("x".repeat(longest))).is_ok(), "{}", field.name);
            refused(entry.operation_id, with("x".repeat(longest + 1)), RefusalCode::TooLong, field.name);
            for control in ["a\nb", "a\rb", "a\u{1b}b", "a\u{7f}", "a\u{85}b", "a\u{2028}b"] {
                if field.type_name == "text" {
                    assert!(validate(entry.operation_id, &with(control.into())).is_ok());
                } else {
                    refused(entry.operation_id, with(control.into()), RefusalCode::InvalidValue, field.name);
                }
            }
        }
    }
}

#[test]
fn bounds_count_bytes_for_text_and_characters_for_titles() {
    assert!(validate(OperationId::TitleSet, &json!({"title": "ü".repeat(200)})).is_ok());
    refused(OperationId::TitleSet, json!({"title": "ü".repeat(201)}), RefusalCode::TooLong, "title");
    assert!(validate(OperationId::PromptSend, &json!({"text": "ü".repeat(100_000)})).is_ok());
    refused(OperationId::PromptSend, json!({"text": "ü".repeat(100_001)}), RefusalCode::TooLong, "text");
}

#[test]
fn uuids_are_canonical() {
    for wrong in [
        "0B23A082-3C53-4AE3-98A6-3FB16B88DB40",
        "{0b23a082-3c53-4ae3-98a6-3fb16b88db40}",
        "0b23a0823c534ae398a63fb16b88db40",
        "urn:uuid:0b23a082-3c53-4ae3-98a6-3fb16b88db40",
        "0b23a082-3c53-4ae3-98a6-3fb16b88db4",
        "0b23a082-3c53-4ae3-98a6-3fb16b88db400",
        "0b23a082-3c53-4ae3-98a6-3fb16b88db4g",
        "0b23a082_3c53_4ae3_98a6_3fb16b88db40",
        " 0b23a082-3c53-4ae3-98a6-3fb16b88db4",
        "../../../../../../../etc/passwd/////",
        "0b23a082-3c53-4ae3-98a6-3fb16b88db4\n",
    ] {
        refused(OperationId::Rewind, json!({"event_id": wrong}), RefusalCode::InvalidValue, "event_id");
        refused(OperationId::Fork, json!({"session_id": wrong}), RefusalCode::InvalidValue, "session_id");
        assert_eq!(validate_session_id(wrong).unwrap_err().code, RefusalCode::InvalidValue);
    }
    refused(OperationId::Rewind, json!({"event_id": ""}), RefusalCode::Empty, "event_id");
    assert_eq!(validate_session_id("").unwrap_err().code, RefusalCode::Empty);
    assert!(validate_session_id(UUID).is_ok());
}

#[test]
fn digests_are_whole_and_in_lower_case() {
    for wrong in [&DIGEST[..12], &DIGEST.to_uppercase(), &format!("{DIGEST}0"), &DIGEST.replace('e', "g")] {
        let input = json!({"approval_id": wrong, "decision": "accept"});
        refused(OperationId::ApprovalDecide, input, RefusalCode::InvalidValue, "approval_id");
    }
    let empty = json!({"approval_id": "", "decision": "accept"});
    refused(OperationId::ApprovalDecide, empty, RefusalCode::Empty, "approval_id");
}

#[test]
fn choices_are_closed() {
    for wrong in ["", "Accept", "yes", "accept "] {
        let input = json!({"approval_id": DIGEST, "decision": wrong});
        refused(OperationId::ApprovalDecide, input, RefusalCode::InvalidValue, "decision");
    }
    refused(
        OperationId::PromptSend,
        json!({"text": "t", "on_pending": "run"}),
        RefusalCode::InvalidValue,
        "on_pending",
    );
    let read = |on_pending: &str| validate(OperationId::PromptSend, &json!({"text": "t", "on_pending": on_pending}));
    assert!(matches!(read("reject").unwrap(), OperationInput::PromptSend { on_pending: OnPending::Reject, .. }));
    let explicit = read("refuse").unwrap();
    let default = validate(OperationId::PromptSend, &json!({"text": "t"})).unwrap();
    assert_eq!(explicit.canonical(), default.canonical());
}

#[test]
fn a_reason_goes_with_a_rejection_only() {
    let decide = |decision: &str| json!({"approval_id": DIGEST, "decision": decision, "reason": "no"});
    refused(OperationId::ApprovalDecide, decide("accept"), RefusalCode::InvalidValue, "reason");
    let rejected = validate(OperationId::ApprovalDecide, &decide("reject")).unwrap();
    let OperationInput::ApprovalDecide { decision, .. } = &rejected else { panic!("{rejected:?}") };
    assert_eq!(*decision, Decision::Reject { reason: Some("no".into()) });
    assert_eq!(validate(OperationId::ApprovalDecide, &rejected.canonical()).unwrap(), rejected);
}

#[test]
fn only_what_must_not_wait_goes_without_a_generation() {
    let without: Vec<OperationId> = OperationId::ALL
        .into_iter()
        .filter(|operation| !validate(*operation, &smallest(*operation)).unwrap().needs_generation())
        .collect();
    assert_eq!(
        without,
        [
            OperationId::TurnInterrupt,
            OperationId::BlockAcknowledge,
            OperationId::ProviderAuthRead,
            OperationId::ProviderConfigRead,
            OperationId::ProviderUsageRead,
            OperationId::ProviderDiagnosticsRead
        ]
    );
    let reject = json!({"approval_id": DIGEST, "decision": "reject"});
    assert!(!validate(OperationId::ApprovalDecide, &reject).unwrap().needs_generation());
}

#[test]
fn client_action_ids() {
    for good in ["a", "A-1_b.c:d", &"x".repeat(128)] {
        assert!(validate_client_action_id(good).is_ok());
    }
    let code = |id: &str| validate_client_action_id(id).unwrap_err().code;
    assert_eq!(code(""), RefusalCode::Empty);
    assert_eq!(code(&"x".repeat(129)), RefusalCode::TooLong);
    for wrong in ["a b", "a/b", "ä", "a\n", "a\0", "../x", "a;b"] {
        assert_eq!(code(wrong), RefusalCode::InvalidValue, "{wrong:?}");
    }
}

#[test]
fn an_unknown_name_is_shown_harmlessly() {
    let (code, detail) = refusal(OperationId::Resume, &json!({"\u{1b}[2K\u{202e}": 1}));
    assert_eq!(code, RefusalCode::UnknownField);
    assert!(detail.is_ascii() && !detail.contains('\u{1b}'), "{detail}");
    let (_, long) = refusal(OperationId::Resume, &json!({"x".repeat(10_000): 1}));
    assert!(long.len() < 300);
}

#[test]
fn the_catalog_lists_everything_once() {
    let catalog = describe();
    assert_eq!(catalog.len(), OperationId::ALL.len());
    let shown = serde_json::to_value(&catalog).unwrap();
    assert_eq!(shown[0]["operation_id"], "session.prompt.send");
    assert_eq!(shown[0]["inputs"][1]["values"], json!(["refuse", "reject"]));
    assert_eq!(shown[0]["inputs"][0]["max_bytes"], MAX_PROMPT_BYTES);
    assert_eq!(shown[2]["role"], "approver");
}

proptest! {
    #[test]
    fn whatever_validates_is_within_bounds(operation in prop::sample::select(&OperationId::ALL[..]), name in prop::sample::select(vec!["text", "title", "model", "event_id", "reason", "workspace", "decision", "session_id"]), text in any::<String>()) {
        let mut input = smallest(operation);
        input[name] = json!(text);
        if let Ok(read) = validate(operation, &input) {
            prop_assert!(!text.trim().is_empty() && !text.contains('\0'));
            prop_assert_eq!(validate(operation, &read.canonical()).unwrap(), read);
        }
    }

    #[test]
    fn no_input_makes_it_panic(operation in prop::sample::select(&OperationId::ALL[..]), fields in prop::collection::vec((any::<String>(), any::<String>()), 0..3)) {
        let input: Map<String, Value> = fields.into_iter().map(|(name, text)| (name, json!(text))).collect();
        prop_assert!(validate(operation, &Value::Object(input)).map_or_else(|refusal| !refusal.detail.is_empty(), |_| true));
    }
}

/// A session is started with a title and a prompt outside any operation: the same bounds hold there.
#[test]
fn what_a_session_starts_with_is_bounded_as_in_an_operation() {
    assert!(validate_title("a title").is_ok() && validate_prompt("a\nprompt").is_ok());
    let title = |text: &str| validate_title(text).unwrap_err();
    let prompt = |text: &str| validate_prompt(text).unwrap_err();
    assert_eq!(title(" ").code, RefusalCode::Empty);
    assert_eq!(title(&"x".repeat(MAX_TITLE_CHARS + 1)).code, RefusalCode::TooLong);
    assert_eq!(title("two\nlines").code, RefusalCode::InvalidValue);
    assert_eq!(prompt("\n").code, RefusalCode::Empty);
    assert_eq!(prompt(&"x".repeat(MAX_PROMPT_BYTES + 1)).code, RefusalCode::TooLong);
    assert!(title(" ").detail.contains("`title`") && prompt(" ").detail.contains("`prompt`"));
}
