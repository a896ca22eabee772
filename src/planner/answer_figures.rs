//! What an answer is based on: figures of an answer that its sources contain, and the days that people named.
//!
//! **Invariant:** pure and text-based: it checks only figures and days, no words.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::language;
use crate::run::{Outcome, PlanMaker, RunState};

/// Figures of `answer`, as written, that `shown` does not contain. Single digits are ignored: they number
/// lists and count a few items.
pub(super) fn untraced_figures(answer: &str, shown: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    for run in runs(shown) {
        // 12500 is 12.500 in some languages and 12,500 in others.
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

/// The days that the user named, in this request or before it, as read by the embedded rules.
pub(super) fn days_from_people(state: &RunState) -> BTreeSet<Date> {
    let Some(started) = &state.started else { return BTreeSet::new() };
    let context = &started.context;
    let earlier = context.turns.iter().map(|turn| turn.request.as_str());
    let pending = context.pending.iter().map(|pending| pending.request.as_str());
    let words = earlier.chain(pending).chain([state.request()]);
    let people = plan_remarks(state);
    let words = words.chain(people.iter().map(String::as_str));
    words.flat_map(|text| language::mentioned_days(text, &started.now)).collect()
}

/// What people wrote about the run's plans: their comments, and the purposes of plans that they wrote.
fn plan_remarks(state: &RunState) -> Vec<String> {
    let mut texts = Vec::new();
    for made in &state.plans {
        texts.extend(made.why.clone());
        if made.maker == PlanMaker::Person {
            texts.extend(made.plan.steps.iter().map(|step| step.purpose.clone()));
        }
    }
    texts
}

/// The results of `scene`'s own tools, in this request and before it, and what was known when the user was
/// asked: the user need not repeat days from these. Results of other scenes are unrelated.
pub(super) fn results_of_scene(state: &RunState, scene: &str) -> String {
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
    fn figures_are_traced_in_any_notation() {
        let shown = r#"{"from": "2026-06-05", "days_left": 22, "price": 12500.75, "rain_mm": 96}"#;
        for answer in ["5 giugno 2026, 05/06/2026", "22 days", "12.500,75 €", "1. 96 mm\n2. none", "3 days"]
        {
            assert_eq!(untraced_figures(answer, shown), [""; 0], "{answer}");
        }
    }

    #[test]
    fn untraced_figures_are_listed() {
        assert_eq!(untraced_figures("23 giorni dal 17/06, 23", "22 giorni dal 15/06"), ["23", "17"]);
    }
}
