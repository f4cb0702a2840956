//! What a prompt makes the scripted model propose. Every command leaves a marker of its own.

use crate::model::script::CALL_WORD;
use crate::random::Random;
use serde_json::json;
use std::path::Path;

/// Separates a marker's own word from the `tool_call_id` that its call was given, when it was given one.
const GIVEN_ID: char = '~';

/// The proposals of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One command.
    Run,
    /// So many in one reply.
    Several(usize),
    /// One, and after its result another.
    Chain,
    /// Arguments that no tool accepts, then a command.
    BadThenRun,
    /// A command under a `tool_call_id` that other calls have too.
    Reused(u64),
    /// The same after a call of that id has failed.
    ReusedAfterError(u64),
    /// A thought, then a command.
    ThinkThenRun,
    /// The end of the task.
    Finish,
    /// A command, the end of the task and another command in one reply.
    AroundFinish,
    /// A call with bad arguments and a command in one reply.
    BesideBad,
    /// A thought and a command in one reply.
    BesideThink,
    /// A text.
    Say,
    /// A command, after that many milliseconds of thinking.
    SlowRun(u64),
    /// A text, after that many milliseconds.
    SlowSay(u64),
    /// A command that takes a second.
    LongRun,
    /// Nothing at all, until the server gives up.
    Empty,
}

impl Shape {
    pub(super) fn draw(random: &mut Random) -> Self {
        let (count, id, delay_ms) = (2 + random.below(2), random.below(2), 200 + random.below(1300));
        let count = usize::try_from(count).unwrap_or(2);
        let shapes = [
            (30, Self::Run),
            (16, Self::Several(count)),
            (8, Self::Chain),
            (4, Self::BadThenRun),
            (6, Self::Reused(id)),
            (5, Self::ReusedAfterError(id)),
            (4, Self::ThinkThenRun),
            (2, Self::Finish),
            (4, Self::AroundFinish),
            (4, Self::BesideBad),
            (4, Self::BesideThink),
            (7, Self::Say),
            (5, Self::SlowRun(delay_ms)),
            (3, Self::SlowSay(delay_ms)),
            (6, Self::LongRun),
            (1, Self::Empty),
        ];
        random.weighted(&shapes, Self::Run)
    }

    /// The prompt.
    pub(super) fn text(self, marks: &Path) -> String {
        let plain = command(marks, "");
        let call = |command: &str| format!("terminal {}", json!({"command": command}));
        match self {
            Self::Run => format!("run: {plain}"),
            Self::Several(count) => format!("run all: {}", vec![plain; count].join(" ;; ")),
            Self::Chain => format!("run: {plain}\nthen run: {plain}"),
            Self::BadThenRun => format!("bad-args\nthen run: {plain}"),
            Self::Reused(id) => {
                format!("reuse-id shared-{id} run: {}", command(marks, &format!("{GIVEN_ID}shared-{id}")))
            }
            Self::ReusedAfterError(id) => {
                format!("reuse-id shared-{id} bad-args\nthen {}", Self::Reused(id).text(marks))
            }
            Self::ThinkThenRun => format!("think: hm\nthen run: {plain}"),
            Self::Finish => "finish: that is all".to_owned(),
            Self::AroundFinish => {
                let finish = format!("finish {}", json!({"message": "that is all"}));
                format!("call all: {} ;; {finish} ;; {}", call(&plain), call(&plain))
            }
            Self::BesideBad => {
                let bad = format!("terminal {}", json!({"command": {"not": "a text"}}));
                format!("call all: {bad} ;; {}", call(&plain))
            }
            Self::BesideThink => {
                let think = format!("think {}", json!({"thought": "hm"}));
                format!("call all: {think} ;; {}", call(&plain))
            }
            Self::Say => "say: as you like".to_owned(),
            Self::SlowRun(delay_ms) => format!("slow {delay_ms}: run: {plain}"),
            Self::SlowSay(delay_ms) => format!("slow {delay_ms}: say: as you like"),
            Self::LongRun => format!("run: sleep 1; {plain}"),
            Self::Empty => "empty".to_owned(),
        }
    }
}

/// Appends a line to a file whose name no other call has.
fn command(marks: &Path, given_id: &str) -> String {
    format!("echo ran >> {}/{CALL_WORD}{given_id}", marks.display())
}

/// The name of the marker that a command leaves, if it is one of ours.
pub(crate) fn marker_of(command: &str, marks: &Path) -> Option<String> {
    let (_, after) = command.split_once(&format!("{}/", marks.display()))?;
    let name: String = after.chars().take_while(|letter| !letter.is_whitespace()).collect();
    (!name.is_empty()).then_some(name)
}

/// The `tool_call_id` of the call that leaves this marker.
pub(crate) fn tool_call_id_of(marker: &str) -> String {
    marker.split_once(GIVEN_ID).map_or_else(|| format!("call_{marker}"), |(_, given)| given.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::script::replies;

    const SHAPES: [(Shape, &[usize]); 16] = [
        (Shape::Run, &[1]),
        (Shape::Several(3), &[3]),
        (Shape::Chain, &[1, 1]),
        (Shape::BadThenRun, &[1, 1]),
        (Shape::Reused(1), &[1]),
        (Shape::ReusedAfterError(1), &[1, 1]),
        (Shape::ThinkThenRun, &[1, 1]),
        (Shape::Finish, &[1]),
        (Shape::AroundFinish, &[3]),
        (Shape::BesideBad, &[2]),
        (Shape::BesideThink, &[2]),
        (Shape::Say, &[0]),
        (Shape::SlowRun(300), &[1]),
        (Shape::SlowSay(300), &[0]),
        (Shape::LongRun, &[1]),
        (Shape::Empty, &[0]),
    ];

    #[test]
    fn each_shape_is_understood_by_the_model() {
        for (shape, calls) in SHAPES {
            let replies = replies(&shape.text(Path::new("/m")));
            let counted: Vec<usize> = replies.iter().map(|reply| reply.calls.len()).collect();
            assert_eq!(counted, calls, "{shape:?}");
        }
    }

    #[test]
    fn a_marker_tells_its_call() {
        let marks = Path::new("/m");
        assert_eq!(marker_of("sleep 1; echo ran >> /m/abc_0", marks).as_deref(), Some("abc_0"));
        assert_eq!(marker_of("echo ran >> /elsewhere/abc_0", marks), None);
        assert_eq!(tool_call_id_of("abc_0"), "call_abc_0");
        assert_eq!(tool_call_id_of("abc_0~shared-1"), "shared-1");
        let reused = replies(&Shape::Reused(1).text(marks)).remove(0).calls.remove(0);
        assert_eq!(reused.id.as_deref(), Some("shared-1"));
        assert!(reused.arguments.contains("{call}~shared-1"), "{}", reused.arguments);
    }

    #[test]
    fn every_shape_is_drawn() {
        let mut random = Random::of(5, 0);
        let drawn: Vec<Shape> = (0..3000).map(|_| Shape::draw(&mut random)).collect();
        for (shape, _) in SHAPES {
            let kind = std::mem::discriminant(&shape);
            assert!(drawn.iter().any(|drawn| std::mem::discriminant(drawn) == kind), "{shape:?} is never drawn");
        }
    }
}
