//! A quiet session that nobody looks at holds no stream, and misses nothing when somebody looks again.

use super::aside::{set_aside, wait_aside};
use super::stage::{Reader, wait_stream};
use gatepost_tests::{Faked, LIMIT, Marker, Scene, Session, wait_until};
use serde_json::json;
use std::time::Duration;
use testkit::fake_server::{ControlAnswer, Plan};

/// How long nobody looks at a session of this scene before it rests, and longer than that.
const SOON_S: u64 = 2;
pub(crate) const LONG: Duration = Duration::from_secs(SOON_S + 3);

/// Sessions rest soon, and are read so often then.
pub(crate) fn tables(rest_read_s: u64) -> String {
    format!("[events]\nrest_after_s = {SOON_S}\nrest_read_s = {rest_read_s}\n[log]\nlevel = \"debug\"\n")
}

/// How often a session has begun to rest.
fn rests(scene: &Scene) -> usize {
    scene.daemon().log().unwrap().matches("the session rests").count()
}

fn wait_rest(scene: &Scene) {
    let before = rests(scene);
    wait_until("a session to rest", LIMIT, || (rests(scene) > before).then_some(()));
}

/// Waits until nothing is asked of the server any more: what was being read before the rest is read.
fn wait_silence(faked: &Faked) {
    wait_until("silence", LIMIT, || {
        let asked = faked.asked().len();
        std::thread::sleep(LONG);
        (faked.asked().len() == asked).then_some(())
    });
}

fn streams(faked: &Faked) -> usize {
    faked.asked_for("events_stream")
}

#[test]
fn a_session_rests_while_nobody_looks_and_only_then() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene_with(|setup| setup.tables = tables(600));
    let session = scene.session();
    session.turn("say: before the rest");
    let opened = streams(&faked);

    // A waiting reader is somebody who looks.
    let end = session.snapshot().cursor;
    assert_eq!(session.page(Some(&end), 10, LONG).events, []);
    wait_stream(&session, "open");
    assert_eq!(streams(&faked), opened, "the stream was closed under a reader");

    wait_rest(&scene);
    wait_silence(&faked);
    assert_eq!(streams(&faked), opened);

    // A look follows it again, and a turn is told of as ever.
    wait_stream(&session, "open");
    assert_eq!(streams(&faked), opened + 1);
    let reader = Reader::of(&session);
    session.turn("say: after the rest");
    reader.wait_shown("after the rest");
    let read = reader.wait_for_the_log(&scene, &session);
    assert_eq!(read.resyncs, Vec::<String>::new());

    // What waits for a decision is followed on, whoever looks.
    let shown = session.propose(&scene.marker("resting").directive());
    reader.end();
    let opened = streams(&faked);
    std::thread::sleep(LONG);
    wait_stream(&session, "open");
    assert_eq!(streams(&faked), opened, "the stream was closed while a batch waits");
    session.reject(&shown);
    session.wait_quiet();
    wait_rest(&scene);
    no_rest_before_the_prompt_is_read(&session);
    scene.finish();
}

/// A prompt to a session that rests is carried out to its end, with nobody looking.
fn no_rest_before_the_prompt_is_read(session: &Session) {
    session.prompt("say: woken");
    std::thread::sleep(LONG);
    wait_until("the answer", LIMIT, || {
        session.events().iter().any(|event| event.payload["text"] == "woken").then_some(())
    });
}

/// A daemon with a session that rests: nobody looks at it.
struct AtRest {
    faked: Faked,
    scene: Scene,
    session_id: String,
    plan: Plan,
}

/// The same, and its server begins a turn there by itself.
struct BegunByItself {
    faked: Faked,
    scene: Scene,
    session_id: String,
    /// What the turn runs, or would.
    marker: Marker,
    /// Streams that were opened before it began.
    opened: usize,
}

impl AtRest {
    fn new(plan: Plan, rest_read_s: u64) -> Self {
        let faked = Faked::new(plan.clone());
        let scene = faked.scene_with(|setup| {
            setup.tables = tables(rest_read_s);
            setup.agent_server = "probe_interval_s = 1\n".to_owned();
        });
        let session = scene.session();
        session.turn("say: before the rest");
        wait_aside(&scene, 1);
        let session_id = session.id().to_owned();
        Self { faked, scene, session_id, plan }
    }

    fn begin_by_itself(self, log_ends_answer: ControlAnswer) -> BegunByItself {
        let Self { faked, scene, session_id, plan } = self;
        let marker = scene.marker("by-itself");
        let opened = streams(&faked);
        faked.follow(Plan { begins_by_itself: Some(marker.directive()), log_ends_answer, ..plan });
        BegunByItself { faked, scene, session_id, marker, opened }
    }
}

impl BegunByItself {
    /// Waits until what ran is interrupted; the session is blocked then.
    fn wait_blocked(&self) -> Session {
        wait_until("the interrupt", LIMIT, || (self.faked.asked_for("interrupt") > 0).then_some(()));
        self.marker.assert_runs(1);
        let session = self.scene.take_up(&self.session_id);
        assert_eq!(session.snapshot().blocked_reason.unwrap().code, "unreviewed_action");
        session
    }
}

fn runs_what_it_likes() -> Plan {
    Plan { has_no_latch: true, asks_nothing: true, ..Plan::default() }
}

#[test]
fn what_runs_unasked_in_a_session_at_rest_is_noticed_and_interrupted() {
    let begun = AtRest::new(runs_what_it_likes(), 1).begin_by_itself(ControlAnswer::Truth);
    let session = begun.wait_blocked();

    // What its owner acknowledged stays acknowledged over a rest.
    begun.faked.follow(runs_what_it_likes());
    let input = json!({"block_id": session.snapshot().choices.acknowledge[0].block_id});
    session.applied("session.block.acknowledge", &input);
    session.wait_quiet();
    wait_aside(&begun.scene, set_aside(&begun.scene) + 1);
    session.turn("say: after another rest");
    assert_eq!(session.snapshot().blocked_reason, None);
    begun.scene.finish();
}

#[test]
fn without_word_of_where_logs_end_each_is_read() {
    let begun = AtRest::new(runs_what_it_likes(), 1).begin_by_itself(ControlAnswer::Silence);
    begun.wait_blocked();
    begun.scene.finish();
}

#[test]
fn a_wrong_word_of_where_a_log_ends_hides_nothing_for_long() {
    let at_rest = AtRest::new(runs_what_it_likes(), 1);
    // Told rightly a few times, so that there is a word to repeat.
    std::thread::sleep(LONG);
    let begun = at_rest.begin_by_itself(ControlAnswer::Lie);
    begun.wait_blocked();
    begun.scene.finish();
}

#[test]
fn a_log_that_ends_where_it_did_is_read_in_one_of_ten_rounds() {
    let at_rest = AtRest::new(Plan::default(), 1);
    let before = at_rest.faked.asked().len();
    std::thread::sleep(LONG);
    let asked = at_rest.faked.asked().split_off(before);
    let reads = asked.iter().filter(|route| *route == "events_page").count();
    // Of five rounds: the one whose turn it is, and one that was under way when the rest began.
    assert!(reads <= 2, "{asked:?}");
    at_rest.scene.finish();
}

#[test]
fn a_session_at_rest_in_which_the_latch_held_something_is_followed_again() {
    let at_rest = AtRest::new(Plan { asks_nothing: true, ..Plan::default() }, 600);
    let begun = at_rest.begin_by_itself(ControlAnswer::Truth);
    wait_until("the stream", LIMIT, || (streams(&begun.faked) > begun.opened).then_some(()));
    wait_until("what the latch held", LIMIT, || begun.scene.take_up(&begun.session_id).pending());
    begun.marker.assert_absent();
    begun.scene.finish();
}
