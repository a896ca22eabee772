//! Elliptical requests: "E a Roma?" and "And tomorrow?" repeat an earlier request with a new value.

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::Value;

use super::clauses::{self, ClauseRouter};
use super::corrections::after_correction;
use super::entities::Entities;
use super::index::CatalogueIndex;
use super::lexicon;
use super::prompt::{Conversation, PriorTurn};
use super::routing::{Hit, ToolPlace};
use super::text::{self, Token};
use super::weights::STRONG;

/// Maximum number of turns searched for the start of a chain of elliptical requests.
const MAX_TURNS: usize = 12;

/// Expands an elliptical clause to a tool and a complete request. `None` if the conversation contains
/// nothing to complete it with. Only reads are repeated this way.
pub(super) fn resolve(
    clause: &str,
    conversation: &Conversation,
    index: &CatalogueIndex,
    now: &Zoned,
) -> Option<(Hit, String)> {
    let said = clause;
    let clause = after_correction(clause);
    // "I meant Rome": what follows is a value, whatever it looks like.
    let is_correction = clause.len() < said.len();
    let dated = with_next_day(clause, conversation, now);
    let clause = dated.as_deref().unwrap_or(clause);
    let tokens = text::tokens(clause);
    let is_name = is_correction && tokens.iter().all(|token| !token.word || token.capital());
    if !is_name && !is_mostly_new_value(&tokens, now) {
        return None;
    }
    let mut chain: Vec<String> = vec![clause.to_owned()];
    for (at, turn) in conversation.turns.iter().enumerate().rev().take(MAX_TURNS) {
        let hits = reads_of(turn, index, now);
        let is_elliptical = || is_mostly_new_value(&text::tokens(&turn.request), now);
        let Some(hit) = hits.first().copied() else {
            // In a conversation that the client keeps, an elliptical turn has no calls either. Skip others, such
            // as "grazie".
            if next_day(&turn.request).is_some() {
                chain.extend(date_of(&conversation.turns[..=at], now).map(|day| day.to_string()));
            } else if is_elliptical() {
                chain.push(turn.request.clone());
            }
            continue;
        };
        match base_clause(turn, &hits, index, now) {
            Some((hit, words)) => {
                let whole = chain
                    .iter()
                    .rev()
                    .fold(words, |base, new| substitute_value(&base, new, turn, index, now));
                return Some((hit, whole));
            }
            None if next_day(&turn.request).is_some() => {
                chain.extend(last_date(turn).map(|day| day.to_string()))
            }
            None if is_elliptical() => chain.push(turn.request.clone()),
            None => return Some((hit, clause.to_owned())),
        }
    }
    None
}

/// The reads that a turn led to, the last one first: its calls, or, in a conversation that the client keeps, those
/// that its words clearly ask for.
fn reads_of(turn: &PriorTurn, index: &CatalogueIndex, now: &Zoned) -> Vec<Hit> {
    let is_read = |hit: &Hit| !index.scenes[hit.scene].tools[hit.tool].writes();
    if turn.calls.is_empty() {
        let clauses = clauses::split(&turn.request, &IndexRouter { index, now });
        let routed = clauses.iter().rev().filter_map(|clause| index.route(&clause.text, now.date(), None));
        return routed.filter(|hit| hit.score >= STRONG).filter(is_read).collect();
    }
    let called = turn.calls.iter().rev().filter_map(|call| index.named(&call.scene, &call.tool));
    called.filter(is_read).collect()
}

/// The words for the day after the one that was spoken of; longer phrases first.
const NEXT_DAY: [&str; 12] = [
    "on the following day", "the following day", "on the next day", "the next day", "the day after that",
    "the day after", "il giorno seguente", "il giorno successivo", "il giorno dopo", "le lendemain",
    "am tag danach", "el día siguiente",
];

/// The place of words for the day after the one that was spoken of.
fn next_day(clause: &str) -> Option<std::ops::Range<usize>> {
    let lower = clause.to_lowercase();
    let phrase = NEXT_DAY.into_iter().find(|phrase| lower.contains(phrase))?;
    let at = lower.find(phrase)?;
    let end = at + phrase.len();
    // "The day after tomorrow" is a day of its own.
    let ends = !clause.get(end..)?.trim_start().starts_with(char::is_alphanumeric);
    (ends && clause.is_char_boundary(at)).then_some(at..end)
}

/// The clause with "the day after" as the date after the last one of the conversation's calls, or after today. `None` if
/// it does not speak of such a day.
fn with_next_day(clause: &str, conversation: &Conversation, now: &Zoned) -> Option<String> {
    let place = next_day(clause)?;
    let last = date_of(&conversation.turns, now).unwrap_or_else(|| now.date());
    Some(format!("{}{}{}", &clause[..place.start], last.tomorrow().ok()?, &clause[place.end..]))
}

/// The last date that the turns' calls have or, where there are none, their words.
fn date_of(turns: &[PriorTurn], now: &Zoned) -> Option<Date> {
    let (turn, earlier) = turns.split_last()?;
    if let Some(date) = last_date(turn) {
        return Some(date);
    }
    if turn.calls.is_empty() {
        if next_day(&turn.request).is_some() {
            return date_of(earlier, now).unwrap_or_else(|| now.date()).tomorrow().ok();
        }
        let spoken = Entities::in_tokens(&text::tokens(&turn.request), now.date());
        if let Some(day) = spoken.days.last() {
            return Some(day.date);
        }
    }
    date_of(earlier, now)
}

/// The last of the dates of a turn's calls.
fn last_date(turn: &PriorTurn) -> Option<Date> {
    let values = turn.calls.iter().flat_map(|call| [&call.arguments, &call.result]);
    let fields = values.filter_map(Value::as_object).flat_map(|fields| fields.values());
    let texts = fields.filter_map(Value::as_str).filter(|text| text.len() == 10);
    texts.filter_map(|text| text.parse().ok()).max()
}

/// Words for all things of the turn before.
const BOTH: &[&str] = &["both", "entrambi", "entrambe", "beide", "ambos", "ambas"];

/// Whether the first word is one for all things of the turn before: "both on Monday".
pub(super) fn opens_with_both(clause: &str) -> bool {
    text::tokens(clause).iter().find(|token| token.word).is_some_and(|first| first.is(BOTH))
}

/// Whether a word only leads to a value.
fn is_small(token: &Token) -> bool {
    lexicon::is_stop_word(&token.norm) || token.is(&["en", "dans", "nach"]) || token.is(BOTH)
}

/// Whether the words are little more than a new value.
pub(super) fn is_mostly_new_value(tokens: &[Token], now: &Zoned) -> bool {
    let found = Entities::in_tokens(tokens, now.date());
    let rest: Vec<_> = tokens
        .iter()
        .enumerate()
        .filter(|(i, t)| t.word && !found.taken[*i] && !is_small(t) && !lexicon::is_question_word(&t.norm))
        .collect();
    let value = !found.days.is_empty() || !rest.is_empty();
    let verb = rest.iter().any(|(_, t)| lexicon::is_action(&t.features().concepts));
    // Every content word looks like a name or follows a function word.
    let asks = tokens.last().is_some_and(|mark| mark.raw == "?");
    let names = rest.iter().all(|(i, t)| {
        (t.capital() && (*i > 0 || asks && rest.len() == 1))
            || t.digit()
            || (*i > 0 && (is_small(&tokens[*i - 1]) || tokens[*i - 1].capital()))
    });
    let opener = tokens.iter().find(|t| t.word).is_some_and(|t| {
        t.is(&[
            "e", "ed", "and", "et", "und", "y", "invece", "what", "how", "anche", "also", "per", "a", "in",
            "for", "domani", "tomorrow",
        ])
    });
    value && !verb && names && rest.len() <= 3 && (opener || rest.len() <= 1)
}

/// Splits requests by the catalogue alone.
pub(super) struct IndexRouter<'a> {
    /// The catalogue.
    pub index: &'a CatalogueIndex,
    /// The current time.
    pub now: &'a Zoned,
}

impl ClauseRouter for IndexRouter<'_> {
    fn tool_for(&self, words: &str, after: Option<ToolPlace>) -> Option<(ToolPlace, bool)> {
        let hit = self.index.route(words, self.now.date(), after.map(|tool| tool.scene))?;
        Some((hit.place(), hit.score >= STRONG))
    }

    fn has_verb_or_question(&self, _words: &str) -> bool {
        true
    }
}

/// The clause of an earlier request that led to one of these tools.
fn base_clause(turn: &PriorTurn, hits: &[Hit], index: &CatalogueIndex, now: &Zoned) -> Option<(Hit, String)> {
    let clauses = clauses::split(&turn.request, &IndexRouter { index, now });
    hits.iter().find_map(|hit| {
        let same = |h: &Hit| h.place() == hit.place();
        clauses
            .iter()
            .rev()
            .find(|c| index.route(&c.text, now.date(), None).as_ref().is_some_and(same))
            .map(|c| (*hit, c.text.clone()))
    })
}

/// Replaces the values in the earlier request by the new ones.
fn substitute_value(base: &str, new: &str, turn: &PriorTurn, index: &CatalogueIndex, now: &Zoned) -> String {
    let fresh = text::tokens(new);
    let found = Entities::in_tokens(&fresh, now.date());
    let words = substitute_days(base.trim_end_matches(['?', '.', '!', ' ']), new, &fresh, &found, now);
    let name: Vec<usize> = fresh
        .iter()
        .enumerate()
        .filter(|(i, t)| {
            t.word
                && !found.taken[*i]
                && !is_small(t)
                && !lexicon::is_question_word(&t.norm)
                && !lexicon::is_pleasantry(&t.norm)
        })
        .map(|(i, _)| i)
        .collect();
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return words };
    match find_old_name(&words, turn, index, now) {
        Some((a, b)) => replace_range(&words, a, b, text::span(new, &fresh, *first, *last)),
        None => {
            let from = first
                .checked_sub(1)
                .filter(|i| fresh[*i].word && fresh[*i].lower != "e" && !fresh[*i].is(&["and", "about"]))
                .unwrap_or(*first);
            format!("{words} {}", text::span(new, &fresh, from, *last))
        }
    }
}

/// Replaces the days in the earlier request by the new ones, or appends them.
pub(super) fn substitute_days(
    base: &str,
    new: &str,
    fresh: &[Token],
    found: &Entities,
    now: &Zoned,
) -> String {
    let (Some(first), Some(last)) = (found.days.first(), found.days.last()) else { return base.to_owned() };
    let days = text::span(new, fresh, first.first, last.last);
    let tokens = text::tokens(base);
    let old = Entities::in_tokens(&tokens, now.date());
    match (old.days.first(), old.days.last()) {
        (Some(a), Some(b)) => replace_range(base, tokens[a.first].start, tokens[b.last].end, days),
        _ => format!("{base} {days}"),
    }
}

/// The byte range of the name in an earlier request that a new name replaces: a value of the earlier call,
/// else the first capitalised name, else an unknown word after a preposition.
fn find_old_name(
    words: &str,
    turn: &PriorTurn,
    index: &CatalogueIndex,
    now: &Zoned,
) -> Option<(usize, usize)> {
    let tokens = text::tokens(words);
    let old = Entities::in_tokens(&tokens, now.date());
    let lower = words.to_lowercase();
    let by_call = turn
        .calls
        .iter()
        .flat_map(|c| c.arguments.as_object().into_iter().flatten())
        .filter_map(|(_, v)| v.as_str().map(str::to_owned).or_else(|| v.as_u64().map(|n| n.to_string())))
        .filter(|v| v.len() > 1)
        .find_map(|v| lower.find(&v.to_lowercase()).map(|at| (at, at + v.len())))
        .filter(|(a, b)| {
            words.is_char_boundary(*a) && words.is_char_boundary(*b) && lower.len() == words.len()
        });
    let capital =
        tokens.iter().enumerate().find(|(i, t)| t.word && t.capital() && !t.first && !old.taken[*i]).map(
            |(i, t)| {
                let mut last = i;
                while tokens.get(last + 1).is_some_and(|n| n.word && n.capital() && !old.taken[last + 1]) {
                    last += 1;
                }
                (t.start, tokens[last].end)
            },
        );
    let lone = || {
        (1..tokens.len())
            .find(|i| {
                let t = &tokens[*i];
                t.word
                    && !old.taken[*i]
                    && !lexicon::is_stop_word(&t.norm)
                    && t.features().concepts.is_empty()
                    && !index.has_similar_word(&t.features())
                    && tokens[*i - 1].is(&["a", "ad", "in", "di", "at", "for", "per", "da", "to", "of"])
            })
            .map(|i| (tokens[i].start, tokens[i].end))
    };
    by_call.or(capital).or_else(lone)
}

fn replace_range(text: &str, from: usize, to: usize, with: &str) -> String {
    match (text.get(..from), text.get(to..)) {
        (Some(a), Some(b)) => format!("{a}{with}{b}"),
        _ => format!("{text} {with}"),
    }
}
