//! Requests to do what was done last for another value: "do the same for 120", "anche la C7", "no, to Laura".

use jiff::Zoned;

use super::clauses;
use super::entities::Entities;
use super::followup::{IndexRouter, substitute_days};
use super::index::CatalogueIndex;
use super::lexicon;
use super::pattern::{Patterns, any, is_verb, patterns, strip_fillers};
use super::prompt::Conversation;
use super::routing::Hit;
use super::text::{self, Token};
use crate::language::function_words::AND;

/// Maximum number of turns searched for the request that was carried out.
const MAX_TURNS: usize = 6;

/// Orders to do the same again, before the value.
static SAME: &Patterns = patterns![
    "do/make/and? the? same thing? for/with/to",
    "the? same goes? for/with",
    "fai/fa/fate/idem lo? stesso? per/con/a/al",
    "lo stesso per/con",
    "mach/mache/machen? sie/du? bitte? das? gleiche/dasselbe mit/fur/bei",
    "fais/faites pareil/idem pour/avec",
    "fais/faites? la meme chose pour/avec",
    "pareil pour/avec",
    "haz/haga? lo mismo con/para/por",
];

/// Words that ask for the same again, beside the value.
const TOO: &[&str] = &["too", "also", "anche", "pure", "auch", "aussi", "tambien"];

/// What was done last, to be done again.
pub(super) struct RepeatedWrite {
    /// Its tool.
    pub hit: Hit,
    /// The words of the request that led to it, with the new value.
    pub purpose: String,
    /// Whether it is asked for, and not only said that another value was meant.
    pub is_clear: bool,
}

/// The write that was done last, with the only value that `request` names; `None` where the request says anything else, or where
/// more than one value of the kind was named before.
pub(super) fn resolve(
    request: &str,
    conversation: &Conversation,
    index: &CatalogueIndex,
    now: &Zoned,
) -> Option<RepeatedWrite> {
    let tokens = text::tokens(request);
    let refuses =
        |token: &Token| token.is(&["not", "non", "nicht", "pas", "never", "mai", "dont", "don", "ne"]);
    let is_correction = tokens.get(1).is_some_and(|mark| mark.raw == ",");
    if tokens.iter().any(|token| token.raw == "?" || refuses(token) && !(token.first && is_correction)) {
        return None;
    }
    let [call] = &conversation.turns.last()?.calls[..] else { return None };
    let hit = index.named(&call.scene, &call.tool)?;
    let named = NamedValue::of(&tokens, now)?;
    if !index.scenes[hit.scene].tools[hit.tool].writes() {
        return None;
    }
    let base = conversation.turns.iter().rev().take(MAX_TURNS).find_map(|turn| {
        let clauses = clauses::split(&turn.request, &IndexRouter { index, now });
        let is_its = |words: &str| {
            index.route(words, now.date(), None).is_some_and(|found| found.place() == hit.place())
        };
        clauses.into_iter().map(|clause| clause.text).find(|words| is_its(words))
    })?;
    let purpose = named.put_into(base.trim_end_matches(['.', '!', ' ']), now)?;
    Some(RepeatedWrite { hit, purpose, is_clear: named.after_no.is_none() && !named.is_only_joined })
}

/// The value that a request to do the same again names.
struct NamedValue {
    /// Its words, or those of a day.
    value: String,
    noun: Option<Token>,
    is_day: bool,
    /// The preposition after a "no": "no, to Laura".
    after_no: Option<Token>,
    /// Whether nothing but an "and" says that the same is asked for: "and the 16th".
    is_only_joined: bool,
}

impl NamedValue {
    fn of(tokens: &[Token], now: &Zoned) -> Option<Self> {
        let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
        let joined = words.split_first().filter(|(and, rest)| and.is(AND) && !rest.is_empty());
        let mut is_only_joined = false;
        let (rest, after_no) = match words.split_first()? {
            (no, [lead, name])
                if no.is(&["no", "non", "nein", "nope"])
                    && lexicon::is_stop_word(&lead.norm)
                    && name.capital()
                    && !name.digit() =>
            {
                (vec![*name], Some((*lead).clone()))
            }
            _ => match (repeated(&words), joined) {
                (Some(rest), _) => (rest, None),
                (None, Some((_, rest))) => {
                    is_only_joined = true;
                    (rest.to_vec(), None)
                }
                (None, None) => return None,
            },
        };
        let found = Entities::in_tokens(tokens, now.date());
        if let [day] = &found.days[..] {
            let is_rest =
                |token: &&Token| !(tokens[day.first].start..tokens[day.last].end).contains(&token.start);
            let is_small = |token: &Token| lexicon::is_stop_word(&token.norm);
            let only = rest.into_iter().filter(is_rest).all(is_small);
            let value = tokens[day.first..=day.last].iter().map(|token| token.raw.as_str());
            let value = value.collect::<Vec<_>>().join(" ");
            return only.then_some(Self { value, noun: None, is_day: true, after_no, is_only_joined });
        }
        if is_only_joined {
            return None;
        }
        let own: Vec<&Token> = rest.into_iter().filter(|token| !lexicon::is_stop_word(&token.norm)).collect();
        let (value, nouns) = own.split_last()?;
        let is_value = value.digit() || value.capital();
        let noun = nouns.first().map(|noun| (*noun).clone());
        let is_plain = nouns.len() < 2 && noun.as_ref().is_none_or(|noun| !noun.digit());
        let value = value.raw.to_string();
        (is_value && is_plain).then_some(Self { value, noun, is_day: false, after_no, is_only_joined })
    }

    /// The words of the earlier request with this value in the place of the only one of its kind.
    fn put_into(&self, base: &str, now: &Zoned) -> Option<String> {
        let tokens = text::tokens(base);
        let found = Entities::in_tokens(&tokens, now.date());
        if self.is_day {
            let fresh = text::tokens(&self.value);
            let new = Entities::in_tokens(&fresh, now.date());
            return (found.days.len() == 1).then(|| substitute_days(base, &self.value, &fresh, &new, now));
        }
        let kind = |word: &str| {
            let digits = word.chars().filter(char::is_ascii_digit).count();
            (digits > 0, digits == word.len())
        };
        let is_like = |at: &usize| {
            let token = &tokens[*at];
            let is_shaped = token.digit() || token.capital() && !token.first;
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let is_led =
                self.after_no.as_ref().is_none_or(|lead| before.is_some_and(|t| t.norm == lead.norm));
            // "4 pallets": a number of things is no name of one.
            let counts = token.digit()
                && tokens.get(at + 1).is_some_and(|next| next.word && !lexicon::is_stop_word(&next.norm));
            let is_noun = counts || !token.digit() && !token.features().concepts.is_empty();
            token.word
                && is_shaped
                && is_led
                && !is_noun
                && !found.taken[*at]
                && kind(&token.raw) == kind(&self.value)
        };
        let like: Vec<usize> = (0..tokens.len()).filter(is_like).collect();
        let [at] = like[..] else { return None };
        let is_named = |noun: &Token| tokens.iter().any(|t| t.features().similarity(&noun.features()) > 0.8);
        let fits = self.noun.as_ref().is_none_or(is_named) && tokens[at].raw != self.value;
        let (before, after) = (base.get(..tokens[at].start)?, base.get(tokens[at].end..)?);
        fits.then(|| format!("{before}{}{after}", self.value))
    }
}

/// The words of the value in a request to do the same again.
fn repeated<'t>(words: &[&'t Token]) -> Option<Vec<&'t Token>> {
    let own = strip_fillers(words);
    if let Some(end) = any(own, 0, SAME) {
        return Some(own[end..].to_vec());
    }
    let is_told = words.iter().filter(|word| word.is(TOO)).count() == 1;
    let rest: Vec<&Token> = words.iter().copied().filter(|word| !word.is(TOO)).collect();
    let rest = strip_fillers(&rest).to_vec();
    (is_told && !rest.iter().any(|word| is_verb(word) && !word.capital())).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(said: &str, base: &str) -> Option<String> {
        let now: Zoned = "2026-11-22T09:00:00+01:00[Europe/Rome]".parse().expect("valid");
        NamedValue::of(&text::tokens(said), &now)?.put_into(base, &now)
    }

    #[test]
    fn value_takes_the_place_of_the_only_one_of_its_kind() {
        for (said, base, purpose) in [
            ("do the same for 120", "Close ticket 131", "Close ticket 120"),
            ("and ticket 120 too", "Close ticket 131", "Close ticket 120"),
            ("fai lo stesso per il 120", "Assegna il ticket 131 a Omar", "Assegna il ticket 120 a Omar"),
            ("anche la C7", "Blocca la baia B3", "Blocca la baia C7"),
            ("mach dasselbe mit 120", "Schließe Ticket 131", "Schließe Ticket 120"),
            ("C7 auch", "Sperre den Platz B3", "Sperre den Platz C7"),
            ("fais pareil pour le 120", "Ferme le ticket 131", "Ferme le ticket 120"),
            ("haz lo mismo con la 120", "Cierra la incidencia 131", "Cierra la incidencia 120"),
            ("no, to Laura", "Assign ticket 131 to Omar", "Assign ticket 131 to Laura"),
            ("And the 16th", "Book 14 February off", "Book the 16th off"),
            ("e il 16 febbraio", "Chiedi ferie il 14 febbraio", "Chiedi ferie il 16 febbraio"),
            ("and on 11 February too", "Request vacation on 10 February", "Request vacation on 11 February"),
        ] {
            assert_eq!(put(said, base).as_deref(), Some(purpose), "{said}");
        }
    }

    #[test]
    fn what_may_mean_another_value_or_says_more_repeats_nothing() {
        for (said, base) in [
            ("do the same for Bob", "Lend the book Dune to Ada"),
            ("do the same for 120 if Laura agrees", "Close ticket 131"),
            ("and invoice 120 too", "Close ticket 131"),
            ("and 120", "Close ticket 131"),
            ("and pay it on 16 February", "Book 14 February off"),
            ("120", "Close ticket 131"),
            ("no, 120", "Close ticket 131"),
            ("close 120 too", "Assign ticket 131 to Omar"),
            ("three too", "Sell two teapots"),
            ("do the same for 5", "Move 4 pallets of article K17 from 2 to 3"),
            ("me too", "Close ticket 131"),
        ] {
            assert_eq!(put(said, base), None, "{said}");
        }
    }
}
