//! Which flow a request, or a question within it, is for, where no scene serves it.

use std::rc::Rc;

use super::lexicon;
use super::prompt::SceneCard;
use super::text::{self, Features};

/// The least share of a request's words that the texts of its flow have.
const MIN_SHARE: f64 = 0.6;
/// The least number of them, unless the flow's description has the only one.
const MIN_WORDS: usize = 2;
/// The least similarity of equal words in other forms.
const SAME: f64 = 0.9;

/// Words that restrict, forbid, exclude or correct something, or make it depend on something.
const RESTRICTING: &str = "\
not no non never none neither nor don dont doesn didn cannot unless except excepting without excluding apart besides minus \
but instead rather only just if whether until otherwise remaining rest other others already anymore actually sorry wait \
mai né senza tranne eccetto salvo escluso esclusi esclusa escluse fuorché meno ma però invece piuttosto solo soltanto \
solamente se finché altrimenti resto restanti altri altre già anzi aspetta \
pas ne ni jamais sans sauf excepté hormis mais plutôt seulement uniquement si sinon reste autres déjà \
nicht kein keine keinen nie ohne außer ausser aber sondern statt nur wenn ob falls sonst rest andere schon \
nunca sin excepto menos pero sino solo sólo solamente si aunque otros otras ya \
exclude excluding omit omitting skip ignore ignoring escludi escludendo salta ometti ignora ausgenommen omettez ignorez \
excluyendo omite";

/// Words that point to what was said before.
pub(super) const POINTING: &str = "\
it its them they their theirs those these that this his her ne quelli quelle loro suo sua suoi sue";

/// Words with which a request begins to say where, when or of what all of it asks.
const FRAMES: &str = "in at for during since from among within nel nella nei nelle per durante da";

/// Whether words begin with where, when or of what they and perhaps the following ones ask.
pub(super) fn is_frame(words: &str) -> bool {
    text::tokens(words).first().is_some_and(|token| token.among(FRAMES))
}

/// Whether a request restricts, excludes or corrects something: its clauses do not stand by themselves then.
pub(super) fn restricts(words: &str) -> bool {
    let restricting = |token: &text::Token| RESTRICTING.split_whitespace().any(|word| token.lower == word);
    let tokens = text::tokens(words);
    let leaves_out = tokens.windows(2).any(|pair| pair[0].is(&["leave", "leaving"]) && pair[1].is(&["out"]));
    leaves_out
        || words.contains("n't")
        || words.contains("n’t")
        || tokens.iter().any(|token| token.word && restricting(token))
}

/// The flow that has most of the request's words in its description and examples. `None` if no flow has enough of them:
/// requests about something else are declined.
pub(super) fn flow_for<'a>(flows: &'a [SceneCard], words: &str) -> Option<&'a SceneCard> {
    let request = content(words);
    let scored = flows.iter().filter_map(|flow| Some((score(flow, &request)?, flow)));
    // The first of equal ones.
    let best = scored.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    Some(best.1)
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
