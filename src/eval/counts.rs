//! The counts of an evaluation, and the shares that they come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::executed::ExecutedRequest;
use super::judge::{EvalFaultKind, Judgement, SetMatch};
use super::labels::LabelledRequest;

/// The entry of the confusion table for no scene.
pub const NO_SCENE: &str = "(none)";

/// A part of a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOfWhole {
    /// The part.
    pub part: usize,
    /// The whole.
    pub whole: usize,
}

impl PartOfWhole {
    /// The share, 0 to 1; `None` of nothing.
    pub fn share(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }

    fn add(&mut self, is_part: bool) {
        self.part += usize::from(is_part);
        self.whole += 1;
    }

    fn add_all(&mut self, part: usize, whole: usize) {
        self.part += part;
        self.whole += whole;
    }
}

/// How labelled sets compare with actual ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetCounts {
    /// Sets that are exactly as labelled.
    pub exact: PartOfWhole,
    /// Members that are labelled, of the actual ones: precision.
    pub precision: PartOfWhole,
    /// Members that are actual, of the labelled ones: recall.
    pub recall: PartOfWhole,
}

impl SetCounts {
    fn add(&mut self, sets: &SetMatch) {
        let SetMatch { expected, actual } = sets;
        let common = expected.intersection(actual).count();
        self.exact.add(expected == actual);
        self.precision.add_all(common, actual.len());
        self.recall.add_all(common, expected.len());
    }
}

/// The counts of executed requests. They add up in any order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EvalCounts {
    /// Requests that are right, of those that were executed.
    pub right: PartOfWhole,
    /// Where the scenes are labelled.
    pub scenes: SetCounts,
    /// Where the calls are labelled: their tools.
    pub tools: SetCounts,
    /// Labelled calls with their arguments, of those whose tool was called.
    pub arguments: PartOfWhole,
    /// Pairs in their order.
    pub order: PartOfWhole,
    /// Texts that the answer contains.
    pub mentions: PartOfWhole,
    /// Writes that were not asked for, of all.
    pub wrong_writes: PartOfWhole,
    /// Calls with a value that is not in the words, of all.
    pub invented: PartOfWhole,
    /// Requests of which a part was dropped, of all.
    pub dropped: PartOfWhole,
    /// Requests that no scene serves and that called a tool, of those that no scene serves.
    pub out_of_scope: PartOfWhole,
    /// Plain requests that were executed completely, of all plain ones.
    pub plain: PartOfWhole,
    /// Questions about plain requests, of all plain requests.
    pub needless: PartOfWhole,
    /// Questions that were not asked, of those that had to be.
    pub unasked: PartOfWhole,
    /// Reads with other values than labelled, of all reads.
    pub other_reads: PartOfWhole,
    /// Calls to models.
    pub model_calls: u64,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// By labelled scene, how often which scene took part, or took its place; [`NO_SCENE`] stands for none.
    pub confusion: BTreeMap<String, BTreeMap<String, usize>>,
}

impl EvalCounts {
    /// Adds an executed request. What it cost counts; the rest only if it has a label that is judged.
    pub fn add(&mut self, request: &LabelledRequest, executed: &ExecutedRequest, judgement: &Judgement) {
        self.model_calls += u64::from(executed.model_calls);
        self.input_tokens += executed.input_tokens;
        self.output_tokens += executed.output_tokens;
        self.cost_usd += executed.cost_usd;
        if !request.is_judged() {
            return;
        }
        let count = |kind| judgement.count(kind);
        let writes = executed.calls.iter().filter(|call| call.writes).count();
        self.right.add(judgement.is_right());
        if let Some(scenes) = &judgement.scenes {
            self.scenes.add(scenes);
            self.confuse(scenes);
        }
        if let Some(tools) = &judgement.tools {
            self.tools.add(tools);
        }
        // More than one call may fulfil a label.
        self.arguments.add_all(judgement.matched.min(judgement.reached), judgement.reached);
        self.order.add_all(judgement.in_order, request.before.len());
        self.mentions.add_all(judgement.mentioned, request.answer_mentions.len());
        self.wrong_writes.add_all(count(EvalFaultKind::WrongWrite), writes);
        self.invented.add_all(count(EvalFaultKind::InventedValue), executed.calls.len());
        self.dropped.add(count(EvalFaultKind::DroppedPart) > 0);
        if request.is_out_of_scope() {
            self.out_of_scope.add(count(EvalFaultKind::OutOfScopeCall) > 0);
        }
        if request.plain {
            self.plain.add(judgement.left == 0);
            self.needless.add(count(EvalFaultKind::NeedlessQuestion) > 0);
        }
        if request.asks {
            self.unasked.add(count(EvalFaultKind::MissingQuestion) > 0);
        }
        self.other_reads.add_all(count(EvalFaultKind::OtherRead), executed.calls.len() - writes);
    }

    /// Labelled scenes that took part are found. Of what is left, each missing scene is confused with one that took part
    /// instead, or with none; a further one that took part stands in the row of none.
    fn confuse(&mut self, scenes: &SetMatch) {
        let (expected, actual) = (&scenes.expected, &scenes.actual);
        let mut add = |labelled: &str, took_part: &str| {
            let row = self.confusion.entry(labelled.to_owned()).or_default();
            *row.entry(took_part.to_owned()).or_default() += 1;
        };
        expected.intersection(actual).for_each(|scene| add(scene, scene));
        let mut further = actual.difference(expected);
        for scene in expected.difference(actual) {
            add(scene, further.next().map_or(NO_SCENE, String::as_str));
        }
        further.for_each(|scene| add(NO_SCENE, scene));
        if expected.is_empty() && actual.is_empty() {
            add(NO_SCENE, NO_SCENE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::eval::testing::{judged, perfect, requests};

    proptest! {
        #[test]
        fn perfect_execution_scores_one(requests in requests()) {
            let mut counts = EvalCounts::default();
            for request in &requests {
                let executed = perfect(request);
                counts.add(request, &executed, &judged(request, &executed));
            }
            prop_assert_eq!(counts.right.part, requests.len());
            for sets in [counts.scenes, counts.tools] {
                for part in [sets.exact, sets.precision, sets.recall] {
                    prop_assert_eq!(part.part, part.whole);
                }
            }
            for part in [counts.arguments, counts.order, counts.mentions] {
                prop_assert_eq!(part.part, part.whole);
            }
            prop_assert_eq!(counts.wrong_writes.part + counts.dropped.part + counts.invented.part, 0);
            for (labelled, row) in &counts.confusion {
                prop_assert!(row.keys().all(|actual| actual == labelled), "{labelled}: {row:?}");
            }
        }

        #[test]
        fn counts_do_not_depend_on_the_order_of_requests_or_calls(requests in requests(), rotate in 0usize..8) {
            let mut forwards = EvalCounts::default();
            let mut backwards = EvalCounts::default();
            // Each request is executed as the next one should be: right and wrong in any mix.
            let executed: Vec<ExecutedRequest> = requests.iter().cycle().skip(rotate).take(requests.len()).map(perfect).collect();
            let pairs: Vec<(&LabelledRequest, &ExecutedRequest)> = requests.iter().zip(&executed).collect();
            for (request, executed) in &pairs {
                forwards.add(request, executed, &judged(request, executed));
            }
            for (request, executed) in pairs.iter().rev() {
                let mut executed = (*executed).clone();
                executed.calls.reverse();
                backwards.add(request, &executed, &judged(request, &executed));
            }
            prop_assert_eq!(forwards, backwards);
        }
    }

    #[test]
    fn scene_is_confused_with_what_took_part_in_its_place() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let mut counts = EvalCounts::default();
        for (expected, actual) in [
            (set(&["A"]), set(&["A"])),
            (set(&["A"]), set(&["B"])),
            (set(&["A"]), set(&[])),
            (set(&[]), set(&["B"])),
            (set(&["A"]), set(&["A", "B"])),
            (set(&[]), set(&[])),
        ] {
            counts.confuse(&SetMatch { expected, actual });
        }
        let shown = serde_json::to_string(&counts.confusion).unwrap();
        assert_eq!(shown, r#"{"(none)":{"(none)":1,"B":2},"A":{"(none)":1,"A":2,"B":1}}"#);
    }
}
