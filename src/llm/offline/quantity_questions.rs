//! Questions about a quantity that leave out of what: "how many are left?", "quante ne restano?", "how much is it?". They are
//! about the thing of the last call, where its scene has a read that tells so of it.

use serde_json::Value;

use super::plan::OfflinePlanner;
use super::prompt::PriorTurn;
use super::routing::Hit;
use super::schema::{ArgumentField, ArgumentKind};
use super::text::{self, Token};
use crate::language::function_words::AND;
use crate::language::number_words;

/// Maximum number of turns without a call after the last one with one.
const MAX_TURNS: usize = 3;

/// Maximum number of things, and of the words of one.
const MAX_THINGS: usize = 5;
const MAX_WORDS: usize = 5;

/// Words that stand for the thing, as the object or the subject of the question.
const THING: &[&str] = &[
    "it", "they", "them", "this", "that", "these", "those", "one", "ne", "en", "davon", "sie", "es", "cela",
    "ca", "l",
];

/// All other words of such a question.
const OTHERS: &[&str] = &[
    // English
    "of", "are", "is", "do", "does", "did", "have", "has", "we", "i", "you", "there", "still", "left",
    "remain", "remains", "remaining", "now", "cost", "costs", "in", "stock", "available", "actually", "and",
    "so", // Italian
    "ce", "n", "abbiamo", "ho", "hai", "avete", "ci", "sono", "restano", "resta", "rimangono", "rimane",
    "ancora", "adesso", "costa", "costano", "viene", "vengono", "magazzino", "disponibili", "invece", "e",
    "ed", "quindi", // French
    "y", "a", "t", "il", "reste", "restent", "avons", "avez", "nous", "vous", "encore", "coute", "coutent",
    "maintenant", "et", "donc", "reste-t-il", "restent-ils", "restent-elles", "avons-nous", "avez-vous",
    "a-t-il", "y-a-t-il", "coute-t-il", "coute-t-elle", "coutent-ils", "coutent-elles", // German
    "haben", "wir", "sind", "ist", "noch", "ubrig", "da", "gibt", "jetzt", "kostet", "kosten", "verfugbar",
    "und", "also", // Spanish
    "quedan", "queda", "tenemos", "hay", "todavia", "aun", "ahora", "cuesta", "cuestan", "disponibles",
    "entonces",
];

/// Words that only say that something is.
const TO_BE: &[&str] = &["is", "are", "e", "sono", "est", "ist", "sind", "es", "son"];

/// The words that ask for a number of things.
const HOW_MANY: &[&[&str]] = &[
    &["how", "many"],
    &["quanti"],
    &["quante"],
    &["combien"],
    &["wie", "viele"],
    &["wieviele"],
    &["cuantos"],
    &["cuantas"],
];

/// The words that ask for an amount.
const HOW_MUCH: &[&[&str]] =
    &[&["how", "much"], &["quanto"], &["wie", "viel"], &["wieviel"], &["was", "kostet"], &["cuanto"]];

impl OfflinePlanner {
    /// The reads for a question about a quantity of something that it does not name, and the question with each of its things.
    pub fn reads_of_quantity_question(&self, words: &str) -> Vec<(Hit, String)> {
        let Some(question) = QuantityQuestion::of(words) else { return Vec::new() };
        let mut turns = self.conversation.turns.iter().rev().take(MAX_TURNS);
        let calls = turns.find(|turn| !turn.calls.is_empty()).map_or(&[][..], |turn| &turn.calls);
        let [call] = calls else { return Vec::new() };
        let Some(last) = self.index.named(&call.scene, &call.tool) else { return Vec::new() };
        let is_said = |value: &&str| self.conversation.turns.iter().any(|turn| is_said(value, turn));
        let values = call.arguments.as_object().into_iter().flat_map(|all| all.values());
        let told = values.filter_map(Value::as_str).filter(is_said).find_map(things);
        let read = |thing: String| {
            let whole = question.about(words, &thing)?;
            // "How many teapots?" is closer to what tells a number than "how many teapot?"
            let counted = question.about(words, &format!("{}s", thing.trim_end_matches('s')))?;
            let hit = self.read_of_thing(&counted, last.scene);
            Some((hit.or_else(|| self.read_of_thing(words, last.scene))?, whole))
        };
        let reads = told.unwrap_or_default().into_iter().map(read).collect::<Option<Vec<_>>>();
        reads.unwrap_or_default()
    }

    /// The read of a scene that is closest to words, of those that need a thing and nothing else.
    fn read_of_thing(&self, words: &str, scene: usize) -> Option<Hit> {
        let is_thing = |field: &ArgumentField| matches!(field.kind, ArgumentKind::Thing | ArgumentKind::Text);
        let tells = |hit: &Hit| {
            let mut required = self.index.fields(*hit).iter().filter(|field| field.required);
            let needs_thing = required.next().is_some_and(is_thing) && required.next().is_none();
            hit.scene == scene && !self.writes(*hit) && needs_thing
        };
        let hits = self.index.hits(words, self.today(), Some(scene));
        hits.into_iter().filter(tells).reduce(Hit::or_better)
    }
}

/// Whether the words of a turn have the value of its call.
fn is_said(value: &str, turn: &PriorTurn) -> bool {
    turn.request.to_lowercase().contains(&value.to_lowercase())
}

/// The things of a value, without the numbers that count them: "3 cups and 2 teapots" are cups and teapots. `None` if any is no
/// thing.
fn things(value: &str) -> Option<Vec<String>> {
    let tokens = text::tokens(value);
    let counts = |token: &Token| token.digit() || number_words::spoken(&token.norm).is_some();
    let parts = tokens.split(|token| token.is(AND) || token.raw == ",");
    let thing = |part: &[Token]| {
        let counted = part.iter().take_while(|token| token.word && counts(token)).count();
        let thing = part.get(counted..)?;
        let is_one = thing.len() <= MAX_WORDS && thing.iter().all(|token| token.word && !counts(token));
        value.get(thing.first()?.start..thing.last()?.end).filter(|_| is_one).map(str::to_owned)
    };
    parts.map(thing).collect::<Option<Vec<_>>>().filter(|things| things.len() <= MAX_THINGS)
}

/// Where the words open with a question about a quantity: its first word, counted from `at`, the one behind it, and whether it asks
/// for a number of things.
fn opening(words: &[&Token], at: usize) -> Option<(usize, usize, bool)> {
    let opens = |asks: &&&[&str]| {
        words.len() >= asks.len() && words.iter().zip(**asks).all(|(word, ask)| word.norm == **ask)
    };
    let counts = HOW_MANY.iter().find(opens).map(|asks| (asks.len(), true));
    let (length, counts) = counts.or_else(|| HOW_MUCH.iter().find(opens).map(|asks| (asks.len(), false)))?;
    Some((at, at + length, counts))
}

/// Where the thing belongs in a question.
#[derive(Debug, PartialEq)]
enum QuantityQuestion {
    /// In the place of a word: "how much does it cost?"
    InPlace { from: usize, to: usize },
    /// Behind the words that ask, in the place of all others: "how many are left?"
    Instead { from: usize, of: usize },
    /// At the end: "quanto costano?"
    AtEnd(usize),
}

impl QuantityQuestion {
    /// `None` if the words ask for no quantity, or name the thing.
    fn of(words: &str) -> Option<Self> {
        let tokens = text::tokens(words);
        let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
        let (start, end, counts) = (0..words.len().min(3)).find_map(|at| opening(&words[at..], at))?;
        let rest = words.get(end..).filter(|rest| !rest.is_empty())?;
        let is_known = |word: &&Token| word.is(THING) || word.is(OTHERS);
        if !words[..start].iter().chain(rest).all(is_known) {
            return None;
        }
        let of = words.get(end.checked_sub(1)?)?.end;
        if counts || rest.iter().all(|word| word.is(THING) || word.is(TO_BE)) {
            return Some(Self::Instead { from: words.get(start)?.start, of });
        }
        let thing = rest.iter().find(|word| word.is(THING));
        Some(match thing {
            Some(thing) => Self::InPlace { from: thing.start, to: thing.end },
            None => Self::AtEnd(rest.last()?.end),
        })
    }

    fn about(&self, words: &str, thing: &str) -> Option<String> {
        Some(match self {
            Self::InPlace { from, to } => format!("{}{thing}{}", words.get(..*from)?, words.get(*to..)?),
            Self::Instead { from, of } => format!("{} {thing}?", words.get(*from..*of)?),
            Self::AtEnd(at) => format!("{} {thing}{}", words.get(..*at)?, words.get(*at..)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_about_a_quantity_gets_the_thing_that_it_does_not_name() {
        for (said, whole) in [
            ("How many are left?", Some("How many teapots?")),
            ("How many of them are left?", Some("How many teapots?")),
            ("And how many do we still have?", Some("how many teapots?")),
            ("How much is it?", Some("How much teapots?")),
            ("How much do they cost?", Some("How much do teapots cost?")),
            ("Quante ne restano?", Some("Quante teapots?")),
            ("Quanto costano?", Some("Quanto costano teapots?")),
            ("Combien en reste-t-il ?", Some("Combien teapots?")),
            ("Wie viele haben wir noch?", Some("Wie viele teapots?")),
            ("¿Cuántas quedan?", Some("Cuántas teapots?")),
            ("How many cups are left?", None),
            ("How many vacation days do I have?", None),
            ("How much is the teapot?", None),
            ("How many?", None),
            ("Are they left?", None),
            ("Sell it", None),
        ] {
            let found = QuantityQuestion::of(said).and_then(|question| question.about(said, "teapots"));
            assert_eq!(found.as_deref(), whole, "{said}");
        }
    }

    #[test]
    fn values_are_things_without_their_numbers() {
        for (value, all) in [
            ("2 teapots", Some(vec!["teapots"])),
            ("milk jug", Some(vec!["milk jug"])),
            ("two espresso cups", Some(vec!["espresso cups"])),
            ("3 espresso cups and 2 teapots", Some(vec!["espresso cups", "teapots"])),
            ("2026-12-14", None),
            ("14", None),
            ("", None),
        ] {
            let all = all.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(things(value), all, "{value}");
        }
    }
}
