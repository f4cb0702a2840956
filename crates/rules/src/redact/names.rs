//! Names of fields whose values are secret.

/// Whole names, in lower case without `-`, `_`, `.` and spaces.
const NAMES: &[&str] = &[
    "apikey",
    "apikeys",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "privatekey",
    "proxyauthorization",
    "pwd",
    "secret",
    "secretkey",
    "secrets",
    "sessionapikeys",
    "setcookie",
    "token",
    "xapikey",
];

/// Ends of names: whatever stands before them says whose secret it is.
const ENDINGS: &[&str] = &[
    "accesskey",
    "apikey",
    "authtoken",
    "credential",
    "credentials",
    "encryptionkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretaccesskey",
    "secretkey",
    "signingkey",
];

/// Ends that count only as a word of their own, since `token` also ends words that are not about secrets.
const WORD_ENDINGS: &[&str] = &["token"];

/// Names that end like a secret's and are none.
const EXCEPTIONS: &[&str] =
    &["nexttoken", "nextpagetoken", "pagetoken", "eostoken", "bostoken", "padtoken", "stoptoken", "perturntoken"];

/// Whether the value of a field of this name is to be hidden. Case does not matter, nor do `-`, `_`, `.` and spaces;
/// `camelCase` counts as words. Counts such as `max_tokens` are not secrets.
pub fn is_secret_name(name: &str) -> bool {
    let words = words_of(name);
    let joined = words.concat();
    if EXCEPTIONS.contains(&joined.as_str()) {
        return false;
    }
    NAMES.contains(&joined.as_str())
        || ENDINGS.iter().any(|ending| joined.ends_with(ending))
        || words.last().is_some_and(|last| WORD_ENDINGS.contains(&last.as_str()))
        || ["accesstoken", "refreshtoken", "idtoken", "sessiontoken", "bearertoken"].contains(&joined.as_str())
}

fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let separates = matches!(character, '-' | '_' | '.' | ' ' | ':' | '/');
        if separates || (after_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        if !separates && let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names() {
        for name in [
            "api_key",
            "apikey",
            "apiKey",
            "API-KEY",
            "x-api-key",
            "X-Session-API-Key",
            "session_api_key",
            "session_api_keys",
            "token",
            "Token",
            "access_token",
            "accessToken",
            "accesstoken",
            "refresh_token",
            "refreshToken",
            "id_token",
            "github_token",
            "GITHUB_TOKEN",
            "githubToken",
            "secret",
            "secrets",
            "secret_key",
            "client_secret",
            "clientSecret",
            "password",
            "passwd",
            "db_password",
            "DB_PASSWORD",
            "authorization",
            "Authorization",
            "Proxy-Authorization",
            "cookie",
            "Set-Cookie",
            "private_key",
            "credential",
            "credentials",
            "google_credentials",
            "OPENAI_API_KEY",
            "aws_secret_access_key",
            "aws_access_key",
            "aws_session_token",
            "X-Init-API-Key",
            "passphrase",
            "X-Auth-Token",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn other_names() {
        for name in [
            "prompt_tokens",
            "per_turn_token",
            "max_tokens",
            "tokens",
            "total_tokens",
            "completion_tokens",
            "maxTokens",
            "max_output_tokens",
            "token_count",
            "tokenizer",
            "custom_tokenizer",
            "key",
            "keys",
            "path",
            "command",
            "file_text",
            "secretary",
            "password_hint_shown",
            "author",
            "authors",
            "api_key_name",
            "next_page_token",
            "nextPageToken",
            "",
            "__",
            "cookie_policy",
            "input_cost_per_tokens",
            "broken",
            "betoken",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
