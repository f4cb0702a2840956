//! Every malformed request of the table is refused with its status and code, and the controller never hears of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;
mod table;

use std::collections::HashSet;

use api::Limits;
use support::{OWNER, Running};
use table::{Body, MALFORMED, Malformed, Token};

fn bytes(request: &Malformed) -> Vec<u8> {
    let body = match request.body {
        Body::None => None,
        Body::Bytes(bytes) => Some(bytes.to_vec()),
        Body::Filled(head, piece, times, tail) => Some(format!("{head}{}{tail}", piece.repeat(times)).into_bytes()),
    };
    let mut fields: Vec<(String, String)> = vec![("Host".into(), "localhost".into())];
    match request.token {
        Token::Owner => fields.push(("Authorization".into(), format!("Bearer {OWNER}"))),
        Token::None => {}
        Token::Value(value) => fields.push(("Authorization".into(), value.replace("{owner}", OWNER))),
    }
    if let Some(body) = &body {
        fields.push(("Content-Length".into(), body.len().to_string()));
        fields.push(("Content-Type".into(), "application/json".into()));
    }
    fields.retain(|(known, _)| !request.headers.iter().any(|(name, _)| name == known));
    fields.extend(request.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.target).into_bytes();
    for (name, value) in fields {
        text.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    text.extend(b"\r\n");
    text.extend(body.unwrap_or_default());
    text
}

#[test]
fn the_table_is_large_and_its_names_are_unique() {
    assert!(MALFORMED.len() >= 60, "{}", MALFORMED.len());
    let names: HashSet<&str> = MALFORMED.iter().map(|request| request.name).collect();
    assert_eq!(names.len(), MALFORMED.len());
}

#[tokio::test]
async fn each_is_refused_without_effect() {
    let running = Running::start(Limits::default());
    let mut wrong = Vec::new();
    for request in MALFORMED {
        let mut connection = running.connect().await;
        connection.write(&bytes(request)).await;
        let Some(reply) = connection.reply(request.method == "HEAD").await else {
            wrong.push(format!("{}: no reply", request.name));
            continue;
        };
        let code = reply.code();
        if reply.status != request.status || code.as_deref() != request.code {
            wrong.push(format!(
                "{}: {} {code:?}, not {} {:?}",
                request.name, reply.status, request.status, request.code
            ));
        }
        if request.code.is_some() {
            assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{}", request.name);
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{}", request.name);
            assert_eq!(reply.json()["status"], request.status, "{}", request.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(running.fake.calls(), Vec::<String>::new());
    let report = running.stop().await;
    assert_eq!(report.cut_off, 0);
}
