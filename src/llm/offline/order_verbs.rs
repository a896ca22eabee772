//! Whether a step orders what its tool does: a write whose order opens with another verb is left to the user.

use std::rc::Rc;

use super::clarity;
use super::doubts;
use super::drafts::StepDraft;
use super::index::polite_lead;
use super::lexicon;
use super::pattern::strip_fillers;
use super::plan::OfflinePlanner;
use super::pronouns;
use super::source::SourceText;
use super::text::{self, Features, Token};
use super::weights::SURE_MATCH;

impl OfflinePlanner {
    /// Whether a step's words open with a verb that is not one of its tool: "cancel the sale" is no sale. In languages of which
    /// the rules know only a few words, any other word before the verb counts.
    pub(super) fn opens_otherwise(&self, draft: &StepDraft) -> bool {
        let scene = &self.index.scenes[draft.hit.scene];
        let tool = &scene.tools[draft.hit.tool];
        let examples = scene.examples.iter().filter(|example| example.tool.as_deref() == Some(&tool.name));
        let own = OwnWords::of(&tool.name, &tool.description, examples.map(|example| example.say.as_str()));
        let source = SourceText::new(&draft.purpose, &self.now);
        let filled = self.filled(draft.hit, &draft.purpose);
        opens_with_another_verb(&source, &filled.used, &own)
            || self.reserves_a_book(draft)
            || doubts::opens_unread(&draft.purpose, |word| own.has(word))
            || doubts::names_unread(&draft.purpose, &filled.used, |word| own.has(word))
    }
}

/// Verbs in the names of tools that make something new.
const MAKING_TOOLS: &[&str] = &[
    "make", "create", "add", "book", "reserve", "request", "place", "submit", "open", "new", "schedule",
    "register", "set",
];

struct OwnWords {
    /// Whether it makes something new.
    makes: bool,
    /// Those of its name, of its examples, and the word that its description opens with.
    said: Vec<Rc<Features>>,
    /// The other ones of its description that name no act.
    described: Vec<Rc<Features>>,
    /// What it does: the verb of its name, and the nouns that its examples have carried out ("fai un bonifico").
    acts: Vec<Rc<Features>>,
}

impl OwnWords {
    fn of<'e>(name: &str, description: &str, examples: impl Iterator<Item = &'e str> + Clone) -> Self {
        let features = |norm: &String| text::features(norm);
        let name = text::name_words(name);
        let description: Vec<String> = text::norms(description).collect();
        let opening = description.first();
        // "… which then waits for approval": what others do.
        let is_act = |word: &Rc<Features>| lexicon::is_action(&word.concepts);
        let norms = name.iter().chain(opening).cloned().chain(examples.clone().flat_map(text::norms));
        let is_verb = |word: &&String| !clarity::is_light(word) && !clarity::is_carrying_out(word);
        let named = name.iter().find(is_verb).or(name.first()).map(features);
        Self {
            makes: name.first().is_some_and(|verb| MAKING_TOOLS.contains(&verb.as_str())),
            said: norms.map(|norm| text::features(&norm)).collect(),
            described: description.iter().skip(1).map(features).filter(|word| !is_act(word)).collect(),
            acts: named.into_iter().chain(examples.filter_map(carried_out)).collect(),
        }
    }

    /// Whether any text of the tool has this word.
    fn has(&self, word: &Token) -> bool {
        self.says(word) || are_like(&self.described, &word.features())
    }

    /// Whether its name or an example has this word: "prenotami" is a form of "prenota".
    fn says(&self, word: &Token) -> bool {
        let bare = || pronouns::without_person(&word.norm);
        are_like(&self.said, &word.features())
            || bare().is_some_and(|verb| are_like(&self.said, &text::features(verb)))
    }

    fn is_act(&self, word: &Token) -> bool {
        are_like(&self.acts, &word.features())
    }
}

fn are_like(own: &[Rc<Features>], word: &Features) -> bool {
    own.iter().any(|own| own.similarity(word) > SURE_MATCH || own.shares_foreign_stem(word))
}

/// What an example has carried out, if its verb says no more: "fai un bonifico", "record the sale of 2 jugs".
fn carried_out(example: &str) -> Option<Rc<Features>> {
    let tokens = text::tokens(example);
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let (verb, rest) = polite_lead(&words).unwrap_or(&words).split_first()?;
    let is_empty = clarity::is_light(&verb.norm) || clarity::is_carrying_out(&verb.norm);
    let noun = rest.iter().find(|token| !is_small(token) && !token.digit())?;
    is_empty.then(|| noun.features())
}

/// Whether an order opens with a verb that is none of the tool's: "cancel the sale", "print my vacation from 8 to 10 February". One
/// that only carries out what a noun names needs an act of the tool, "record the sale", or a tool that makes something new, "enter
/// a visit". In languages of which few words are known, see [`doubts::opens_unread`].
fn opens_with_another_verb(source: &SourceText, used: &[bool], own: &OwnWords) -> bool {
    if doubts::is_little_known(source.text) {
        return false;
    }
    let Some((verb, rest)) = verb_and_rest(source, used) else { return false };
    let carries_out = clarity::is_carrying_out(&verb.norm);
    if (carries_out || clarity::is_noting(&verb.norm)) && !own.is_act(verb) {
        let is_done = carries_out && own.makes || rest.iter().any(|word| own.is_act(word));
        return !is_done;
    }
    !own.says(verb)
}

/// The verb that an order opens with and the words after it. A light verb says nothing of what is ordered: after it, the first word
/// that says something and is no value, by `used`, is in its place. `None` where something else is said first.
fn verb_and_rest<'s>(source: &'s SourceText, used: &[bool]) -> Option<(&'s Token, Vec<&'s Token>)> {
    let words: Vec<&Token> = source.tokens.iter().filter(|token| token.word).collect();
    let asked = polite_lead(&words).unwrap_or(&words);
    let order = if looks_at(source, asked) { asked } else { strip_fillers(asked) };
    let first = order.first()?;
    let is_led = clarity::is_light(&first.norm);
    // "Keep a copy of the book"; not "make a copy of it".
    let is_counted = is_led && !first.is(&["make", "do", "fai", "fare", "fammi"]);
    let is_empty = |(at, token): &(usize, &&Token)| {
        clarity::is_light(&token.norm)
            || is_led && is_small(token)
            || is_counted && clarity::is_counter(order, *at)
    };
    let (at, verb) = order.iter().enumerate().find(|word| !is_empty(word))?;
    let place = source.tokens.iter().position(|token| token.start == verb.start)?;
    let is = |marks: &[bool]| marks.get(place) == Some(&true);
    let is_number = source.found.numbers.iter().any(|number| (number.first..=number.last).contains(&place));
    let is_code = verb.norm.chars().any(|c| c.is_ascii_digit());
    let is_value =
        is(&source.found.taken) || is(&source.found.quoted) || is_number || is_code || is_led && is(used);
    (!is_value && !is_small(verb)).then(|| (*verb, order[at + 1..].to_vec()))
}

/// Whether words open with an order to look at something, and not with a call for attention: "guarda la richiesta 4", not
/// "guarda, …".
fn looks_at(source: &SourceText, words: &[&Token]) -> bool {
    let Some(first) = words.first().filter(|word| word.is(&["guarda", "ascolta", "senti"])) else {
        return false;
    };
    let next = source.tokens.iter().find(|token| token.start > first.start);
    next.is_some_and(|next| next.word && (next.digit() || lexicon::is_stop_word(&next.norm)))
}

/// Whether a word is one of grammar, of politeness or of time.
fn is_small(token: &Token) -> bool {
    lexicon::is_stop_word(&token.norm)
        || lexicon::is_pleasantry(&token.norm)
        || lexicon::is_time_unit(&token.norm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_with_a_verb_of_another_act_is_not_for_the_tool() {
        let sells = OwnWords::of(
            "SellItems",
            "Sells items of the inventory.",
            ["Sell 3 milk jugs", "Registra la vendita di 2 teiere"].into_iter(),
        );
        let asks = OwnWords::of(
            "MakeRequest",
            "Requests vacation, which then waits for approval.",
            ["Request vacation on 8 May", "Vorrei tre giorni di ferie"].into_iter(),
        );
        let now = "2026-11-22T09:00:00+01:00[Europe/Rome]".parse().unwrap();
        let opens = |said: &str, own| opens_with_another_verb(&SourceText::new(said, &now), &[], own);
        for said in [
            "Cancel the sale of 2 teapots",
            "Please stop the sale of 2 teapots",
            "Blocca la vendita di 2 teiere",
            "Segna 2 teiere",
        ] {
            assert!(opens(said, &sells), "{said}");
        }
        for said in
            ["Sell 2 teapots", "Record the sale of 2 teapots", "Registra la vendita di 2 teiere", "2 teapots"]
        {
            assert!(!opens(said, &sells), "{said}");
        }
        for said in [
            "Print my vacation from 8 to 10 February",
            "Could you please approve my vacation from 8 to 10 February?",
            "Ammira le ferie dall'8 al 10 febbraio",
            "Annota le ferie dall'8 al 10 febbraio",
            "Plan my vacation from 8 to 10 February",
            "Guarda le mie ferie dall'8 al 10 febbraio",
        ] {
            assert!(opens(said, &asks), "{said}");
        }
        for said in [
            "Guarda, le ferie dall'8 al 10 febbraio",
            "I need vacation from 8 to 10 February",
            "Schedule vacation from 8 to 10 February",
            "Make a vacation request from 8 to 10 February",
            "Inoltra una richiesta di ferie dall'8 al 10 febbraio",
            "Keep a day of vacation for me on 8 February",
        ] {
            assert!(!opens(said, &asks), "{said}");
        }
    }
}
