//! Tables of what is taken and what is not.

use super::*;

fn refuses<T: std::fmt::Debug>(check: impl Fn(&str) -> Result<T, String>, texts: &[&str]) {
    for text in texts {
        let refused = check(text);
        assert!(refused.is_err(), "{text:?}: {refused:?}");
    }
}

fn takes<T: std::fmt::Debug>(check: impl Fn(&str) -> Result<T, String>, texts: &[&str]) {
    for text in texts {
        let taken = check(text);
        assert!(taken.is_ok(), "{text:?}: {taken:?}");
    }
}

#[test]
fn paths() {
    let check = |text: &str| path(text, Path::new("/home/someone"));
    for (text, expected) in [
        ("/a/b", "/a/b"),
        ("/a//b/", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/", "/"),
        ("~", "/home/someone"),
        ("~/", "/home/someone"),
        ("~/src", "/home/someone/src"),
        ("~//etc", "/home/someone/etc"),
        ("/a b/ü", "/a b/ü"),
    ] {
        assert_eq!(check(text).unwrap(), Path::new(expected), "{text}");
        assert_eq!(check(text).unwrap().as_os_str(), expected, "{text}");
    }
    refuses(
        check,
        &[
            "",
            ".",
            "src",
            "./src",
            "../src",
            "/a/../b",
            "~/../b",
            "~other",
            "~other/src",
            "$HOME/src",
            "/a\0b",
            "/a\nb",
        ],
    );
    refuses(check, &[&format!("/{}", "a".repeat(4096))]);
}

#[test]
fn versions() {
    takes(version, &["1.40.0", "0.0.0", "10.2.33"]);
    refuses(
        version,
        &["", "1", "1.40", "1.40.0.1", "v1.40.0", "1.40.0rc1", "1.40.x", "01.4.0", "1..0", " 1.40.0", "1.40.0 "],
    );
    refuses(version, &["../../1", "1.40.0/..", "1.40.0000000"]);
}

#[test]
fn model_names() {
    takes(model_name, &["anthropic/claude-sonnet-4-5", "gpt-5", "openrouter/a/b:free", "a"]);
    refuses(model_name, &["", " ", "a b", "a\n", "modèle", "a\u{202e}b", &"a".repeat(201)]);
}

#[test]
fn tool_names() {
    takes(tool_name, &["terminal", "file_editor", "tool2"]);
    refuses(tool_name, &["", "Terminal", "file-editor", "a b", "a.b", &"a".repeat(65)]);
}

#[test]
fn uuids() {
    takes(uuid, &["0f8fad5b-d9cb-469f-a165-70867728950e"]);
    refuses(
        uuid,
        &[
            "",
            "0f8fad5bd9cb469fa16570867728950e",
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "{0f8fad5b-d9cb-469f-a165-70867728950e}",
            "0f8fad5b-d9cb-469f-a165-70867728950",
            "0f8fad5b-d9cb-469f-a165-70867728950g",
            "0f8fad5-bd9cb-469f-a165-70867728950e",
        ],
    );
}

#[test]
fn digests() {
    takes(digest, &[&"0".repeat(64), &"af09".repeat(16)]);
    refuses(digest, &["", &"0".repeat(63), &"0".repeat(65), &"A".repeat(64), &"g".repeat(64)]);
}

#[test]
fn credential_names() {
    takes(credential_name, &["model-key", "model.key", "A_1"]);
    refuses(credential_name, &["", ".", "..", ".hidden", "a/b", "/etc/passwd", "a b", "a\0", &"a".repeat(256)]);
}

#[test]
fn base_urls() {
    takes(
        base_url,
        &[
            "https://api.example.com",
            "https://api.example.com/",
            "https://api.example.com/v1",
            "http://127.0.0.1:8080/v1",
            "http://localhost:1",
            "http://[::1]",
            "http://[::1]:8080/v1",
            "https://example.com:65535",
        ],
    );
    refuses(
        base_url,
        &[
            "",
            "api.example.com",
            "ftp://example.com",
            "file:///etc/passwd",
            "HTTP://example.com",
            "https://",
            "https:///v1",
            "https://user@example.com",
            "https://user:secret@example.com/v1",
            "https://example.com/v1?key=secret",
            "https://example.com/v1#part",
            "https://example.com/a b",
            "https://example.com/\n",
            "https://exämple.com",
            "https://example.com:0",
            "https://example.com:65536",
            "https://example.com:",
            "https://example.com:+80",
            "https://:80",
            "http://[::1",
            "http://[::1]8080",
            "http://[nonsense]",
            "http://::1",
            "https://example.com\\@other.com",
        ],
    );
}
