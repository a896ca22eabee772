//! Suggestions for misspelled names.

/// `did you mean "…"?` with the candidate closest to `given`, or an empty string if none is close.
pub(crate) fn did_you_mean<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(given, candidates) {
        Some(name) => format!("did you mean {name:?}?"),
        None => String::new(),
    }
}

/// The candidate closest to `given`, ignoring case; at most a third of its characters may differ.
pub(crate) fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let most = (given.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
    fn typo_finds_the_nearest_name_and_other_words_none() {
        let known = ["description", "instructions", "effect"];
        assert_eq!(nearest("descripton", known), Some("description"));
        assert_eq!(nearest("Effect", known), Some("effect"));
        assert_eq!(nearest("timeout", known), None);
        assert_eq!(did_you_mean("efect", known), "did you mean \"effect\"?");
    }
}
