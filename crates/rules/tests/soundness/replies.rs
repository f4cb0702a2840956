//! What the model may answer.

use crate::log::What;
use crate::server::{Call, Reply};

/// How inventive the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replies {
    /// Text, one command, two commands.
    Plain,
    /// Bad arguments and repeated call ids as well.
    Ids,
    /// Everything: finish, think, batches of all sorts, no answer.
    All,
}

const fn fresh(what: What) -> Call {
    Call { what, reused: false }
}

const fn again(what: What) -> Call {
    Call { what, reused: true }
}

const COMMAND: Call = fresh(What::Command);
const FINISH: Call = fresh(What::Finish);
const THINK: Call = fresh(What::Think);
const COMMAND_AGAIN: Call = again(What::Command);
const BAD_AGAIN: Call = again(What::Malformed);
const THINK_AGAIN: Call = again(What::Think);

const PLAIN: [Reply; 3] = [Reply::Text, Reply::Calls(&[COMMAND]), Reply::Calls(&[COMMAND, COMMAND])];
const IDS: [Reply; 4] = [
    Reply::Calls(&[BAD_AGAIN]),
    Reply::Calls(&[COMMAND_AGAIN]),
    Reply::Calls(&[COMMAND_AGAIN, BAD_AGAIN]),
    Reply::Calls(&[BAD_AGAIN, COMMAND_AGAIN]),
];
const ODD: [Reply; 8] = [
    Reply::Fail,
    Reply::Calls(&[FINISH]),
    Reply::Calls(&[THINK]),
    Reply::Calls(&[COMMAND, FINISH]),
    Reply::Calls(&[FINISH, COMMAND]),
    Reply::Calls(&[THINK, COMMAND]),
    Reply::Calls(&[THINK_AGAIN, BAD_AGAIN]),
    Reply::Calls(&[COMMAND_AGAIN, THINK, BAD_AGAIN]),
];

impl Replies {
    /// The replies that propose at most so many actions.
    pub(crate) fn up_to(self, actions: usize) -> impl Iterator<Item = Reply> {
        let sets: &[&[Reply]] = match self {
            Self::Plain => &[&PLAIN],
            Self::Ids => &[&PLAIN, &IDS],
            Self::All => &[&PLAIN, &IDS, &ODD],
        };
        sets.iter().flat_map(|set| set.iter().copied()).filter(move |reply| match reply {
            Reply::Text | Reply::Fail => true,
            Reply::Calls(calls) => calls.len() <= actions,
        })
    }
}
