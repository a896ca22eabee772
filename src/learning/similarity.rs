//! Which learned plans and paths are shown to a planner as hints.

use std::collections::BTreeSet;

use crate::run::{HintStep, LearnedPlan, PathHint, PlanHint};

/// Maximum number of hints for one plan.
const MAX_HINTS: usize = 3;
/// The least similarity of a request's words to those of a hint, as the share of common words.
const MIN_SIMILARITY: f64 = 0.4;

/// The plans whose requests are most similar to `words`, best first. `known` holds the words and the plan of each.
pub(crate) fn hints(words: &str, known: &[(String, LearnedPlan)]) -> Vec<PlanHint> {
    let hint = |(words, plan): (&String, &LearnedPlan)| PlanHint {
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
    most_similar(words, known.iter().map(|(words, plan)| (words, plan))).map(hint).collect()
}

/// The paths whose requests are most similar to `words`, best first. `known` holds the words and the path of each.
pub(super) fn path_hints<'a>(
    words: &str,
    known: impl Iterator<Item = (&'a String, &'a [String])>,
) -> Vec<PathHint> {
    let hint = |(words, path): (&String, &[String])| PathHint { request: words.clone(), path: path.to_vec() };
    most_similar(words, known).map(hint).collect()
}

/// Those of `known` whose words are most similar, best first.
fn most_similar<'a, T>(
    words: &str,
    known: impl Iterator<Item = (&'a String, T)>,
) -> impl Iterator<Item = (&'a String, T)> {
    let own = word_set(words);
    let scored = known.map(|(words, what)| (similarity(&own, &word_set(words)), words, what));
    let mut scored: Vec<_> = scored.filter(|(score, ..)| *score >= MIN_SIMILARITY).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MAX_HINTS).map(|(_, words, what)| (words, what))
}

fn word_set(words: &str) -> BTreeSet<&str> {
    words.split_whitespace().collect()
}

/// The share of the words of both that are in both (Jaccard).
fn similarity(a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> f64 {
    let all = a.union(b).count();
    if all == 0 { 0.0 } else { a.intersection(b).count() as f64 / all as f64 }
}
