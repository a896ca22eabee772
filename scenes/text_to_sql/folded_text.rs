//! Texts in one spelling, and the phrases in them.

/// A text in lower case, without accents and marks, with a space around each word.
pub fn folded(text: &str) -> String {
    let plain = deunicode::deunicode(text).to_lowercase();
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

/// Whether a folded text has one of these phrases.
pub fn has_any(said: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| said.contains(&format!(" {} ", phrase.replace('\'', " "))))
}

/// The rest of a text after the words with which it begins.
pub fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}
