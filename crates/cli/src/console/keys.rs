//! The keys: one table, from which keys are looked up, the help line and the help screen are made, and the documentation is checked.

use super::model::Pane;

/// A key as the terminal sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// A control character, named by its lower-case letter.
    Ctrl(char),
    Enter,
    Escape,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Backspace,
    Delete,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Leave,
    Help,
    MovePane,
    Scroll,
    Open,
    Approve,
    Reject,
    Interrupt,
    Resume,
    Send,
    NewLine,
    Clear,
    Edit,
    ToEvents,
    Withdraw,
    Answer,
}

/// A line of the table.
#[derive(Debug)]
pub(super) struct Binding {
    keys: &'static [Key],
    /// The keys in words.
    pub(super) name: &'static str,
    does: Does,
    /// Where they do it.
    panes: &'static [Pane],
    /// A word for the help line; empty where it is not worth one.
    pub(super) short: &'static str,
    /// What they do, in words.
    pub(super) words: &'static str,
}

impl Binding {
    /// Where they do it, in a word or two.
    pub(super) fn place(&self) -> &'static str {
        match self.panes {
            [pane] => pane.name(),
            [_, _, _] => "reading",
            [_, _, _, _] => "any pane",
            _ => "anywhere",
        }
    }
}

const READING: &[Pane] = &[Pane::Sessions, Pane::Events, Pane::Batch];
const PANES: &[Pane] = &[Pane::Sessions, Pane::Events, Pane::Batch, Pane::Prompt];
const EVERYWHERE: &[Pane] = &[Pane::Sessions, Pane::Events, Pane::Batch, Pane::Prompt, Pane::Question];

const fn binding(
    keys: &'static [Key],
    name: &'static str,
    does: Does,
    panes: &'static [Pane],
    short: &'static str,
    words: &'static str,
) -> Binding {
    Binding { keys, name, does, panes, short, words }
}

/// Every key.
pub(super) const BINDINGS: [Binding; 18] = [
    binding(
        &[Key::Tab, Key::BackTab],
        "Tab, Shift-Tab",
        Does::MovePane,
        PANES,
        "other pane",
        "go to the next pane, to the one before",
    ),
    binding(
        &[Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Char(' '), Key::Home, Key::End],
        "scrolling keys",
        Does::Scroll,
        READING,
        "",
        "Up, Down, PageUp, PageDown or Space, Home, End",
    ),
    binding(
        &[Key::Enter],
        "Enter",
        Does::Open,
        &[Pane::Sessions],
        "open",
        "open the marked session; starts its server",
    ),
    binding(
        &[Key::Char('A')],
        "A",
        Does::Approve,
        &[Pane::Batch],
        "approve",
        "ask to approve, once all was on the screen",
    ),
    binding(&[Key::Char('R')], "R", Does::Reject, &[Pane::Batch], "reject", "ask to reject the batch"),
    binding(&[Key::Char('I')], "I", Does::Interrupt, READING, "interrupt", "ask to interrupt the running turn"),
    binding(&[Key::Char('G')], "G", Does::Resume, READING, "", "ask to go on after a pause"),
    binding(&[Key::Char('?')], "?", Does::Help, READING, "help", "show or hide the keys"),
    binding(&[Key::Char('q')], "q", Does::Leave, READING, "", "leave; the agent goes on"),
    binding(&[Key::Enter], "Enter", Does::Send, &[Pane::Prompt], "send", "send the prompt"),
    binding(&[Key::Ctrl('j')], "Ctrl-J", Does::NewLine, &[Pane::Prompt], "new line", "a line break in the prompt"),
    binding(&[Key::Ctrl('u')], "Ctrl-U", Does::Clear, &[Pane::Prompt], "clear", "clear the prompt"),
    binding(
        &[Key::Left, Key::Right, Key::Home, Key::End, Key::Backspace, Key::Delete, Key::Ctrl('h')],
        "editing keys",
        Does::Edit,
        &[Pane::Prompt],
        "",
        "Left, Right, Home, End, Backspace, Delete",
    ),
    binding(&[Key::Escape], "Esc", Does::ToEvents, &[Pane::Prompt], "", "leave the prompt as it is, to the events"),
    binding(&[Key::Enter], "Enter", Does::Answer, &[Pane::Question], "answer", "give the typed answer"),
    binding(&[Key::Backspace, Key::Ctrl('h')], "Backspace", Does::Edit, &[Pane::Question], "", "mend the answer"),
    binding(
        &[Key::Escape],
        "Esc",
        Does::Withdraw,
        &[Pane::Question],
        "withdraw",
        "withdraw the question; nothing is sent",
    ),
    binding(&[Key::Ctrl('c')], "Ctrl-C", Does::Leave, EVERYWHERE, "leave", "leave; the agent goes on"),
];

/// What a key does in a pane.
pub(super) fn look_up(key: Key, pane: Pane) -> Option<Does> {
    in_pane(pane).find(|binding| binding.keys.contains(&key)).map(|binding| binding.does)
}

/// The keys of a pane, in the table's order.
pub(super) fn in_pane(pane: Pane) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| binding.panes.contains(&pane))
}

/// The help line of a pane; deciding keys are told of only where they would do something.
pub(super) fn help_line(pane: Pane, decides: (bool, bool)) -> String {
    let told = in_pane(pane).filter(|binding| {
        let hidden = (binding.does == Does::Approve && !decides.0) || (binding.does == Does::Reject && !decides.1);
        !hidden && !binding.short.is_empty()
    });
    told.map(|binding| format!("{} {}", binding.name, binding.short)).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the documentation's table for each key.
    fn documented() -> String {
        let row = |binding: &Binding| format!("| {} | {} | {} |\n", binding.name, binding.place(), binding.words);
        BINDINGS.iter().map(row).collect()
    }

    #[test]
    fn the_documentation_holds_the_table() {
        let page = include_str!("../../../../docs/console.md");
        assert!(page.contains(&documented()), "docs/console.md must hold these lines:\n{}", documented());
    }

    #[test]
    fn no_pane_has_a_key_twice() {
        for pane in EVERYWHERE {
            let keys: Vec<Key> = in_pane(*pane).flat_map(|binding| binding.keys.iter().copied()).collect();
            for (at, key) in keys.iter().enumerate() {
                assert!(!keys[at + 1..].contains(key), "{key:?} in {pane:?}");
            }
        }
    }

    #[test]
    fn nothing_is_decided_by_a_key_of_the_prompt_or_of_a_question() {
        for pane in [Pane::Prompt, Pane::Question, Pane::Sessions, Pane::Events] {
            let deciding = in_pane(pane).filter(|binding| matches!(binding.does, Does::Approve | Does::Reject));
            assert_eq!(deciding.count(), 0, "{pane:?}");
        }
    }
}
