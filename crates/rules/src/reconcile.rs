//! One order of a session's events: the journal took them as they arrived, the server's log has them as they were
//! appended, and the log is right. An event that the stream left out is numbered when the log shows it, behind what came
//! in its stead; that alone moves nothing that readers have seen.
//!
//! Events come to the journal by the live stream before a read of the log shows them. Up to some row the journal is known
//! to have the log's order: what stands behind that row is its tail, and what a read brings is what the log appended after
//! the same place. So a decision looks at what is new, however long the session is.

use std::collections::{HashMap, HashSet};

/// A fingerprint of what readers see of an event. Two events of one id are the same when these are equal.
pub type Content = u64;

/// Whose a row of the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// gatepost's own: never in the server's log, and moved only along with what stands before it.
    Own,
    /// The server's, not yet seen in its log.
    Server {
        /// What readers got; `None` when it is not remembered, and then is not compared.
        content: Option<Content>,
        /// When it came, in milliseconds of any clock that never goes back.
        arrived_ms: u64,
    },
    /// The server's, that the stream left out: numbered when the log showed it, behind its place there. Its place is
    /// never compared.
    Late,
    /// Emptied because it was old; whose it was is not known any more.
    Emptied,
}

/// A row of the journal's tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Unique within the session.
    pub event_id: String,
    /// Whose it is.
    pub origin: Origin,
}

/// An event that a read of the log brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged<'a> {
    /// Unique within the session.
    pub event_id: &'a str,
    /// What readers will see of it.
    pub content: Content,
}

/// Whether the log has more than was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The read reached the log's end.
    Nothing,
    /// There is more.
    More,
}

/// Why a new epoch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Two events of the stream came in another order than the log's.
    Order,
    /// The journal has an event that the log does not have.
    NeverAppended,
    /// Readers were shown something else than the log holds.
    Content,
}

impl Difference {
    /// The word that is recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order_differs",
            Self::NeverAppended => "never_appended",
            Self::Content => "content_differs",
        }
    }
}

/// An event of the tail as it is to be written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The row of the tail with this index, as it is.
    Row(usize),
    /// The event of the read with this index.
    Logged(usize),
}

/// What becomes of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No two events of the stream stand otherwise than in the log.
    Extend {
        /// So many rows of the tail are confirmed.
        confirmed: usize,
        /// The events of the read with these indices are appended; they follow what the tail holds.
        append: Vec<usize>,
        /// So many of them, the first ones, are late: the log has a row of the tail behind them, or may get it there.
        late: usize,
    },
    /// The orders differ: a new epoch begins, in which the tail is written again.
    Rewrite {
        /// Why.
        difference: Difference,
        /// So many rows of the tail stay where they are; they are confirmed.
        keep: usize,
        /// What follows them, confirmed by this read. What the log did not show is left out: should it be appended yet, a
        /// later read brings it.
        order: Vec<Place>,
    },
}

/// Decides what a read makes of the tail.
///
/// The log's order counts. An event that only the log has is appended: no number changes. Where events of the stream stand
/// otherwise than in the log, or the log does not have one, the epoch is raised. gatepost's own events keep their order and
/// stay behind the event that they followed. An event that the stream brought and the log has not yet is waited for, unless
/// the log shows a later one of the stream, or it came at `overdue_ms` or before: so long before the read began that the log
/// would have it. A stream that was wrong once is not waited for: a raised epoch holds what the log showed.
pub fn reconcile(tail: &[Row], read: &[Logged<'_>], rest: Rest, overdue_ms: u64) -> Verdict {
    let (mut at, mut confirmed) = (0, 0);
    let (mut append, mut late) = (Vec::new(), 0);
    // Confirmed when the read first showed an event out of its place: from there on a new epoch can have the log's order.
    let mut in_order = None;
    let mut known: Option<HashMap<&str, usize>> = None;
    for (taken, logged) in read.iter().enumerate() {
        at = next_compared(tail, at, logged.event_id);
        let row = tail.get(at);
        if let Some(row) = row.filter(|row| row.event_id == logged.event_id) {
            if let Origin::Server { content: Some(content), .. } = row.origin
                && content != logged.content
            {
                return rewrite(Difference::Content, tail, in_order.unwrap_or(confirmed), read);
            }
            at += 1;
            confirmed = at;
            continue;
        }
        in_order.get_or_insert(confirmed);
        // Made at the first difference only: as a rule there is none.
        let known = known.get_or_insert_with(|| index(tail));
        match (known.get(logged.event_id).map(|index| tail[*index].origin), row) {
            (None, open) => {
                late += usize::from(open.is_some());
                append.push(taken);
            }
            (Some(Origin::Server { .. }), Some(row)) => {
                let is_read = read.iter().skip(taken).any(|logged| logged.event_id == row.event_id);
                let difference =
                    if is_read || rest == Rest::More { Difference::Order } else { Difference::NeverAppended };
                return rewrite(difference, tail, in_order.unwrap_or(confirmed), read);
            }
            (Some(Origin::Own | Origin::Server { .. } | Origin::Late | Origin::Emptied), _) => {}
        }
    }
    let open = tail.get(at..).unwrap_or_default();
    if rest == Rest::Nothing && open.iter().any(|row| is_overdue(row, overdue_ms)) {
        return rewrite(Difference::NeverAppended, tail, in_order.unwrap_or(confirmed), read);
    }
    let is_at_end = rest == Rest::Nothing || late < append.len();
    if is_at_end && !open.iter().any(is_servers) {
        confirmed = tail.len();
    }
    Verdict::Extend { confirmed, append, late }
}

/// The next row whose place is compared: the server's, or an emptied one that is this very event.
fn next_compared(tail: &[Row], at: usize, event_id: &str) -> usize {
    let is_compared = |row: &Row| match row.origin {
        Origin::Own | Origin::Late => false,
        Origin::Emptied => row.event_id == event_id,
        Origin::Server { .. } => true,
    };
    tail.iter().skip(at).position(is_compared).map_or(tail.len(), |further| at + further)
}

fn index(tail: &[Row]) -> HashMap<&str, usize> {
    tail.iter().enumerate().map(|(index, row)| (row.event_id.as_str(), index)).collect()
}

fn is_overdue(row: &Row, overdue_ms: u64) -> bool {
    match row.origin {
        Origin::Server { arrived_ms, .. } => arrived_ms <= overdue_ms,
        Origin::Own | Origin::Late | Origin::Emptied => false,
    }
}

/// Whether the log is still to show it.
fn is_servers(row: &Row) -> bool {
    match row.origin {
        Origin::Server { .. } => true,
        Origin::Own | Origin::Late | Origin::Emptied => false,
    }
}

/// Writes the tail again from its first row that does not stay on.
fn rewrite(difference: Difference, tail: &[Row], keep: usize, read: &[Logged<'_>]) -> Verdict {
    let (stays, again) = tail.split_at(keep);
    let stays: HashSet<&str> = stays.iter().map(|row| row.event_id.as_str()).collect();
    let logged: Vec<usize> = (0..read.len()).filter(|index| !stays.contains(read[*index].event_id)).collect();
    let places: HashMap<&str, usize> =
        logged.iter().enumerate().map(|(place, index)| (read[*index].event_id, place + 1)).collect();
    // What follows each event of the read, in its order: gatepost's own, and what was late in an earlier read. The first
    // place is before all of them.
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); logged.len() + 1];
    let mut place = 0;
    for (index, row) in again.iter().enumerate() {
        let read_as = places.get(row.event_id.as_str());
        match row.origin {
            Origin::Emptied => {}
            Origin::Late if read_as.is_some() => {}
            Origin::Own | Origin::Late => followers[place].push(keep + index),
            // Never backwards: gatepost's own events keep their order.
            Origin::Server { .. } => place = read_as.map_or(place, |read_as| place.max(*read_as)),
        }
    }
    let mut order = Vec::with_capacity(again.len() + logged.len());
    for (place, rows) in followers.into_iter().enumerate() {
        order.extend(place.checked_sub(1).map(|place| Place::Logged(logged[place])));
        order.extend(rows.into_iter().map(Place::Row));
    }
    Verdict::Rewrite { difference, keep, order }
}

#[cfg(test)]
mod tests;
