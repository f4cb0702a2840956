//! The statements behind the journal.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::event::{EventRecord, EventRow, Head, NewEvent, Rewritten};
use crate::file::Check;
use crate::journal::{MAX_PAGE_BYTES, MAX_PAGE_EVENTS};

/// SQLite's integers are signed; numbers are counted from 1 and never come near the border.
fn stored(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::TooLarge)
}

/// The file's number: another one where it was not closed in order and the machine was started since. Its last commits may
/// not have reached the disk then, and positions of before must not be taken for what comes to stand there.
pub(crate) fn lineage(connection: &Connection, check: Check, boot_id: &str) -> Result<u64, StoreError> {
    let (number, wrote): (i64, String) =
        connection
            .query_row("SELECT number, boot_id FROM lineage WHERE id = 1", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if wrote == boot_id {
        return Ok(number.unsigned_abs());
    }
    let sql = if check == Check::Whole && !wrote.is_empty() {
        "UPDATE lineage SET boot_id = ?1, number = 1 + (random() & 0x0FFFFFFFFFFFFFFF) WHERE id = 1 RETURNING number"
    } else {
        "UPDATE lineage SET boot_id = ?1 WHERE id = 1 RETURNING number"
    };
    let number: i64 = connection.query_row(sql, [boot_id], |row| row.get(0))?;
    Ok(number.unsigned_abs())
}

/// Whether the numbers of each session are what its stream says: without a gap up to its head.
pub(crate) fn at_open(connection: &Connection, check: Check) -> Result<(), StoreError> {
    if check == Check::Cheap {
        return Ok(());
    }
    let wrong: Option<String> = connection
        .query_row(
            "SELECT session_id FROM streams LEFT JOIN (SELECT session_id AS id, count(*) AS held, max(seq) AS newest \
             FROM events GROUP BY session_id) ON id = session_id \
             WHERE coalesce(held, 0) <> seq OR coalesce(newest, 0) <> seq LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    wrong.map_or(Ok(()), |id| Err(StoreError::damaged(format!("the events of session {id} are not numbered in a row"))))
}

pub(crate) fn head(connection: &Connection, session_id: &str) -> Result<Head, StoreError> {
    let found = connection
        .prepare_cached("SELECT epoch, seq, first_seq, raised_because FROM streams WHERE session_id = ?1")?
        .query_row([session_id], |row| {
            let number = |column: usize| -> rusqlite::Result<u64> {
                let value: i64 = row.get(column)?;
                u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
            };
            Ok(Head { epoch: number(0)?, seq: number(1)?, first_seq: number(2)?, raised_because: row.get(3)? })
        })
        .optional()?;
    Ok(found.unwrap_or(Head { epoch: 1, seq: 0, first_seq: 1, raised_because: None }))
}

pub(crate) fn append(
    connection: &Connection,
    session_id: &str,
    events: Vec<NewEvent>,
    now_ms: i64,
) -> Result<Vec<EventRecord>, StoreError> {
    connection
        .prepare_cached("INSERT INTO streams VALUES (?1, 1, 0, 1, NULL) ON CONFLICT DO NOTHING")?
        .execute([session_id])?;
    let head = head(connection, session_id)?;
    insert(connection, session_id, head, events.into_iter().map(|event| (event, now_ms)))
}

/// INVARIANT I6: the number is taken and the event stored in one transaction of the only writer.
fn insert(
    connection: &Connection,
    session_id: &str,
    Head { epoch, mut seq, .. }: Head,
    events: impl Iterator<Item = (NewEvent, i64)>,
) -> Result<Vec<EventRecord>, StoreError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (session_id, seq, event_id, at, kind, payload_json, journaled_at_ms, is_late) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (session_id, event_id) DO NOTHING",
    )?;
    let mut appended = Vec::new();
    for (event, journaled_at_ms) in events {
        let NewEvent { event_id, at, kind, payload_json, is_late } = event;
        let number = stored(seq + 1)?;
        if insert.execute(params![session_id, number, event_id, at, kind, payload_json, journaled_at_ms, is_late])? == 1
        {
            seq += 1;
            let session_id = session_id.to_owned();
            appended.push(EventRecord { session_id, epoch, seq, event_id, at, kind, payload_json });
        }
    }
    connection
        .prepare_cached("UPDATE streams SET seq = ?2 WHERE session_id = ?1")?
        .execute(params![session_id, stored(seq)?])?;
    Ok(appended)
}

pub(crate) fn rows(
    connection: &Connection,
    session_id: &str,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<EventRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, event_id, kind, is_late FROM events WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![session_id, stored(after_seq)?, limit], |row| {
        let seq: i64 = row.get(0)?;
        let seq = u64::try_from(seq).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, seq))?;
        Ok(EventRow { seq, event_id: row.get(1)?, kind: row.get(2)?, is_late: row.get(3)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn read(
    connection: &Connection,
    session_id: &str,
    epoch: u64,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let head = head(connection, session_id)?;
    if epoch != head.epoch || after_seq > head.seq || after_seq + 1 < head.first_seq {
        return Err(StoreError::OutOfRange { head });
    }
    let mut statement = connection.prepare_cached(
        "SELECT event_id, at, kind, payload_json, seq FROM events WHERE session_id = ?1 AND seq > ?2 \
         ORDER BY seq LIMIT ?3",
    )?;
    let limit = i64::try_from(limit.clamp(1, MAX_PAGE_EVENTS)).unwrap_or(1);
    let mut rows = statement.query(params![session_id, stored(after_seq)?, limit])?;
    let mut page = Vec::new();
    let mut bytes = 0;
    for seq in after_seq + 1.. {
        let Some(row) = rows.next()? else { break };
        let found: i64 = row.get(4)?;
        if found != stored(seq)? {
            let reason = format!("session {session_id} has no event {seq}");
            return Err(StoreError::Damaged { path: PathBuf::new(), reason });
        }
        let payload_json: String = row.get(3)?;
        bytes += payload_json.len();
        if bytes > MAX_PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(EventRecord {
            session_id: session_id.to_owned(),
            epoch,
            seq,
            event_id: row.get(0)?,
            at: row.get(1)?,
            kind: row.get(2)?,
            payload_json,
        });
    }
    Ok(page)
}

pub(crate) fn raise_epoch(
    connection: &Connection,
    session_id: &str,
    reason: &str,
    keep_seq: u64,
    tail: Vec<Rewritten>,
    now_ms: i64,
) -> Result<Vec<EventRecord>, StoreError> {
    let before = head(connection, session_id)?;
    let keep = keep_seq.min(before.seq);
    let mut again = Vec::with_capacity(tail.len());
    for event in tail {
        again.push(match event {
            Rewritten::New(event) => (event, now_ms),
            Rewritten::Kept(seq) => kept(connection, session_id, seq)?,
        });
    }
    connection
        .prepare_cached("DELETE FROM events WHERE session_id = ?1 AND seq > ?2")?
        .execute(params![session_id, stored(keep)?])?;
    let after = Head {
        epoch: before.epoch + 1,
        seq: keep,
        // What was emptied and stood behind is gone: everything there can be read again.
        first_seq: before.first_seq.min(keep + 1),
        raised_because: Some(reason.to_owned()),
    };
    connection
        .prepare_cached(
            "INSERT INTO streams VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET epoch = excluded.epoch, \
             seq = excluded.seq, first_seq = excluded.first_seq, raised_because = excluded.raised_because",
        )?
        .execute(params![session_id, stored(after.epoch)?, stored(keep)?, stored(after.first_seq)?, reason])?;
    insert(connection, session_id, after, again.into_iter())
}

/// An event that is written again as it is, with the time from which it ages.
fn kept(connection: &Connection, session_id: &str, seq: u64) -> Result<(NewEvent, i64), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT event_id, at, kind, payload_json, is_late, journaled_at_ms FROM events \
         WHERE session_id = ?1 AND seq = ?2 AND kind <> ''",
    )?;
    let found = statement
        .query_row(params![session_id, stored(seq)?], |row| {
            let event = NewEvent {
                event_id: row.get(0)?,
                at: row.get(1)?,
                kind: row.get(2)?,
                payload_json: row.get(3)?,
                is_late: row.get(4)?,
            };
            Ok((event, row.get(5)?))
        })
        .optional()?;
    found.ok_or_else(|| StoreError::damaged(format!("session {session_id} has no event {seq} to keep")))
}

pub(crate) fn prune(connection: &Connection, before_ms: i64) -> Result<usize, StoreError> {
    // The first event that is young enough keeps everything behind it: a clock that went back makes no hole.
    connection.execute(
        "UPDATE streams SET first_seq = max(first_seq, coalesce( \
            (SELECT min(seq) FROM events WHERE events.session_id = streams.session_id AND journaled_at_ms >= ?1), \
            streams.seq + 1))",
        [before_ms],
    )?;
    Ok(connection.execute(
        "UPDATE events SET payload_json = '', kind = '', at = '' WHERE kind <> '' AND \
         seq < (SELECT first_seq FROM streams WHERE streams.session_id = events.session_id)",
        [],
    )?)
}

pub(crate) fn remove_session(connection: &Connection, session_id: &str) -> Result<(), StoreError> {
    connection.execute("DELETE FROM events WHERE session_id = ?1", [session_id])?;
    connection.execute("DELETE FROM streams WHERE session_id = ?1", [session_id])?;
    Ok(())
}
