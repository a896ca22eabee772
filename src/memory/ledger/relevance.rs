//! Which facts a run should know: those that share words with its request, the rarer the better, within a bound of tokens.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::super::estimate;
use super::{EntryEvidence, LedgerEntry};
use crate::language::{lexicon, text};
use crate::run::{Context, FactKind, KnownFact, Turn};

/// What the section of facts takes beside its lines, in quarters of a token.
const SECTION: usize = 400;
/// A word of the request in which a fact came up counts less than one of the fact itself.
const TOPIC_WEIGHT: f64 = 0.4;
/// Facts with a smaller share of the best score are not about the request.
const LEAST_SHARE: f64 = 0.15;

/// The words of a text by stem and meaning, as sorted hashes.
pub(super) fn terms(text: &str) -> Box<[u32]> {
    let hash = |kind: u8, of: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        of(&mut hasher);
        hasher.finish() as u32
    };
    let mut terms = Vec::new();
    for word in text::norms(text).filter(|word| !lexicon::is_stop_word(word)) {
        let features = text::features(&word);
        terms.push(hash(0, &|hasher: &mut DefaultHasher| features.en.hash(hasher)));
        terms.push(hash(0, &|hasher: &mut DefaultHasher| features.it.hash(hasher)));
        terms.extend(
            features
                .concepts
                .iter()
                .map(|concept| hash(1, &|hasher: &mut DefaultHasher| concept.hash(hasher))),
        );
    }
    terms.sort_unstable();
    terms.dedup();
    terms.into()
}

/// The facts for a run of `user` whose request this is, the oldest first, in at most `budget` tokens.
pub(super) fn select(
    entries: &[LedgerEntry],
    context: &Context,
    request: &str,
    user: &str,
    budget: usize,
) -> Vec<KnownFact> {
    let shown: Vec<ShownTurn> = context.turns.iter().map(ShownTurn::of).collect();
    let is_shown = |entry: &LedgerEntry| shown.iter().any(|turn| turn.shows(entry));
    let candidates: Vec<&LedgerEntry> =
        entries.iter().filter(|entry| entry.is_current() && !is_shown(entry)).collect();
    let scores = scores(&candidates, &terms(request));
    let best = scores.iter().copied().fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // Of two equal scores, the later fact.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
    let is_related = |at: &usize| scores[*at] > 0.0 && scores[*at] >= best * LEAST_SHARE;
    let lasting = (0..candidates.len()).rev().filter(|at| candidates[*at].is_lasting);
    let mut rest = budget.saturating_mul(4).saturating_sub(SECTION);
    let mut chosen: Vec<(usize, KnownFact)> = Vec::new();
    let mut seen = HashSet::new();
    for at in order.into_iter().filter(is_related).chain(lasting) {
        if !seen.insert(at) {
            continue;
        }
        let known = known(candidates[at], user);
        // As it is frozen, which is more than its line in a prompt.
        if let Some(left) = rest.checked_sub(estimate::json_size(&known) + 1) {
            rest = left;
            chosen.push((at, known));
        }
    }
    chosen.sort_unstable_by_key(|(at, _)| *at);
    chosen.into_iter().map(|(_, known)| known).collect()
}

fn known(entry: &LedgerEntry, user: &str) -> KnownFact {
    let fact = &entry.fact;
    // What another user said or looked up grounds no write of this one.
    let is_own = fact.source.by.as_deref() == Some(user);
    let grounds = is_own && fact.kind.may_ground() && !entry.is_outdated;
    KnownFact {
        id: fact.id.clone(),
        kind: fact.kind,
        claim: fact.claim.clone(),
        at: fact.at,
        instead_of: entry.instead_of.clone(),
        outdated: entry.is_outdated,
        evidence: if grounds { entry.fact_evidence() } else { None },
    }
}

/// How much each fact is about the words of the request.
fn scores(candidates: &[&LedgerEntry], asked: &[u32]) -> Vec<f64> {
    let mut scores = vec![0.0; candidates.len()];
    for term in asked {
        let has = |terms: &[u32]| terms.binary_search(term).is_ok();
        let weights: Vec<f64> = candidates
            .iter()
            .map(|entry| match (has(&entry.terms), has(&entry.topic)) {
                (true, _) => 1.0,
                (false, true) => TOPIC_WEIGHT,
                (false, false) => 0.0,
            })
            .collect();
        let having = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        let rarity = (1.0 + candidates.len() as f64 / (1.0 + having)).ln();
        scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight * rarity);
    }
    for (score, entry) in scores.iter_mut().zip(candidates) {
        *score *= match entry.fact.kind {
            FactKind::Given => 1.2,
            FactKind::Verified => 1.1,
            FactKind::Quoted => 0.9,
            FactKind::Derived => 0.7,
            FactKind::Guess => 0.5,
        };
    }
    scores
}

/// A turn that the prompt has anyway.
struct ShownTurn<'a> {
    turn: &'a Turn,
    calls: String,
}

impl<'a> ShownTurn<'a> {
    fn of(turn: &'a Turn) -> Self {
        let calls = turn.calls.iter().map(|call| format!("{}\n{}\n", call.arguments, call.result)).collect();
        Self { turn, calls }
    }

    /// Whether all of a fact is in the turn as it is shown, which may be shortened.
    fn shows(&self, entry: &LedgerEntry) -> bool {
        let fact = &entry.fact;
        if fact.source.run.is_none() || fact.source.run != self.turn.run {
            return false;
        }
        match fact.kind {
            FactKind::Given => !self.turn.request.contains('…'),
            FactKind::Derived | FactKind::Guess => true,
            FactKind::Verified | FactKind::Quoted => {
                let values = entry.evidence.as_ref().map(EntryEvidence::values);
                let texts = values.as_ref().map(value_texts).unwrap_or_default();
                !self.turn.calls.is_empty() && texts.iter().all(|text| self.calls.contains(text.as_str()))
            }
        }
    }
}

/// Each plain value as JSON.
fn value_texts(values: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open = vec![values];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(list) => open.extend(list),
            Value::Object(members) => open.extend(members.values()),
            Value::Null => {}
            plain => texts.push(plain.to_string()),
        }
    }
    texts
}
