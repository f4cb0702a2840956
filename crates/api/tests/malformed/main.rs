//! Every malformed request of the table is refused with its status and code, and the controller never hears of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "shared by several test programs")]
mod support;
mod table;

use std::collections::HashSet;

use api::Limits;
use support::{OWNER, Running};

#[test]
fn the_table_is_large_and_its_names_are_unique() {
    let count = table::all().count();
    assert!(count >= 60, "{count}");
    let names: HashSet<&str> = table::all().map(|request| request.name).collect();
    assert_eq!(names.len(), count);
}

#[tokio::test]
async fn each_is_refused_without_effect() {
    let running = Running::start(Limits::default());
    let mut wrong = Vec::new();
    for request in table::all() {
        let mut connection = running.connect().await;
        connection.write(&request.bytes(OWNER)).await;
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
