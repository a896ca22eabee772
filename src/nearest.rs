//! Suggestions for misspelled names.

/// `did you mean "…"?` with the candidate closest to `given`, or an empty string if none is close.
pub(crate) fn did_you_mean<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(given, candidates) {
        Some(name) => format!("did you mean {name:?}?"),
        None => String::new(),
    }
}

/// The candidate closest to `given`, ignoring case; at most a third of its characters may differ. If none is so close, the
/// only one that continues it after an underscore, such as a key with its unit.
pub(crate) fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let max = (given.chars().count() / 3).max(1);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| *name);
    near.or_else(|| {
        let begins = format!("{given}_");
        let mut longer = candidates.iter().filter(|name| name.to_lowercase().starts_with(&begins));
        longer.next().filter(|_| longer.next().is_none()).copied()
    })
}

/// The candidates as a list for people; at most twelve are listed.
pub(crate) fn name_list<'a>(candidates: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = candidates.into_iter().collect();
    let shown = names.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "(none)".to_owned(),
        n if n > 12 => format!("{shown} and {} more", n - 12),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_without_its_unit_finds_the_only_key_that_continues_it() {
        let known = ["deadline_ms", "max_retry_after_ms", "max_attempts", "deadlines"];
        assert_eq!(nearest("Deadline", known), Some("deadlines"), "the closest name is first");
        assert_eq!(nearest("deadline", known[..3].iter().copied()), Some("deadline_ms"));
        assert_eq!(nearest("max", known), None, "two continue it");
    }

    #[test]
    fn typo_finds_the_nearest_name_and_other_words_none() {
        let known = ["description", "instructions", "effect"];
        assert_eq!(nearest("descripton", known), Some("description"));
        assert_eq!(nearest("Effect", known), Some("effect"));
        assert_eq!(nearest("timeout", known), None);
        assert_eq!(did_you_mean("efect", known), "did you mean \"effect\"?");
    }
}
