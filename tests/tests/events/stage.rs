//! A reader that goes on from page to page as clients do, and the log that it must come to.

use api_types::{Event, EventPage};
use gatepost_tests::{Faked, LIMIT, Scene, Session, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use testkit::fake_server::{Fault, Plan, StreamPlan};

/// The kinds of gatepost's own events.
const OWN_KINDS: [&str; 3] = ["lifecycle", "approval_requested", "approval_resolved"];

/// A plan whose streams do this.
pub(crate) fn streams(stream: StreamPlan) -> Plan {
    Plan { stream, ..Plan::default() }
}

/// A plan on which no read of the log succeeds.
pub(crate) fn no_reads(stream: StreamPlan) -> Plan {
    streams(stream).with_fault("events_page", Fault::StatusInstead(500))
}

/// A daemon with a fake server that behaves.
pub(crate) fn stage() -> (Faked, Scene) {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    (faked, scene)
}

/// What a reader has, going on from cursor to cursor.
#[derive(Debug, Default, Clone)]
pub(crate) struct Read {
    pub(crate) events: Vec<Event>,
    /// Every text that was ever shown, also in epochs that are over.
    pub(crate) shown: BTreeSet<String>,
    pub(crate) resyncs: Vec<String>,
    after: Option<String>,
}

impl Read {
    /// Takes a page in, as a client must: a resync starts over.
    pub(crate) fn take(&mut self, page: EventPage) {
        if let Some(resync) = page.resync {
            self.resyncs.push(resync.reason);
            self.events.clear();
        }
        for event in page.events {
            let expected = self.events.last().map(|last| last.seq + 1);
            assert!(expected.is_none_or(|expected| expected == event.seq), "after {expected:?} came {event:?}");
            if let Some(text) = event.payload["text"].as_str() {
                self.shown.insert(text.to_owned());
            }
            self.events.push(event);
        }
        self.after = Some(page.next_cursor);
    }

    /// The ids of the server's events.
    pub(crate) fn upstream_ids(&self) -> Vec<&str> {
        let upstream = self.events.iter().filter(|event| !OWN_KINDS.contains(&event.kind.as_str()));
        upstream.map(|event| event.event_id.as_str()).collect()
    }
}

/// A reader on a thread of its own.
pub(crate) struct Reader {
    read: Arc<Mutex<Read>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(crate) fn of(session: &Session) -> Self {
        Self::going_on(session, Read::default())
    }

    /// A reader that has this already.
    pub(crate) fn going_on(session: &Session, read: Read) -> Self {
        let (read, ends) = (Arc::new(Mutex::new(read)), Arc::new(AtomicBool::new(false)));
        let (reading, ending, session) = (Arc::clone(&read), Arc::clone(&ends), session.clone());
        let thread = std::thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                let after = reading.lock().unwrap().after.clone();
                let page = session.page(after.as_deref(), 500, Duration::from_millis(300));
                reading.lock().unwrap().take(page);
            }
        });
        Self { read, ends, thread: Some(thread) }
    }

    pub(crate) fn now(&self) -> Read {
        self.read.lock().unwrap().clone()
    }

    /// Waits until a text was shown.
    #[track_caller]
    pub(crate) fn wait_shown(&self, text: &str) {
        let shown = || self.now().shown.contains(text).then_some(());
        wait_until(&format!("a reader to be shown {text:?}"), LIMIT, shown);
    }

    /// Waits until the reader has exactly what the server's log has, in its order, and nothing twice.
    #[track_caller]
    pub(crate) fn wait_for_the_log(&self, scene: &Scene, session: &Session) -> Read {
        let log = Log::of(scene, session);
        let what = format!("a reader of session {} to have its log", session.id());
        self.wait_read(&what, |read| read.upstream_ids() == log.ids())
    }

    /// Waits until the reader has each event of the server's log once: what the stream left out stands behind its place.
    #[track_caller]
    pub(crate) fn wait_for_all_of_the_log(&self, scene: &Scene, session: &Session) -> Read {
        let log = Log::of(scene, session);
        let what = format!("a reader of session {} to have all of its log", session.id());
        self.wait_read(&what, |read| {
            let (mut have, mut expected) = (read.upstream_ids(), log.ids());
            have.sort_unstable();
            expected.sort_unstable();
            have == expected
        })
    }

    /// Waits until what it has is so; no event of it stands twice.
    #[track_caller]
    pub(crate) fn wait_read(&self, what: &str, is_so: impl Fn(&Read) -> bool) -> Read {
        let read = wait_until(what, LIMIT, || Some(self.now()).filter(&is_so));
        let ids: BTreeSet<&str> = read.events.iter().map(|event| event.event_id.as_str()).collect();
        assert_eq!(ids.len(), read.events.len(), "an event stands twice");
        read
    }

    /// Ends it, with what it has.
    pub(crate) fn end(mut self) -> Read {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.now()
    }
}

/// The log of a session as the fake server stores it.
pub(crate) struct Log {
    path: PathBuf,
}

impl Log {
    pub(crate) fn of(scene: &Scene, session: &Session) -> Self {
        let name = format!("fake/{}.json", session.id());
        let path = find(&scene.home().state().join("bindings"), &name).unwrap();
        Self { path }
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let record: Value = serde_json::from_slice(&std::fs::read(&self.path).unwrap()).unwrap();
        record["log"]["events"].as_array().unwrap().clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.events().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    }
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() && !path.is_symlink() {
            let here = path.join(name);
            if here.is_file() { Some(here) } else { find(&path, name) }
        } else {
            None
        }
    })
}

/// Waits until the session's stream stands so.
#[track_caller]
pub(crate) fn wait_stream(session: &Session, state: &str) {
    let what = format!("the stream of session {} to be {state}", session.id());
    wait_until(&what, LIMIT, || (session.snapshot().values.get("event_stream")? == state).then_some(()));
}
