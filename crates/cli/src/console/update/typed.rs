//! What a person typed.

use super::{decide, open};
use crate::console::input::Input;
use crate::console::keys::{self, Does, Key};
use crate::console::model::{Effect, Pane, State};
use crate::console::view::layout;

pub(super) fn typed(state: &mut State, input: Input, stage: u64) -> Vec<Effect> {
    let pane = state.listening();
    match input {
        Input::Key(key) => match keys::look_up(key, pane) {
            Some(does) => carry_out(state, does, key, stage),
            None => {
                written(state, key, pane, stage);
                Vec::new()
            }
        },
        // Only a prompt takes a paste; nothing is ever decided by one.
        Input::Paste(text) => {
            if pane != Pane::Prompt {
                state.say("pasted text is taken in the prompt alone (Tab)");
            } else if !state.prompt.write(&text) {
                too_long(state);
            }
            Vec::new()
        }
        Input::PasteTooLong => {
            too_long(state);
            Vec::new()
        }
    }
}

fn too_long(state: &mut State) {
    state.warn("a prompt has at most 200,000 bytes: nothing was added");
}

fn written(state: &mut State, key: Key, pane: Pane, stage: u64) {
    let Key::Char(c) = key else { return };
    match pane {
        Pane::Prompt => {
            if !state.prompt.write(c.encode_utf8(&mut [0; 4])) {
                too_long(state);
            }
        }
        Pane::Question => {
            // What was typed before the question stood there is no answer to it.
            if stage == state.stage
                && let Some(question) = &mut state.question
            {
                question.write(c);
            }
        }
        Pane::Sessions | Pane::Events | Pane::Batch => {}
    }
}

fn carry_out(state: &mut State, does: Does, key: Key, stage: u64) -> Vec<Effect> {
    // INVARIANT I1: a key that was pressed before this stood on the screen decides nothing.
    let on_this = stage == state.stage && state.size.is_enough();
    match does {
        Does::Leave => return vec![Effect::Leave],
        Does::Help => state.help = !state.help,
        Does::MovePane => move_pane(state, if key == Key::BackTab { -1 } else { 1 }),
        Does::ToEvents => state.pane = Pane::Events,
        Does::Scroll => scroll(state, rows_by(state, key)),
        Does::Open => return open_marked(state),
        Does::Approve if on_this => decide::ask_approve(state),
        Does::Reject if on_this => decide::ask_reject(state),
        Does::Interrupt if on_this => decide::ask_interrupt(state),
        Does::Resume if on_this => decide::ask_resume(state),
        Does::Answer if on_this => return decide::answered(state),
        Does::Approve | Does::Reject | Does::Interrupt | Does::Resume | Does::Answer => {}
        Does::Withdraw => decide::withdraw(state),
        Does::Send => return decide::send_prompt(state),
        Does::NewLine => {
            if !state.prompt.write("\n") {
                too_long(state);
            }
        }
        Does::Clear => state.prompt.clear(),
        Does::Edit => edit(state, key),
    }
    Vec::new()
}

fn move_pane(state: &mut State, by: isize) {
    let mut panes = vec![Pane::Sessions, Pane::Events];
    if state.batch().is_some() {
        panes.push(Pane::Batch);
    }
    panes.push(Pane::Prompt);
    let at = panes.iter().position(|pane| *pane == state.pane).unwrap_or(0);
    let next = at.cast_signed().saturating_add(by).rem_euclid(panes.len().cast_signed());
    state.pane = panes.get(next.cast_unsigned()).copied().unwrap_or(Pane::Sessions);
    state.help = false;
}

fn open_marked(state: &mut State) -> Vec<Effect> {
    match state.sessions.get(state.marked) {
        Some(session) => {
            let session_id = session.session_id.clone();
            state.pane = Pane::Events;
            open(state, session_id)
        }
        None => Vec::new(),
    }
}

/// How far a key scrolls.
fn rows_by(state: &State, key: Key) -> isize {
    let page = layout::inner_rows(state, state.listening()).cast_signed();
    match key {
        Key::Up => -1,
        Key::Down => 1,
        Key::PageUp => -page,
        Key::PageDown | Key::Char(_) => page,
        Key::Home => isize::MIN / 2,
        Key::End => isize::MAX / 2,
        Key::Ctrl(_)
        | Key::Enter
        | Key::Escape
        | Key::Tab
        | Key::BackTab
        | Key::Left
        | Key::Right
        | Key::Backspace
        | Key::Delete => 0,
    }
}

fn scroll(state: &mut State, by: isize) {
    let pane = state.listening();
    match pane {
        Pane::Sessions => {
            let last = state.sessions.len().saturating_sub(1);
            state.marked = state.marked.saturating_add_signed(by).min(last);
        }
        Pane::Events => {
            let (columns, height) = (layout::events_columns(state), layout::inner_rows(state, pane));
            if let Some(open) = &mut state.open {
                // It counts from the bottom.
                let wanted = open.events.scroll.saturating_add_signed(by.saturating_neg());
                open.events.scroll = wanted;
                open.events.scroll = open.events.rows(columns, height).1;
            }
        }
        Pane::Batch => {
            let last = layout::batch_rows(state).saturating_sub(layout::inner_rows(state, pane));
            if let Some(batch) = state.batch_mut() {
                batch.scroll = batch.scroll.saturating_add_signed(by).min(last).min(batch.reach());
            }
        }
        Pane::Prompt | Pane::Question => {}
    }
}

fn edit(state: &mut State, key: Key) {
    if let Some(question) = &mut state.question {
        question.typed.pop();
        return;
    }
    let prompt = &mut state.prompt;
    match key {
        Key::Left => prompt.left(),
        Key::Right => prompt.right(),
        Key::Home => prompt.home(),
        Key::End => prompt.end(),
        Key::Delete => prompt.delete(),
        Key::Backspace | Key::Ctrl(_) => prompt.backspace(),
        Key::Char(_)
        | Key::Enter
        | Key::Escape
        | Key::Tab
        | Key::BackTab
        | Key::Up
        | Key::Down
        | Key::PageUp
        | Key::PageDown => {}
    }
}
