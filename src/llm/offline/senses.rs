//! What a word of a clause means where it stands.

use super::lexicon;
use super::text::Token;

/// The words that a token represents: the token in its sense here, and the meaning of the pair it forms
/// with the next token.
pub(super) fn senses(tokens: &[Token], i: usize) -> Vec<&str> {
    let Some(token) = tokens.get(i) else { return Vec::new() };
    let pair = tokens.get(i + 1).and_then(|next| lexicon::pair_meaning(&token.norm, &next.norm));
    // "Book" at the start of an order or after "to" is the verb, not the noun.
    let before = i.checked_sub(1).and_then(|b| tokens.get(b)).filter(|t| t.word);
    let does = token.norm == "book"
        && before.is_none_or(|t| {
            t.is(&["to", "please", "and", "then", "you", "first", "also", "i", "we", "me", "just", "must"])
        });
    // "Is tomorrow a holiday?", but "I need a holiday".
    let is_holiday = token.norm == "holiday"
        && before.is_some_and(|t| t.is(&["a"]))
        && tokens.iter().find(|t| t.word).is_some_and(|t| t.is(&["is", "was"]));
    let own = match () {
        () if does => "reserve",
        () if is_holiday => "holidays",
        () => token.norm.as_str(),
    };
    std::iter::once(own).chain(pair).collect()
}
