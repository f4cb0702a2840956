//! Runs the console: what is typed and heard goes into the model, what it wants is done, and the screen follows.

use std::io::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api_types::{ExitCode, SessionList};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::keyboard::{Keyboard, Typed};
use super::model::{Effect, Message, Pane, State};
use super::requests;
use super::screen::{self, Screen};
use super::update::{open, update};
use crate::client::ClientContext;
use crate::daemon::Daemon;
use crate::failure::Failure;

/// At most so often is drawn: more would only queue up on a slow link.
const FRAME_EVERY: Duration = Duration::from_millis(50);
/// Most replies that wait to be taken.
const MAX_WAITING: usize = 64;

/// The whole of it, from the list of sessions on and with this one open, until the person leaves.
pub(crate) async fn run(
    context: &ClientContext,
    list: SessionList,
    session_id: Option<String>,
) -> Result<ExitCode, Failure> {
    let daemon = Daemon::new(context.socket.clone(), context.token_file.clone());
    let stops = Stops::listen().map_err(|error| lost(&error))?;
    let size = screen::size().map_err(|error| lost(&error))?;
    let mut state = State::new(size, context.color, list.sessions);
    let mut first = Vec::new();
    if let Some(session_id) = session_id {
        first = open(&mut state, session_id);
        state.pane = Pane::Prompt;
    }
    let mut screen = Screen::take().map_err(|error| lost(&error))?;
    let ended = Console::begin(daemon, &mut screen, state, first, stops).await;
    drop(screen);
    ended.map(|()| ExitCode::Done).map_err(|error| lost(&error))
}

fn lost(error: &Error) -> Failure {
    Failure::new(ExitCode::Failed, "terminal_failed", format!("the terminal cannot be used: {error}"))
}

/// The signals that end it. In raw mode Ctrl-C is a key.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Stops {
    fn listen() -> Result<Self, Error> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

struct Console<'a> {
    daemon: Daemon,
    screen: &'a mut Screen,
    keyboard: Keyboard,
    state: State,
    outbox: mpsc::Sender<Message>,
    following: Option<JoinHandle<()>>,
    /// The stage that was drawn last.
    drawn_stage: u64,
}

impl<'a> Console<'a> {
    async fn begin(
        daemon: Daemon,
        screen: &'a mut Screen,
        state: State,
        first: Vec<Effect>,
        mut stops: Stops,
    ) -> Result<(), Error> {
        let (keyboard, typed) = Keyboard::start()?;
        let (outbox, heard) = mpsc::channel(MAX_WAITING);
        let (stop, (asked, stopped)) = (screen.stop_flag(), tokio::sync::oneshot::channel());
        // In a task of its own: the one that draws may wait for a terminal that takes nothing.
        let watch = tokio::spawn(async move {
            stops.asked().await;
            stop.store(true, Ordering::Relaxed);
            asked.send(()).ok();
        });
        let mut listing = tokio::spawn(requests::list(daemon.clone(), outbox.clone()));
        let mut console = Self { daemon, screen, keyboard, state, outbox, following: None, drawn_stage: 0 };
        console.carry_out(first);
        let ended = tokio::select! {
            ended = console.go_on(typed, heard) => ended,
            // Asked to end: that the terminal takes nothing, or is gone, is no failure then.
            _ = stopped => Ok(()),
            _ = &mut listing => Err(Error::other("a part of the console failed")),
        };
        let was_asked = watch.is_finished();
        watch.abort();
        listing.abort();
        if let Some(following) = console.following.take() {
            following.abort();
        }
        if was_asked { Ok(()) } else { ended }
    }

    async fn go_on(
        &mut self,
        mut typed: mpsc::Receiver<Typed>,
        mut heard: mpsc::Receiver<Message>,
    ) -> Result<(), Error> {
        let mut resized = signal(SignalKind::window_change())?;
        let mut changed = true;
        let mut next_frame = Instant::now();
        loop {
            let message = tokio::select! {
                biased;
                () = sleep_until(next_frame), if changed => {
                    changed = self.draw()?;
                    next_frame = Instant::now() + FRAME_EVERY;
                    continue;
                }
                typed = typed.recv() => match typed {
                    Some(Typed::Input(input, stage)) => Message::Typed { input, stage },
                    Some(Typed::Gone) | None => return Err(Error::other("it is gone")),
                },
                _ = resized.recv() => Message::Resized(screen::size()?),
                Some(message) = heard.recv() => message,
            };
            changed = true;
            let effects = update(&mut self.state, message);
            if self.carry_out(effects) {
                return Ok(());
            }
        }
    }

    /// Draws, and says to the model and to the keyboard what stands on the screen now. Whether it must be drawn again.
    fn draw(&mut self) -> Result<bool, Error> {
        let stage = self.state.stage;
        let shown = self.screen.draw(&self.state)?;
        if stage != self.drawn_stage {
            self.drawn_stage = stage;
            self.keyboard.stage_stands(stage);
        }
        update(&mut self.state, Message::Drawn(shown));
        Ok(self.state.stage != stage)
    }

    /// Whether it is to end.
    fn carry_out(&mut self, effects: Vec<Effect>) -> bool {
        for effect in effects {
            let (daemon, outbox) = (self.daemon.clone(), self.outbox.clone());
            match effect {
                Effect::Leave => return true,
                Effect::Follow { opening, session_id } => {
                    let following = tokio::spawn(requests::follow(daemon, outbox, opening, session_id));
                    if let Some(before) = self.following.replace(following) {
                        before.abort();
                    }
                }
                Effect::Look { opening, session_id, known } => {
                    tokio::spawn(requests::look(daemon, outbox, opening, session_id, known));
                }
                Effect::LookLater { opening, failed_looks } => {
                    tokio::spawn(requests::look_later(outbox, opening, failed_looks));
                }
                Effect::Act(asked) => {
                    tokio::spawn(requests::act(daemon, outbox, asked));
                }
            }
        }
        false
    }
}
