//! The head of a request: path and header fields, read strictly.

use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, Uri};
use rules::refusal::{Refusal, RefusalCode};
use rules::request_id::RequestId;

use crate::limits::{BEARER_MAX_BYTES, PATH_MAX_BYTES};

/// The header that may carry the idempotency key instead of the body.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Follows the request through reply, receipt and log.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where an event stream goes on after a reconnect.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Splits a path into segments that need no decoding and cannot climb.
pub(crate) fn segments(uri: &Uri) -> Result<Vec<&str>, Refusal> {
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err(bad_request("the request line must hold a path, not a whole URL"));
    }
    let path = uri.path();
    if path.len() > PATH_MAX_BYTES {
        return Err(Refusal::new(RefusalCode::TooLong, format!("the path is longer than {PATH_MAX_BYTES} bytes")));
    }
    if path.contains('%') {
        return Err(bad_request("the path must not be percent-encoded: no identifier needs it"));
    }
    let Some(rest) = path.strip_prefix('/') else { return Err(bad_request("the path must start with a slash")) };
    let segments: Vec<&str> = rest.split('/').collect();
    for segment in &segments {
        if segment.is_empty() {
            return Err(bad_request("the path must not hold an empty segment, nor end with a slash"));
        }
        if *segment == "." || *segment == ".." {
            return Err(bad_request("the path must not hold `.` or `..`"));
        }
        if !segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-{}".contains(&byte)) {
            return Err(bad_request("the path holds a character that no identifier has"));
        }
    }
    Ok(segments)
}

/// The bearer token, when there is exactly one well-formed one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single(headers, &AUTHORIZATION).ok()??.split_once(' ')?;
    let well_formed = !token.is_empty()
        && token.len() <= BEARER_MAX_BYTES
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
    (scheme.eq_ignore_ascii_case("bearer") && well_formed).then_some(token)
}

/// The idempotency key of the header, if given.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    single(headers, &IDEMPOTENCY_KEY)
}

/// The id that the client gave its request, or one of our own.
///
/// # Errors
/// When it is none, together with the one that its refusal goes by.
pub(crate) fn id(headers: &HeaderMap) -> Result<RequestId, Refusal> {
    single(headers, &REQUEST_ID)?.map_or_else(|| Ok(session::request::fresh()), RequestId::parse)
}

/// The one value of a field, if it is there.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad_request(&format!("the header `{name}` stands twice")));
    }
    value.to_str().map(Some).map_err(|_| bad_request(&format!("the header `{name}` holds more than printable ASCII")))
}

/// Requires a JSON body in UTF-8, unencoded.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse = || {
        Refusal::new(
            RefusalCode::UnsupportedMediaType,
            "send the body as `Content-Type: application/json`, in UTF-8 and without a content encoding",
        )
    };
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(refuse());
    }
    let Ok(Some(value)) = single(headers, &CONTENT_TYPE) else { return Err(refuse()) };
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|parameter| {
        parameter.eq_ignore_ascii_case("charset=utf-8") || parameter.eq_ignore_ascii_case("charset=\"utf-8\"")
    });
    if json && utf8 { Ok(()) } else { Err(refuse()) }
}

/// Refuses a body where none has a meaning.
pub(crate) fn require_no_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let announced = headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0");
    if announced || headers.contains_key(TRANSFER_ENCODING) {
        return Err(bad_request("this request takes no body"));
    }
    Ok(())
}

/// Whether the client asks for an event stream.
pub(crate) fn wants_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")))
}

fn bad_request(detail: &str) -> Refusal {
    Refusal::new(RefusalCode::BadRequest, detail)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn paths_are_plain_segments() {
        assert_eq!(segments(&Uri::from_static("/v1/status")).unwrap(), ["v1", "status"]);
        for path in [
            "/",
            "//v1/status",
            "/v1//status",
            "/v1/status/",
            "/v1/./status",
            "/v1/../v1/status",
            "/v1/%73tatus",
            "/v1/sessions/..%2f",
            "/v1/sta;tus",
            "/v1/a@b",
            "*",
            "http://localhost/v1/status",
        ] {
            let uri: Uri = path.parse().unwrap();
            assert!(segments(&uri).is_err(), "{path}");
        }
    }

    #[test]
    fn one_well_formed_bearer_only() {
        assert_eq!(bearer(&headers(AUTHORIZATION, &["bearer abc"])), Some("abc"));
        for values in
            [&["Bearer"][..], &["Bearer "], &["Bearer a b"], &["Basic abc"], &["Bearer a", "Bearer b"], &["Bearer \ta"]]
        {
            assert_eq!(bearer(&headers(AUTHORIZATION, values)), None, "{values:?}");
        }
        assert_eq!(bearer(&headers(AUTHORIZATION, &[&format!("Bearer {}", "a".repeat(513))])), None);
    }

    #[test]
    fn only_json_in_utf8() {
        for value in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""] {
            assert!(require_json(&headers(CONTENT_TYPE, &[value])).is_ok(), "{value}");
        }
        for value in ["text/json", "application/jsonp", "application/json; charset=latin1", "application/json; x=1", ""]
        {
            assert!(require_json(&headers(CONTENT_TYPE, &[value])).is_err(), "{value}");
        }
        assert!(require_json(&headers(CONTENT_TYPE, &["application/json", "application/json"])).is_err());
    }

    #[test]
    fn the_stream_is_asked_for_by_name() {
        assert!(wants_event_stream(&headers(http::header::ACCEPT, &["application/json, text/event-stream;q=0.9"])));
        assert!(!wants_event_stream(&headers(http::header::ACCEPT, &["*/*"])));
    }
}
