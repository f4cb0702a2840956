//! The chain of receipts.

use api_types::{AuditEntry, AuditPage, AuditVerification};
use serde_json::Value;

use super::table::table;
use crate::sanitize;

/// Links, a line each.
pub(crate) fn page(page: &AuditPage) -> String {
    let rows: Vec<Vec<String>> = page.entries.iter().map(row).collect();
    let mut out = table(&["N", "AT", "KIND", "CALLER", "WHAT", "STATE", "CODE", "ID"], &rows);
    out.push_str(&format!("{} of {} links; head {}\n", rows.len(), page.head.n, sanitize::line(&page.head.digest)));
    out
}

fn row(link: &AuditEntry) -> Vec<String> {
    let word = |name: &str| link.entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let either = |first: &str, second: &str| {
        let first = word(first);
        if first.is_empty() { word(second) } else { first }
    };
    let what = match word("kind").as_str() {
        "session" => word("origin"),
        "token" => word("roles"),
        "accept" => word("approval_id").chars().take(12).collect(),
        _ => either("operation_id", "request"),
    };
    let id = if word("kind") == "token" { word("name") } else { either("client_action_id", "session_id") };
    vec![link.n.to_string(), link.at.clone(), word("kind"), word("caller"), what, word("state"), word("code"), id]
}

/// What a verification found, when nothing is wrong.
pub(crate) fn verification(found: &AuditVerification) -> String {
    format!("intact: {} links, and {} stored rows that are as their links say\n", found.links, found.rows)
}
