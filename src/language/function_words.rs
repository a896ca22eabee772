//! Words that join or precede others, in English, Italian, French, German and Spanish, without accents.
//!
//! Grounding reads them, too: a word that is added here changes which arguments of a recorded run have a source.

/// Words that join what is both meant. As "è" is "e" without its accent, [`Token::is_and`](super::text::Token::is_and) tells
/// them apart.
pub(crate) const AND: &[&str] = &["and", "e", "ed", "et", "und", "y"];
/// Words that join alternatives.
pub(crate) const OR: &[&str] = &["or", "o", "od", "oppure", "oder", "ou"];
/// Words that set what follows against what was said.
pub(crate) const BUT: &[&str] = &["but", "ma", "pero", "mais", "aber"];
/// Articles, of English and Italian alone.
pub(crate) const ARTICLES: &[&str] =
    &["the", "a", "an", "il", "lo", "la", "l", "i", "gli", "le", "un", "una", "uno"];
/// Words between the parts of a number: "two hundred and five", "due e mezzo".
pub(crate) const NUMBER_JOINTS: &[&str] = &["and", "e", "et", "y"];
