use super::*;

fn reason(path: &str, text: &str) -> Option<ContentReason> {
    let found = content_findings(&[WorkspaceFile { path, text: Some(text) }]);
    found.first().map(|finding| finding.reason)
}

#[test]
fn roots_contain_themselves_and_what_is_below() {
    let roots = vec!["/home/u/src".to_owned(), "/data/".to_owned()];
    for inside in ["/home/u/src", "/home/u/src/", "/home/u/src/p/q", "/data", "/data/x"] {
        assert!(is_within(inside, &roots), "{inside}");
    }
    for outside in [
        "/home/u",
        "/",
        "",
        "src",
        "/home/u/srcs",
        "/home/u/src2/p",
        "/home/u/src/../x",
        "/database",
        "./home/u/src",
        "/home/u/SRC",
    ] {
        assert!(!is_within(outside, &roots), "{outside}");
    }
    assert!(!is_within("/x", &[]));
    assert!(!is_within("/x", &["x".to_owned(), String::new(), "/a/..".to_owned()]));
    assert!(is_within("/x", &["/".to_owned()]));
}

#[test]
fn everything_the_server_discovers_is_found() {
    for (path, expected) in [
        (".openhands/plugins/p/hooks/hooks.json", ContentReason::Plugin),
        (".openhands/plugins/p/README.md", ContentReason::Plugin),
        (".agents/plugins/p/.plugin/plugin.json", ContentReason::Plugin),
        (".agents/plugins/p/.claude-plugin/plugin.json", ContentReason::Plugin),
        (".agents/plugins/p/.mcp.json", ContentReason::Plugin),
        (".agents/plugins/p/SKILL.md", ContentReason::Plugin),
        (".plugin/plugin.json", ContentReason::Plugin),
        (".claude-plugin/plugin.json", ContentReason::Plugin),
        (".openhands/hooks.json", ContentReason::Hooks),
        (".openhands/hooks/pre.sh", ContentReason::Hooks),
        (".agents/hooks.json", ContentReason::Hooks),
        (".openhands/agents/reviewer.md", ContentReason::AgentDefinition),
        (".agents/agents/reviewer.md", ContentReason::AgentDefinition),
        (".mcp.json", ContentReason::Mcp),
        ("./.mcp.json", ContentReason::Mcp),
        (".openhands/mcp.json", ContentReason::Mcp),
        (".openhands/mcp_config.json", ContentReason::Mcp),
        (".agents/mcp/servers.json", ContentReason::Mcp),
        (".openhands/skills/s/.mcp.json", ContentReason::Mcp),
        (".agents/skills/s/.mcp.json", ContentReason::Mcp),
        (".OpenHands/Hooks.JSON", ContentReason::Hooks),
    ] {
        assert_eq!(reason(path, "anything"), Some(expected), "{path}");
    }
}

#[test]
fn skills_are_judged_by_what_they_declare() {
    let harmless = "---\nname: s\npaths: \"**/*.rs\"\ndescription: React hooks & more\n---\n# Review\nUse `cargo test`. We have hooks, and mcp_tools!\n";
    for path in [
        ".openhands/skills/s/SKILL.md",
        ".agents/skills/s.md",
        ".openhands/microagents/repo.md",
        "AGENTS.md",
        "sub/CLAUDE.md",
        ".cursorrules",
        "tools/SKILL.md",
    ] {
        assert_eq!(reason(path, harmless), None, "{path}");
        assert_eq!(reason(path, "Today: !`date`"), Some(ContentReason::EmbeddedCommand), "{path}");
        for header in [
            "---\nmcp_tools:\n  fetch: {}\n---\ntext",
            "---\nHooks: []\n---\ntext",
            "+++\nmcp_tools = 1\n+++\ntext",
            "\u{feff}---\nmcp_tools: {}\n---\n",
            "\n\n---\nmcp_tools: {}\n---\n",
            "{\"mcp_tools\": {}}\ntext",
            "---\n\"mcp\\x5ftools\": {}\n---\n",
            "---\n\"m\\x63p_tools\": {}\n---\n",
            "---\n'hooks' : []\n---\n",
            "+++\n[hooks]\n+++\n",
            "---\n{name: s, hooks: []}\n---\n",
            "---\nnever closed\nmcp_tools: {}\n",
        ] {
            assert_eq!(reason(path, header), Some(ContentReason::SkillDeclaration), "{path} {header:?}");
        }
        let unreadable = content_findings(&[WorkspaceFile { path, text: None }]);
        assert_eq!(unreadable[0].reason, ContentReason::Unreadable);
        assert_eq!(unreadable[0].digest, None);
    }
    assert_eq!(reason(".openhands/skills/s/scripts/run.sh", "echo !`date`"), None);
}

#[test]
fn ordinary_files_are_left_alone() {
    for path in [
        "README.md",
        "src/main.rs",
        "docs/plugins/x.md",
        "src/.openhands_notes",
        "hooks/hooks.json",
        "agents/reviewer.md",
        ".openhands/memory/MEMORY.md",
        ".github/hooks.json",
        "mcp.json",
        "",
        "/",
    ] {
        assert_eq!(reason(path, "run !`date`"), None, "{path}");
    }
}

#[test]
fn git_must_not_start_programs() {
    for starts in ["[core]\n\tfsmonitor = ./evil.sh", "[core]\nFSMonitor=\"touch x\"", "[core] fsmonitor = /bin/x"] {
        assert_eq!(reason(".git/config", starts), Some(ContentReason::GitConfig), "{starts}");
    }
    for fine in ["[core]\n\tbare = false\n", "[core]\n\tfsmonitor = true\n", "[core]\n fsmonitor = \"false\"\n", ""] {
        assert_eq!(reason(".git/config", fine), None, "{fine}");
    }
}

#[test]
fn digests_lift_one_content_at_one_path() {
    let finding = |path, text| content_findings(&[WorkspaceFile { path, text: Some(text) }]).remove(0);
    let hooks = finding(".openhands/hooks.json", "{}");
    let digest = content_digest(".openhands/hooks.json", "{}");
    assert_eq!(hooks.digest.as_deref(), Some(digest.as_str()));
    let reviewed = vec![digest];
    assert!(hooks.is_reviewed(&reviewed));
    assert!(!finding(".openhands/hooks.json", "{ }").is_reviewed(&reviewed));
    assert!(!finding(".agents/hooks.json", "{}").is_reviewed(&reviewed));
    assert!(!ContentFinding { digest: None, ..hooks }.is_reviewed(&reviewed));
}
