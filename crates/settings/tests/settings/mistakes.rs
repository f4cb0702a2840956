//! Every kind of mistake, each with its key, its line and a word of help.

use crate::common::wrong;

/// The text has exactly this one mistake: key, line and a part of what is said.
fn one(text: &str, key: &str, line: usize, part: &str) {
    let mistakes = wrong(text);
    let [mistake] = mistakes.as_slice() else { panic!("{text}\n{mistakes:#?}") };
    assert_eq!((mistake.key.as_str(), mistake.line), (key, Some(line)), "{text}\n{mistake}");
    assert!(mistake.problem.contains(part), "{text}\n{mistake}\nhas not: {part}");
}

#[test]
fn unknown_names_are_told_what_was_meant() {
    one("[agent_servers]\n", "agent_servers", 1, "did you mean [agent_server]?");
    one("\n[modle]\nname = 'a'", "modle", 2, "did you mean [model]?");
    one("[nonsense]", "nonsense", 1, "there are agent_server, workspaces");
    one("roots = []", "roots", 1, "it belongs in [workspaces]");
    one("[events]\n\nretention_day = 3", "events.retention_day", 3, "did you mean retention_days?");
    one("[agent_server]\nmaxservers = 3", "agent_server.maxservers", 2, "did you mean max_servers?");
    one("[agent_server]\nroots = []", "agent_server.roots", 2, "it belongs in [workspaces]");
    one("[approval]\npolicy = 'never'", "approval.policy", 2, "there are expires_min, reviewed_content");
    one("[events]\n\"\\u001b[31m\" = 1", "events.…", 2, "unknown key");
    one("[events]\n\"\" = 1", "events.…", 2, "unknown key");
    one("[[events]]\nretention_days = 1", "events", 1, "must be a section, written [events]");
    one("events = 3", "events", 1, "must be a section");
    one("[events.deep]", "events.deep", 1, "unknown key");
}

/// A key of a provider may be put down on the left of the sign, or where a section begins.
#[test]
fn what_cannot_be_a_slip_of_the_hand_is_not_repeated() {
    const SECRET: &str = "f81d4fae7dec11d0a76500a0c91e6bf6";
    const LONG: &str = "abcdefghijklmnopqrstuvwxyzabcdefg";
    for secret in [SECRET, LONG, "hunter2"] {
        for text in [
            format!("[model]\n{secret} = 1"),
            format!("[model]\n\"{secret}\" = 1"),
            format!("[model]\napi_key = {{{secret} = 1}}"),
            format!("[model]\napi_key.{secret} = 1"),
            format!("[{secret}]\nname = 1"),
            format!("[model.{secret}]\nname = 1"),
            format!("{secret} = 1"),
            format!("{secret} = 1\n{secret} = 2"),
            format!("[{secret}]\n[{secret}]"),
            format!("[model]\n{secret}"),
            format!("[model]\nname = {secret}"),
            format!("[model]\nname = \"{secret}"),
            format!("[model]\nname = 'a'\nbase_url = \"https://h/\"\nchoices = {{{secret} = 2}}"),
        ] {
            let mistakes = wrong(&text);
            assert!(!mistakes.is_empty(), "{text}");
            let told = format!("{mistakes:?}");
            assert!(!told.contains(secret), "{text}\n{told}");
        }
    }
}

#[test]
fn numbers() {
    for (key, lowest, highest) in [
        ("agent_server.start_timeout_s", 1, 600),
        ("agent_server.max_servers", 1, 16),
        ("agent_server.idle_stop_min", 0, 10_080),
        ("agent_server.probe_interval_s", 1, 200),
        ("approval.expires_min", 1, 1440),
        ("events.retention_days", 1, 3650),
        ("events.rest_after_s", 1, 86_400),
        ("events.rest_read_s", 1, 600),
    ] {
        for taken in [lowest, highest] {
            crate::common::right(&format!("{key} = {taken}"));
        }
        let bounds = format!("must be a whole number from {lowest} to {highest}");
        let (below, above) = (lowest - 1, highest + 1);
        for number in
            [below.to_string(), above.to_string(), "-5".into(), "9223372036854775807".into(), "1_000_000".into()]
        {
            one(&format!("{key} = {number}"), key, 1, &bounds);
        }
        for (value, kind) in [
            ("'3'", "a text"),
            ("3.0", "a number with a fraction"),
            ("true", "true or false"),
            ("[3]", "a list"),
            ("{a = 3}", "a table"),
            ("2025-01-01", "a date or time"),
        ] {
            one(&format!("{key} = {value}"), key, 1, &format!("{bounds}, not {kind}"));
        }
    }
    assert_eq!(crate::common::right("agent_server.max_servers = 0x0f").agent_server.max_servers, 15);
    assert_eq!(crate::common::right("agent_server.start_timeout_s = 1_0").agent_server.start_timeout_s, 10);
}

#[test]
fn agent_server() {
    for value in ["'1.40'", "'latest'", "'../1.40.0'", "''"] {
        one(&format!("[agent_server]\nversion = {value}"), "agent_server.version", 2, "a version of three numbers");
    }
    one("[agent_server]\nversion = 1.40", "agent_server.version", 2, "must be a text in quotes, not a number");
    for key in ["executable", "python"] {
        for value in ["'bin/x'", "'~other/x'", "'/a/../x'", "''"] {
            let path = format!("agent_server.{key}");
            one(&format!("[agent_server]\n{key} = {value}"), &path, 2, "must be an absolute path");
        }
    }
    for value in ["1", "'yes'", "'true'"] {
        one(&format!("[agent_server]\nstandby = {value}"), "agent_server.standby", 2, "must be true or false, not");
    }
}

#[test]
fn workspaces() {
    one("[workspaces]\nroots = '~/src'", "workspaces.roots", 2, "must be a list of texts, not a text");
    one("[workspaces]\nroots = ['~/a', 'b']", "workspaces.roots[1]", 2, "must be an absolute path");
    one("[workspaces]\nroots = [\n'/a',\n3]", "workspaces.roots[1]", 4, "must be a text in quotes, not a whole number");
    one("[workspaces]\nroots = ['/a', '/a']", "workspaces.roots[1]", 2, "stands in the list twice");
    let many: Vec<String> = (0..65).map(|number| format!("'/{number}'")).collect();
    one(&format!("[workspaces]\nroots = [{}]", many.join(",")), "workspaces.roots", 2, "at most 64");
}

#[test]
fn model() {
    const KEY: &str = "api_key = {file = '/k'}";
    let at = |text: &str| format!("[model]\n{text}");
    one(&at(KEY), "model.name", 1, "is missing; name the model");
    one(&at("name = 'a'"), "model.api_key", 1, "is missing; only a model with a base_url");
    one(&at(&format!("name = 'a b'\n{KEY}")), "model.name", 2, "must be a model's name");
    one(&at(&format!("name = ''\n{KEY}")), "model.name", 2, "must be a model's name");
    for url in ["ftp://a", "a", "https://u:p@a", "https://a/?k=s"] {
        let text = at(&format!("name = 'a'\nbase_url = '{url}'\n{KEY}"));
        one(&text, "model.base_url", 3, "must be an http:// or https:// address without user");
    }
    one(&at(&format!("name = 'a'\n{KEY}\nchoices = ['b', 'b']")), "model.choices[1]", 4, "twice");
    one(&at(&format!("name = 'a'\n{KEY}\nchoices = ['b', '']")), "model.choices[1]", 4, "must be a model's name");
    one(&at(&format!("name = 'a'\n{KEY}\ntools = []")), "model.tools", 4, "at least one tool");
    one(&at(&format!("name = 'a'\n{KEY}\ntools = ['Terminal']")), "model.tools[0]", 4, "must be a tool's name");
    for tool in settings::SUB_AGENT_TOOLS {
        let text = at(&format!("name = 'a'\n{KEY}\ntools = ['terminal', '{tool}']"));
        one(&text, "model.tools[1]", 4, "starts no agent of its own");
    }
}

#[test]
fn api_key() {
    for value in ["'sk-secret'", "['sk-secret']", "3", "{}", "{file = '/a', credential = 'b'}"] {
        one(
            &format!("[model]\nname = 'a'\napi_key = {value}"),
            "model.api_key",
            3,
            "a key itself never stands in this file",
        );
    }
    one("[model]\nname = 'a'\napi_key = {value = 'sk-secret'}", "model.api_key", 3, "has an unknown key");
    one("[model]\nname = 'a'\napi_key = {file = 'k'}", "model.api_key.file", 3, "must be an absolute path");
    one("[model]\nname = 'a'\napi_key = {file = 3}", "model.api_key.file", 3, "must be a text in quotes");
    for name in ["../k", "", ".k", "a/b"] {
        let text = format!("[model]\nname = 'a'\napi_key = {{credential = '{name}'}}");
        one(&text, "model.api_key.credential", 3, "must be the name of a credential");
    }
}

#[test]
fn profile() {
    const ID: &str = "profile_id = '0f8fad5b-d9cb-469f-a165-70867728950e'";
    for (key, value) in
        [("name", "'a'"), ("base_url", "'https://a'"), ("api_key", "{file = '/k'}"), ("choices", "['b']")]
    {
        let text = format!("[model]\n{ID}\n{key} = {value}");
        one(&text, &format!("model.{key}"), 3, "cannot stand beside profile_id");
    }
    one("[model]\nprofile_id = 'gatepost'", "model.profile_id", 2, "must be a UUID");
    one("[model]\nprofile_id = 7", "model.profile_id", 2, "must be a text in quotes");
    one(&format!("[model]\n{ID}\ntools = ['task']"), "model.tools[0]", 3, "starts no agent of its own");
}

#[test]
fn approval_and_confinement() {
    for digest in ["abc".to_owned(), "G".repeat(64), "A".repeat(64), "0".repeat(65)] {
        let text = format!("[approval]\nreviewed_content = ['{digest}']");
        one(&text, "approval.reviewed_content[0]", 2, "a digest of 64 lower-case");
    }
    for level in ["none", "Full", ""] {
        one(&format!("[confinement]\nlevel = '{level}'"), "confinement.level", 2, "\"full\", \"partial\" or \"weak\"");
    }
    one("[confinement]\nlevel = 3", "confinement.level", 2, "must be a text in quotes");
}

#[test]
fn the_log() {
    for level in ["info", "off", "debug,session=trace", "warn,api::service=debug"] {
        assert_eq!(crate::common::right(&format!("log.level = '{level}'")).log.level, level);
    }
    for level in ["", "loud", "session=", "=debug", "a b=info", "info,,warn", "[x]=info"] {
        one(&format!("log.level = '{level}'"), "log.level", 1, "such as \"info,session=debug\"");
    }
    assert_eq!(crate::common::right("log.format = 'json'").log.format, settings::LogFormat::Json);
    one("log.format = 'xml'", "log.format", 1, "\"text\" or \"json\"");
}

#[test]
fn further_directories() {
    let home = crate::common::Home::new();
    let inside = |name: &str| {
        let path = home.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let (cache, secrets, git) = (inside(".cache"), inside(".ssh"), inside("src/a/.git"));
    std::os::unix::fs::symlink(&cache, home.path().join("link")).unwrap();
    home.write("file", "");
    let good = format!(
        "[workspaces]\ngit_dirs = ['~/src/a/.git']\n[confinement]\nread = ['/usr/share']\nwrite = ['{}', '{}']",
        cache.display(),
        inside("target").display()
    );
    let settings = home.load(&good).unwrap();
    assert_eq!(settings.confinement.read, [std::path::PathBuf::from("/usr/share")]);
    assert_eq!((settings.confinement.write[0].clone(), settings.workspaces.git_dirs), (cache.clone(), vec![git]));
    for (path, part) in [
        ("cache".to_owned(), "an absolute path"),
        ("~/../x".to_owned(), "without `..`"),
        ("~/missing".to_owned(), "a directory that exists"),
        ("~/file".to_owned(), "must be a directory"),
        ("~/link".to_owned(), "without a symbolic link on the way"),
        ("~".to_owned(), "does not hold the home directory"),
        ("/".to_owned(), "does not hold the home directory"),
        ("~/.config/gatepost".to_owned(), "apart from gatepost's own"),
        ("~/.config".to_owned(), "apart from gatepost's own"),
        (secrets.to_string_lossy().into_owned(), "apart from ~/.ssh"),
    ] {
        for key in ["read", "write"] {
            let text = format!("[confinement]\n{key} = ['~/.cache', '{path}']");
            let error = home.load(&text).unwrap_err();
            let settings::SettingsError::Invalid { mistakes, .. } = &error else { panic!("{error}") };
            let [mistake] = mistakes.as_slice() else { panic!("{error}") };
            assert_eq!((mistake.key.as_str(), mistake.line), (&*format!("confinement.{key}[1]"), Some(2)), "{error}");
            assert_eq!(mistake.column, Some(key.len() + 17), "{error}");
            assert!(mistake.problem.contains(part), "{path}: {error}");
        }
    }
    // What belongs to another: root's may be read.
    let of_root = if host::hygiene::is_root() { "~/missing" } else { "/usr/share" };
    one(&format!("[confinement]\nwrite = ['{of_root}']"), "confinement.write[0]", 2, "must be a directory");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    for (text, line) in [
        ("[agent_server\n", 1),
        ("[events]\nretention_days = ", 2),
        ("[events]\nretention_days = 3\nretention_days = 4", 3),
        ("[events]\n[events]", 2),
        ("\n\nnonsense", 3),
        ("[model]\nname = 'a", 2),
    ] {
        let mistakes = wrong(text);
        assert!(mistakes.iter().any(|mistake| mistake.line == Some(line)), "{text}\n{mistakes:#?}");
        assert!(mistakes.iter().all(|mistake| mistake.problem.starts_with("is no TOML here: ")), "{mistakes:#?}");
    }
    let mistakes = wrong(b"[events]\n\xff\xfe");
    assert_eq!(mistakes[0].problem, "is not UTF-8 text from byte 9 on");
    assert!(wrong("a = 1\u{0}").len() == 1);
}

#[test]
fn all_mistakes_are_told_at_once_and_in_order() {
    let text = "\
[agent_server]
version = 'x'
max_servers = 0
max_server = 1

[workspaces]
roots = ['a', '/b', 'c']

[model]
base_url = 'x'
tools = ['task', 'workflow']

[confinement]
level = 'strong'

[extra]
";
    let found: Vec<_> = wrong(text).into_iter().map(|mistake| (mistake.line.unwrap(), mistake.key)).collect();
    let expected = [
        (2, "agent_server.version"),
        (3, "agent_server.max_servers"),
        (4, "agent_server.max_server"),
        (7, "workspaces.roots[0]"),
        (7, "workspaces.roots[2]"),
        (9, "model.name"),
        (10, "model.base_url"),
        (11, "model.tools[0]"),
        (11, "model.tools[1]"),
        (14, "confinement.level"),
        (16, "extra"),
    ];
    assert_eq!(found, expected.map(|(line, key)| (line, key.to_owned())));
    let told = crate::common::Home::new().load(text).unwrap_err().to_string();
    assert!(told.contains("has 11 mistakes to correct:\n  line 2, column 11: agent_server.version: must be"), "{told}");
}

#[test]
fn no_value_is_ever_repeated() {
    const SECRET: &str = "sk-hunter2";
    for text in [
        "[model]\nname = 'a'\napi_key = 'SECRET'",
        "[model]\nname = 'a'\napi_key = {file = 'SECRET'}",
        "[model]\nname = 'a'\napi_key = {credential = '/SECRET'}",
        "[model]\nname = 'a'\napi_key = {value = 'SECRET'}",
        "[model]\nname = 'a'\napi_key = SECRET",
        "[model]\nname = 'a'\napi_key = 'SECRET",
        "[model]\nname = 'a'\nkey = 'SECRET'",
        "[model]\nname = ' SECRET'",
        "[model]\nbase_url = 'https://user:SECRET@example.com'",
        "[model]\nbase_url = 'https://example.com/?key=SECRET'",
        "[model]\nprofile_id = 'SECRET'",
        "[model]\nchoices = [' SECRET']",
        "[confinement]\nlevel = 'SECRET'",
        "api_key = 'SECRET'",
        "api_key = 'SECRET' 'SECRET'",
    ] {
        let text = text.replace("SECRET", SECRET);
        let error = crate::common::Home::new().load(&text).unwrap_err();
        for told in [error.to_string(), format!("{error:?}"), error.refusal().to_string()] {
            assert!(!told.contains(SECRET), "{text}\n{told}");
        }
    }
}
