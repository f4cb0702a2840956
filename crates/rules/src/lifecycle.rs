//! The life of an owned server, as a pure state machine; when it is started again, and when it is no longer trusted.

mod proof;
mod restart;
mod spare;

use crate::refusal::Refusal;

pub use proof::{Proof, ProofLimits, prove};
pub use restart::{Failures, RestartLimits, Standing, doubled_ms, jittered_ms};
pub use spare::{SpareFit, SpareNeed, SpareState, SpareStep, spare_fit, spare_step};

/// Bounds that the configuration sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the spawn to the last server canary.
    pub start_timeout_ms: u64,
    /// From the polite signal to the kill.
    pub stop_grace_ms: u64,
}

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// No process.
    Stopped,
    /// A process that has not proved itself.
    Starting {
        /// When it is given up.
        deadline_ms: u64,
    },
    /// Every server canary holds.
    Ready,
    /// A process is being ended.
    Stopping {
        /// When it is killed.
        deadline_ms: u64,
        /// What it is left as: stopped when asked to, failed when it had to be.
        because: Option<Refusal>,
    },
    /// No process, and why the last one is gone.
    Failed {
        /// Stable code and words.
        reason: Refusal,
    },
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A session needs the server.
    StartRequested,
    /// Every server canary holds.
    Proved,
    /// A server canary failed, or the process did not announce itself as it must.
    Disproved(Refusal),
    /// Somebody wants it gone, or nobody needs it any more.
    StopRequested,
    /// The process ended by itself or by a signal.
    Exited(Refusal),
    /// Time went by.
    Tick,
}

/// What to do about it, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEffect {
    /// Start a process.
    Spawn,
    /// Let sessions use it.
    Publish,
    /// Let no session use it; what they held of it is void.
    Withdraw,
    /// Ask it to end.
    Terminate,
    /// Kill it and everything below it.
    Kill,
    /// Reap what is left: processes, sockets, directories.
    Sweep,
}

/// A step of the machine: the next state and what to do, in order.
pub fn step(state: ServerState, event: ServerEvent, now_ms: u64, limits: Limits) -> (ServerState, Vec<ServerEffect>) {
    use ServerEffect::{Kill, Publish, Spawn, Sweep, Terminate, Withdraw};
    use ServerEvent::{Disproved, Exited, Proved, StartRequested, StopRequested, Tick};
    use ServerState::{Failed, Ready, Starting, Stopped, Stopping};

    let grace = now_ms.saturating_add(limits.stop_grace_ms);
    match (state, event) {
        (Stopped | Failed { .. }, StartRequested) => {
            (Starting { deadline_ms: now_ms.saturating_add(limits.start_timeout_ms) }, vec![Spawn])
        }
        (Starting { .. }, Proved) => (Ready, vec![Publish]),
        (Starting { .. }, Disproved(reason)) => (Stopping { deadline_ms: now_ms, because: Some(reason) }, vec![Kill]),
        // A server that no longer proves itself is not spoken to again, not even to stop it.
        (Ready, Disproved(reason)) => (Stopping { deadline_ms: now_ms, because: Some(reason) }, vec![Withdraw, Kill]),
        (Starting { .. }, StopRequested) => (Stopping { deadline_ms: grace, because: None }, vec![Terminate]),
        (Ready, StopRequested) => (Stopping { deadline_ms: grace, because: None }, vec![Withdraw, Terminate]),
        (Starting { .. }, Exited(reason)) => (Failed { reason }, vec![Sweep]),
        (Ready, Exited(reason)) => (Failed { reason }, vec![Withdraw, Sweep]),
        (Stopping { because: None, .. }, Exited(_)) => (Stopped, vec![Sweep]),
        (Stopping { because: Some(reason), .. }, Exited(_)) => (Failed { reason }, vec![Sweep]),
        (Starting { deadline_ms }, Tick) if now_ms >= deadline_ms => {
            let reason = Refusal::new(
                crate::refusal::RefusalCode::ServerStartFailed,
                format!("the server did not prove itself within {} ms; see its log", limits.start_timeout_ms),
            );
            (Stopping { deadline_ms: now_ms, because: Some(reason) }, vec![Kill])
        }
        // Again at each tick: a kill that met a process in the middle of a fork must be repeated.
        (Stopping { deadline_ms, because }, Tick) if now_ms >= deadline_ms => {
            (Stopping { deadline_ms, because }, vec![Kill])
        }
        (state @ (Stopped | Failed { .. }), Proved | Disproved(_) | StopRequested | Exited(_) | Tick)
        | (state @ Starting { .. }, StartRequested | Tick)
        | (state @ Ready, StartRequested | Proved | Tick)
        | (state @ Stopping { .. }, StartRequested | Proved | Disproved(_) | StopRequested | Tick) => {
            (state, Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::RefusalCode;

    const LIMITS: Limits = Limits { start_timeout_ms: 100, stop_grace_ms: 10 };

    fn why(code: RefusalCode) -> Refusal {
        Refusal::new(code, "why")
    }

    fn run(events: &[(u64, ServerEvent)]) -> (ServerState, Vec<ServerEffect>) {
        let mut state = ServerState::Stopped;
        let mut all = Vec::new();
        for (now_ms, event) in events {
            let (next, effects) = step(state, event.clone(), *now_ms, LIMITS);
            state = next;
            all.extend(effects);
        }
        (state, all)
    }

    #[test]
    fn a_quiet_life() {
        let exited = ServerEvent::Exited(why(RefusalCode::ServerUnavailable));
        let (state, effects) = run(&[
            (0, ServerEvent::StartRequested),
            (50, ServerEvent::Tick),
            (60, ServerEvent::Proved),
            (5_000, ServerEvent::Tick),
            (6_000, ServerEvent::StopRequested),
            (6_001, exited),
        ]);
        assert_eq!(state, ServerState::Stopped);
        use ServerEffect::{Publish, Spawn, Sweep, Terminate, Withdraw};
        assert_eq!(effects, [Spawn, Publish, Withdraw, Terminate, Sweep]);
    }

    #[test]
    fn a_start_that_takes_too_long_is_killed_and_can_be_tried_again() {
        let exited = ServerEvent::Exited(why(RefusalCode::ServerUnavailable));
        let (state, effects) = run(&[
            (0, ServerEvent::StartRequested),
            (99, ServerEvent::Tick),
            (100, ServerEvent::Tick),
            (101, ServerEvent::Tick),
            (102, exited),
        ]);
        assert!(matches!(&state, ServerState::Failed { reason } if reason.code == RefusalCode::ServerStartFailed));
        use ServerEffect::{Kill, Spawn, Sweep};
        assert_eq!(effects, [Spawn, Kill, Kill, Sweep]);
        assert!(
            matches!(step(state, ServerEvent::StartRequested, 200, LIMITS), (ServerState::Starting { deadline_ms: 300 }, effects) if effects == [Spawn])
        );
    }

    #[test]
    fn a_server_that_loses_its_proof_is_withdrawn_and_killed() {
        let disproved = ServerEvent::Disproved(why(RefusalCode::ListenerNotInherited));
        let (state, effects) = run(&[(0, ServerEvent::StartRequested), (1, ServerEvent::Proved), (2, disproved)]);
        assert_eq!(effects, [ServerEffect::Spawn, ServerEffect::Publish, ServerEffect::Withdraw, ServerEffect::Kill]);
        let (state, _) = step(state, ServerEvent::Exited(why(RefusalCode::Internal)), 3, LIMITS);
        assert_eq!(state, ServerState::Failed { reason: why(RefusalCode::ListenerNotInherited) });
    }

    #[test]
    fn a_crash_is_swept_and_named() {
        let exited = ServerEvent::Exited(why(RefusalCode::ServerUnavailable));
        let (state, effects) = run(&[(0, ServerEvent::StartRequested), (1, ServerEvent::Proved), (2, exited)]);
        assert_eq!(state, ServerState::Failed { reason: why(RefusalCode::ServerUnavailable) });
        assert_eq!(&effects[2..], [ServerEffect::Withdraw, ServerEffect::Sweep]);
    }

    #[test]
    fn a_stop_that_is_ignored_becomes_a_kill() {
        let (state, effects) = run(&[
            (0, ServerEvent::StartRequested),
            (1, ServerEvent::Proved),
            (2, ServerEvent::StopRequested),
            (11, ServerEvent::Tick),
            (12, ServerEvent::Tick),
        ]);
        assert_eq!(effects.last(), Some(&ServerEffect::Kill));
        assert_eq!(effects.len(), 5);
        assert!(matches!(state, ServerState::Stopping { .. }));
    }

    /// Whatever happens in whatever order: a process is spawned only from a state without one, published only once
    /// proved, and every published server is withdrawn before it is ended.
    #[test]
    fn no_order_of_events_breaks_the_rules() {
        let events = [
            ServerEvent::StartRequested,
            ServerEvent::Proved,
            ServerEvent::Disproved(why(RefusalCode::CanaryFailed)),
            ServerEvent::StopRequested,
            ServerEvent::Exited(why(RefusalCode::ServerUnavailable)),
            ServerEvent::Tick,
        ];
        for mut number in 0..6_usize.pow(6) {
            let (mut state, mut running, mut published) = (ServerState::Stopped, false, false);
            for now in 0..6_u64 {
                let event = events[number % 6].clone();
                number /= 6;
                let exits = matches!(event, ServerEvent::Exited(_));
                if exits && !running {
                    continue;
                }
                let (next, effects) = step(state, event, now * 60, LIMITS);
                state = next;
                for effect in effects {
                    match effect {
                        ServerEffect::Spawn => {
                            assert!(!running);
                            running = true;
                        }
                        ServerEffect::Publish => {
                            assert!(running && !published);
                            published = true;
                        }
                        ServerEffect::Withdraw => {
                            assert!(published);
                            published = false;
                        }
                        ServerEffect::Terminate | ServerEffect::Kill => assert!(running && !published),
                        ServerEffect::Sweep => assert!(exits && !published),
                    }
                }
                running &= !exits;
                assert_eq!(running, !matches!(state, ServerState::Stopped | ServerState::Failed { .. }));
                assert_eq!(published, state == ServerState::Ready);
            }
        }
    }
}
