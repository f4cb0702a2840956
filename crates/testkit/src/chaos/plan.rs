//! What is done in one round and what dies in it, drawn before it begins. Pure: the same seed and number give the same plan.

use crate::failure::{Failure, Outcome};
use crate::random::Random;

/// Sessions that are driven at the same time.
pub(super) const DRIVERS: usize = 3;
/// Workspaces, each with a server of its own.
pub(super) const WORKSPACES: usize = 2;
/// Starts of the daemon in a round that have a point at which it dies; later ones have none.
const DEADLY_STARTS: u64 = 2;
/// The latest that something is killed at random after a round began, in milliseconds. A server takes ten seconds to start.
const KILL_WITHIN_MS: u64 = 25_000;

/// Writes and calls, and up to which passage of theirs a daemon may die there. The rare ones stand in the beginning.
const WRITES: [(&str, u64); 7] = [
    ("ledger.insert_receipt", 3),
    ("ledger.update_receipt", 8),
    ("ledger.record_accept", 1),
    ("ledger.put_session", 1),
    ("ledger.close_session", 1),
    ("ledger.set_accept_state", 1),
    ("journal.append", 25),
];
const CALLS: [(&str, u64); 13] = [
    ("send_message", 2),
    ("accept", 1),
    ("reject", 1),
    ("navigate", 1),
    ("fork", 1),
    ("set_title", 1),
    ("switch_profile", 1),
    ("run", 1),
    ("interrupt", 1),
    ("set_policy", 3),
    ("create_conversation", 1),
    ("events_page", 20),
    ("conversation", 8),
];
/// Frames of a server's stream after which it may be cut off.
const STREAM: (&str, u64) = ("events_stream", 15);

/// A named point and what happens when it is passed for the n-th time in the life of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trap {
    pub(super) kills: bool,
    pub(super) point: String,
    pub(super) at: u64,
}

impl Trap {
    /// A deadly one, as the command line names it.
    fn parse(words: &str) -> Option<Self> {
        let (point, at) = words.rsplit_once(':')?;
        let (side, _) = point.split_once(':')?;
        matches!(side, "before" | "after").then_some(())?;
        Some(Self { kills: true, point: point.to_owned(), at: at.parse().ok()? })
    }

    /// As the watched daemon takes it.
    pub(super) fn words(&self) -> String {
        format!("{}:{}:{}", if self.kills { "kill" } else { "cut" }, self.point, self.at)
    }

    fn deadly(random: &mut Random) -> Self {
        let side = if random.chance(50) { "before" } else { "after" };
        let (name, most) = if random.chance(50) {
            let (name, most) = pick(random, &WRITES);
            (name.to_owned(), most)
        } else {
            let (name, most) = pick(random, &CALLS);
            (format!("call.{name}"), most)
        };
        Self { kills: true, point: format!("{side}:{name}"), at: 1 + random.below(most) }
    }

    /// After a call more often than before it: then the server has done what the daemon does not get to know.
    fn cutting(random: &mut Random) -> Self {
        let side = if random.chance(70) { "after" } else { "before" };
        let (side, (name, most)) = if random.chance(20) { ("after", STREAM) } else { (side, pick(random, &CALLS)) };
        Self { kills: false, point: format!("{side}:call.{name}"), at: 1 + random.below(most) }
    }
}

fn pick(random: &mut Random, from: &[(&'static str, u64)]) -> (&'static str, u64) {
    let at = usize::try_from(random.below(u64::try_from(from.len()).unwrap_or(1))).unwrap_or(0);
    from.get(at).copied().unwrap_or(("append", 1))
}

/// What a prompt makes the scripted model do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// So many commands, proposed after so many milliseconds.
    Run(u64, u64),
    /// A command that takes a second.
    LongRun,
    /// A text, after so many milliseconds.
    Say(u64),
}

/// One operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Prompt(Text),
    /// Two at once, so that one is queued.
    TwoPrompts(Text, Text),
    Approve,
    Reject,
    Rewind,
    Fork,
    Interrupt,
    Resume,
    Title,
    Model,
    /// The session is closed, and a new one takes its place.
    Close,
}

/// One operation and what happens around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) deed: Deed,
    /// Picks among whatever the operation can name.
    pub(super) target: u64,
    /// The client hangs up on its first request after so many milliseconds, and sends it again.
    pub(super) hangs_up_ms: Option<u64>,
    /// What is waited before the next operation; `None` waits until the agent rests.
    pub(super) pause_ms: Option<u64>,
}

/// What dies at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Daemon,
    /// The server of this workspace.
    Server(usize),
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Round {
    /// The traps of the daemon's next starts.
    pub(super) starts: Vec<Vec<Trap>>,
    /// What is killed, so many milliseconds after the round began or as soon as it is up.
    pub(super) kills: Vec<(u64, Victim)>,
    /// What each client does.
    pub(super) drivers: Vec<Vec<Step>>,
}

impl Round {
    /// Nothing is done in any workspace but the first.
    pub(super) fn leave_one_server(&mut self) {
        for (driver, steps) in self.drivers.iter_mut().enumerate() {
            if !driver.is_multiple_of(WORKSPACES) {
                steps.clear();
            }
        }
        for (_, victim) in &mut self.kills {
            if let Victim::Server(number) = victim {
                *number = 0;
            }
        }
    }

    /// The starts of the daemon end at these points and no other.
    pub(super) fn die_at(&mut self, points: &[String]) -> Outcome<()> {
        let cuts: Vec<Vec<Trap>> =
            self.starts.iter().map(|traps| traps.iter().filter(|trap| !trap.kills).cloned().collect()).collect();
        let traps = points.iter().enumerate().map(|(number, words)| {
            let trap = Trap::parse(words).ok_or_else(|| Failure::new(format!("{words} names no point")))?;
            Ok([trap].into_iter().chain(cuts.get(number).cloned().unwrap_or_default()).collect())
        });
        self.starts = traps.collect::<Outcome<_>>()?;
        Ok(())
    }
}

/// Draws the round of that number.
pub(super) fn draw(seed: u64, round: u64) -> Round {
    let mut random = Random::of(seed, round);
    let starts = (0..DEADLY_STARTS)
        .map(|_| {
            let cuts = 1 + random.below(4);
            let cutting = (0..cuts).map(|_| Trap::cutting(&mut random)).collect::<Vec<_>>();
            [Trap::deadly(&mut random)].into_iter().chain(cutting).collect()
        })
        .collect();
    // A server takes long to start, so the second one is not always needed.
    let both = random.chance(40);
    let victim = if both && random.chance(50) { 1 } else { 0 };
    let mut kills = vec![(8_000 + random.below(KILL_WITHIN_MS - 8_000), Victim::Server(victim))];
    if random.chance(40) {
        kills.push((random.below(KILL_WITHIN_MS), Victim::Daemon));
    }
    kills.sort_by_key(|(after_ms, _)| *after_ms);
    let works = |driver: usize| both || driver.is_multiple_of(WORKSPACES);
    let drivers = (0..DRIVERS).map(|driver| if works(driver) { draw_steps(&mut random) } else { Vec::new() }).collect();
    Round { starts, kills, drivers }
}

fn draw_steps(random: &mut Random) -> Vec<Step> {
    let count = 7 + random.below(6);
    let mut steps: Vec<Step> = (0..count).map(|_| draw_step(random)).collect();
    // Something to decide comes first.
    if let Some(first) = steps.first_mut() {
        (first.deed, first.pause_ms) = (Deed::Prompt(Text::Run(1 + random.below(2), 0)), None);
    }
    steps
}

fn draw_text(random: &mut Random) -> Text {
    let (several, delay_ms) = (1 + random.below(3), 200 + random.below(1200));
    let texts = [
        (40, Text::Run(1, 0)),
        (15, Text::Run(several, 0)),
        (15, Text::Run(1, delay_ms)),
        (10, Text::LongRun),
        (15, Text::Say(0)),
        (10, Text::Say(delay_ms)),
    ];
    random.weighted(&texts, Text::Say(0))
}

fn draw_step(random: &mut Random) -> Step {
    let (text, other) = (draw_text(random), draw_text(random));
    let deeds = [
        (24, Deed::Prompt(text)),
        (9, Deed::TwoPrompts(text, other)),
        (26, Deed::Approve),
        (8, Deed::Reject),
        (8, Deed::Rewind),
        (6, Deed::Fork),
        (8, Deed::Interrupt),
        (7, Deed::Resume),
        (7, Deed::Title),
        (6, Deed::Model),
        (3, Deed::Close),
    ];
    let delay_ms = random.below(400);
    Step {
        deed: random.weighted(&deeds, Deed::Interrupt),
        target: random.next(),
        hangs_up_ms: random.chance(25).then_some(delay_ms),
        pause_ms: random.chance(45).then(|| random.below(600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_round_can_be_drawn_again() {
        assert_eq!(draw(3, 17), draw(3, 17));
        assert_ne!(draw(3, 17), draw(3, 18));
        assert_ne!(draw(3, 17), draw(4, 17));
    }

    #[test]
    fn every_point_and_every_deed_is_drawn_and_something_dies_in_each_round() {
        let rounds: Vec<Round> = (0..800).map(|round| draw(1, round)).collect();
        let traps = || rounds.iter().flat_map(|round| round.starts.iter().flatten());
        let points: BTreeSet<&str> = traps().filter(|trap| trap.kills).map(|trap| trap.point.as_str()).collect();
        assert_eq!(points.len(), 2 * (WRITES.len() + CALLS.len()), "{points:?}");
        let cut: BTreeSet<&str> = traps().filter(|trap| !trap.kills).map(|trap| trap.point.as_str()).collect();
        assert_eq!(cut.len(), 2 * CALLS.len() + 1, "{cut:?}");
        for round in &rounds {
            assert_eq!(round.starts.len(), 2);
            assert!(round.starts.iter().all(|traps| traps.iter().filter(|trap| trap.kills).count() == 1));
            assert!(round.kills.iter().any(|(_, victim)| matches!(victim, Victim::Server(_))));
            assert!(round.drivers[0].len() > 6 && round.drivers[2].len() > 6);
            let mut begun = round.drivers.iter().filter_map(|steps| steps.first());
            assert!(begun.all(|step| matches!(step.deed, Deed::Prompt(_))));
        }
        let both = rounds.iter().filter(|round| !round.drivers[1].is_empty()).count();
        assert!((200..440).contains(&both), "{both}");
        let steps = || rounds.iter().flat_map(|round| round.drivers.iter().flatten());
        let deeds: BTreeSet<_> = steps().map(|step| format!("{:?}", std::mem::discriminant(&step.deed))).collect();
        assert_eq!(deeds.len(), 11);
        assert!(steps().any(|step| step.hangs_up_ms.is_some()) && steps().any(|step| step.pause_ms.is_none()));
    }

    #[test]
    fn one_server_and_given_points_take_the_place_of_what_was_drawn() {
        let mut round = draw(1, 0);
        round.leave_one_server();
        assert!(round.drivers[1].is_empty() && round.drivers[0] == draw(1, 0).drivers[0]);
        assert!(round.kills.iter().all(|(_, victim)| *victim != Victim::Server(1)));
        let points = ["after:call.run:2", "before:journal.append:1", "after:ledger.insert_receipt:1"];
        round.die_at(&points.map(str::to_owned)).unwrap();
        let deadly: Vec<String> = round.starts.iter().map(|traps| traps[0].words()).collect();
        assert_eq!(deadly, points.map(|point| format!("kill:{point}")));
        assert!(round.starts.iter().all(|traps| traps.iter().filter(|trap| trap.kills).count() == 1));
        for nonsense in ["after:call.run", "call.run:1", "beside:call.run:1"] {
            assert!(round.die_at(&[nonsense.to_owned()]).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_trap_is_written_as_the_watched_daemon_reads_it() {
        let trap = Trap { kills: true, point: "after:ledger.update_receipt".to_owned(), at: 3 };
        assert_eq!(trap.words(), "kill:after:ledger.update_receipt:3");
    }
}
