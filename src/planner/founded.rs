//! Whether what a model says rests on what it was shown: figures of an answer, dates of a write.
//!
//! **Invariant:** pure, and by texts alone; it judges no words, only figures and days.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::llm::offline;
use crate::run::{Maker, Outcome, RunState};

/// Figures of `answer` that `shown` has nowhere, as written. Single digits are passed over: lists are
/// numbered, and few things are counted.
pub(super) fn unfounded(answer: &str, shown: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    for run in runs(shown) {
        // 12500 is 12.500 in one language and 12,500 in another.
        let mut rest = run;
        while rest.len() > 3 {
            let (head, tail) = rest.split_at(rest.len() - 3);
            known.insert(bare(tail));
            known.insert(bare(head));
            rest = head;
        }
        known.insert(bare(run));
    }
    let mut out: Vec<String> = Vec::new();
    for run in runs(answer).filter(|run| bare(run).len() > 1 && !known.contains(bare(run))) {
        if !out.iter().any(|one| one == run) {
            out.push(run.to_owned());
        }
    }
    out
}

/// Runs of digits.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty())
}

fn bare(run: &str) -> &str {
    run.trim_start_matches('0')
}

/// The days that the user said, in this request or before it, by the embedded rules' reading.
pub(super) fn days_said(state: &RunState) -> BTreeSet<Date> {
    let Some(started) = &state.started else { return BTreeSet::new() };
    let context = &started.context;
    let earlier = context.turns.iter().map(|turn| turn.request.as_str());
    let pending = context.pending.iter().map(|pending| pending.request.as_str());
    let words = earlier.chain(pending).chain([state.request()]);
    let people = said_of_plans(state);
    let words = words.chain(people.iter().map(String::as_str));
    words.flat_map(|text| offline::days(text, &started.now)).collect()
}

/// What people have said of the run's plans: their words, and the plans that they wrote.
fn said_of_plans(state: &RunState) -> Vec<String> {
    let mut said = Vec::new();
    for made in &state.plans {
        said.extend(made.why.clone());
        if made.maker == Maker::Person {
            said.extend(made.plan.steps.iter().map(|step| step.purpose.clone()));
        }
    }
    said
}

/// What `scene`'s own tools have found, in this request and before it, and what was known when the user
/// was asked: days in there need not be said again. Those of other scenes are about other things.
pub(super) fn found_by(state: &RunState, scene: &str) -> String {
    let mut out = String::new();
    let own = state.calls.iter().filter(|(_, call)| call.scene == scene);
    for (number, _) in own {
        if let Some(Outcome::Ok { result, .. }) = state.outcome(*number) {
            out.push_str(&result.to_string());
        }
    }
    if let Some(started) = &state.started {
        let turns = started.context.turns.iter().flat_map(|turn| &turn.calls);
        for call in turns.filter(|call| call.scene == scene) {
            out.push_str(&call.result.to_string());
        }
        let pending = started.context.pending.as_ref().filter(|pending| pending.scene == scene);
        out.extend(pending.map(|pending| pending.question.known.to_string()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_founded_whatever_their_dress() {
        let shown = r#"{"from": "2026-06-05", "days_left": 22, "price": 12500.75, "rain_mm": 96}"#;
        for answer in ["5 giugno 2026, 05/06/2026", "22 days", "12.500,75 €", "1. 96 mm\n2. none", "3 days"]
        {
            assert_eq!(unfounded(answer, shown), [""; 0], "{answer}");
        }
    }

    #[test]
    fn figures_from_nowhere_are_named() {
        assert_eq!(unfounded("23 giorni dal 17/06, 23", "22 giorni dal 15/06"), ["23", "17"]);
    }
}
