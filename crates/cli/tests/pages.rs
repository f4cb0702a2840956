//! Every command and every flag stands in the help, the manual page, the completions and the documentation, and every exit
//! code where exit codes are told of.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use std::collections::BTreeSet;
use std::path::Path;

use api_types::ExitCode;
use clap_complete::Shell;
use cli::pages::{arguments, commands, completions, manual_pages, reference};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");

#[test]
fn the_documentation_is_what_is_made_from_the_definition() {
    let made = reference();
    if std::env::var_os("UPDATE_COMMANDS").is_some() {
        std::fs::write(REFERENCE, &made).unwrap();
    }
    let kept = std::fs::read_to_string(REFERENCE).unwrap();
    assert!(kept == made, "docs/commands.md is out of date: UPDATE_COMMANDS=1 cargo test -p cli --test pages");
}

#[test]
fn every_command_and_flag_stands_everywhere() {
    let pages = manual_pages().unwrap();
    let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| completions(shell).unwrap());
    let documented = reference();
    let all = commands();
    assert!(all.len() > 30 && all.len() == pages.len(), "{} commands, {} pages", all.len(), pages.len());
    for (path, mut command) in all {
        let name = path.join(" ");
        let page = pages.iter().find(|page| page.name == format!("{}.1", path.join("-"))).unwrap();
        let plain = page.text.replace("\\-", "-");
        let help = command.render_long_help().to_string();
        assert!(command.get_about().is_some_and(|about| about.to_string().len() > 5), "{name} says not what it does");
        assert!(documented.contains(&format!("## `{name}`")), "{name} is not documented");
        let last = path.last().unwrap();
        assert!(scripts.iter().all(|script| script.contains(last.as_str())), "{name} is not completed");
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_help().is_some());
        let shown: Vec<_> = shown.filter(|argument| argument.get_long() != Some("help")).collect();
        let listed = arguments(&command, false).chain(arguments(&command, true)).count();
        let whole = usize::from(path.len() == 1);
        assert_eq!(
            listed + whole,
            shown.len(),
            "{name} has arguments without a word on them, or that are not documented"
        );
        for argument in shown {
            let about = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 5, "{name}: {argument} has no help");
            let word = match argument.get_long() {
                Some(long) => format!("--{long}"),
                None => argument.get_value_names().unwrap()[0].to_string(),
            };
            assert!(help.contains(&word), "{word} is not in the help of {name}");
            assert!(plain.contains(&word), "{word} is not in {}:\n{plain}", page.name);
            assert!(documented.contains(&word.replace('|', "\\|")), "{word} of {name} is not documented");
            if let Some(long) = argument.get_long() {
                let completed = |script: &String| script.contains(&word) || script.contains(&format!("-l {long}"));
                assert!(scripts.iter().all(completed), "{word} of {name} is not completed");
            }
        }
        for exit in ExitCode::ALL {
            assert!(plain.contains(exit.meaning()), "{} does not tell of exit code {}", page.name, exit.code());
        }
    }
}

#[test]
fn every_exit_code_is_the_one_that_is_documented() {
    let readme = include_str!("../../../README.md");
    let told = |text: &str| -> Vec<u8> {
        let rows = text.lines().skip_while(|line| *line != "## Exit codes").skip(1);
        let rows = rows.take_while(|line| !line.starts_with("## "));
        rows.filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect()
    };
    let all: Vec<u8> = ExitCode::ALL.iter().map(|exit| exit.code()).collect();
    assert_eq!(told(readme), all);
    assert_eq!(told(&reference()), all);
    let source = include_str!("../../api-types/src/exit_code.rs");
    for exit in ExitCode::ALL {
        let row = format!("//! | {} | {} |", exit.code(), exit.meaning());
        assert!(source.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn every_documented_refusal_ends_with_the_exit_code_that_is_documented() {
    let page = include_str!("../../../docs/operations.md");
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(code), Some(status), Some(exit)) = (cells.get(1), cells.get(2), cells.get(3)) else { continue };
        let (Ok(status), Ok(exit)) = (status.parse::<u16>(), exit.parse::<u8>()) else { continue };
        if status < 100 {
            continue;
        }
        for code in code.split(", ") {
            rows += 1;
            let code = code.trim_matches('`');
            assert_eq!(ExitCode::of_refusal(code, status).code(), exit, "{code} with {status}");
        }
    }
    assert!(rows > 60, "only {rows} codes were read");
}

#[test]
fn a_page_or_a_script_is_printed_or_written_without_a_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    let run = |words: &[&str]| {
        let words = std::iter::once("gatepost").chain(words.iter().copied());
        let cli::ParseOutcome::Run(parsed) = cli::parse(words, &mut Vec::new(), &mut Vec::new()) else { return None };
        let cli::Command::Pages(command) = &parsed.command else { return None };
        Some(cli::pages::run(command).unwrap())
    };
    let (text, object) = run(&["man", "--dir", pages.to_str().unwrap()]).unwrap();
    let names = object["pages"].as_array().unwrap();
    assert!(text.contains(&format!("{} pages", names.len())));
    for name in names {
        assert!(std::fs::metadata(pages.join(name.as_str().unwrap())).unwrap().len() > 200, "{name}");
    }
    let (text, object) = run(&["man"]).unwrap();
    assert!(text.contains(".TH GATEPOST 1") && object["page"] == text, "{text}");
    let (text, object) = run(&["completions", "bash"]).unwrap();
    assert!(text.contains("_gatepost") && object["shell"] == "bash");
    assert!(run(&["completions", "tcsh"]).is_none());
}

/// The codes that the command line gives of itself, as they stand in its sources.
fn own_codes(directory: &Path, codes: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if entry.is_dir() {
            own_codes(&entry, codes);
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for call in ["Failure::new(", "no_answer("] {
            let second =
                code.split(call).skip(1).filter_map(|rest| rest.split_once(',')?.1.trim_start().strip_prefix('"'));
            codes.extend(second.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
}

#[test]
fn every_code_of_the_command_line_is_documented() {
    let mut codes = BTreeSet::new();
    for of in ["src", "../gatepost/src"] {
        own_codes(&Path::new(env!("CARGO_MANIFEST_DIR")).join(of), &mut codes);
    }
    assert!(codes.len() > 30 && codes.contains("daemon_not_running") && codes.contains("no_reply"), "{codes:?}");
    let page = include_str!("../../../docs/operations.md");
    let cells = page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let documented: BTreeSet<&str> =
        cells.flat_map(|cell| cell.split(',').map(|word| word.trim().trim_matches('`'))).collect();
    let missing: Vec<&String> = codes.iter().filter(|code| !documented.contains(code.as_str())).collect();
    assert!(missing.is_empty(), "docs/operations.md says nothing of {missing:?}");
}
