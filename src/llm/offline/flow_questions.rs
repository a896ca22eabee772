//! Questions about things that a flow's description names, such as the customers and orders of a database.

use std::borrow::Cow;

use super::lexicon;
use super::prompt::SceneCard;
use super::text::{self, Token};

/// The least similarity of a word to one of the description: other forms, and the same meaning in another language.
const MEANS: f64 = 0.85;
/// The fewest letters of a word that is known by its meaning only: "pay" is no payment.
const MIN_LETTERS: usize = 5;
/// Where in a question the thing is named, among the words with a meaning of their own.
const THING_WITHIN: usize = 4;
/// What asks for an amount or for one of many: a thing after it is asked for.
const AMOUNTS: &[&str] = &[
    "number", "numero", "average", "avg", "mean", "media", "total", "totale", "sum", "somma", "percentage",
    "percentuale", "top", "best", "worst", "migliori", "migliore", "peggiori", "most", "highest", "lowest",
    "latest", "newest", "oldest", "ultimi", "ultime", "primi", "prime", "elenco",
];
/// What asks as question words do.
const ASKING: &[&str] =
    &["qual", "there", "ci", "give", "dammi", "fammi", "vedere", "see", "tell", "dimmi", "mi", "me"];
/// Of kinds, not of things: "what kind of".
const KINDS: &[&str] =
    &["kind", "kinds", "type", "types", "sort", "sorts", "tipo", "tipi", "genere", "generi"];
const ARTICLES: &[&str] = &["a", "an", "the", "un", "una", "la", "il"];
/// What a query in SQL is called.
const SQL: &str = "sql";

/// The words of a request in which a query in SQL is replaced by the word for one. "Select one from my list" is none.
pub(super) fn without_query(words: &str) -> Cow<'_, str> {
    let lower = words.to_ascii_lowercase();
    let is_query = |at: &usize| {
        let query = &words[*at..];
        lower[*at..].contains(" from ")
            && (*at == 0 || query.starts_with("SELECT ") || query.contains(['*', '(']))
            && !lower[..*at].ends_with(char::is_alphanumeric)
    };
    match lower.match_indices("select ").map(|(at, _)| at).find(is_query) {
        Some(at) => Cow::Owned(format!("{} {SQL}", &words[..at])),
        None => Cow::Borrowed(words),
    }
}

/// Whether a request may be for a flow: questions only for those which answer some, as one of their examples shows. Others
/// are started by an order.
pub(super) fn may_serve(flow: &SceneCard, words: &str) -> bool {
    let opens = text::tokens(words);
    let first = opens.iter().find(|token| token.word);
    !first.is_some_and(|token| lexicon::is_question_word(&token.norm)) || answers(flow)
}

/// Whether the words ask for things that the flow's description names, as one of its examples asks for some: "Which products
/// …?", "List the customers …", "the average price of products".
pub(super) fn asks_for_things(flow: &SceneCard, words: &str) -> bool {
    answers(flow) && thing_asked_for(flow, words).is_some()
}

fn answers(flow: &SceneCard) -> bool {
    flow.examples.iter().any(|example| {
        let tokens = text::tokens(&example.say);
        asks(&tokens.iter().filter(|token| token.word).collect::<Vec<_>>())
    })
}

/// The thing that the words ask for, if the flow's description names it.
pub(super) fn thing_asked_for(flow: &SceneCard, words: &str) -> Option<Token> {
    let tokens = text::tokens(words);
    let said: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let named: Vec<&&Token> = said.iter().filter(|token| has_meaning(token)).collect();
    let opens_with_action =
        named.first().is_some_and(|token| lexicon::is_special_action(&token.features().concepts));
    let thing = named.iter().take(THING_WITHIN).position(|token| is_thing(&flow.description, token))?;
    // "Explain …" and "order …" are orders, "orders from March" are things.
    let is_first = said.first().is_some_and(|first| first.start == named[thing].start);
    let is_asked_for = if is_first { is_plural(named[thing]) } else { asks(&said) };
    let is_asked_for = is_asked_for || thing == 0 && is_plural(named[0]);
    (is_asked_for && !opens_with_action).then(|| (**named[thing]).clone())
}

/// Whether a text has a word with the meaning of this one.
pub(super) fn names(text: &str, thing: &Token) -> bool {
    let thing = thing.features();
    text::tokens(text).iter().any(|token| token.word && token.features().similarity(&thing) >= MEANS)
}

/// Whether words begin as a question for information, or name an amount. How something is done is another question.
fn asks(words: &[&Token]) -> bool {
    let opening = |token: &&Token| lexicon::is_question_word(&token.norm) || token.is(ASKING);
    let amount = |token: &&Token| token.is(AMOUNTS) || token.digit();
    // "A search" is a thing.
    let looks_up = |(at, token): (usize, &&Token)| {
        lexicon::is_lookup(&token.features().concepts)
            && !at.checked_sub(1).is_some_and(|before| words[before].is(ARTICLES))
    };
    let is_procedure =
        words.windows(2).take(3).any(|pair| pair[0].is(&["how", "come"]) && !pair[1].is(&["many", "much"]));
    let first = words.iter().take(THING_WITHIN);
    !is_procedure
        && (first.clone().take(3).any(opening)
            || first.clone().any(amount)
            || first.enumerate().any(looks_up))
}

fn has_meaning(token: &Token) -> bool {
    !lexicon::is_stop_word(&token.norm)
        && !lexicon::is_question_word(&token.norm)
        && !lexicon::is_time_unit(&token.norm)
        && !lexicon::is_lookup(&token.features().concepts)
        && !token.digit()
        && !token.is(AMOUNTS)
        && !token.is(ASKING)
}

fn is_thing(description: &str, token: &Token) -> bool {
    let word = token.features();
    let long = token.norm.chars().count() >= MIN_LETTERS;
    // "What's the date today?" is not about data.
    let is_likely = |other: &Token| !token.is(&["date", "dates"]) || other.norm == token.norm;
    let means = |other: &Token| {
        has_meaning(other) && is_likely(other) && {
            let alike = other.features().similarity(&word);
            alike > MEANS || long && alike >= MEANS
        }
    };
    !token.is(KINDS) && text::tokens(description).iter().any(|other| other.word && means(other))
}

/// Whether a word may be a plural in English or Italian, which is no order: "orders from March" and "order a pizza".
fn is_plural(token: &Token) -> bool {
    token.norm.ends_with(['s', 'i'])
}
