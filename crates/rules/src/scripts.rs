//! Which files a command names, so that the person who approves it can be told when one changes.

use std::collections::BTreeSet;

use serde_json::Value;

/// Most words looked at in one command; a longer command's later ones are not.
pub const MAX_WORDS: usize = 10_000;
/// Longest word that can be a path, in bytes.
const MAX_PATH_BYTES: usize = 4096;
/// Characters that end a word in a shell, quotes among them: a path within quotes is still a path.
const BREAKS: &[char] = &[';', '|', '&', '(', ')', '<', '>', '"', '\'', '`', '{', '}', '=', ':', ',', '$', '[', ']'];

/// Words of an action's command that could be paths, in order, each once. Not a shell's reading of it: rather too many
/// than too few, since a word that names no file is dropped by whoever looks.
pub fn named_files(arguments: &Value) -> Vec<String> {
    let Some(command) = arguments.get("command").and_then(Value::as_str) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    command
        .split(|character: char| character.is_whitespace() || BREAKS.contains(&character))
        .filter(|word| !word.is_empty() && word.len() <= MAX_PATH_BYTES && !word.contains('\0'))
        .filter(|word| seen.insert((*word).to_owned()))
        .take(MAX_WORDS)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(command: &str) -> Vec<String> {
        named_files(&json!({"command": command, "kind": "TerminalAction"}))
    }

    #[test]
    fn a_script_is_found_however_it_is_started() {
        for command in [
            "./build.sh",
            "sh ./build.sh --fast",
            "cd x && sh './build.sh'",
            "bash<./build.sh",
            "FILE=./build.sh make",
            "(./build.sh)&",
            "echo $(./build.sh)",
            "python -m x;./build.sh|tee log",
            "PATH=a:./build.sh",
        ] {
            assert!(named(command).contains(&"./build.sh".to_owned()), "{command}");
        }
    }

    #[test]
    fn each_word_once_and_bounded() {
        assert_eq!(named("a b a"), ["a", "b"]);
        let long: String = (0..20_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(named(&long).len(), MAX_WORDS);
        assert!(named(&"x".repeat(MAX_PATH_BYTES + 1)).is_empty());
    }

    #[test]
    fn an_action_without_a_command_names_none() {
        assert!(named_files(&json!({"path": "a.txt"})).is_empty());
        assert!(named_files(&json!({"command": 3})).is_empty());
    }
}
