//! The shape of the workspace, held by a test: who may import whom, and what no file may hold.
//!
//! Each rule is a pure function over what was read, and each is shown to fail on a made-up breach.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate and what it imports outside its tests, ours and others'.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Which of our crates each crate may import.
const ARROWS: [(&str, &[&str]); 13] = [
    ("rules", &[]),
    ("api-types", &[]),
    ("host", &[]),
    ("store", &[]),
    ("testkit", &[]),
    ("cli", &["api-types"]),
    ("settings", &["host", "rules"]),
    ("process", &["host", "rules"]),
    ("agent-contract", &["host", "rules"]),
    ("session", &["agent-contract", "host", "process", "rules", "settings", "store"]),
    ("api", &["api-types", "host", "rules", "session"]),
    (
        "gatepost",
        &[
            "agent-contract",
            "api",
            "api-types",
            "cli",
            "host",
            "process",
            "rules",
            "session",
            "settings",
            "store",
            "testkit",
        ],
    ),
    (
        "gatepost-tests",
        &[
            "agent-contract",
            "api",
            "api-types",
            "cli",
            "gatepost",
            "host",
            "process",
            "rules",
            "session",
            "settings",
            "store",
            "testkit",
        ],
    ),
];

/// All that the pure crates may import of others'.
const CLOSED: [(&str, &[&str]); 2] =
    [("rules", &["serde", "serde_json", "sha2", "thiserror"]), ("api-types", &["serde", "serde_json", "utoipa"])];

/// Others' crates that have few homes.
const HOMES: [(&str, &[&str]); 8] = [
    ("hyper", &["agent-contract", "api", "cli", "testkit"]),
    ("http", &["agent-contract", "api", "cli", "testkit"]),
    ("tokio-tungstenite", &["agent-contract", "testkit"]),
    ("rusqlite", &["store"]),
    ("ring", &["host"]),
    ("libc", &["host"]),
    ("landlock", &["host"]),
    ("seccompiler", &["host"]),
];

/// Where the shipped binary starts another program, and why nothing that the agent writes decides what that does.
const STARTS_PROGRAMS: [(&str, &str); 7] = [
    ("crates/host/src/spawn.rs", "how every child of the daemon is started"),
    ("crates/process/src/install/tool.rs", "the installer's tools, in a private directory, with settings of nobody's"),
    ("crates/process/src/launch/start.rs", "the server, through which all of the agent's is started confined"),
    ("crates/process/src/launch/guarded.rs", "the guard of a server's tree, which is gatepost itself"),
    ("crates/process/src/guard/first.rs", "the second guard, which is gatepost itself, and the server below it"),
    ("crates/gatepost/src/service/manager.rs", "the service manager's tool, by the command line, never by the daemon"),
    ("crates/gatepost/src/demo/stage.rs", "the demonstration's daemon"),
];

/// The crate that alone may hold `unsafe`.
const UNSAFE_HOME: &str = "host";
const MAX_LINES: usize = 400;
const MAX_MAIN_LINES: usize = 150;

fn arrow_findings(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    let ours: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    for (name, imports) in graph {
        let Some((_, allowed)) = ARROWS.iter().find(|(own, _)| own == name) else {
            found.push(format!("{name} is in no arrow: say in this table what it may import"));
            continue;
        };
        let closed = CLOSED.iter().find(|(own, _)| own == name).map(|(_, allowed)| *allowed);
        for import in imports {
            let import = import.as_str();
            if ours.contains(import) && !allowed.contains(&import) {
                found.push(format!("{name} imports {import}: that arrow does not exist"));
            }
            if closed.is_some_and(|closed| !closed.contains(&import)) {
                found.push(format!("{name} imports {import}: its list of dependencies is closed"));
            }
            let homes = HOMES.iter().find(|(foreign, _)| *foreign == import).map(|(_, homes)| *homes);
            if homes.is_some_and(|homes| !homes.contains(&name.as_str())) {
                found.push(format!("{name} imports {import}: it is no home of it"));
            }
        }
    }
    found
}

/// A crate's manifest takes the workspace's lints and has no features (they would unify into the shipped binary).
fn manifest_findings(name: &str, manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let section = |title: &str| {
        let header = format!("[{title}]");
        let lines = manifest.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
        lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    if name != UNSAFE_HOME && section("lints") != ["workspace = true"] {
        found.push(format!("{name} does not take the workspace's lints"));
    }
    if !section("features").is_empty() {
        found.push(format!("{name} has features"));
    }
    found
}

fn root_manifest_findings(manifest: &str) -> Vec<String> {
    let wanted = ["unsafe_code = \"forbid\"", "undocumented_unsafe_blocks = \"deny\"", "unwrap_used = \"warn\""];
    let missing = wanted.iter().filter(|line| !manifest.lines().any(|own| own.trim() == **line));
    missing.map(|line| format!("the workspace's lints lack {line}")).collect()
}

/// What no file may hold. The words are put together here so that this file does not hold them itself.
fn text_findings(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if (path.ends_with(".rs") || path.ends_with(".py")) && lines > MAX_LINES {
        found.push(format!("{path} has {lines} lines: split it by idea"));
    }
    if path.ends_with("gatepost/src/main.rs") && lines >= MAX_MAIN_LINES {
        found.push(format!("{path} has {lines} lines: it only parses, wires and runs"));
    }
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("/wo", "rk/main"), concat!("/wo", "rk/shared")];
    for word in words.into_iter().filter(|word| text.contains(word)) {
        found.push(format!("{path} holds {word}"));
    }
    let lower = text.to_lowercase();
    let numbered = lower.match_indices(concat!("iss", "ue ")).any(|(at, word)| {
        let rest = lower[at + word.len()..].trim_start_matches('#');
        rest.starts_with(|character: char| character.is_ascii_digit())
    });
    if numbered {
        found.push(format!("{path} names a numbered {}", concat!("iss", "ue")));
    }
    let in_unsafe_home = path.starts_with("crates/host/");
    let unsafe_word = concat!("un", "safe ");
    let opens =
        |line: &str| ["{", "fn ", "impl ", "extern "].iter().any(|next| line.contains(&format!("{unsafe_word}{next}")));
    if path.ends_with(".rs") && !in_unsafe_home && text.lines().any(opens) {
        found.push(format!("{path} holds {unsafe_word}code"));
    }
    found
}

/// A program that is started where none is known to be: git, for one, runs what a repository's settings name.
fn start_findings(path: &str, text: &str) -> Vec<String> {
    let is_shipped = path.starts_with("crates/")
        && path.contains("/src/")
        && !path.starts_with("crates/testkit/")
        && !path.ends_with("tests.rs")
        && !path.contains("/tests/");
    if !is_shipped || STARTS_PROGRAMS.iter().any(|(known, _)| *known == path) {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let starts = [concat!("Command::", "new("), concat!("Spawn", "Spec {"), concat!("posix_", "spawn")];
    let found = starts
        .iter()
        .filter(|word| code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(**word)));
    found.map(|word| format!("{path} starts a program ({word}): say in this table why that is safe")).collect()
}

#[test]
fn programs_are_started_only_where_it_is_known() {
    let files = written_files();
    for (known, _) in STARTS_PROGRAMS {
        assert!(files.iter().any(|(path, _)| path == known), "{known} is gone");
    }
    let found: Vec<String> = files.iter().flat_map(|(path, text)| start_findings(path, text)).collect();
    assert_eq!(found, Vec::<String>::new());
    let git = concat!("Command::", "new(\"git\")");
    assert_eq!(start_findings("crates/session/src/workspace.rs", git).len(), 1);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> cargo_metadata::Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap()
}

/// The files that people write, with their paths from the root.
fn written_files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", ".git", "__pycache__"].contains(&name.as_str()) {
                    directories.push(path);
                }
            } else if !name.ends_with(".lock")
                // In a further work tree of git it is a file, and says where the repository is.
                && name != ".git"
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(), text));
            }
        }
    }
    found
}

#[test]
fn every_arrow_points_the_right_way() {
    let mut graph = Graph::new();
    for package in metadata().packages {
        let shipped = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
        graph.insert(package.name.to_string(), shipped.map(|dependency| dependency.name.clone()).collect());
    }
    assert_eq!(graph.len(), ARROWS.len(), "{:?}", graph.keys());
    assert_eq!(arrow_findings(&graph), Vec::<String>::new());
}

#[test]
fn every_manifest_takes_the_lints() {
    let mut found = root_manifest_findings(&fs::read_to_string(root().join("Cargo.toml")).unwrap());
    for package in metadata().packages {
        found.extend(manifest_findings(&package.name, &fs::read_to_string(&package.manifest_path).unwrap()));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn no_file_holds_what_it_may_not() {
    let files = written_files();
    assert!(files.iter().any(|(path, _)| path == "tests/tests/architecture.rs"), "the walk sees too little");
    let found: Vec<String> = files.iter().flat_map(|(path, text)| text_findings(path, text)).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn each_turned_arrow_is_found() {
    let breaches = [
        ("rules", "host"),
        ("rules", "tokio"),
        ("api-types", "rules"),
        ("cli", "session"),
        ("cli", "rules"),
        ("process", "agent-contract"),
        ("process", "hyper"),
        ("agent-contract", "process"),
        ("session", "api-types"),
        ("session", "api"),
        ("session", "rusqlite"),
        ("api", "store"),
        ("api", "testkit"),
        ("store", "rules"),
        ("host", "rules"),
        ("settings", "session"),
        ("settings", "libc"),
        ("unheard-of", "serde"),
    ];
    for (name, import) in breaches {
        let graph = Graph::from([(name.to_owned(), BTreeSet::from([import.to_owned()]))]);
        let found = arrow_findings(&graph);
        assert!(
            !found.is_empty() && found.iter().all(|words| words.starts_with(name)),
            "{name} -> {import}: {found:?}"
        );
    }
    for (name, allowed) in ARROWS {
        let graph = Graph::from([(name.to_owned(), allowed.iter().map(|name| (*name).to_owned()).collect())]);
        assert_eq!(arrow_findings(&graph), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn each_slack_manifest_is_found() {
    assert_eq!(manifest_findings("api", "[package]\n[lints]\nworkspace = true\n[dependencies]"), Vec::<String>::new());
    assert_eq!(manifest_findings("host", "[lints.rust]\nunsafe_code = \"allow\""), Vec::<String>::new());
    for manifest in ["", "[lints]\n[dependencies]\nworkspace = true", "[lints.rust]\nunsafe_code = \"allow\""] {
        assert_eq!(manifest_findings("api", manifest).len(), 1, "{manifest}");
    }
    assert_eq!(manifest_findings("api", "[lints]\nworkspace = true\n[features]\noff = []").len(), 1);
    assert_eq!(root_manifest_findings("unsafe_code = \"deny\"").len(), 3);
}

#[test]
fn each_forbidden_text_is_found() {
    let long = "\n".repeat(MAX_LINES + 1);
    let breaches = [
        ("crates/api/src/x.rs", long.clone()),
        ("config/x.py", long),
        ("crates/gatepost/src/main.rs", "\n".repeat(MAX_MAIN_LINES)),
        ("docs/x.md", format!("a {} here", concat!("TO", "DO"))),
        ("docs/x.md", format!("see {}7", concat!("Iss", "ue "))),
        ("docs/x.md", format!("see {}#7", concat!("iss", "ue "))),
        ("Cargo.toml", format!("path = \"{}\"", concat!("/wo", "rk/main"))),
        ("crates/api/src/x.rs", format!("let a = {}{{ b() }};", concat!("un", "safe "))),
        ("crates/api/src/x.rs", format!("{}fn a() {{}}", concat!("un", "safe "))),
    ];
    for (path, text) in breaches {
        assert_eq!(text_findings(path, &text).len(), 1, "{path}: {text}");
    }
    let fine = format!("no {}at all, {}is a word", concat!("iss", "ue "), concat!("un", "safe "));
    assert_eq!(text_findings("docs/x.md", &fine), Vec::<String>::new());
    assert_eq!(text_findings("crates/host/src/x.rs", concat!("un", "safe {}")), Vec::<String>::new());
}
