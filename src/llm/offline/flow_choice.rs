//! Which flow a request, or a question within it, is for, where no scene serves it.

use std::rc::Rc;

use super::flow_questions;
use super::lexicon;
use super::prompt::SceneCard;
use super::text::{self, Features, Token};

/// The least share of a request's words that the texts of its flow have.
const MIN_SHARE: f64 = 0.6;
/// The least number of them, unless the flow's description has the only one.
const MIN_WORDS: usize = 2;
/// The least similarity of equal words in other forms.
const SAME: f64 = 0.9;

/// The flow that has most of the request's words in its description and examples, else the first one that answers questions
/// about the things which the request asks for. `None` if there is none: requests about something else are declined.
pub(super) fn flow_for<'a>(flows: &'a [SceneCard], words: &str) -> Option<&'a SceneCard> {
    let request = content(&flow_questions::without_query(words));
    let may_serve = |flow: &&SceneCard| flow_questions::may_serve(flow, words);
    let scored = flows.iter().filter(may_serve).filter_map(|flow| Some((score(flow, &request)?, flow)));
    // The first of equal ones.
    let best = scored.reduce(|best, other| if other.0 > best.0 { other } else { best });
    // "Documents of the request": requests are no things that a flow is about.
    let is_request = |thing: &Token| thing.features().similarity(&text::features("request")) > SAME;
    let asks_for_things = |flow: &&SceneCard| {
        flow_questions::asks_for_things(flow, words)
            && flow_questions::thing_asked_for(flow, words).is_some_and(|thing| !is_request(&thing))
    };
    let answers = || flows.iter().find(asks_for_things);
    best.map(|(_, flow)| flow).or_else(answers)
}

/// The share of the request's words that the flow has, if that is enough.
fn score(flow: &SceneCard, request: &[Rc<Features>]) -> Option<f64> {
    let examples: Vec<Vec<Rc<Features>>> =
        flow.examples.iter().map(|example| content(&example.say)).collect();
    // A short example with something more, such as the statement of "Fix this SQL".
    if examples
        .iter()
        .any(|example| example.len() >= MIN_WORDS && example.iter().all(|word| has(request, word)))
    {
        return Some(1.0);
    }
    let description = content(&flow.description);
    let is_described = |word: &Features| has(&description, word);
    let known: Vec<&Rc<Features>> = request
        .iter()
        .filter(|word| is_described(word) || examples.iter().any(|example| has(example, word)))
        .collect();
    let is_enough = known.len() >= MIN_WORDS || known.iter().any(|word| is_described(word));
    let share = known.len() as f64 / request.len().max(1) as f64;
    (is_enough && share >= MIN_SHARE).then_some(share)
}

fn has(words: &[Rc<Features>], word: &Features) -> bool {
    words.iter().any(|other| other.similarity(word) >= SAME)
}

/// The words with a meaning of their own.
fn content(text: &str) -> Vec<Rc<Features>> {
    let tokens = text::tokens(text);
    let words =
        tokens.iter().filter(|token| token.word && !token.digit() && !lexicon::is_stop_word(&token.norm));
    words.map(text::Token::features).collect()
}
