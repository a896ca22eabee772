//! Which facts a run is told: those that share words with its request, within a bound of tokens. Rare words count more.

use std::collections::HashSet;

use serde_json::Value;

use super::super::estimate;
use super::{EntryEvidence, LedgerEntry};
use crate::language::{lexicon, text};
use crate::run::{Context, FactKind, KnownFact, Turn};

/// The size of the section of facts besides its lines, in quarters of a token.
const SECTION: usize = 400;
/// The weight of a word of the request in which a fact came up, relative to a word of the fact itself.
const TOPIC_WEIGHT: f64 = 0.4;
/// Facts with a smaller share of the best score are not about the request.
const MIN_SHARE: f64 = 0.15;

/// The words of a text by stem and meaning, as sorted hashes.
pub(super) fn terms(text: &str) -> Box<[u32]> {
    let mut terms = Vec::new();
    for word in text::norms_once(text).filter(|word| !lexicon::is_stop_word(word)) {
        terms.extend_from_slice(&text::features(&word).hashes);
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
    if entries.is_empty() {
        return Vec::new();
    }
    let shown: Vec<ShownTurn> = context.turns.iter().map(ShownTurn::of).collect();
    let is_shown = |entry: &LedgerEntry| shown.iter().any(|turn| turn.shows(entry));
    let candidates: Vec<&LedgerEntry> =
        entries.iter().filter(|entry| entry.is_current() && !is_shown(entry)).collect();
    let scores = scores(&candidates, &terms(request));
    let best = scores.iter().copied().fold(0.0, f64::max);
    let is_related = |at: &usize| scores[*at] > 0.0 && scores[*at] >= best * MIN_SHARE;
    let mut order: Vec<usize> = (0..candidates.len()).filter(is_related).collect();
    // Of two equal scores, the later fact.
    order.sort_unstable_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
    let lasting = (0..candidates.len()).rev().filter(|at| candidates[*at].is_lasting);
    let mut rest = budget.saturating_mul(4).saturating_sub(SECTION);
    let mut chosen: Vec<(usize, KnownFact)> = Vec::new();
    let mut seen = HashSet::new();
    for at in order.into_iter().chain(lasting) {
        if !seen.insert(at) {
            continue;
        }
        // Once the budget is used up, the rest of a long ledger is not serialised only to be measured.
        if least_size(candidates[at]) > rest {
            continue;
        }
        let known = known(candidates[at], user);
        // Measured in its frozen form, which is larger than its line in a prompt.
        if let Some(left) = rest.checked_sub(estimate::json_size(&known) + 1) {
            rest = left;
            chosen.push((at, known));
        }
    }
    chosen.sort_unstable_by_key(|(at, _)| *at);
    chosen.into_iter().map(|(_, known)| known).collect()
}

/// A lower bound of the size of a fact in its frozen form, in quarters of a token: its texts, each byte of which counts
/// at least one.
fn least_size(entry: &LedgerEntry) -> usize {
    let fact = &entry.fact;
    r#"{"id":"","kind":"","claim":""}"#.len()
        + fact.id.len()
        + fact.claim.len()
        + entry.instead_of.as_ref().map_or(0, String::len)
}

fn known(entry: &LedgerEntry, user: &str) -> KnownFact {
    let fact = &entry.fact;
    // What another user said or looked up is no source for a write of this user.
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

/// The sorted terms of a request, for lookups by thousands of facts.
struct AskedTerms<'a> {
    terms: &'a [u32],
    /// Whether a term with these last bits is among them.
    last_bits: [bool; 1024],
}

impl<'a> AskedTerms<'a> {
    fn of(terms: &'a [u32]) -> Self {
        let mut last_bits = [false; 1024];
        for term in terms {
            last_bits[*term as usize % 1024] = true;
        }
        Self { terms, last_bits }
    }

    /// The places of those that are among `terms`.
    fn among(&self, terms: &[u32]) -> impl Iterator<Item = usize> {
        // Nearly all terms fail this test.
        let may_be = terms.iter().filter(move |term| self.last_bits[**term as usize % 1024]);
        may_be.filter_map(move |term| self.terms.binary_search(term).ok())
    }
}

/// The relevance of each fact to the words of the request.
fn scores(candidates: &[&LedgerEntry], asked: &[u32]) -> Vec<f64> {
    let terms = AskedTerms::of(asked);
    let mut having = vec![0_u32; asked.len()];
    // The relevance of each fact to each word, fact by fact.
    let mut weights = vec![0.0; candidates.len() * asked.len()];
    let rows = || 0..candidates.len();
    for (row, entry) in rows().zip(candidates) {
        let weights = &mut weights[row * asked.len()..][..asked.len()];
        terms.among(&entry.topic).for_each(|at| weights[at] = TOPIC_WEIGHT);
        terms.among(&entry.terms).for_each(|at| weights[at] = 1.0);
        having.iter_mut().zip(weights).for_each(|(count, weight)| *count += u32::from(*weight > 0.0));
    }
    let rarity = |having: &u32| (1.0 + candidates.len() as f64 / (1.0 + f64::from(*having))).ln();
    let rarities: Vec<f64> = having.iter().map(rarity).collect();
    let score = |(row, entry): (usize, &&LedgerEntry)| {
        let weights = &weights[row * asked.len()..][..asked.len()];
        let parts = weights.iter().zip(&rarities).map(|(weight, rarity)| weight * rarity);
        parts.fold(0.0, |score, part| score + part) * kind_weight(entry.fact.kind)
    };
    rows().zip(candidates).map(score).collect()
}

/// The factor of a score by the kind of its fact.
fn kind_weight(kind: FactKind) -> f64 {
    match kind {
        FactKind::Given => 1.2,
        FactKind::Verified => 1.1,
        FactKind::Quoted => 0.9,
        FactKind::Derived => 0.7,
        FactKind::Guess => 0.5,
    }
}

/// A turn that the prompt contains anyway.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{DefaultHasher, Hash, Hasher};

    use proptest::collection::{btree_set, vec};
    use proptest::strategy::Strategy;

    use super::super::LedgerFact;
    use super::*;
    use crate::run::FactSource;

    /// [`terms`] by definition: each feature hashed where it is met.
    fn plain_terms(text: &str) -> Box<[u32]> {
        fn hash<T: Hash>(kind: u8, of: &T) -> u32 {
            let mut hasher = DefaultHasher::new();
            (kind, of).hash(&mut hasher);
            hasher.finish() as u32
        }
        let mut terms = Vec::new();
        for word in text::norms(text).filter(|word| !lexicon::is_stop_word(word)) {
            let features = text::features(&word);
            terms.extend([hash(0, &features.en), hash(0, &features.it)]);
            terms.extend(features.concepts.iter().map(|concept| hash(1, concept)));
        }
        terms.sort_unstable();
        terms.dedup();
        terms.into()
    }

    /// [`scores`] by definition: each word of the request looked for in each fact.
    fn plain_scores(candidates: &[&LedgerEntry], asked: &[u32]) -> Vec<f64> {
        let mut scores = vec![0.0; candidates.len()];
        for term in asked {
            let weight = |entry: &&LedgerEntry| match (entry.terms.contains(term), entry.topic.contains(term))
            {
                (true, _) => 1.0,
                (false, true) => TOPIC_WEIGHT,
                (false, false) => 0.0,
            };
            let weights: Vec<f64> = candidates.iter().map(weight).collect();
            let having = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
            let rarity = (1.0 + candidates.len() as f64 / (1.0 + having)).ln();
            scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight * rarity);
        }
        let kinds = candidates.iter().map(|entry| kind_weight(entry.fact.kind));
        scores.iter_mut().zip(kinds).for_each(|(score, weight)| *score *= weight);
        scores
    }

    fn entry(kind: FactKind, terms: BTreeSet<u32>, topic: BTreeSet<u32>) -> LedgerEntry {
        let fact = LedgerFact {
            id: String::new(),
            claim: String::new(),
            kind,
            source: FactSource::default(),
            hash: String::new(),
            supersedes: None,
            is_unresolved: false,
            superseded_by: None,
            confidence: 100,
            at: None,
        };
        let (terms, topic) = (terms.into_iter().collect(), topic.into_iter().collect());
        let (evidence, call, instead_of) = (None, None, None);
        LedgerEntry { fact, evidence, call, instead_of, is_outdated: false, is_lasting: false, terms, topic }
    }

    /// Few terms, of which some end alike.
    fn some_terms() -> impl Strategy<Value = BTreeSet<u32>> {
        btree_set((0_u32..3, 0_u32..12).prop_map(|(first, last)| first * 1024 + last), 0..9)
    }

    proptest::proptest! {
        #[test]
        fn scores_are_those_of_each_word_in_each_fact(
            facts in vec((0_usize..5, some_terms(), some_terms()), 0..12), asked in some_terms()
        ) {
            let entries = facts.into_iter().map(|(kind, terms, topic)| entry(FactKind::ALL[kind], terms, topic));
            let entries: Vec<LedgerEntry> = entries.collect();
            let (candidates, asked) = (entries.iter().collect::<Vec<_>>(), asked.into_iter().collect::<Vec<_>>());
            proptest::prop_assert_eq!(scores(&candidates, &asked), plain_scores(&candidates, &asked));
        }

        #[test]
        fn fact_takes_no_less_than_its_least_size(
            claim in "(?s).{0,30}|[é東🎭\"\\\\\n]{0,9}", before in "(?s).{0,9}", kind in 0_usize..5
        ) {
            let mut entry = entry(FactKind::ALL[kind], BTreeSet::new(), BTreeSet::new());
            (entry.fact.id, entry.fact.claim) = ("0123456789ab".to_owned(), claim);
            entry.instead_of = (!before.is_empty()).then_some(before);
            proptest::prop_assert!(least_size(&entry) <= estimate::json_size(&known(&entry, "ada")));
        }

        #[test]
        fn terms_are_the_hashes_of_all_words(
            text in "(?s).{0,80}|([A-Za-zàèìù0-9'’.,:/@€-]{1,9} ){0,12}|(my |leave |ferie |permessi |balance |e' ){0,9}"
        ) {
            proptest::prop_assert_eq!(terms(&text), plain_terms(&text));
        }
    }
}
