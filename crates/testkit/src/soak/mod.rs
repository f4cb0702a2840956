//! Random sequences of operations against the real server: what ran, against what was approved.
//!
//! Every proposed command leaves a marker file of its own. When a sequence has settled, markers, receipts and events are
//! read, and a pure judge counts. A run is drawn from its seed, so that a sequence can be played again.

mod bare;
pub(crate) mod daemon;
pub(crate) mod judge;
pub(crate) mod log;
mod plan;
pub(crate) mod shape;
mod summary;

pub use summary::{Case, Summary};

use crate::failure::Outcome;
use judge::{Evidence, judge};
use std::collections::BTreeMap;
use std::time::Instant;

/// Which latch stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// The daemon's gate: the latch inside the server lets everything run.
    Gate,
    /// The latch inside the server: whoever holds the session key drives it, and grants go to what was approved.
    Server,
    /// Neither: the same driver, and a latch that lets everything run. Such a run must be found unsound.
    Neither,
}

impl Only {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gate, Self::Server, Self::Neither];

    /// The word on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Server => "server",
            Self::Neither => "neither",
        }
    }
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// So many sequences.
    pub sequences: u64,
    /// Everything random comes from it.
    pub seed: u64,
    /// Number of the first sequence.
    pub first: u64,
    /// One latch alone, or both.
    pub only: Option<Only>,
}

/// A sequence that was played, for the last judgement.
struct Kept {
    sequence: u64,
    evidence: Evidence,
    history: Vec<String>,
}

/// What playing one sequence gave.
struct Played {
    evidence: Evidence,
    history: Vec<String>,
    /// A word and what was seen.
    oddities: Vec<(String, String)>,
}

/// Runs the sequences. Progress goes to `tell`, a line each.
///
/// # Errors
/// When the daemon or the server cannot be brought up, or no longer answers.
pub fn run(options: &Options, tell: &dyn Fn(&str)) -> Outcome<Summary> {
    let begun = Instant::now();
    let mut summary =
        Summary { seed: options.seed, only: options.only.map(|only| only.as_str().to_owned()), ..Summary::default() };
    let (kept, runs) = match options.only {
        None | Some(Only::Gate) => through_daemon(options, &mut summary, tell)?,
        Some(Only::Server | Only::Neither) => past_daemon(options, &mut summary, tell)?,
    };
    conclude(&mut summary, kept, &runs);
    summary.duration_s = begun.elapsed().as_secs();
    Ok(summary)
}

type Gathered = (Vec<Kept>, BTreeMap<String, usize>);

fn through_daemon(options: &Options, summary: &mut Summary, tell: &dyn Fn(&str)) -> Outcome<Gathered> {
    let stage = daemon::Stage::start(options.only != Some(Only::Gate))?;
    let kept = each(options, summary, tell, |sequence, summary| {
        let plan = plan::draw(options.seed, sequence);
        daemon::play(&stage, &plan, &format!("{}-{sequence}", options.seed), summary)
    })?;
    summary.server_starts = u64::try_from(stage.server_starts()).unwrap_or(u64::MAX);
    summary.leftover_processes = u64::try_from(stage.stop()?).unwrap_or(u64::MAX);
    let runs = stage.marks().all()?;
    Ok((kept, runs))
}

fn past_daemon(options: &Options, summary: &mut Summary, tell: &dyn Fn(&str)) -> Outcome<Gathered> {
    let stage = bare::Stage::start(options.only != Some(Only::Neither))?;
    let kept = each(options, summary, tell, |sequence, summary| {
        bare::play(&stage, &bare::draw(options.seed, sequence), summary)
    })?;
    summary.server_starts = stage.server_starts();
    Ok((kept, stage.stop()?))
}

fn each(
    options: &Options,
    summary: &mut Summary,
    tell: &dyn Fn(&str),
    play: impl Fn(u64, &mut Summary) -> Outcome<Played>,
) -> Outcome<Vec<Kept>> {
    let mut kept = Vec::new();
    for sequence in options.first..options.first.saturating_add(options.sequences) {
        let started = Instant::now();
        let played = play(sequence, summary)?;
        summary.sequences += 1;
        for (kind, detail) in &played.oddities {
            summary.add_oddity(sequence, kind, detail, &played.history);
            tell(&format!("sequence {sequence}: {kind}: {detail}\n{}", played.history.join("\n")));
        }
        tell(&progress(sequence, &played.evidence, started));
        kept.push(Kept { sequence, evidence: played.evidence, history: played.history });
    }
    Ok(kept)
}

/// Judges every sequence on what had run when everything was over: a command may come late.
fn conclude(summary: &mut Summary, kept: Vec<Kept>, runs: &BTreeMap<String, usize>) {
    let mut unclaimed = runs.clone();
    let last = kept.last().map_or(0, |kept| kept.sequence);
    for Kept { sequence, mut evidence, history } in kept {
        let markers = evidence.runs.keys().chain(evidence.proposed.values());
        evidence.runs = markers.filter_map(|marker| Some((marker.clone(), *runs.get(marker)?))).collect();
        unclaimed.retain(|marker, _| !evidence.runs.contains_key(marker));
        summary.add(sequence, &judge(&evidence), &history);
    }
    let late = Evidence { runs: unclaimed, ..Evidence::default() };
    summary.add(last, &judge(&late), &[]);
}

fn progress(sequence: u64, evidence: &Evidence, started: Instant) -> String {
    let verdict = judge(evidence);
    let wrong = verdict.unapproved.len() + verdict.double.len() + verdict.not_executed.len();
    format!(
        "sequence {sequence}: {} proposed, {} approved, {} executed, {} in doubt, {wrong} wrong, {:.1} s",
        verdict.proposed,
        verdict.approved,
        verdict.executed,
        verdict.in_doubt,
        started.elapsed().as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::judge::Approved;
    use super::*;
    use crate::verdict::Findings;

    fn kept(sequence: u64, approved: bool) -> Kept {
        let mut evidence = Evidence::default();
        evidence.proposed.insert("e".to_owned(), "m".to_owned());
        if approved {
            evidence.approved.insert("e".to_owned(), Approved::InDoubt);
        }
        Kept { sequence, evidence, history: Vec::new() }
    }

    #[test]
    fn what_runs_late_is_judged_with_its_sequence() {
        let late = BTreeMap::from([("m".to_owned(), 1)]);
        let mut summary = Summary::default();
        conclude(&mut summary, vec![kept(3, false)], &late);
        assert_eq!((summary.unapproved_executions, summary.findings[0].sequence), (1, 3));
        let mut summary = Summary::default();
        conclude(&mut summary, vec![kept(3, true)], &late);
        assert!(summary.is_sound());
        assert_eq!(summary.in_doubt_executed, 1);
        let mut summary = Summary::default();
        conclude(&mut summary, vec![kept(3, true)], &BTreeMap::from([("of-nobody".to_owned(), 1)]));
        assert_eq!(summary.unapproved_executions, 1);
    }
}
