//! Wrong before the body is looked at: path, method, token, identifiers, query, fields.

use super::{ACTIONS, Body, Malformed, PROMPT, Token};

const APPROVAL: &str = session!("/approvals/zz");
const MANY_HEADERS: &[(&str, &str)] = &[("X-Pad", "1"); 80];

pub(super) const HEADS: &[Malformed] = &[
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
    Malformed::get("page with a bad position of a stream", session!("/events"), 400, "cursor_invalid")
        .headers(&[("Last-Event-ID", "a b")]),
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
];
