use std::path::{Path, PathBuf};

use super::*;

fn plan() -> Plan {
    let mut plan = Plan::new("/w/space".into(), "/s/tmp".into(), "/home/a".into());
    plan.writable = vec!["/cache/one".into(), "/cache/two".into()];
    plan.readable = vec!["/tools".into()];
    plan.environment = vec!["/install/env".into(), "/python".into()];
    plan.strip_environment = vec!["OH_".into(), "SECRET".into()];
    plan
}

#[test]
fn the_reviewed_policy_is_fit_for_use() {
    let policy = Policy::reviewed().unwrap();
    assert!(policy.calls.rules.len() > 10 && policy.files.rules.len() > 10);
    for rule in policy.calls.rules.iter().filter_map(|rule| rule.when.as_ref()) {
        assert!(!rule.alternatives().is_empty() && rule.alternatives().iter().all(|all| !all.is_empty()));
    }
}

#[test]
fn each_unfit_rule_about_calls_is_refused() {
    let parse = |rules: &str| CallPolicy::parse(&format!(r#"{{"v":1,"rules":[{rules}]}}"#));
    assert!(parse(r#"{"calls":["bpf"],"errno":"EPERM","reason":"a"}"#).is_ok());
    let bad = [
        (r#"{"calls":["bpf"],"errno":"EPERM","reason":" "}"#, "no reason"),
        (r#"{"calls":["bpf"],"errno":"EPERM"}"#, "missing field `reason`"),
        (r#"{"calls":[],"errno":"EPERM","reason":"a"}"#, "no call"),
        (r#"{"calls":["bpf","bpf"],"errno":"EPERM","reason":"a"}"#, "bpf stands twice"),
        (r#"{"calls":["bpf"],"errno":"EOK","reason":"a"}"#, "unknown variant"),
        (r#"{"calls":["bpf"],"errno":"EPERM","reason":"a","more":1}"#, "unknown field"),
        (r#"{"calls":["a"],"errno":"EPERM","when":{"argument":6,"is_any_of":[1]},"reason":"a"}"#, "no argument 6"),
        (r#"{"calls":["a"],"errno":"EPERM","when":{"argument":0,"is_any_of":[]},"reason":"a"}"#, "no value"),
        (r#"{"calls":["a"],"errno":"EPERM","when":{"argument":0,"is_any_of":["X"]},"reason":"a"}"#, "known name"),
        (r#"{"calls":["a"],"errno":"EPERM","when":{"argument":0,"has_any_of":[3]},"reason":"a"}"#, "one bit"),
        (r#"{"calls":["a"],"errno":"EPERM","when":{"argument":0},"reason":"a"}"#, "no variant"),
        (
            r#"{"calls":["a"],"errno":"EPERM","when":{"argument":0,"is_any_of":[1],"x":1},"reason":"a"}"#,
            "unknown field",
        ),
    ];
    for (rule, word) in bad {
        let fault = parse(rule).unwrap_err();
        assert!(fault.contains(word), "{rule}: {fault}");
    }
    assert!(CallPolicy::parse(r#"{"v":2,"rules":[]}"#).unwrap_err().contains("v 2"));
}

#[test]
fn conditions_become_alternatives() {
    let of = |test| Condition { argument: 0, test }.alternatives();
    let name = |name: &str| Value::Name(name.to_owned());
    use Comparison::{AllSet, Equal, NotEqual};
    assert_eq!(of(Test::HasAnyOf(vec![name("CLONE_NEWUSER"), Value::Number(1)])), [[AllSet(0x1000_0000)], [AllSet(1)]]);
    assert_eq!(of(Test::IsAnyOf(vec![name("TIOCSTI"), Value::Number(2)])), [[Equal(0x5412)], [Equal(2)]]);
    assert_eq!(of(Test::IsNoneOf(vec![name("AF_UNIX"), Value::Number(2)])), [[NotEqual(1), NotEqual(2)]]);
}

#[test]
fn each_unfit_rule_about_files_is_refused() {
    let parse = |path: &str| {
        FilePolicy::parse(&format!(r#"{{"v":1,"rules":[{{"paths":["{path}"],"access":"read","reason":"a"}}]}}"#))
    };
    for path in ["/usr", "/dev/null", "{home}", "{home}/.config/git"] {
        assert!(parse(path).is_ok(), "{path}");
    }
    for path in
        ["", "/", "usr", "/usr/", "/usr/../etc", "/./usr", "//usr", "{root}/a", "{home}a", "/a/{home}", "{home}/"]
    {
        assert!(parse(path).is_err(), "{path}");
    }
    let twice = r#"{"v":1,"rules":[{"paths":["/usr","/usr"],"access":"read","reason":"a"}]}"#;
    assert!(FilePolicy::parse(twice).unwrap_err().contains("twice"));
    let more = r#"{"v":1,"rules":[{"paths":["/usr"],"access":"read","reason":"a","x":1}]}"#;
    assert!(FilePolicy::parse(more).unwrap_err().contains("unknown field"));
}

#[test]
fn placeholders_become_the_plans_paths() {
    let text = r#"{"v":1,"rules":[
        {"paths":["/usr","{workspace}"],"access":"write","reason":"a"},
        {"paths":["{home}/.gitconfig","{writable}","{environment}","{tmp}","{readable}"],"access":"read","reason":"a"}
    ]}"#;
    let grants = FilePolicy::parse(text).unwrap().grants(&plan());
    let grant = |path: &str, access, links| Grant { path: path.into(), access, links, identity: None };
    let expected = [
        grant("/usr", Access::Write, Links::Followed),
        grant("/w/space", Access::Write, Links::Refused),
        grant("/home/a/.gitconfig", Access::Read, Links::Skipped),
        grant("/cache/one", Access::Read, Links::Skipped),
        grant("/cache/two", Access::Read, Links::Skipped),
        grant("/install/env", Access::Read, Links::Skipped),
        grant("/python", Access::Read, Links::Skipped),
        grant("/s/tmp", Access::Read, Links::Skipped),
        grant("/tools", Access::Read, Links::Skipped),
    ];
    assert_eq!(grants, expected);
    // Paths are equal with and without a slash at their end; the kernel takes one only for a directory.
    assert!(grants.iter().all(|grant| !grant.path.as_os_str().as_encoded_bytes().ends_with(b"/")));
}

/// A path that is granted as it stands is held to what stood there; one of the system's is not.
#[test]
fn what_stood_at_a_path_goes_along_with_its_grant() {
    let mut plan = plan();
    let identity = Identity { device: 1, inode: 2 };
    plan.identities = ["/w/space", "/tools", "/usr"].map(|path| (path.into(), identity)).into();
    assert_eq!(Plan::parse(&plan.to_bytes().unwrap()), Ok(plan.clone()));
    let grants = Policy::reviewed().unwrap().files.grants(&plan);
    let held: Vec<&Path> = grants.iter().filter(|grant| grant.identity.is_some()).map(|grant| &*grant.path).collect();
    assert_eq!(held, [Path::new("/w/space"), Path::new("/tools")]);
    let granted: Vec<&PathBuf> = plan.granted().collect();
    for path in ["/w/space", "/s/tmp", "/cache/one", "/tools", "/python"] {
        assert!(granted.contains(&&PathBuf::from(path)), "{path}");
    }
    assert!(!granted.contains(&&plan.home));
}

#[test]
fn home_is_never_granted_whole() {
    let grants = Policy::reviewed().unwrap().files.grants(&plan());
    assert!(!grants.iter().any(|grant| Path::new("/home/a").starts_with(&grant.path)));
    assert!(!grants.iter().any(|grant| grant.access == Access::Write && grant.path.starts_with("/home/a")));
}

#[test]
fn a_plan_goes_through_its_bytes() {
    assert_eq!(Plan::parse(&plan().to_bytes().unwrap()), Ok(plan()));
}

#[test]
fn each_unfit_plan_is_refused() {
    let fault = |change: fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        let unchecked = serde_json::to_vec(&plan).unwrap();
        let read = Plan::parse(&unchecked).unwrap_err();
        assert_eq!(plan.to_bytes().unwrap_err(), read);
        read.to_string()
    };
    assert!(fault(|plan| plan.workspace = PathBuf::from("/")).contains("workspace"));
    assert!(fault(|plan| plan.workspace = PathBuf::from("a")).contains("workspace"));
    assert!(fault(|plan| plan.tmp = PathBuf::from("/a/../b")).contains("tmp"));
    assert!(fault(|plan| plan.home = PathBuf::from("/a/./b")).contains("home"));
    assert!(fault(|plan| plan.home = PathBuf::from("/a//b")).contains("home"));
    assert!(fault(|plan| plan.readable = vec![PathBuf::from("/a\0b")]).contains("readable"));
    assert!(fault(|plan| plan.writable = vec![PathBuf::from("/a".repeat(2048))]).contains("writable"));
    assert!(fault(|plan| plan.environment = vec![PathBuf::from("/a"); 65]).contains("environment has more"));
    assert!(fault(|plan| plan.strip_environment = vec!["A=B".into()]).contains("no variable's name"));
    assert!(fault(|plan| plan.strip_environment = vec![String::new()]).contains("no variable's name"));
    // All at once.
    let both = fault(|plan| (plan.tmp, plan.home) = (PathBuf::from("x"), PathBuf::from("y")));
    assert!(both.contains("tmp") && both.contains("home"), "{both}");
    let large = [b" ".repeat(MAX_PLAN_BYTES), plan().to_bytes().unwrap()].concat();
    assert!(Plan::parse(&large).unwrap_err().to_string().contains("more than 65536 bytes"));
    let text = String::from_utf8(plan().to_bytes().unwrap()).unwrap();
    assert!(Plan::parse(text.replace("\"v\":1", "\"v\":2").as_bytes()).unwrap_err().to_string().contains("v 2"));
    assert!(Plan::parse(text.replace("\"v\":1", "\"v\":1,\"x\":1").as_bytes()).is_err());
}

#[test]
fn names_and_beginnings_are_stripped_and_nothing_else() {
    let plan = plan();
    for (name, stripped) in [
        ("OH_SECRET_KEY", true),
        ("OH_", true),
        ("OH", false),
        ("XOH_A", false),
        ("SECRET", true),
        ("SECRET_KEY", false),
        ("PATH", false),
        ("", false),
    ] {
        assert_eq!(plan.strips(name.as_bytes()), stripped, "{name}");
    }
}
