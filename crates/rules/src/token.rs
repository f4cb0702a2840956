//! What a client's token may be called and hold.

use crate::refusal::{Refusal, RefusalCode};
use crate::role::{Role, Roles};

/// Most tokens, revoked ones too: their names stay taken.
pub const MAX_TOKENS: usize = 256;
/// Longest name, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// What a token begins with, so that people and scanners of secrets know one when they see it.
pub const TOKEN_PREFIX: &str = "gatepost_";
/// The name that the owner's token acts under.
pub const OWNER_NAME: &str = "owner";

/// Whether a token may have this name: letters, digits, `.`, `_` and `-`, a letter or digit first, and not the owner's.
///
/// # Errors
/// `empty`, `too_long`, `invalid_value`.
pub fn validate_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(RefusalCode::Empty, "`name` must name the client"));
    }
    if name.len() > MAX_NAME_CHARS {
        let detail = format!("`name` is longer than {MAX_NAME_CHARS} characters");
        return Err(Refusal::new(RefusalCode::TooLong, detail));
    }
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        let detail = "`name` may hold letters, digits, `.`, `_` and `-`, and begins with a letter or digit";
        return Err(Refusal::new(RefusalCode::InvalidValue, detail));
    }
    if name == OWNER_NAME {
        return Err(Refusal::new(RefusalCode::InvalidValue, "`owner` is the name of the owner's own token"));
    }
    Ok(())
}

/// The set of these roles: at least one, and no other word.
///
/// # Errors
/// `empty`, `invalid_value`.
pub fn roles_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Roles, Refusal> {
    let unknown = || Refusal::new(RefusalCode::InvalidValue, "`roles` may hold observer, operator and approver");
    let roles: Vec<Role> =
        names.into_iter().map(|name| Role::parse(name).ok_or_else(unknown)).collect::<Result<_, _>>()?;
    if roles.is_empty() {
        return Err(Refusal::new(RefusalCode::Empty, "`roles` must hold at least one role"));
    }
    Ok(Roles::of(&roles))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Refusal>) -> Option<RefusalCode> {
        result.err().map(|refusal| refusal.code)
    }

    #[test]
    fn names_are_plain_and_never_the_owners() {
        for name in ["a", "desktop-app", "9.x_Y", &"a".repeat(64)] {
            assert_eq!(code(validate_name(name)), None, "{name}");
        }
        for (name, expected) in [
            ("", RefusalCode::Empty),
            (&*"a".repeat(65), RefusalCode::TooLong),
            ("owner", RefusalCode::InvalidValue),
            ("-", RefusalCode::InvalidValue),
            ("-a", RefusalCode::InvalidValue),
            ("a b", RefusalCode::InvalidValue),
            ("a/b", RefusalCode::InvalidValue),
            ("é", RefusalCode::InvalidValue),
            ("a\n", RefusalCode::InvalidValue),
        ] {
            assert_eq!(code(validate_name(name)), Some(expected), "{name:?}");
        }
    }

    #[test]
    fn a_set_of_roles_holds_known_ones_and_is_never_the_owners() {
        assert_eq!(roles_of(["observer", "approver"]).unwrap(), Roles::of(&[Role::Approver, Role::Observer]));
        let all = roles_of(["observer", "operator", "approver", "observer"]).unwrap();
        assert!(Role::ALL.iter().all(|role| all.contains(*role)));
        assert_ne!(all, Roles::OWNER);
        assert_eq!(code(roles_of([])), Some(RefusalCode::Empty));
        for wrong in ["owner", "Observer", "", "observer+operator"] {
            assert_eq!(code(roles_of(["observer", wrong])), Some(RefusalCode::InvalidValue), "{wrong}");
        }
    }
}
