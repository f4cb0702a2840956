//! The known name that somebody meant.

/// The known name nearest to `name`, if it is near enough to be a slip of the hand.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name of any length costs little: what is far longer than every known one is near to none.
    let name: String = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let allowed = (name.chars().count() / 2).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: insertions, removals and replacements of one character.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (removed, left) in from.chars().enumerate() {
        let mut diagonal = removed;
        let mut last = removed + 1;
        for (right, cell) in to.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = *cell;
            last = replaced.min(last + 1).min(diagonal + 1);
            *cell = last;
        }
        if let Some(first) = row.first_mut() {
            *first = removed + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("roots", "root", 1),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_a_near_name_is_offered() {
        let known = ["max_servers", "version", "standby"];
        assert_eq!(nearest("max_server", known), Some("max_servers"));
        assert_eq!(nearest("Version", known), Some("version"));
        assert_eq!(nearest("stanby", known), Some("standby"));
        assert_eq!(nearest("something", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
        assert_eq!(nearest("", known), None);
    }
}
