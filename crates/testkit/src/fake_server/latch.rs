//! The latch of the start-up module, as the fake server has it: which actions may run, once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many executed actions are remembered.
const MAX_EXECUTED: usize = 4096;

/// An action that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The conversation.
    pub conversation_id: String,
    /// The ActionEvent.
    pub event_id: String,
    /// The terminal command, or the tool's name and arguments.
    pub what: String,
}

/// Reports a held batch: the conversation and the event ids.
pub(super) type Report = Box<dyn Fn(&str, &[String]) + Send + Sync>;

#[derive(Default)]
pub(super) struct Latch {
    /// Everything runs when it is open.
    open: bool,
    grants: Mutex<HashSet<String>>,
    executed: Mutex<VecDeque<Executed>>,
    report: Option<Report>,
}

impl Latch {
    pub(super) fn new(open: bool, report: Option<Report>) -> Self {
        Self { open, report, ..Self::default() }
    }

    pub(super) fn grant(&self, event_ids: &[String]) {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner).extend(event_ids.iter().cloned());
    }

    /// Takes the grants of these actions back, and says how many there were.
    pub(super) fn revoke(&self, event_ids: &[String]) -> usize {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let count = grants.len();
        grants.retain(|id| !event_ids.contains(id));
        count - grants.len()
    }

    /// True when the whole batch may run; its grants are used up then.
    pub(super) fn take(&self, conversation_id: &str, event_ids: &[String]) -> bool {
        if self.open {
            return true;
        }
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = event_ids.iter().all(|id| grants.contains(id));
        if granted {
            grants.retain(|id| !event_ids.contains(id));
        } else if let Some(report) = &self.report {
            report(conversation_id, event_ids);
        }
        granted
    }

    pub(super) fn note(&self, executed: Executed) {
        let mut log = self.executed.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == MAX_EXECUTED {
            log.pop_front();
        }
        log.push_back(executed);
    }

    pub(super) fn executed(&self) -> Vec<Executed> {
        self.executed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_runs_whole_and_once() {
        let latch = Latch::new(false, None);
        let (a, b) = ("a".to_owned(), "b".to_owned());
        latch.grant(std::slice::from_ref(&a));
        assert!(!latch.take("c", &[a.clone(), b.clone()]));
        latch.grant(std::slice::from_ref(&b));
        assert!(latch.take("c", &[a.clone(), b.clone()]));
        assert!(!latch.take("c", &[a]));
        latch.grant(std::slice::from_ref(&b));
        assert_eq!(latch.revoke(std::slice::from_ref(&b)), 1);
        assert!(!latch.take("c", &[b]));
        assert!(Latch::new(true, None).take("c", &["x".to_owned()]));
    }
}
