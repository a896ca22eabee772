//! Numbers as they are written in each language.

use super::Tongue;

/// A number in one word.
pub fn in_words(word: &str, tongue: Tongue) -> Option<i64> {
    proscenium::number_word(word, tongue.code()).map(i64::from)
}

/// A number in digits as SQL writes it; none where the language leaves it unclear.
pub fn written(text: &str, tongue: Tongue) -> Option<String> {
    if text.is_empty() || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (thousands, decimal) = if tongue == Tongue::Italian { ('.', ',') } else { (',', '.') };
    let (whole, fraction) = match text.split_once(decimal) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let groups: Vec<&str> = whole.split(thousands).collect();
    let grouped = groups.len() > 1 && groups.iter().skip(1).all(|group| group.len() == 3 && digits(group));
    let grouped = grouped && groups.first().is_some_and(|first| first.len() <= 3 && digits(first));
    if !(digits(whole) || grouped) || fraction.is_some_and(|fraction| !digits(fraction)) {
        // "4.5" in an Italian question can only be a decimal point.
        let point =
            text.split_once('.').filter(|(whole, rest)| digits(whole) && digits(rest) && rest.len() != 3);
        return point.filter(|_| tongue == Tongue::Italian).map(|_| text.to_owned());
    }
    let whole = groups.concat();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(fraction.map_or_else(|| whole.to_owned(), |fraction| format!("{whole}.{fraction}")))
}
