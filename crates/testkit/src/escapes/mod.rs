//! Attempts to escape, made by the agent itself on the real server: through its shell, its editor, a plugin or a skill.
//!
//! Everything runs as an unprivileged user, which only root can become. A model with a script proposes each attempt and the
//! tool approves it as a person would; where an attempt is to approve something, the tool does not. What got through is told
//! from outside, by root. With layers taken away the same attempts show what each layer is needed for; the daemon without
//! them is a binary of the tests, never the one that ships.

mod attempts;
mod came;
mod layers;
mod owner;
mod play;
mod signs;
mod stage;
mod summary;
mod table;

pub use attempts::{ATTEMPTS, Attempt, Means};
pub use came::Came;
pub use layers::{Layer, without_layers};
pub use summary::Summary;
pub use table::{Shown, put, table};

use crate::development::{Course, Report};
use crate::failure::{Failure, Outcome};
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// How long all development tasks together may take; each of them is bounded by itself.
const DEVELOPMENT_LIMIT: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The layers that are taken away.
    pub without: Vec<Layer>,
    /// Whether the agent also carries out the tasks of [`crate::development`].
    pub development: bool,
    /// The attempts that are made; `None` is all of them.
    pub only: Option<BTreeSet<String>>,
}

impl Options {
    /// The attempts that are asked for.
    fn chosen(&self) -> impl Iterator<Item = &'static Attempt> {
        let is_wanted = |name: &str| self.only.as_ref().is_none_or(|only| only.contains(name));
        ATTEMPTS.iter().filter(move |attempt| is_wanted(attempt.name))
    }
}

/// Plays one run. Progress goes to `tell`, a line each.
///
/// # Errors
/// When this is not root, or the daemon, the owner's programs or an attempt cannot be started.
pub fn run(options: &Options, tell: &dyn Fn(&str)) -> Outcome<Summary> {
    if !rustix::process::getuid().is_root() {
        return Err(Failure::new("only root can make the user that the agent runs as, and look from outside"));
    }
    let begun = Instant::now();
    let stamped = |line: &str| tell(&format!("{:>7.1} s  {line}", begun.elapsed().as_secs_f64()));
    let mut stage = Stage::start(options)?;
    let developed = if options.development { Some(develop(&stage, &stamped)?) } else { None };
    let (results, level) = play::play(&mut stage, options, &stamped)?;
    let said = signs::said(&stage);
    let leftover_processes = stage.stop()?;
    Ok(Summary {
        taken: options.without.clone(),
        results,
        said,
        level,
        developed,
        leftover_processes,
        duration_s: begun.elapsed().as_secs(),
    })
}

/// Has the agent carry out ordinary development, by one approved command.
fn develop(stage: &Stage, tell: &dyn Fn(&str)) -> Outcome<Report> {
    let mut asked = BTreeMap::new();
    for program in crate::development::tasks().flat_map(|task| task.needs) {
        asked.insert(*program, stage.home.has_program(program)?);
    }
    let has_program = |name: &str| asked.get(name).copied().unwrap_or(false);
    let course = Course::place(&stage.workspace(), has_program)?;
    let talk = stage.talk()?;
    let waiting = talk.propose(&format!("run: {}", course.command()))?;
    talk.accept(&waiting)?;
    let begun = Instant::now();
    loop {
        if let Some(report) = course.report()? {
            tell("development is over");
            return Ok(report);
        }
        if begun.elapsed() > DEVELOPMENT_LIMIT {
            return Err(Failure::new("the development tasks do not end"));
        }
        thread::sleep(LOOK);
    }
}
