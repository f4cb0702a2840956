//! The profile is read here as what it claims to be: forms of the sandbox's language, of which the last that fits counts. What
//! a Mac makes of it is not shown by any of this.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::*;

/// A part of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Word(String),
    Text(String),
    List(Vec<Form>),
}

use Form::{List, Text, Word};

/// Every form; fails on anything that is not whole.
fn read(profile: &str) -> Vec<Form> {
    let mut letters = profile.chars().peekable();
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    while let Some(letter) = letters.next() {
        let form = match letter {
            '(' => {
                open.push(Vec::new());
                continue;
            }
            ')' => List(open.pop().unwrap()),
            '"' => Text(text(&mut letters)),
            _ if letter.is_whitespace() => continue,
            _ => {
                let mut word = letter.to_string();
                while let Some(next) = letters.next_if(|next| !next.is_whitespace() && !"()\"".contains(*next)) {
                    word.push(next);
                }
                if word == "#" {
                    Text(letters.by_ref().skip(1).take_while(|end| *end != '"').collect())
                } else {
                    Word(word)
                }
            }
        };
        open.last_mut().expect("a parenthesis is closed that was not opened").push(form);
    }
    assert_eq!(open.len(), 1, "a parenthesis stays open");
    open.pop().unwrap()
}

fn text(letters: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    loop {
        match letters.next().expect("a string stays open") {
            '"' => return text,
            '\\' => text.push(letters.next().expect("a string stays open")),
            letter => text.push(letter),
        }
    }
}

impl Form {
    fn list(&self) -> &[Self] {
        let List(forms) = self else { panic!("{self:?} is no list") };
        forms
    }

    fn word(&self) -> &str {
        let Word(word) = self else { panic!("{self:?} is no word") };
        word
    }

    fn is(&self, head: &str) -> bool {
        matches!(self, List(forms) if forms.first() == Some(&Word(head.to_owned())))
    }

    fn fits(&self, path: &Path) -> bool {
        match self.list() {
            [Word(head), Text(own)] if head == "literal" => path == Path::new(own),
            [Word(head), Text(own)] if head == "subpath" => path.starts_with(own),
            [Word(end), Word(kind), place] if end == "remote" && kind == "unix-socket" => place.fits(path),
            _ => false,
        }
    }
}

/// Whether the last rule that fits allows it, as the language has it.
fn allows(profile: &str, operation: &str, path: &str) -> bool {
    let fits =
        |name: &str| name == operation || name.strip_suffix('*').is_some_and(|start| operation.starts_with(start));
    let rules = read(profile);
    let last = rules.iter().rev().find(|rule| {
        let (operations, filters): (Vec<&Form>, Vec<&Form>) =
            rule.list()[1..].iter().partition(|part| matches!(part, Word(_)));
        rule.is("deny") && operations[0].word() == "default"
            || (rule.is("allow") || rule.is("deny"))
                && operations.iter().any(|name| fits(name.word()))
                && (filters.is_empty() || filters.iter().any(|filter| filter.fits(Path::new(path))))
    });
    last.unwrap().is("allow")
}

fn placed(path: &str, access: Access) -> Placed {
    Placed { path: path.into(), access, is_directory: true }
}

fn reviewed(grants: &[Placed], kept: &[&str]) -> String {
    let kept: Vec<PathBuf> = kept.iter().map(PathBuf::from).collect();
    SeatbeltPolicy::reviewed().unwrap().profile(grants, &kept).unwrap()
}

/// With the grants of both policy files for one plan, as if all were there and none led elsewhere.
fn of_a_server() -> (Vec<Placed>, String) {
    let state = Path::new("/Users/a/.local/state/gatepost");
    let mut plan = Plan::new("/Users/a/work".into(), state.join("bindings/1/tmp"), "/Users/a".into());
    plan.writable = vec![state.join("bindings/1/agent-home"), "/Users/a/.cargo/registry".into()];
    plan.environment = vec![state.join("servers/1.40.0")];
    plan.readable = vec!["/Users/a/tools".into()];
    plan.kept = vec![state.to_path_buf(), "/Users/a/.config/gatepost".into(), SOCKETS.into()];
    let policy = SeatbeltPolicy::reviewed().unwrap();
    let found = [Policy::reviewed().unwrap().files, policy.files()].map(|files| files.grants(&plan)).concat();
    let grants: Vec<Placed> = found
        .into_iter()
        .map(|grant| Placed { path: grant.path, access: grant.access, is_directory: grant.access != Access::Device })
        .collect();
    let profile = policy.profile(&grants, &plan.kept).unwrap();
    (grants, profile)
}

const SOCKETS: &str = "/Users/a/Library/Application Support/gatepost";

#[test]
fn a_profile_says_what_it_was_made_of() {
    let policy = SeatbeltPolicy::parse(
        r#"{"v":1,"files":[],"rules":[
            {"allow":["process-fork"],"reason":"a"},
            {"allow":["file-read*","file-ioctl"],"to":[{"all":[{"pattern":"^/dev/t[0-9]$"},{"extension":"e.x"}]}],"reason":"a"},
            {"allow":["network-outbound"],"to":[{"remote":"ip"},{"path":"/s"}],"reason":"a"},
            {"allow":["mach-lookup"],"to":[{"service":"com.x"}],"reason":"a"}
        ]}"#,
    )
    .unwrap();
    let grants = [
        placed("/k/in/env", Access::Read),
        placed("/w", Access::Write),
        Placed { path: "/dev/null".into(), access: Access::Device, is_directory: false },
    ];
    let expected = r#"(version 1)
(deny default)
(allow process-fork)
(allow file-read* file-ioctl (require-all (regex #"^/dev/t[0-9]$") (extension "e.x")))
(allow network-outbound (remote ip) (literal "/s"))
(allow mach-lookup (global-name "com.x"))
(allow file-read* file-lock file-map-executable process-exec* file-write* (subpath "/w"))
(allow network-bind network-inbound network-outbound (local unix-socket (subpath "/w")) (remote unix-socket (subpath "/w")))
(deny file* process-exec* (subpath "/k"))
(deny network-bind network-outbound (local unix-socket (subpath "/k")) (remote unix-socket (subpath "/k")))
(allow file-read* file-write* file-ioctl (literal "/dev/null"))
(allow file-read-metadata (literal "/k/in"))
(allow file-read-metadata (literal "/k"))
(allow file-read* file-lock file-map-executable process-exec* (subpath "/k/in/env"))
"#;
    assert_eq!(policy.profile(&grants, &["/k".into()]).unwrap(), expected);
}

#[test]
fn each_grant_stands_in_exactly_one_rule_of_files() {
    let (grants, profile) = of_a_server();
    let rules = read(&profile);
    assert!(grants.len() > 40, "{}", grants.len());
    for grant in &grants {
        let head = if grant.is_directory { "subpath" } else { "literal" };
        let place = List(vec![Word(head.to_owned()), Text(grant.path.to_str().unwrap().to_owned())]);
        let naming: Vec<&[Form]> = rules.iter().map(Form::list).filter(|rule| rule.contains(&place)).collect();
        let [rule] = naming[..] else { panic!("{grant:?} stands in {naming:?}") };
        assert_eq!(rule[0], Word("allow".to_owned()));
        let has = |operation: &str| rule.contains(&Word(operation.to_owned()));
        assert!(has("file-read*"), "{rule:?}");
        assert_eq!(has("file-write*"), grant.access != Access::Read, "{rule:?}");
        assert_eq!(has("file-ioctl"), grant.access == Access::Device, "{rule:?}");
        assert_eq!(has("process-exec*"), grant.access != Access::Device, "{rule:?}");
    }
}

#[test]
fn no_path_leaves_its_string() {
    for hostile in [
        r#"/w/a")(allow default)("#,
        r#"/w/a\")(allow default)("#,
        r"/w/a\",
        r#"/w/"#,
        r#"/w/#"x"#,
        "/w/;comment",
        "/w/(subpath \"/\")",
        "/w/ü 雪 ' ` | $x",
    ] {
        let hostile = hostile.trim_end_matches('/');
        for access in [Access::Read, Access::Write, Access::Device] {
            for is_directory in [false, true] {
                let grant = Placed { path: hostile.into(), access, is_directory };
                let profile = SeatbeltPolicy::reviewed().unwrap().profile(&[grant], &[hostile.into()]).unwrap();
                let plain = reviewed(&[Placed { path: "/w/x".into(), access, is_directory }], &["/w/x"]);
                let renamed = format!("{:?}", read(&plain)).replace("\"/w/x\"", &format!("{hostile:?}"));
                assert_eq!(format!("{:?}", read(&profile)), renamed, "{hostile}");
            }
        }
    }
}

#[test]
fn a_path_without_a_sure_form_makes_no_profile() {
    let policy = SeatbeltPolicy::reviewed().unwrap();
    let not_text = PathBuf::from(std::ffi::OsString::from_vec(b"/w/\xff".to_vec()));
    let unwritable = ["/w/a\0b", "/w/a\nb", "/w/a\rb", "/w/a\tb", "/w/\u{7f}", "/w/\u{85}"].map(PathBuf::from);
    for path in unwritable.into_iter().chain([not_text]) {
        let grant = Placed { path: path.clone(), access: Access::Read, is_directory: true };
        assert_eq!(policy.profile(&[grant], &[]), Err(ProfileError::Unwritable(path.clone())));
        assert_eq!(policy.profile(&[], std::slice::from_ref(&path)), Err(ProfileError::Unwritable(path)));
    }
    for path in ["/", "w", ""].map(PathBuf::from) {
        let grant = Placed { path: path.clone(), access: Access::Write, is_directory: true };
        assert_eq!(policy.profile(&[grant], &[]), Err(ProfileError::Root(path)));
    }
    let many: Vec<Placed> = (0..64).map(|at| placed(&format!("/{at}{}", "x".repeat(4000)), Access::Write)).collect();
    assert_eq!(policy.profile(&many, &[]), Err(ProfileError::Large));
}

#[test]
fn the_agent_has_its_workspace_and_nothing_of_the_owners_or_of_gateposts() {
    let (_, profile) = of_a_server();
    let may = |operation: &str, path: &str| allows(&profile, operation, path);
    let state = "/Users/a/.local/state/gatepost";
    for path in ["/Users/a/work/src/a.rs", &format!("{state}/bindings/1/tmp/x"), "/Users/a/.cargo/registry/x"] {
        assert!(may("file-read-data", path) && may("file-write-create", path) && may("process-exec", path), "{path}");
        assert!(may("network-outbound", path), "{path}");
    }
    for path in ["/usr/bin/git", "/System/Library/x", "/Users/a/tools/x", &format!("{state}/servers/1.40.0/bin/python")]
    {
        assert!(may("file-read-data", path) && may("process-exec-interpreter", path), "{path}");
        assert!(!may("file-write-data", path) && !may("network-outbound", path), "{path}");
    }
    for path in [
        "/Users/a/.ssh/id_ed25519",
        "/Users/a/.bashrc",
        "/Users/a/.cargo/credentials.toml",
        "/private/tmp/x",
        "/System/Volumes/Data/Users/a/.ssh/id_ed25519",
        &format!("{state}/owner.token"),
        &format!("{state}/bindings/2/tmp/x"),
        "/Users/a/.config/gatepost/config.toml",
        &format!("{SOCKETS}/gatepost.sock"),
    ] {
        for operation in
            ["file-read-data", "file-write-create", "file-link", "file-clone", "process-exec", "network-outbound"]
        {
            assert!(!may(operation, path), "{operation} {path}");
        }
    }
    assert!(may("network-outbound", "/private/var/run/mDNSResponder"));
    for path in ["/private/tmp/tmux-501/default", "/private/var/run/docker.sock", "/Users/a/.ssh/agent"] {
        assert!(!may("network-outbound", path), "{path}");
    }
}

#[test]
fn what_is_kept_is_closed_within_a_grant_and_open_to_a_grant_below_it() {
    let grants = [placed("/k/in/env", Access::Read), placed("/k", Access::Write)];
    // The very directory, one above it, and one that another kept one lies in.
    for grants in [grants.to_vec(), vec![placed("/k/in/env", Access::Read), placed("/k/in", Access::Write)]] {
        let profile = reviewed(&grants, &["/k/in/env/own", "/k/in", "/k"]);
        let may = |operation: &str, path: &str| allows(&profile, operation, path);
        for path in ["/k/key", "/k/in/key", "/k/in/env/own/key", "/k/in/gatepost.sock"] {
            for operation in ["file-read-data", "file-read-metadata", "file-write-data", "network-outbound"] {
                assert!(!may(operation, path), "{operation} {path}");
            }
        }
        assert!(may("file-read-data", "/k/in/env/x") && !may("file-write-data", "/k/in/env/x"));
        // The way there can be looked at and not listed.
        for way in ["/k", "/k/in"] {
            assert!(may("file-read-metadata", way) && !may("file-read-data", way), "{way}");
        }
    }
}

#[test]
fn nothing_is_allowed_that_the_policy_does_not_name() {
    let (_, profile) = of_a_server();
    let rules = read(&profile);
    assert_eq!(rules[..2], read("(version 1) (deny default)"));
    let all_on = |operation: &str| {
        let allowed = rules.iter().filter(|rule| rule.is("allow") && rule.list().contains(&Word(operation.to_owned())));
        allowed.flat_map(|rule| rule.list()[1..].iter().filter(|part| matches!(part, List(_)))).collect::<Vec<_>>()
    };
    for operation in ["signal", "process-info*"] {
        assert_eq!(all_on(operation), read("(target same-sandbox)").iter().collect::<Vec<_>>());
    }
    let services: Vec<String> = all_on("mach-lookup").iter().map(|filter| format!("{:?}", filter.list()[1])).collect();
    assert_eq!(services.len(), 7, "{services:?}");
    // The keychain, starting programs outside, the clipboard, settings that others run by.
    for name in
        ["SecurityServer", "securityd", "launchservicesd", "coreservices", "pasteboard", "cfprefsd", "tccd", "lsd"]
    {
        assert!(!services.iter().any(|service| service.contains(name)), "{name}");
    }
    let unfiltered = ["process-fork", "file-read-metadata", "pseudo-tty"];
    for rule in rules.iter().filter(|rule| rule.is("allow")).map(Form::list) {
        let filtered = rule.iter().any(|part| matches!(part, List(_)));
        assert!(filtered || unfiltered.contains(&rule[1].word()), "{rule:?}");
    }
    for word in
        ["appleevent", "lsopen", "job-creation", "mach-priv", "task-port", "no-sandbox", "kern.proc", "preference"]
    {
        assert!(!profile.contains(word), "{word}");
    }
}

#[test]
fn each_unfit_rule_of_macos_is_refused() {
    let parse = |rules: &str| SeatbeltPolicy::parse(&format!(r#"{{"v":1,"files":[],"rules":[{rules}]}}"#));
    assert!(parse(r#"{"allow":["mach-lookup"],"to":[{"service":"a.b"}],"reason":"a"}"#).is_ok());
    for (rule, word) in [
        (r#"{"allow":["mach-lookup"],"to":[{"service":"a"}],"reason":" "}"#, "no reason"),
        (r#"{"allow":[],"reason":"a"}"#, "no operation"),
        (r#"{"allow":["default"],"reason":"a"}"#, "no name of an operation"),
        (r#"{"allow":["*"],"reason":"a"}"#, "no name of an operation"),
        (r#"{"allow":["file-read*) (allow file-write*"],"reason":"a"}"#, "no name of an operation"),
        (r#"{"allow":["file-read*"],"x":1,"reason":"a"}"#, "unknown field"),
        (r#"{"allow":["Signal"],"reason":"a"}"#, "no name of an operation"),
        (r#"{"allow":["mach-lookup","mach-lookup"],"reason":"a"}"#, "twice"),
        (r#"{"allow":["a-b"],"to":[{"target":"others"}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"remote":"ip) (allow a-b"}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"family":"af_unix"}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"path":"tmp"}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"pattern":"^/dev/\") (x"}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"service":""}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"all":[{"path":"/a"}]}],"reason":"a"}"#, "no filter"),
        (r#"{"allow":["a-b"],"to":[{"other":"a"}],"reason":"a"}"#, "unknown variant"),
    ] {
        let fault = parse(rule).unwrap_err();
        assert!(fault.contains(word), "{rule}: {fault}");
    }
    let of_files = r#"{"v":1,"files":[{"paths":["usr"],"access":"read","reason":"a"}],"rules":[]}"#;
    assert!(SeatbeltPolicy::parse(of_files).unwrap_err().contains("plain absolute path"));
    assert!(SeatbeltPolicy::parse(r#"{"v":2,"files":[],"rules":[]}"#).unwrap_err().contains("v 2"));
}
