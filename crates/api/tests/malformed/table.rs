// Requests that must be refused before they have any effect: plain data, run here against the server with a fake
// controller and elsewhere against the real daemon. Every entry is sent with the owner's token unless it says otherwise,
// so that what refuses it is its form and not its role.

/// What authorises the request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Token {
    /// The owner's token.
    Owner,
    /// No `Authorization` header.
    None,
    /// This value of the header; `{owner}` stands for the owner's token.
    Value(&'static str),
}

/// What is sent after the head.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// Nothing, and no `Content-Length`.
    None,
    /// These bytes.
    Bytes(&'static [u8]),
    /// A long one: head, a piece so many times, tail.
    Filled(&'static str, &'static str, usize, &'static str),
}

/// One request and how it must be refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Malformed {
    /// Unique, for messages.
    pub(crate) name: &'static str,
    /// Written into the request line as it stands.
    pub(crate) method: &'static str,
    /// Written into the request line as it stands.
    pub(crate) target: &'static str,
    /// Fields besides `Host`, `Authorization`, `Content-Length` and, for a body, `Content-Type`; one of these names here
    /// replaces it.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Authorisation.
    pub(crate) token: Token,
    /// Body.
    pub(crate) body: Body,
    /// Expected status.
    pub(crate) status: u16,
    /// Expected code; `None` where the HTTP library refuses the head itself, with no body.
    pub(crate) code: Option<&'static str>,
}

impl Malformed {
    const fn get(name: &'static str, target: &'static str, status: u16, code: &'static str) -> Self {
        let body = Body::None;
        Self { name, method: "GET", target, headers: &[], token: Token::Owner, body, status, code: Some(code) }
    }

    const fn post(
        name: &'static str,
        target: &'static str,
        body: &'static str,
        status: u16,
        code: &'static str,
    ) -> Self {
        let body = Body::Bytes(body.as_bytes());
        Self { name, method: "POST", target, headers: &[], token: Token::Owner, body, status, code: Some(code) }
    }

    const fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    const fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    const fn token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    const fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    const fn no_code(mut self) -> Self {
        self.code = None;
        self
    }
}

macro_rules! session {
    ($rest:literal) => {
        concat!("/v1/sessions/00000000-0000-4000-8000-000000000001", $rest)
    };
}

const ACTIONS: &str = session!("/actions");
const PROMPT: &str = r#"{"operation_id":"session.prompt.send","input":{"text":"hello"},"capability_generation":1,"client_action_id":"a1"}"#;
const APPROVAL: &str = session!("/approvals/zz");
const MANY_HEADERS: &[(&str, &str)] = &[("X-Pad", "1"); 80];

/// All of them.
pub(crate) const MALFORMED: &[Malformed] = &[
    // Paths.
    Malformed::get("root", "/", 400, "bad_request"),
    Malformed::get("unknown path", "/v1/nothing", 404, "not_found"),
    Malformed::get("unknown version", "/v2/status", 404, "not_found"),
    Malformed::get("the server's own route", "/api/conversations", 404, "not_found"),
    Malformed::get("path below a leaf", "/v1/status/more", 404, "not_found"),
    Malformed::get("trailing slash", "/v1/status/", 400, "bad_request"),
    Malformed::get("double slash", "/v1//status", 400, "bad_request"),
    Malformed::get("leading double slash", "//v1/status", 400, "bad_request"),
    Malformed::get("dot segment", "/v1/./status", 400, "bad_request"),
    Malformed::get("parent segment", "/v1/sessions/../status", 400, "bad_request"),
    Malformed::get("encoded path", "/v1/%73tatus", 400, "bad_request"),
    Malformed::get("encoded climb", "/v1/sessions/%2e%2e/status", 400, "bad_request"),
    Malformed::get("encoded slash", "/v1%2fstatus", 400, "bad_request"),
    Malformed::get("encoded NUL", "/v1/sessions/%00", 400, "bad_request"),
    Malformed::get("matrix parameter", "/v1/status;x=1", 400, "bad_request"),
    Malformed::get("whole URL", "http://localhost/v1/status", 400, "bad_request"),
    Malformed::get("another host", "http://127.0.0.1:8000/api/conversations", 400, "bad_request"),
    Malformed::get("no slash", "*", 400, "bad_request"),
    // Methods.
    Malformed::get("HEAD", "/v1/status", 405, "method_not_allowed").method("HEAD").no_code(),
    Malformed::get("OPTIONS", "/v1/status", 405, "method_not_allowed").method("OPTIONS"),
    Malformed::get("PUT on a session", session!(""), 405, "method_not_allowed").method("PUT"),
    Malformed::get("DELETE of status", "/v1/status", 405, "method_not_allowed").method("DELETE"),
    Malformed::get("GET of actions", ACTIONS, 405, "method_not_allowed"),
    Malformed::get("GET of attach", "/v1/sessions/attach", 405, "method_not_allowed"),
    Malformed::get("TRACE", "/v1/status", 405, "method_not_allowed").method("TRACE"),
    Malformed::get("invented method", "/v1/status", 405, "method_not_allowed").method("APPROVE"),
    Malformed::get("method in lower case", "/v1/status", 405, "method_not_allowed").method("get"),
    Malformed::get("method that is no token", "/v1/status", 400, "").method("G@(T").no_code(),
    // Who asks.
    Malformed::get("no token", "/v1/status", 401, "unauthenticated").token(Token::None),
    Malformed::get("wrong token", "/v1/status", 401, "unauthenticated").token(Token::Value("Bearer wrong")),
    Malformed::get("empty token", "/v1/status", 401, "unauthenticated").token(Token::Value("Bearer ")),
    Malformed::get("another scheme", "/v1/status", 401, "unauthenticated").token(Token::Value("Basic {owner}")),
    Malformed::get("no scheme", "/v1/status", 401, "unauthenticated").token(Token::Value("{owner}")),
    Malformed::get("token and more", "/v1/status", 401, "unauthenticated").token(Token::Value("Bearer {owner} x")),
    Malformed::get("token twice", "/v1/status", 401, "unauthenticated").headers(&[("authorization", "Bearer x")]),
    Malformed::post("prompt without a token", ACTIONS, PROMPT, 401, "unauthenticated").token(Token::None),
    Malformed::get("token in the query", "/v1/status?token=x", 401, "unauthenticated").token(Token::None),
    // Identifiers.
    Malformed::get("session id that is none", "/v1/sessions/x", 422, "invalid_value"),
    Malformed::get(
        "session id in upper case",
        "/v1/sessions/ABCDEF00-0000-4000-8000-000000000001",
        422,
        "invalid_value",
    ),
    Malformed::get("session id without dashes", "/v1/sessions/00000000000040008000000000000001", 422, "invalid_value"),
    Malformed::get("approval id that is none", APPROVAL, 422, "invalid_value"),
    Malformed::get("approval id cut short", session!("/approvals/0123456789ab"), 422, "invalid_value"),
    Malformed::get("action id with a brace", "/v1/actions/{a}", 422, "invalid_value"),
    Malformed::get(
        "action id too long",
        "/v1/actions/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        422,
        "too_long",
    ),
    // Queries.
    Malformed::get("query nobody knows", "/v1/status?verbose=1", 422, "unknown_field"),
    Malformed::get("query name of another route", session!("/events?full=true"), 422, "unknown_field"),
    Malformed::get("query twice", session!("/events?limit=1&limit=2"), 400, "bad_request"),
    Malformed::get("query badly encoded", session!("/events?after=%zz"), 400, "bad_request"),
    Malformed::get("query not UTF-8", session!("/events?after=%ff"), 400, "bad_request"),
    Malformed::get("encoded query name", session!("/events?%6cimit=1"), 422, "unknown_field"),
    Malformed::get("limit of zero", session!("/events?limit=0"), 422, "invalid_value"),
    Malformed::get("limit too great", session!("/events?limit=1001"), 422, "invalid_value"),
    Malformed::get("limit negative", session!("/events?limit=-1"), 422, "invalid_value"),
    Malformed::get("limit that is no number", session!("/events?limit=ten"), 422, "invalid_value"),
    Malformed::get("wait too long", session!("/events?wait_ms=60001"), 422, "invalid_value"),
    Malformed::get("wait that overflows", session!("/events?wait_ms=18446744073709551617"), 422, "invalid_value"),
    Malformed::get("empty cursor", session!("/events?after="), 400, "cursor_invalid"),
    Malformed::get("cursor with a line break", session!("/events?after=a%0Ab"), 400, "cursor_invalid"),
    Malformed::get("stream from a bad position", session!("/events"), 400, "cursor_invalid")
        .headers(&[("Accept", "text/event-stream"), ("Last-Event-ID", "a b")]),
    Malformed::get("full that is no flag", session!("/approvals/zz?full=1"), 422, "invalid_value"),
    Malformed::get("delete that is no flag", session!("?delete=yes"), 422, "invalid_value").method("DELETE"),
    // Heads.
    Malformed::get("body where none belongs", "/v1/status", 400, "bad_request").body(Body::Bytes(b"{}")),
    Malformed::get("body on DELETE", session!(""), 400, "bad_request").method("DELETE").body(Body::Bytes(b"{}")),
    Malformed::post("length that is no number", ACTIONS, PROMPT, 400, "").headers(&[("Content-Length", "x")]).no_code(),
    Malformed::get("header name with a space", "/v1/status", 400, "").headers(&[("X Pad", "1")]).no_code(),
    Malformed::get("too many headers", "/v1/status", 431, "").headers(MANY_HEADERS).no_code(),
    Malformed::post("no content type", ACTIONS, PROMPT, 415, "unsupported_media_type").headers(&[("Content-Type", "")]),
    Malformed::post("form", ACTIONS, PROMPT, 415, "unsupported_media_type")
        .headers(&[("Content-Type", "application/x-www-form-urlencoded")]),
    Malformed::post("text", ACTIONS, PROMPT, 415, "unsupported_media_type").headers(&[("Content-Type", "text/plain")]),
    Malformed::post("another charset", ACTIONS, PROMPT, 415, "unsupported_media_type")
        .headers(&[("Content-Type", "application/json; charset=utf-16")]),
    Malformed::post("compressed", ACTIONS, PROMPT, 415, "unsupported_media_type")
        .headers(&[("Content-Encoding", "gzip")]),
    Malformed::post("two idempotency keys", ACTIONS, PROMPT, 400, "bad_request")
        .headers(&[("Idempotency-Key", "a1"), ("idempotency-key", "a2")]),
    Malformed::post("idempotency keys differ", ACTIONS, PROMPT, 400, "idempotency_key_conflict")
        .headers(&[("Idempotency-Key", "a2")]),
    // JSON.
    Malformed::post("empty body", ACTIONS, "", 400, "malformed_json"),
    Malformed::post("blank body", ACTIONS, " \n", 400, "malformed_json"),
    Malformed::post("cut off", ACTIONS, r#"{"operation_id":"#, 400, "malformed_json"),
    Malformed::post("two values", ACTIONS, "{}{}", 400, "malformed_json"),
    Malformed::post("trailing comma", ACTIONS, r#"{"a":1,}"#, 400, "malformed_json"),
    Malformed::post("comment", ACTIONS, "{/* x */}", 400, "malformed_json"),
    Malformed::post("NaN", ACTIONS, r#"{"capability_generation":NaN}"#, 400, "malformed_json"),
    Malformed::post(
        "key twice",
        ACTIONS,
        r#"{"operation_id":"session.title.set","operation_id":"session.resume","input":{},"client_action_id":"a1"}"#,
        400,
        "malformed_json",
    ),
    Malformed::post(
        "inner key twice",
        ACTIONS,
        r#"{"operation_id":"session.title.set","input":{"title":"a","title":"b"},"client_action_id":"a1"}"#,
        400,
        "malformed_json",
    ),
    Malformed::post("not UTF-8", ACTIONS, "", 400, "malformed_json").body(Body::Bytes(b"{\"a\":\"\xff\"}")),
    Malformed::post("UTF-16", ACTIONS, "", 400, "malformed_json").body(Body::Bytes(b"\xff\xfe{\0}\0")),
    Malformed::post("half a surrogate", ACTIONS, r#"{"a":"\ud800"}"#, 400, "malformed_json"),
    Malformed::post("byte order mark", ACTIONS, "\u{feff}{}", 400, "malformed_json"),
    Malformed::post("nested too deep", ACTIONS, "", 400, "malformed_json").body(Body::Filled("", "[", 50_000, "")),
    Malformed::post("too large", ACTIONS, "", 413, "body_too_large").body(Body::Filled("\"", "x", 1_048_576, "\"")),
    Malformed::post("array", ACTIONS, "[]", 422, "wrong_type"),
    Malformed::post("string", ACTIONS, "\"x\"", 422, "wrong_type"),
    Malformed::post("null", ACTIONS, "null", 422, "wrong_type"),
    // Actions.
    Malformed::post("empty object", ACTIONS, "{}", 422, "missing_field"),
    Malformed::post(
        "no input",
        ACTIONS,
        r#"{"operation_id":"session.resume","client_action_id":"a1"}"#,
        422,
        "missing_field",
    ),
    Malformed::post("no action id", ACTIONS, r#"{"operation_id":"session.resume","input":{}}"#, 422, "missing_field"),
    Malformed::post(
        "field nobody knows",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a1","route":"/api/x"}"#,
        422,
        "unknown_field",
    ),
    Malformed::post(
        "operation nobody knows",
        ACTIONS,
        r#"{"operation_id":"session.shell.run","input":{},"client_action_id":"a1"}"#,
        422,
        "unknown_operation",
    ),
    Malformed::post(
        "operation in another case",
        ACTIONS,
        r#"{"operation_id":"Session.Resume","input":{},"client_action_id":"a1"}"#,
        422,
        "unknown_operation",
    ),
    Malformed::post(
        "operation that is a number",
        ACTIONS,
        r#"{"operation_id":7,"input":{},"client_action_id":"a1"}"#,
        422,
        "wrong_type",
    ),
    Malformed::post(
        "input that is a string",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":"{}","client_action_id":"a1"}"#,
        422,
        "wrong_type",
    ),
    Malformed::post(
        "generation that is a string",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a1","capability_generation":"1"}"#,
        422,
        "wrong_type",
    ),
    Malformed::post(
        "generation below zero",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a1","capability_generation":-1}"#,
        422,
        "wrong_type",
    ),
    Malformed::post(
        "generation with a fraction",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a1","capability_generation":1.5}"#,
        422,
        "wrong_type",
    ),
    Malformed::post(
        "empty action id",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":""}"#,
        422,
        "empty",
    ),
    Malformed::post(
        "action id with a space",
        ACTIONS,
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a 1"}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "prompt without a text",
        ACTIONS,
        r#"{"operation_id":"session.prompt.send","input":{},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "missing_field",
    ),
    Malformed::post(
        "empty prompt",
        ACTIONS,
        r#"{"operation_id":"session.prompt.send","input":{"text":""},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "empty",
    ),
    Malformed::post("prompt too long", ACTIONS, "", 422, "too_long").body(Body::Filled(
        r#"{"operation_id":"session.prompt.send","client_action_id":"a1","capability_generation":1,"input":{"text":""#,
        "x",
        200_001,
        r#""}}"#,
    )),
    Malformed::post(
        "prompt with a run flag",
        ACTIONS,
        r#"{"operation_id":"session.prompt.send","input":{"text":"x","run":true},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "unknown_field",
    ),
    Malformed::post(
        "on_pending nobody knows",
        ACTIONS,
        r#"{"operation_id":"session.prompt.send","input":{"text":"x","on_pending":"accept"},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "decision nobody knows",
        ACTIONS,
        r#"{"operation_id":"session.approval.decide","input":{"approval_id":"0000000000000000000000000000000000000000000000000000000000000000","decision":"always"},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "accept by a prefix",
        ACTIONS,
        r#"{"operation_id":"session.approval.decide","input":{"approval_id":"0123456789ab","decision":"accept"},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "rewind to nothing",
        ACTIONS,
        r#"{"operation_id":"session.rewind","input":{"event_id":"../x"},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "title with a line break",
        ACTIONS,
        r#"{"operation_id":"session.title.set","input":{"title":"a\nb"},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "session operation without a session",
        "/v1/actions",
        r#"{"operation_id":"session.resume","input":{},"client_action_id":"a1","capability_generation":1}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "provider operation on a session",
        ACTIONS,
        r#"{"operation_id":"provider.auth.read","input":{},"client_action_id":"a1"}"#,
        422,
        "invalid_value",
    ),
    Malformed::post("act on a session id that is none", "/v1/sessions/x/actions", PROMPT, 422, "invalid_value"),
    // Sessions.
    Malformed::post("session without a workspace", "/v1/sessions", "{}", 422, "missing_field"),
    Malformed::post("workspace null", "/v1/sessions", r#"{"workspace":null}"#, 422, "missing_field"),
    Malformed::post("workspace a list", "/v1/sessions", r#"{"workspace":["/w"]}"#, 422, "wrong_type"),
    Malformed::post("workspace empty", "/v1/sessions", r#"{"workspace":""}"#, 422, "empty"),
    Malformed::post("workspace relative", "/v1/sessions", r#"{"workspace":"src"}"#, 422, "invalid_value"),
    Malformed::post("workspace with NUL", "/v1/sessions", r#"{"workspace":"/w\u0000/x"}"#, 422, "invalid_value"),
    Malformed::post("workspace too long", "/v1/sessions", "", 422, "too_long").body(Body::Filled(
        r#"{"workspace":"/"#,
        "w",
        4096,
        r#""}"#,
    )),
    Malformed::post(
        "policy in the session",
        "/v1/sessions",
        r#"{"workspace":"/w","policy":"NeverConfirm"}"#,
        422,
        "unknown_field",
    ),
    Malformed::post("session title too long", "/v1/sessions", "", 422, "too_long").body(Body::Filled(
        r#"{"workspace":"/w","title":""#,
        "t",
        201,
        r#""}"#,
    )),
    Malformed::post(
        "session id chosen badly",
        "/v1/sessions",
        r#"{"workspace":"/w","session_id":"1"}"#,
        422,
        "invalid_value",
    ),
    Malformed::post("first prompt empty", "/v1/sessions", r#"{"workspace":"/w","prompt":""}"#, 422, "empty"),
    Malformed::post("session with an idempotency key", "/v1/sessions", r#"{"workspace":"/w"}"#, 422, "invalid_value")
        .headers(&[("Idempotency-Key", "a1")]),
    Malformed::post(
        "attach without a conversation",
        "/v1/sessions/attach",
        r#"{"workspace":"/w"}"#,
        422,
        "missing_field",
    ),
    Malformed::post(
        "attach to a path",
        "/v1/sessions/attach",
        r#"{"workspace":"/w","conversation_id":"../../etc/passwd"}"#,
        422,
        "invalid_value",
    ),
    Malformed::post(
        "attach with a prompt",
        "/v1/sessions/attach",
        r#"{"workspace":"/w","conversation_id":"00000000-0000-4000-8000-000000000001","prompt":"x"}"#,
        422,
        "unknown_field",
    ),
];
