//! The chain of receipts.

use http::StatusCode;
use rules::refusal::Refusal;
use session::view;

use crate::backend::Backend;
use crate::limits::{AUDIT_AFTER_MAX, AUDIT_LIMIT_DEFAULT, AUDIT_LIMIT_MAX};
use crate::reply::{Reply, json};
use crate::service::Exchange;

pub(super) async fn page<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    let after = exchange.query.number("after", 0, 0, AUDIT_AFTER_MAX)?;
    let limit = exchange.query.number("limit", AUDIT_LIMIT_DEFAULT, 1, AUDIT_LIMIT_MAX)?;
    let limit = usize::try_from(limit).unwrap_or(1);
    Ok(json(StatusCode::OK, &audit_page(exchange.service.backend.audit(after, limit).await?)))
}

pub(super) async fn verification<B: Backend>(exchange: &Exchange<'_, B>) -> Result<Reply, Refusal> {
    Ok(json(StatusCode::OK, &audit_verification(exchange.service.backend.verify_audit().await?)))
}

/// A page as clients see it.
#[must_use]
pub fn audit_page(view: view::AuditPage) -> api_types::AuditPage {
    let entry = |entry: view::AuditEntry| api_types::AuditEntry {
        n: entry.n,
        at: entry.at,
        digest: entry.digest,
        entry: entry.entry,
    };
    api_types::AuditPage {
        entries: view.entries.into_iter().map(entry).collect(),
        next_after: view.next_after,
        head: api_types::AuditHead {
            n: view.head_n,
            digest: view.head_digest,
            signature: view.signature,
            public_key: view.public_key,
        },
    }
}

/// A verification as clients see it.
#[must_use]
pub fn audit_verification(view: view::Verification) -> api_types::AuditVerification {
    let broken = |broken: view::BrokenLink| api_types::BrokenLink {
        n: broken.n,
        fault: broken.fault.to_owned(),
        detail: broken.detail,
    };
    api_types::AuditVerification {
        intact: view.broken.is_none(),
        links: view.links,
        rows: view.rows,
        broken: view.broken.map(broken),
    }
}
