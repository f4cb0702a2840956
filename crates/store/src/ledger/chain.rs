//! The chain: every change becomes a link in the transaction that makes it, and the newest one is signed.

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};

use crate::audit::{AuditPage, ChainHead, Link, Notary, RefusedRequest};
use crate::error::StoreError;
use crate::ledger::entry;

/// Most links in one page.
pub const MAX_AUDIT_LINKS: usize = 500;

/// SHA-256 of a link.
pub(crate) type Digest = [u8; 32];

/// What stands before the first link.
pub(crate) const BEFORE_FIRST: Digest = [0; 32];

/// The digest of a link with this entry.
pub(crate) fn digest_of(before: &Digest, entry: &str) -> Digest {
    Sha256::new().chain_update(before).chain_update(entry).finalize().into()
}

/// The head as it is stored, if it is.
pub(crate) struct StoredHead {
    pub(crate) n: i64,
    pub(crate) digest: Digest,
    pub(crate) signature: Vec<u8>,
}

pub(crate) fn head(connection: &Connection) -> Result<Option<StoredHead>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT n, digest, signature FROM audit_head WHERE id = 1")?
        .query_row([], |row| Ok(StoredHead { n: row.get(0)?, digest: row.get(1)?, signature: row.get(2)? }))
        .optional()?)
}

/// Adds a link; its number goes into the row it speaks of.
///
/// INVARIANT I5: in the same transaction as the change, so that neither stands without the other.
pub(crate) fn append(connection: &Connection, notary: &dyn Notary, entry: &str) -> Result<i64, StoreError> {
    let head = head(connection)?.ok_or_else(|| StoreError::damaged("the chain of receipts has no head"))?;
    put(connection, notary, head.n + 1, &head.digest, entry)
}

fn put(connection: &Connection, notary: &dyn Notary, n: i64, before: &Digest, entry: &str) -> Result<i64, StoreError> {
    let digest = digest_of(before, entry);
    connection
        .prepare_cached("INSERT INTO audit (n, entry, digest) VALUES (?1, ?2, ?3)")?
        .execute(params![n, entry, digest])?;
    let signature = notary.sign(&ChainHead::message(n.unsigned_abs(), &entry::hex(&digest)));
    connection
        .prepare_cached(
            "INSERT INTO audit_head (id, n, digest, signature) VALUES (1, ?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET \
             n = excluded.n, digest = excluded.digest, signature = excluded.signature",
        )?
        .execute(params![n, digest, signature])?;
    Ok(n)
}

/// Begins the chain of a file that is being made.
pub(crate) fn begin(connection: &Connection, notary: &dyn Notary, now_ms: i64) -> Result<(), StoreError> {
    put(connection, notary, 1, &BEFORE_FIRST, &entry::begun(now_ms)).map(drop)
}

/// Enters a request that was refused before it had a receipt.
pub(crate) fn note_refusal(
    connection: &Connection,
    notary: &dyn Notary,
    refused: &RefusedRequest,
) -> Result<(), StoreError> {
    append(connection, notary, &entry::refusal(refused)).map(drop)
}

/// The links after `after`, oldest first.
pub(crate) fn page(connection: &Connection, after: u64, limit: usize) -> Result<AuditPage, StoreError> {
    let head = head(connection)?.ok_or_else(|| StoreError::damaged("the chain of receipts has no head"))?;
    let mut statement =
        connection.prepare_cached("SELECT n, entry, digest FROM audit WHERE n > ?1 ORDER BY n LIMIT ?2")?;
    let limit = i64::try_from(limit.clamp(1, MAX_AUDIT_LINKS)).unwrap_or(1);
    let links = statement
        .query_map(params![i64::try_from(after).unwrap_or(i64::MAX), limit], |row| {
            let (n, digest): (i64, Digest) = (row.get(0)?, row.get(2)?);
            Ok(Link { n: n.unsigned_abs(), entry: row.get(1)?, digest: entry::hex(&digest) })
        })?
        .collect::<Result<_, _>>()?;
    let StoredHead { n, digest, signature } = head;
    Ok(AuditPage { links, head: ChainHead { n: n.unsigned_abs(), digest: entry::hex(&digest), signature } })
}
