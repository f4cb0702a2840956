//! Verification of the chain, in steps of bounded work, so that the ledger's writer is never held for long.
//!
//! First the links in order, up to the head: number, digest, and that the row of each names this link or a later one. Then the
//! rows: each must be exactly what its link says. Together no row can differ from its newest link, and none can be without.
//! The links end at the first that is broken; the rows are compared even then, and all of them, for the lowest broken link of all.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::audit::{Broken, ChainHead, Fault, Notary, Verdict};
use crate::error::StoreError;
use crate::file::Check;
use crate::ledger::chain::{self, BEFORE_FIRST, Digest};
use crate::ledger::entry::{self, Subject};
use crate::ledger::{accepts, receipts, sessions, tokens};
use crate::migrate;

/// Links or rows of one step.
const STEP_ROWS: i64 = 200;
/// The version of the file from which on tokens have links.
const TOKEN_LINKS_SINCE: i64 = 4;
/// Bytes after which a step ends before its rows are done; one row always fits.
const STEP_BYTES: usize = 4 * 1024 * 1024;

/// A verification under way.
pub(crate) struct Walk {
    /// Of the file.
    version: i64,
    phase: Phase,
    /// Number and digest of the last link that holds.
    n: i64,
    digest: Digest,
    /// Accepts without a row, by the link that speaks of them: each must turn out to have been taken back.
    rowless: BTreeMap<Subject, i64>,
    rows: u64,
    /// The lowest broken link so far.
    broken: Option<Broken>,
}

#[derive(Debug, Clone)]
enum Phase {
    Links,
    Receipts { after_rowid: i64 },
    Sessions { after_rowid: i64 },
    Tokens { after_rowid: i64 },
    Accepts { after: (String, String) },
}

impl Phase {
    const FIRST_ROWS: Self = Self::Receipts { after_rowid: i64::MIN };
}

/// How a step ended.
pub(crate) enum Step {
    /// More is to be done.
    More(Walk),
    /// All is said.
    Done(Verdict),
}

/// Why the links end, or a row does not hold.
enum Stop {
    Broken(Broken),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

fn broken(n: i64, fault: Fault, detail: impl Into<String>) -> Stop {
    Stop::Broken(Broken { n: n.unsigned_abs(), fault, detail: detail.into() })
}

impl Walk {
    /// Before the first step on this file.
    pub(crate) fn of(connection: &Connection) -> Result<Self, StoreError> {
        Ok(Self {
            version: migrate::version(connection)?,
            phase: Phase::Links,
            n: 0,
            digest: BEFORE_FIRST,
            rowless: BTreeMap::new(),
            rows: 0,
            broken: None,
        })
    }

    /// Goes on for one step.
    pub(crate) fn step(mut self, connection: &Connection, notary: &dyn Notary) -> Result<Step, StoreError> {
        let next = match self.phase.clone() {
            Phase::Links => self.links(connection, notary),
            Phase::Receipts { after_rowid } => self.receipts(connection, after_rowid),
            Phase::Sessions { after_rowid } => self.sessions(connection, after_rowid),
            Phase::Tokens { after_rowid } => self.tokens(connection, after_rowid),
            Phase::Accepts { after } => self.accepts(connection, &after),
        };
        let links = self.n.unsigned_abs();
        match next {
            Ok(Some(phase)) => {
                self.phase = phase;
                Ok(Step::More(self))
            }
            Ok(None) => Ok(Step::Done(Verdict { links, rows: self.rows, broken: self.broken })),
            // Only the links end so; a row before this one may differ.
            Err(Stop::Broken(broken)) => {
                self.note(broken);
                self.phase = Phase::FIRST_ROWS;
                Ok(Step::More(self))
            }
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn note(&mut self, broken: Broken) {
        if self.broken.as_ref().is_none_or(|lowest| broken.n < lowest.n) {
            self.broken = Some(broken);
        }
    }

    /// A row was compared with its link.
    fn note_row(&mut self, compared: Result<(), Stop>) -> Result<(), StoreError> {
        match compared {
            Ok(()) => self.rows += 1,
            Err(Stop::Broken(broken)) => self.note(broken),
            Err(Stop::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    /// All of it at once, for a file that nobody else uses.
    pub(crate) fn whole(connection: &Connection, notary: &dyn Notary) -> Result<Verdict, StoreError> {
        let mut walk = Self::of(connection)?;
        loop {
            match walk.step(connection, notary)? {
                Step::More(further) => walk = further,
                Step::Done(verdict) => return Ok(verdict),
            }
        }
    }

    fn links(&mut self, connection: &Connection, notary: &dyn Notary) -> Result<Option<Phase>, Stop> {
        let mut statement =
            connection.prepare_cached("SELECT n, entry, digest FROM audit WHERE n > ?1 ORDER BY n LIMIT ?2")?;
        let mut found = statement.query(params![self.n, STEP_ROWS])?;
        let (mut bytes, mut any) = (0, false);
        while let Some(row) = found.next()? {
            let (n, text, digest): (i64, String, Digest) = (row.get(0)?, row.get(1)?, row.get(2)?);
            any = true;
            if n != self.n + 1 {
                return Err(broken(self.n + 1, Fault::Gap, format!("it is missing; the next one is {n}")));
            }
            if chain::digest_of(&self.digest, &text) != digest {
                return Err(broken(n, Fault::Digest, "its digest is not that of its entry and the link before it"));
            }
            self.check_entry(connection, n, &text)?;
            (self.n, self.digest) = (n, digest);
            bytes += text.len();
            if bytes >= STEP_BYTES {
                break;
            }
        }
        if any {
            return Ok(Some(Phase::Links));
        }
        check_head(connection, notary, self.n, &self.digest)?;
        if let Some((subject, n)) = self.rowless.iter().min_by_key(|(_, n)| **n) {
            return Err(broken(*n, Fault::RowMissing, format!("{} is not stored", name(subject))));
        }
        Ok(Some(Phase::FIRST_ROWS))
    }

    /// The row that a link speaks of names this link, or a later one.
    fn check_entry(&mut self, connection: &Connection, n: i64, text: &str) -> Result<(), Stop> {
        let read = entry::read(text)
            .ok_or_else(|| broken(n, Fault::Entry, "its entry is not one that this version writes"))?;
        if read.withdrawn {
            if let Some(Some(newest)) = newest_link(connection, &read.subject)?
                && newest <= n
            {
                let detail = format!("{} was withdrawn and is stored", name(&read.subject));
                return Err(broken(n, Fault::RowDiffers, detail));
            }
            self.rowless.remove(&read.subject);
            return Ok(());
        }
        let Some(newest) = newest_link(connection, &read.subject)? else { return Ok(()) };
        match newest {
            Some(newest) if newest >= n => Ok(()),
            Some(newest) => {
                let detail = format!("{} names link {newest} as its newest", name(&read.subject));
                Err(broken(n, Fault::RowDiffers, detail))
            }
            None if matches!(read.subject, Subject::Accept(..)) => {
                self.rowless.entry(read.subject).or_insert(n);
                Ok(())
            }
            None => Err(broken(n, Fault::RowMissing, format!("{} is not stored", name(&read.subject)))),
        }
    }

    fn receipts(&mut self, connection: &Connection, after_rowid: i64) -> Result<Option<Phase>, Stop> {
        let sql = "SELECT rowid, client_action_id, link FROM receipts WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
        let (mut next, mut bytes) = (Phase::Sessions { after_rowid: i64::MIN }, 0);
        for (rowid, id, link) in keys(connection, sql, after_rowid)? {
            next = Phase::Receipts { after_rowid: rowid };
            let Some(record) = receipts::get_of_version(connection, self.version, &id)? else { continue };
            self.note_row(check_row(connection, link, &Subject::Receipt(id), &entry::receipt(&record)))?;
            bytes += record.input_json.len() + record.result_json.map_or(0, |text| text.len());
            if bytes >= STEP_BYTES {
                break;
            }
        }
        Ok(Some(next))
    }

    fn sessions(&mut self, connection: &Connection, after_rowid: i64) -> Result<Option<Phase>, Stop> {
        let sql = "SELECT rowid, session_id, link FROM sessions WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
        let mut next = Phase::Tokens { after_rowid: i64::MIN };
        for (rowid, id, link) in keys(connection, sql, after_rowid)? {
            next = Phase::Sessions { after_rowid: rowid };
            let Some(record) = sessions::get(connection, &id)? else { continue };
            self.note_row(check_row(connection, link, &Subject::Session(id), &entry::session(&record)))?;
        }
        Ok(Some(next))
    }

    fn tokens(&mut self, connection: &Connection, after_rowid: i64) -> Result<Option<Phase>, Stop> {
        // A file that is to be brought up to date yet has no links of tokens, so no tokens either.
        let link = if self.version < TOKEN_LINKS_SINCE { "0" } else { "link" };
        let sql = format!("SELECT rowid, name, {link} FROM tokens WHERE rowid > ?1 ORDER BY rowid LIMIT ?2");
        let mut next = Phase::Accepts { after: (String::new(), String::new()) };
        for (rowid, name, link) in keys(connection, &sql, after_rowid)? {
            next = Phase::Tokens { after_rowid: rowid };
            let Some(record) = tokens::get(connection, &name)? else { continue };
            self.note_row(check_row(connection, link, &Subject::Token(name), &entry::token(&record)))?;
        }
        Ok(Some(next))
    }

    fn accepts(&mut self, connection: &Connection, after: &(String, String)) -> Result<Option<Phase>, Stop> {
        let mut statement = connection.prepare_cached(
            "SELECT session_id, event_id, link FROM sent_accepts WHERE (session_id, event_id) > (?1, ?2) \
             ORDER BY session_id, event_id LIMIT ?3",
        )?;
        let rows: Vec<(String, String, i64)> = statement
            .query_map(params![after.0, after.1, STEP_ROWS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let mut next = None;
        for (session_id, event_id, link) in rows {
            if let Some(record) = accepts::get(connection, &session_id, &event_id)? {
                let subject = Subject::Accept(session_id.clone(), event_id.clone());
                self.note_row(check_row(connection, link, &subject, &entry::accept(&record)))?;
            }
            next = Some(Phase::Accepts { after: (session_id, event_id) });
        }
        Ok(next)
    }
}

/// What a file's chain must be before the file is used.
pub(crate) fn at_open(connection: &Connection, notary: &dyn Notary, check: Check) -> Result<(), StoreError> {
    let broken = match check {
        Check::Whole => Walk::whole(connection, notary)?.broken,
        Check::Cheap => head_alone(connection, notary)?,
    };
    broken.map_or(Ok(()), |broken| Err(StoreError::damaged(broken.to_string())))
}

/// The head names the newest link and is signed: all that can be said without walking.
fn head_alone(connection: &Connection, notary: &dyn Notary) -> Result<Option<Broken>, StoreError> {
    let newest: Option<(i64, Digest)> = connection
        .query_row("SELECT n, digest FROM audit ORDER BY n DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (n, digest) = newest.unwrap_or((0, BEFORE_FIRST));
    match check_head(connection, notary, n, &digest) {
        Ok(()) => Ok(None),
        Err(Stop::Broken(broken)) => Ok(Some(broken)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn check_head(connection: &Connection, notary: &dyn Notary, n: i64, digest: &Digest) -> Result<(), Stop> {
    let head = chain::head(connection)?.ok_or_else(|| broken(n, Fault::Signature, "the head is missing"))?;
    if head.n > n {
        return Err(broken(n + 1, Fault::Gap, format!("it is missing, and the head is link {}", head.n)));
    }
    if head.n < n || head.digest != *digest {
        return Err(broken(n, Fault::Head, format!("the head names link {}, or another digest", head.n)));
    }
    let message = ChainHead::message(n.unsigned_abs(), &entry::hex(digest));
    if notary.is_own(&message, &head.signature) {
        return Ok(());
    }
    Err(broken(n, Fault::Signature, "the head's signature is not this installation's"))
}

/// A stored row is what its link says.
fn check_row(connection: &Connection, link: i64, subject: &Subject, expected: &str) -> Result<(), Stop> {
    let said: Option<String> = connection
        .prepare_cached("SELECT entry FROM audit WHERE n = ?1")?
        .query_row([link], |row| row.get(0))
        .optional()?;
    let Some(said) = said else { return Err(broken(link, Fault::NoLink, format!("{} has no link", name(subject)))) };
    if said == expected {
        return Ok(());
    }
    if entry::read(&said).is_some_and(|read| read.subject == *subject) {
        return Err(broken(link, Fault::RowDiffers, format!("{} is not as its newest link says", name(subject))));
    }
    Err(broken(link, Fault::NoLink, format!("{} names a link that speaks of something else", name(subject))))
}

/// The newest link that the row of a subject names: outer `None` for no subject, inner `None` for no row.
fn newest_link(connection: &Connection, subject: &Subject) -> Result<Option<Option<i64>>, StoreError> {
    let (sql, keys) = match subject {
        Subject::Nothing => return Ok(None),
        Subject::Receipt(id) => ("SELECT link FROM receipts WHERE client_action_id = ?1", vec![id]),
        Subject::Session(id) => ("SELECT link FROM sessions WHERE session_id = ?1", vec![id]),
        Subject::Token(id) => ("SELECT link FROM tokens WHERE name = ?1", vec![id]),
        Subject::Accept(session, event) => {
            ("SELECT link FROM sent_accepts WHERE session_id = ?1 AND event_id = ?2", vec![session, event])
        }
    };
    let found =
        connection.prepare_cached(sql)?.query_row(rusqlite::params_from_iter(keys), |row| row.get(0)).optional()?;
    Ok(Some(found))
}

fn name(subject: &Subject) -> String {
    match subject {
        Subject::Receipt(id) => format!("receipt {id:?}"),
        Subject::Session(id) => format!("session {id:?}"),
        Subject::Token(id) => format!("token {id:?}"),
        Subject::Accept(session, event) => format!("the accept of {event:?} in session {session:?}"),
        Subject::Nothing => "nothing".to_owned(),
    }
}

fn keys(connection: &Connection, sql: &str, after_rowid: i64) -> Result<Vec<(i64, String, i64)>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement
        .query_map(params![after_rowid, STEP_ROWS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    Ok(rows)
}
