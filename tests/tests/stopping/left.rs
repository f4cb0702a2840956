//! Processes that an approved command leaves behind on purpose, in every way a command can.

use gatepost_tests::{Scene, Session};
use std::fs;
use std::path::Path;
use testkit::processes;

/// Each way writes a line `name pid` before it sleeps. `$1` is the file, `$2` the number of lines to wait for.
const SCRIPT: &str = r#"
sleeper='echo "$0 $$" >> "$1"; exec sleep 600'
sh -c "$sleeper" background "$1" &
nohup sh -c "$sleeper" nohup "$1" > /dev/null 2>&1 &
setsid nohup sh -c "$sleeper" session "$1" > /dev/null 2>&1 &
(setsid sh -c "trap '' TERM HUP INT QUIT; $sleeper" stubborn "$1" > /dev/null 2>&1 &)
tmux -L further new-session -d "sh -c 'echo tmux \$\$ >> $1; exec sleep 600'"
[ "$2" -lt 6 ] || (cd / && setsid env -i /bin/sh -c "echo hidden \$\$ >> $1; exec /bin/sleep 600" > /dev/null 2>&1 &)
while [ "$(wc -l < "$1")" -lt "$2" ]; do sleep 0.1; done
"#;

/// Whether a process is among those that gave up its environment too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// One is: nothing but its ancestry says where it comes from.
    Too,
    /// None is.
    Not,
}

/// What was left.
pub(crate) struct Left(Vec<Process>);

/// A process, by number and the moment it started, so that a reused number is no match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    name: String,
    pid: u32,
    started: u64,
}

impl Left {
    /// Lets the session's agent run the command that leaves them, approved like any.
    pub(crate) fn by(scene: &Scene, session: &Session, hidden: Hidden) -> Self {
        let count = if hidden == Hidden::Too { 6 } else { 5 };
        let name = uuid::Uuid::new_v4().simple().to_string();
        let (script, list) = (scene.workspace().join(format!("{name}.sh")), scene.workspace().join(&name));
        fs::write(&script, SCRIPT).unwrap();
        fs::write(&list, "").unwrap();
        let command = format!("sh {} {} {count} && echo left", script.display(), list.display());
        session.approve_to_end(&session.propose(&format!("run: {command}")));
        let left = Self::read(&list);
        assert_eq!(left.0.len(), count, "{:?}", left.0);
        assert_eq!(left.alive(), left.0, "some ended at once");
        left
    }

    fn read(list: &Path) -> Self {
        let text = fs::read_to_string(list).unwrap();
        let entry = |line: &str| {
            let (name, pid) = line.split_once(' ')?;
            let pid = pid.parse().ok()?;
            Some(Process { name: name.to_owned(), pid, started: started(pid)? })
        };
        Self(text.lines().filter_map(entry).collect())
    }

    /// Those that still run.
    pub(crate) fn alive(&self) -> Vec<Process> {
        self.0.iter().filter(|process| started(process.pid) == Some(process.started)).cloned().collect()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // A failing test leaves none either; one that gave up its environment would be found by nobody else.
        self.alive().into_iter().for_each(|process| crate::kill(process.pid));
    }
}

/// When a process started, in ticks; nothing when it does not run.
fn started(pid: u32) -> Option<u64> {
    processes::stat(pid).filter(|stat| stat.runs()).map(|stat| stat.start_time_ticks)
}

/// Whether a process runs, a zombie not.
pub(crate) fn runs(pid: u32) -> bool {
    started(pid).is_some()
}
