//! What gatepost holds of a session in memory and in its ledger, and how it reads.

use rules::log::ExecutionStatus as Status;
use rules::quiet::{QuietState, QuietTracker};

use crate::ground::Ground;
use crate::log::{EventId, Ids, Kind};
use crate::operations::Locked;
use crate::reading::read;
use crate::sending::{Sent, Unlocked};
use crate::server::{Conversation, Phase};
use crate::setup::Guards;

/// Prompts that may wait.
pub(crate) const MAX_QUEUED: u8 = 2;
/// Any start before the present one.
pub(crate) const OLD_START: u8 = u8::MAX;

/// A batch that was shown: everything that waited at this head on that server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) start: u8,
    pub(crate) head: EventId,
}

#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Lines of the log that were read.
    pub(crate) read: usize,
    pub(crate) leaf: Option<EventId>,
    pub(crate) status: Status,
    pub(crate) quiet: QuietTracker,
    pub(crate) offers: Vec<Offer>,
    /// Accepts that were sent and whose receipts are open.
    pub(crate) open: Vec<Ids>,
    /// Durable: actions whose accept was ever sent.
    pub(crate) sent: Ids,
    /// Durable: prompts that wait.
    pub(crate) queue: u8,
    pub(crate) blocked: bool,
    /// Something was observed that the tripwire has not looked at.
    watch: bool,
    /// The operation that holds the session's lock.
    pub(crate) locked: Option<Locked>,
    /// The interrupt or rejection that goes beside it.
    pub(crate) unlocked: Option<Unlocked>,
    /// Calls that gatepost gave up and that may still be carried out.
    pub(crate) late: Vec<Sent>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            read: 0,
            leaf: None,
            status: Status::Unknown,
            quiet: QuietTracker::new(),
            offers: Vec::new(),
            open: Vec::new(),
            sent: Ids::default(),
            queue: 0,
            blocked: false,
            watch: false,
            locked: None,
            unlocked: None,
            late: Vec::new(),
        }
    }

    /// The daemon ended: what stands in the ledger is what is left.
    pub(crate) fn forget(&mut self) {
        *self = Self { sent: self.sent, queue: self.queue, ..Self::new() };
    }

    fn read_log(&mut self, server: &mut Conversation) {
        for entry in server.log.iter().skip(self.read) {
            match entry.kind {
                Kind::Status(status) => {
                    self.status = status;
                    self.quiet.note_status(status);
                }
                Kind::Observation(_) => self.watch = true,
                Kind::User | Kind::Agent | Kind::Action { .. } | Kind::Reject(_) | Kind::Error(_) | Kind::Note => {}
            }
            if !entry.is_status() {
                self.leaf = Some(entry.id);
            }
        }
        self.read = server.log.len();
        self.drop_old_statuses(server);
    }

    /// Statuses hang beside the branch; once read, only the newest can still tell anybody anything.
    fn drop_old_statuses(&mut self, server: &mut Conversation) {
        let newest = server.log.iter().rposition(|entry| entry.is_status());
        let mut place = 0;
        server.log.retain(|entry| {
            let keep = !entry.is_status() || Some(place) == newest;
            place += 1;
            keep
        });
        self.read = server.log.len();
    }

    /// Reads the log.
    pub(crate) fn pull(&mut self, server: &mut Conversation, start: u8, guards: Guards, ground: &mut Ground) {
        self.read_log(server);
        self.consequences(server, start, guards, ground);
    }

    /// Reads the log, then the conversation.
    pub(crate) fn observe(&mut self, server: &mut Conversation, start: u8, guards: Guards, ground: &mut Ground) {
        self.read_log(server);
        if server.status == Status::Running {
            self.quiet.note_status(Status::Running);
        }
        (self.leaf, self.status) = (server.leaf, server.status);
        self.consequences(server, start, guards, ground);
    }

    /// Another server took over, in this or in a new life of the daemon.
    pub(crate) fn bind(&mut self, server: &mut Conversation, start: u8, guards: Guards, ground: &mut Ground) {
        self.age_offers();
        self.quiet.note_restart();
        self.read_log(server);
        if guards.restart_last {
            self.quiet.note_restart();
        }
        (self.leaf, self.status) = (server.leaf, server.status);
        // Whatever was sent to the server before and was not answered is in doubt.
        self.open.clear();
        self.consequences(server, start, guards, ground);
    }

    fn consequences(&mut self, server: &Conversation, start: u8, guards: Guards, ground: &mut Ground) {
        if std::mem::take(&mut self.watch) {
            let reading = read(&server.log[..self.read], self.leaf, false);
            self.blocked |= reading.trips(self.sent, server.is_fork());
        }
        let reading = read(&server.log[..self.read], self.leaf, !guards.matcher);
        let over = self.quiet.is_quiet() && server.phase == Phase::Idle;
        self.open.retain(|ids| {
            let answered = ids.each().all(|id| reading.is_answered(id));
            let closed = answered || over;
            if closed && guards.revoked {
                ground.grants = ground.grants.without(*ids);
            }
            !closed
        });
        if let (Some(head), true) = (self.leaf, self.waits(&reading.batch)) {
            self.note_offer(Offer { start, head });
        }
    }

    /// Whether this batch waits for a decision, as far as gatepost knows.
    pub(crate) fn waits(&self, batch: &[EventId]) -> bool {
        !batch.is_empty() && !self.open.iter().any(|open| open.meets(Ids::of(batch)))
    }

    fn note_offer(&mut self, offer: Offer) {
        if !self.offers.contains(&offer) {
            self.offers.push(offer);
        }
    }

    /// Offers of earlier servers are all alike; the newest stays.
    fn age_offers(&mut self) {
        let newest = self.offers.pop();
        self.offers = newest.map(|offer| Offer { start: OLD_START, ..offer }).into_iter().collect();
    }

    /// As far as gatepost knows.
    pub(crate) fn runs(&self) -> bool {
        self.status == Status::Running || !self.quiet.is_quiet()
    }

    pub(crate) fn encode(&self, start: u8, into: &mut Vec<u8>) {
        let quiet = match self.quiet.state() {
            QuietState::Quiet => 0,
            QuietState::AwaitingStart => 1,
            QuietState::AwaitingEnd => 2,
        };
        into.extend_from_slice(&[self.read as u8, self.leaf.unwrap_or(u8::MAX), self.status as u8, quiet]);
        into.extend_from_slice(&[self.queue, u8::from(self.blocked), self.offers.len() as u8, self.open.len() as u8]);
        for offer in &self.offers {
            into.extend_from_slice(&[u8::from(offer.start == start), offer.head]);
        }
        for ids in self.open.iter().chain([&self.sent]) {
            into.extend_from_slice(&ids.0.to_le_bytes());
        }
        Locked::encode(self.locked, start, into);
        into.extend_from_slice(&[self.unlocked.map_or(0, |stage| 1 + stage as u8), self.late.len() as u8]);
        self.late.iter().for_each(|sent| into.extend_from_slice(&sent.code()));
    }
}
