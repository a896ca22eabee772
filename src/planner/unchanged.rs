//! Answers that could be read as if something had been changed, although nothing was.

use super::planned_calls::names_action;
use crate::invisible::one_line;
use crate::language::{self, ActReport};
use crate::llm::offline;
use crate::plan::{StepKind, StepStatus};
use crate::run::{self, CallState, Effect, RunState, StepState};
use crate::scene::{Catalogue, Scene, SceneTool};
use crate::sentences::{self, OmissionTexts};

/// `answer` with sentences that it lacks: that nothing was changed, if the run has begun no write and one was expected;
/// and which steps completed without their writes, if others wrote.
pub(super) fn with_unchanged(state: &RunState, catalogue: &Catalogue, answer: String) -> String {
    if !state.settings().has_rules(7) || has_further_steps(state) {
        return answer;
    }
    let line = match (state.settings().has_rules(8), has_begun_write(state)) {
        _ if state.is_dry_run() => unchanged_by_dry_run(state, &answer),
        (false, true) => None,
        (false, false) => unchanged_before_revision_8(state, catalogue, &answer),
        (true, true) => untouched_steps(state, catalogue, &answer),
        (true, false) => unchanged(state, catalogue, &answer),
    };
    match line.filter(|line| !answer.contains(line.as_str())) {
        Some(line) => format!("{}\n{line}", answer.trim_end()),
        None => answer,
    }
}

/// The sentence that nothing was changed, for a dry run with a write, unless the answer denies something.
fn unchanged_by_dry_run(state: &RunState, answer: &str) -> Option<String> {
    // The changes that a program would make are shown with its commit.
    let would_write = |call: &CallState| call.requested.effect == Effect::Write && !call.is_commit;
    let is_told = || language::denies(&run::visible_text(answer));
    let is_missing = state.settings().has_rules(17) && state.calls.values().any(would_write) && !is_told();
    is_missing.then(|| sentences::unchanged(state.language()).to_owned())
}

/// Whether other steps than the program whose answer it is may still write.
fn has_further_steps(state: &RunState) -> bool {
    let open = state.steps.values().filter(|step| !step.status.is_terminal() && !step.is_node());
    state.settings().has_rules(8) && open.count() > 1
}

fn has_begun_write(state: &RunState) -> bool {
    let mut calls = state.calls.values();
    calls.any(|call| call.requested.effect == Effect::Write && call.attempts > 0)
}

/// The sentence that nothing was changed, if a write was expected: by a step that ended without it, or by a request
/// that no step was made for, unless the answer says so or only asks; or by the request alone, if the answer claims
/// that it was done.
fn unchanged(state: &RunState, catalogue: &Catalogue, answer: &str) -> Option<String> {
    // What the request itself forbids is reported separately.
    let guidance = state.queued.as_ref().and_then(|queued| queued.guidance.as_deref());
    let is_constrained = guidance.is_some_and(|guidance| !guidance.constraints.is_empty());
    let asks_user = state.steps.values().any(|step| step.status == StepStatus::NeedsInput);
    if asks_user || (is_constrained && state.steps.is_empty()) {
        return None;
    }
    let mut steps = state.steps.values();
    let ends = |step: &StepState| {
        matches!(step.status, StepStatus::Completed | StepStatus::Failed | StepStatus::Blocked)
    };
    let by_plan = steps.any(|step| ends(step) && lacks_its_write(state, catalogue, step));
    let is_expected = by_plan || state.steps.is_empty();
    let shown = run::visible_text(answer);
    let names =
        |writes: &[Write], words: &str| writes.iter().any(|(scene, tool)| names_action(scene, tool, words));
    let named = named_writes(state, catalogue);
    let may_matter = by_plan || !named.is_empty();
    if !may_matter || !is_expected && !may_claim(&shown, |words| names(&named, words)) {
        return None;
    }
    let requested = writes_of_clauses(state, named);
    if !by_plan && requested.is_empty() {
        return None;
    }
    let names = |words: &str| names(&requested, words);
    let report = ActReport::of(&shown, names);
    let is_missing = match is_expected {
        true => !report.is_denied() && !report.only_asks,
        false => report.claims,
    };
    is_missing.then(|| sentences::unchanged(state.language()).to_owned())
}

/// Whether an answer may claim an act that `names` recognises. This is quick to find out, unlike which acts the request
/// asks for, and most answers about results of reads claim none. Clauses with a part of a mail or web address are read
/// differently.
fn may_claim(answer: &str, names: impl Fn(&str) -> bool) -> bool {
    let has_address = answer.contains('@') || answer.contains("://");
    has_address || ActReport::of(answer, |_| false).claims || names(answer)
}

/// The lines for steps that completed without an expected write, in a run that wrote something else, unless the answer
/// denies something.
fn untouched_steps(state: &RunState, catalogue: &Catalogue, answer: &str) -> Option<String> {
    let wrote_later = |step: &StepState| {
        state.calls.values().any(|call| {
            call.requested.effect == Effect::Write
                && call.attempts > 0
                && call.scene == step.step.scene_name
                && call.step >= step.step.step_number
        })
    };
    let steps = state.plan_steps().map(|(_, step)| step).filter(|step| {
        step.status == StepStatus::Completed
            && step.replaced_by.is_none()
            && lacks_its_write(state, catalogue, step)
            && !wrote_later(step)
    });
    let not_done = OmissionTexts::of(state.language()).unserved;
    let lines: Vec<String> =
        steps.map(|step| format!("{not_done} {}", one_line(&step.step.purpose))).collect();
    let is_told = || ActReport::of(&run::visible_text(answer), |_| false).denies;
    (!lines.is_empty() && !is_told()).then(|| lines.join("\n"))
}

type Write<'a> = (&'a Scene, &'a SceneTool);

/// The writes that a verb of the request names.
fn named_writes<'a>(state: &RunState, catalogue: &'a Catalogue) -> Vec<Write<'a>> {
    let of_scene = |scene: &'a Scene| writes(scene).map(move |tool| (scene, tool));
    let mut named: Vec<Write<'a>> = catalogue.iter().flat_map(|scene| of_scene(scene)).collect();
    if let Some(verbs) = language::possible_verbs(state.request()) {
        named.retain(|(scene, tool)| !verbs.is_empty() && names_action(scene, tool, &verbs));
    }
    named
}

/// The writes among these that a plain request asks for. Reading the clauses takes long, and most requests have no verb
/// that names a write.
fn writes_of_clauses<'a>(state: &RunState, mut named: Vec<Write<'a>>) -> Vec<Write<'a>> {
    let request = state.request();
    if named.is_empty() || language::is_background_task(request, "") {
        return Vec::new();
    }
    let clauses: Vec<String> = offline::requested_clauses(request);
    let wanted: Vec<String> = clauses.iter().filter_map(|clause| language::asked_verb(clause)).collect();
    named.retain(|(scene, tool)| wanted.iter().any(|verb| names_action(scene, tool, verb)));
    named
}

/// The sentence that nothing was changed, by the rules of revision 7: if the answer speaks of the action in a regular form, and
/// no word of it denies anything.
fn unchanged_before_revision_8(state: &RunState, catalogue: &Catalogue, answer: &str) -> Option<String> {
    if language::denies(answer) {
        return None;
    }
    let is_expected = match state.steps.is_empty() {
        true => claims_a_requested_write(state, catalogue, answer),
        false => state
            .steps
            .values()
            .any(|step| step.status == StepStatus::Completed && lacks_its_write(state, catalogue, step)),
    };
    is_expected.then(|| sentences::unchanged(state.language()).to_owned())
}

/// Whether the request asks for what some write does, and the answer speaks of it.
fn claims_a_requested_write(state: &RunState, catalogue: &Catalogue, answer: &str) -> bool {
    let wanted = offline::requested_clauses(state.request());
    let names = |scene: &Scene, tool: &SceneTool| {
        wanted.iter().any(|clause| names_action(scene, tool, clause)) && names_action(scene, tool, answer)
    };
    !wanted.is_empty()
        && !language::is_background_task(state.request(), "")
        && catalogue.iter().any(|scene| writes(scene).any(|tool| names(scene.as_ref(), tool)))
}

/// Whether a step made no call of a write that its plan expects.
fn lacks_its_write(state: &RunState, catalogue: &Catalogue, step: &StepState) -> bool {
    let planned = &step.step;
    let Some(scene) = catalogue.get(&planned.scene_name) else { return false };
    let is_called = |tool: &SceneTool| {
        let mut calls = step.calls.iter().filter_map(|call| state.calls.get(call));
        calls.any(|call| call.requested.tool == tool.name)
    };
    planned.kind == StepKind::Scene
        && writes(scene)
            .filter(|tool| planned.expected_tools.contains(&tool.name))
            .any(|tool| !planned.if_needed.contains(&tool.name) && !is_called(tool))
}

fn writes(scene: &Scene) -> impl Iterator<Item = &SceneTool> {
    scene.tools.iter().filter(|tool| tool.effect == Effect::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The verbs that the clauses of a request ask for are among all verbs of the request, so the cheaper check may
        /// come first.
        #[test]
        fn verb_that_a_clause_asks_for_is_a_possible_verb_of_the_request(
            words in proptest::collection::vec(
                prop::sample::select(vec![
                    "please", "book", "Prenota", "a room", "la sala", "and then", "e poi", ",", ".", "!", "?", "\n", ":",
                    "tell me", "the weather", "dimmi", "it'll", "l'ordine", "e'", "perch\u{e9}", "non", "don't", "cancel",
                    "annulla", "if", "se", "send", "50\u{20ac}", "12.5", "to Bob", "check-in", "transfer", "(", ")", "\"",
                    "I want to", "vorrei", "make", "pay", "move", "spostare", "request 7", "re-order", "stra\u{df}e",
                ]),
                0..24,
            ),
            blanks in any::<bool>(),
        ) {
            let request = words.join(if blanks { " " } else { "" });
            let possible = language::possible_verbs(&request);
            prop_assert!(possible.is_some(), "{request}");
            let possible = possible.unwrap_or_default();
            for clause in offline::requested_clauses(&request) {
                if let Some(verb) = language::asked_verb(&clause) {
                    prop_assert!(possible.split(' ').any(|one| one == verb), "{verb} of {request}");
                }
            }
        }

        /// An answer that claims an act is one that `may_claim` accepts, so that the request need not be read for other
        /// answers.
        #[test]
        fn answer_that_claims_an_act_may_claim_it(
            words in proptest::collection::vec(
                prop::sample::select(vec![
                    "I", "we", "have", "has been", "booked", "Your", "leave", "is", "done", "not", "could not", "the room", "ho",
                    "prenotato", "la sala", "\u{e8} stata", "non", ",", ".", "!", "?", "\n", "and", "e", "it'll", "12 days", "left",
                    "(", ")", "book-in", "sent", "12.5", "50\u{20ac}",
                ]),
                0..24,
            ),
            act in prop::sample::select(vec!["book a room", "Invia la mail", "send", "prenota la sala", "leave"]),
            blanks in any::<bool>(),
        ) {
            let answer = words.join(if blanks { " " } else { "" });
            let names = |said: &str| language::names_action(said, act, std::iter::empty());
            prop_assert!(!ActReport::of(&answer, names).claims || may_claim(&answer, names), "{answer}");
        }
    }
}
