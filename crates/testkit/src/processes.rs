//! Processes, as the kernel shows them from outside.

use std::fs;

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The kernel's letter: `T` is stopped, `Z` has ended and was not reaped.
    pub state: char,
    /// Its parent's id.
    pub parent: u32,
    /// When it started, in ticks since the machine did: no two processes with one id have the same.
    pub start_time_ticks: u64,
}

impl Stat {
    /// Whether it has not ended.
    #[must_use]
    pub fn runs(self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// What the kernel says of this one; `None` when there is none.
#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from its end.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time_ticks = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start_time_ticks })
}

/// All that there are now.
#[must_use]
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there_and_its_child_is_until_it_was_reaped() {
        let own = std::process::id();
        let before = stat(own).unwrap();
        assert!(before.runs() && before.parent != own && all().contains(&own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let seen = stat(child.id()).unwrap();
        assert_eq!(seen.parent, own);
        assert!(seen.start_time_ticks >= before.start_time_ticks);
        child.wait().unwrap();
        assert_eq!(stat(child.id()).filter(|now| now.start_time_ticks == seen.start_time_ticks), None);
    }
}
