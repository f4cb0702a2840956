//! The points that an operation passes on its way: before and after each durable write and each call to a server, and where
//! it takes up what was set aside.
//!
//! A daemon under test is watched there, to be killed or cut off at a named point. The shipped daemon is watched by nobody:
//! then passing a point is one comparison.

use std::fmt;
use std::sync::Arc;

/// On which side of a write or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing of it has happened.
    Before,
    /// The write is stored, or the server's answer is here and nobody has seen it.
    After,
}

/// What is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A write to the ledger.
    Ledger,
    /// A write to the journal.
    Journal,
    /// A call to a server, or a frame of its stream.
    Call,
    /// Taking up what was set aside to save memory.
    Aside,
}

/// One point: shown as `after:ledger.insert_receipt` or `before:call.send_message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Before or after.
    pub side: Side,
    /// What it is a point of.
    pub kind: Kind,
    /// Name of the write, or of the call's route.
    pub name: &'static str,
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let kind = match self.kind {
            Kind::Ledger => "ledger",
            Kind::Journal => "journal",
            Kind::Call => "call",
            Kind::Aside => "aside",
        };
        write!(formatter, "{side}:{kind}.{}", self.name)
    }
}

/// How it goes on after a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Passage {
    /// As if nobody watched.
    GoOn,
    /// The connection of this call is lost, or what was set aside. A write has nothing to lose, and goes on.
    Cut,
}

type Watcher = dyn Fn(Point) -> Passage + Send + Sync;

/// Who watches, if anyone. Cheap to clone.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Watcher>>);

impl Watch {
    /// Watched by this. It is called where it happens, so it must not wait.
    pub fn by(watcher: impl Fn(Point) -> Passage + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watcher)))
    }

    /// Passes a point.
    pub fn pass(&self, side: Side, kind: Kind, name: &'static str) -> Passage {
        self.0.as_ref().map_or(Passage::GoOn, |watcher| watcher(Point { side, kind, name }))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Watch").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_told_to_who_watches_and_nobody_else_changes_a_thing() {
        assert_eq!(Watch::default().pass(Side::Before, Kind::Call, "run"), Passage::GoOn);
        let watch =
            Watch::by(
                |point| {
                    if point.to_string() == "after:ledger.insert_receipt" { Passage::Cut } else { Passage::GoOn }
                },
            );
        assert_eq!(watch.pass(Side::After, Kind::Ledger, "insert_receipt"), Passage::Cut);
        assert_eq!(watch.pass(Side::Before, Kind::Ledger, "insert_receipt"), Passage::GoOn);
        assert_eq!(watch.pass(Side::After, Kind::Journal, "insert_receipt"), Passage::GoOn);
    }
}
