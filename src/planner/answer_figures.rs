//! The basis of an answer: figures of an answer that its sources contain, and the days that people named.
//!
//! **Invariant:** pure and text-based: it checks only figures and days, no words.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::language;
use crate::run::{Outcome, PlanMaker, RunState};

/// The days that the user named, in this request or before it, as read by the offline model.
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
    let calls = state.calls.iter().filter(|(_, call)| call.scene == scene);
    for (number, _) in calls {
        if let Some(Outcome::Ok { result, .. }) = state.outcome(*number) {
            out.push_str(&result.to_string());
        }
    }
    if let Some(started) = &state.started {
        let turns = started.context.turns.iter().flat_map(|turn| &turn.calls);
        for call in turns.filter(|call| call.scene == scene) {
            out.push_str(call.result.text());
        }
        let pending = started.context.pending.as_ref().filter(|pending| pending.scene == scene);
        out.extend(pending.map(|pending| pending.question.known.to_string()));
    }
    out
}
