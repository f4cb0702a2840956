//! Everything together: conversations, sessions, the truth; and what may happen next.

use crate::forget::KEPT_TURNS;
use crate::gatepost::Session;
use crate::ground::{Ground, Violation};
use crate::log::{Ids, Kind};
use crate::server::Conversation;
use crate::setup::Setup;

/// Whether the move was possible; if not, the world may have been changed and is to be thrown away.
pub(crate) type Applied = Result<bool, Violation>;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) servers: Vec<Conversation>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) ground: Ground,
    /// Number of the server's start.
    pub(crate) start: u8,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let ground = Ground { latched: setup.latch, lenient: setup.lenient, ..Ground::default() };
        let mut world =
            Self { setup, servers: vec![Conversation::new()], sessions: vec![Session::new()], ground, start: 0 };
        world.bind();
        world
    }

    fn bind(&mut self) {
        for (session, server) in self.sessions.iter_mut().zip(&mut self.servers) {
            session.bind(server, self.start, self.setup.guards, &mut self.ground);
        }
    }

    /// The server is killed and started again, with the daemon or without.
    pub(crate) fn kill(&mut self, late: bool, daemon: bool) -> Applied {
        self.ground.cut_off();
        self.ground.grants = Default::default();
        self.start += 1;
        for server in &mut self.servers {
            server.crash(late);
        }
        for session in &mut self.sessions {
            (session.locked, session.unlocked) = (None, None);
            session.late.clear();
            if daemon {
                session.forget();
            }
        }
        self.bind();
        Ok(true)
    }

    /// What somebody sees who does not know what came before: for each session its status, what pends, what of it is in
    /// doubt, ran, and is granted, how many turns it may be rewound to (many are many), and how many prompts wait.
    pub(crate) fn outline(&self) -> Vec<u8> {
        let mut outline = Vec::new();
        for (server, session) in self.servers.iter().zip(&self.sessions) {
            let pending = Ids::of(&server.pending());
            let sets = [session.sent, self.ground.executed, self.ground.grants].map(|set| set.and(pending).len());
            let turns = server.path(server.leaf).iter().filter(|entry| entry.kind == Kind::User).count();
            outline.extend_from_slice(&[
                server.status as u8,
                pending.len(),
                session.queue,
                turns.min(KEPT_TURNS) as u8,
            ]);
            outline.extend_from_slice(&sets);
        }
        outline
    }

    /// A digest of everything that can matter later.
    pub(crate) fn digest(&self) -> u128 {
        let mut bytes = Vec::with_capacity(256);
        for server in &self.servers {
            server.encode(&mut bytes);
        }
        for session in &self.sessions {
            session.encode(self.start, &mut bytes);
        }
        self.ground.encode(&mut bytes);
        digest(&bytes)
    }
}

/// Two independent halves of 64 bits, mixed by multiplication.
fn digest(bytes: &[u8]) -> u128 {
    let (mut low, mut high) = (0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f_u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        low = fold(low ^ word, 0xa076_1d64_78bd_642f);
        high = fold(high.rotate_left(23) ^ word, 0xe703_7ed1_a0b4_28db);
    }
    u128::from(fold(low ^ bytes.len() as u64, 0x8ebc_6af0_9c88_c6e3)) << 64
        | u128::from(fold(high, 0x5896_8b27_92cb_1efd))
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}
