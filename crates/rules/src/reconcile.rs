//! One order of a session's events: the journal took them as they arrived, the server's log has them as they were
//! appended, and the log is right.
//!
//! Events come to the journal by the live stream before a read of the log shows them. Up to some row the journal is known
//! to have the log's order: what stands behind that row is its tail, and what a read brings is what the log appended after
//! the same place. So a decision looks at what is new, however long the session is.

use std::collections::HashMap;

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
    /// The journal's order is not the log's, or the log has an event between two that the journal has one after the other.
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
    /// The orders agree.
    Extend {
        /// So many rows of the tail are confirmed.
        confirmed: usize,
        /// The events of the read from this index on are appended; when there are any, every row is confirmed.
        append_from: usize,
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
/// The log's order counts. An event that only the log has is appended; where that leaves the server's events in the log's
/// order, no number changes. Otherwise the epoch is raised. gatepost's own events keep their order and stay behind the
/// event that they followed. An event that the stream brought and the log has not yet is waited for, unless the log shows
/// a later one, or it came at `overdue_ms` or before: so long before the read began that the log would have it. A stream
/// that was wrong once is not waited for: a raised epoch holds what the log showed.
pub fn reconcile(tail: &[Row], read: &[Logged<'_>], rest: Rest, overdue_ms: u64) -> Verdict {
    let (mut at, mut taken, mut confirmed) = (0, 0, 0);
    while let (Some(row), Some(logged)) = (tail.get(at), read.get(taken)) {
        let is_same = row.event_id == logged.event_id;
        match row.origin {
            Origin::Own => {}
            Origin::Emptied if !is_same => {}
            Origin::Server { content: Some(content), .. } if is_same && content != logged.content => {
                return rewrite(Difference::Content, (tail, confirmed), (read, taken));
            }
            Origin::Server { .. } | Origin::Emptied if is_same => {
                taken += 1;
                confirmed = at + 1;
            }
            Origin::Server { .. } | Origin::Emptied => {
                let is_read = read.iter().skip(taken).any(|logged| logged.event_id == row.event_id);
                let difference =
                    if is_read || rest == Rest::More { Difference::Order } else { Difference::NeverAppended };
                return rewrite(difference, (tail, confirmed), (read, taken));
            }
        }
        at += 1;
    }
    if taken < read.len() {
        return Verdict::Extend { confirmed: tail.len(), append_from: taken };
    }
    match rest {
        Rest::More => Verdict::Extend { confirmed, append_from: taken },
        Rest::Nothing => {
            let open = tail.get(at..).unwrap_or_default();
            if open.iter().any(|row| is_overdue(row, overdue_ms)) {
                return rewrite(Difference::NeverAppended, (tail, confirmed), (read, taken));
            }
            let waits = open.iter().any(is_servers);
            Verdict::Extend { confirmed: if waits { confirmed } else { tail.len() }, append_from: taken }
        }
    }
}

fn is_overdue(row: &Row, overdue_ms: u64) -> bool {
    match row.origin {
        Origin::Server { arrived_ms, .. } => arrived_ms <= overdue_ms,
        Origin::Own | Origin::Emptied => false,
    }
}

fn is_servers(row: &Row) -> bool {
    match row.origin {
        Origin::Server { .. } => true,
        Origin::Own | Origin::Emptied => false,
    }
}

/// Writes the tail again from its first row that is not confirmed on.
fn rewrite(difference: Difference, (tail, keep): (&[Row], usize), (read, taken): (&[Logged<'_>], usize)) -> Verdict {
    let places: HashMap<&str, usize> =
        read.iter().enumerate().skip(taken).map(|(index, logged)| (logged.event_id, index)).collect();
    // What follows each event of the read: gatepost's own, in their order. The first place is before all of them.
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); read.len() - taken + 1];
    let mut place = 0;
    for (index, row) in tail.iter().enumerate().skip(keep) {
        match row.origin {
            Origin::Emptied => {}
            Origin::Own => followers[place].push(index),
            Origin::Server { .. } => {
                // Never backwards: gatepost's own events keep their order.
                let read_as = places.get(row.event_id.as_str()).map(|logged| logged - taken + 1);
                place = read_as.map_or(place, |read_as| place.max(read_as));
            }
        }
    }
    let mut order = Vec::with_capacity(tail.len() - keep + read.len() - taken);
    for (place, rows) in followers.into_iter().enumerate() {
        if place > 0 {
            order.push(Place::Logged(taken + place - 1));
        }
        order.extend(rows.into_iter().map(Place::Row));
    }
    Verdict::Rewrite { difference, keep, order }
}

#[cfg(test)]
mod tests;
