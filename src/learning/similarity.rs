//! Which learned plans are shown to a planner as hints.

use std::collections::BTreeSet;

use crate::run::{HintStep, LearnedPlan, PlanHint};

/// The most hints for one plan.
const MAX_HINTS: usize = 3;
/// The least similarity of a request's words to those of a hint, as the share of common words.
const MIN_SIMILARITY: f64 = 0.4;

/// The plans whose requests are most similar to `words`, best first. `known` holds the words and the plan of each.
pub(crate) fn hints(words: &str, known: &[(String, LearnedPlan)]) -> Vec<PlanHint> {
    let own = word_set(words);
    let scored = known.iter().map(|(words, plan)| (similarity(&own, &word_set(words)), words, plan));
    let mut scored: Vec<_> = scored.filter(|(score, ..)| *score >= MIN_SIMILARITY).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let hint = |(_, words, plan): (f64, &String, &LearnedPlan)| PlanHint {
        request: words.clone(),
        steps: plan
            .steps
            .iter()
            .map(|step| HintStep {
                scene: step.scene.clone(),
                tools: step.calls.iter().map(|call| call.tool.clone()).collect(),
            })
            .collect(),
    };
    scored.into_iter().take(MAX_HINTS).map(hint).collect()
}

fn word_set(words: &str) -> BTreeSet<&str> {
    words.split_whitespace().collect()
}

/// The share of the words of both that are in both (Jaccard).
fn similarity(a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> f64 {
    let all = a.union(b).count();
    if all == 0 { 0.0 } else { a.intersection(b).count() as f64 / all as f64 }
}
