//! Elliptical requests: "E a Roma?", "And tomorrow?" take over what was asked before, with the new
//! value in its place.

use jiff::Zoned;

use super::clauses::{self, Judge};
use super::entities::Entities;
use super::index::Index;
use super::lexicon;
use super::prompt::{Conversation, PriorTurn};
use super::routing::{Hit, STRONG};
use super::text::{self, Token};

/// How far back a chain of elliptical requests is followed.
const MAX_TURNS: usize = 12;

/// The tool and the whole words that an elliptical clause stands for; `None` where the conversation
/// gives nothing to complete it with. Only reads are repeated this way.
pub(super) fn resolve(
    clause: &str,
    conversation: &Conversation,
    index: &Index,
    now: &Zoned,
) -> Option<(Hit, String)> {
    let tokens = text::tokens(clause);
    if !brings(&tokens, now) {
        return None;
    }
    let mut chain: Vec<String> = vec![clause.to_owned()];
    for turn in conversation.turns.iter().rev().take(MAX_TURNS) {
        let hits: Vec<Hit> = turn
            .calls
            .iter()
            .rev()
            .filter_map(|c| index.named(&c.scene, &c.tool))
            .filter(|h| !index.scenes[h.scene].tools[h.tool].writes())
            .collect();
        let Some(hit) = hits.first().copied() else {
            // A turn without calls ("grazie") is passed over.
            continue;
        };
        match base(turn, &hits, index, now) {
            Some((hit, words)) => {
                let whole = chain.iter().rev().fold(words, |base, new| put(&base, new, turn, index, now));
                return Some((hit, whole));
            }
            None if brings(&text::tokens(&turn.request), now) => chain.push(turn.request.clone()),
            None => return Some((hit, clause.to_owned())),
        }
    }
    None
}

/// Whether the words are little more than a new value.
fn brings(tokens: &[Token], now: &Zoned) -> bool {
    let found = Entities::of(tokens, now.date());
    let rest: Vec<_> = tokens
        .iter()
        .enumerate()
        .filter(|(i, t)| {
            t.word && !found.taken[*i] && !lexicon::is_stop(&t.norm) && !lexicon::is_asking(&t.norm)
        })
        .collect();
    let value = !found.days.is_empty() || !rest.is_empty();
    let verb = rest.iter().any(|(_, t)| lexicon::is_action(&t.features().concepts));
    // Short, and every content word reads as a name or stands behind a preposition.
    let names = rest.iter().all(|(i, t)| {
        (t.capital() && *i > 0)
            || t.digit()
            || (*i > 0 && (lexicon::is_stop(&tokens[*i - 1].norm) || tokens[*i - 1].capital()))
    });
    let opener = tokens.first().is_some_and(|t| {
        t.is(&[
            "e", "ed", "and", "et", "und", "y", "invece", "what", "how", "anche", "also", "per", "a", "in",
            "for", "domani", "tomorrow",
        ])
    });
    value && !verb && names && rest.len() <= 3 && (opener || rest.len() <= 1)
}

struct ByRoute<'a> {
    index: &'a Index,
    now: &'a Zoned,
}

impl Judge for ByRoute<'_> {
    fn tool(&self, words: &str, after: Option<usize>) -> Option<(usize, bool)> {
        let hit = self.index.route(words, self.now.date(), after.map(|a| a / 1000))?;
        Some((hit.scene * 1000 + hit.tool, hit.score >= STRONG))
    }

    fn acts(&self, _words: &str) -> bool {
        true
    }
}

/// The clause of a turn's request that led to one of these tools.
fn base(turn: &PriorTurn, hits: &[Hit], index: &Index, now: &Zoned) -> Option<(Hit, String)> {
    let clauses = clauses::split(&turn.request, &ByRoute { index, now });
    hits.iter().find_map(|hit| {
        let same = |h: &Hit| h.scene == hit.scene && h.tool == hit.tool;
        clauses
            .iter()
            .rev()
            .find(|c| index.route(&c.text, now.date(), None).as_ref().is_some_and(same))
            .map(|c| (*hit, c.text.clone()))
    })
}

/// The earlier words with the new values in the place of the old ones.
fn put(base: &str, new: &str, turn: &PriorTurn, index: &Index, now: &Zoned) -> String {
    let mut words = base.trim_end_matches(['?', '.', '!', ' ']).to_owned();
    let fresh = text::tokens(new);
    let found = Entities::of(&fresh, now.date());
    if let (Some(first), Some(last)) = (found.days.first(), found.days.last()) {
        let said = text::span(new, &fresh, first.first, last.last);
        let tokens = text::tokens(&words);
        let old = Entities::of(&tokens, now.date());
        words = match (old.days.first(), old.days.last()) {
            (Some(a), Some(b)) => swap(&words, tokens[a.first].start, tokens[b.last].end, said),
            _ => format!("{words} {said}"),
        };
    }
    let name: Vec<usize> = fresh
        .iter()
        .enumerate()
        .filter(|(i, t)| {
            t.word
                && !found.taken[*i]
                && !lexicon::is_stop(&t.norm)
                && !lexicon::is_asking(&t.norm)
                && !lexicon::is_chat(&t.norm)
        })
        .map(|(i, _)| i)
        .collect();
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return words };
    let said = text::span(new, &fresh, *first, *last).to_owned();
    let tokens = text::tokens(&words);
    let old = Entities::of(&tokens, now.date());
    // Best, a value that the earlier call was made with; else the first name there is.
    let lower = words.to_lowercase();
    let by_call = turn
        .calls
        .iter()
        .flat_map(|c| c.arguments.as_object().into_iter().flatten())
        .filter_map(|(_, v)| v.as_str())
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
                    && !lexicon::is_stop(&t.norm)
                    && t.features().concepts.is_empty()
                    && !index.knows(&t.features())
                    && tokens[*i - 1].is(&["a", "ad", "in", "di", "at", "for", "per", "da", "to", "of"])
            })
            .map(|i| (tokens[i].start, tokens[i].end))
    };
    match by_call.or(capital).or_else(lone) {
        Some((a, b)) => swap(&words, a, b, &said),
        None => {
            let from = first
                .checked_sub(1)
                .filter(|i| fresh[*i].word && fresh[*i].lower != "e" && !fresh[*i].is(&["and", "about"]))
                .unwrap_or(*first);
            format!("{words} {}", text::span(new, &fresh, from, *last))
        }
    }
}

fn swap(text: &str, from: usize, to: usize, with: &str) -> String {
    match (text.get(..from), text.get(to..)) {
        (Some(a), Some(b)) => format!("{a}{with}{b}"),
        _ => format!("{text} {with}"),
    }
}
