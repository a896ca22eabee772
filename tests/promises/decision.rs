//! Decisions: a model chooses which of several alternatives is called in place of a failed call, judged by what reached it
//! and the back ends.

use proscenium::adapt::ConsultationOutcome;
use proscenium::run::{Purpose, RunStatus};
use proscenium::{CallOutcome, Explanation};
use serde_json::Value;

use super::fault_matrix::{World, names, rules, run_after_a_kill, write_scene};
use super::process::Workspace;
use crate::support::planner_engine::{QuestionKind, choice, offered_options, requests};
use crate::support::{FaultyBackend, Gate, Misbehaviour, Scripted, ScriptedLlm, Setup, section};

/// Two alternatives of each tool, and by what to choose.
pub(super) const ALTERNATIVES: &str = "alternative = [{ tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }, \
    { tool = \"{tool}Abroad\", arguments = { cell = \"/arguments/cell\" } }]\n\
    choose_by = \"Prefer the one that is abroad.\"\n\
    policies = { unavailable = { do = [\"alternative\"] }, rate_limit = { do = [\"alternative\"] } }";

/// Places whose name has `down` in it do not work, nor do the tools themselves; the last part of the address is the status.
pub(super) fn own_tools_fail(place: &str, _: usize) -> Misbehaviour {
    let status = if place.ends_with("429") { 429 } else { 503 };
    let is_own = !place.contains("Elsewhere") && !place.contains("Abroad");
    let is_down = is_own
        || (place.contains("Elsewhere") && place.contains("down"))
        || (place.contains("Abroad") && place.contains("abroad-down"));
    if is_down { Misbehaviour::Status(status, Vec::new()) } else { Misbehaviour::Answer }
}

fn chosen_by(reply: impl Fn(usize) -> Value + Send + Sync + 'static) -> ScriptedLlm {
    // Nobody tries a failed call again.
    let rules = rules().recovery(|request, _| Scripted::forced(request, choice("abort")));
    rules.decide(move |request, nth| Scripted::forced(request, reply(nth))).start()
}

/// Alternatives that fail are not repeated.
pub(super) fn one_attempt(setup: Setup) -> Setup {
    setup.set("execution.policies.attempts", 1)
}

/// A model that chooses the second alternative.
fn chooses_the_second() -> ScriptedLlm {
    chosen_by(|_| choice("alternative_2"))
}

async fn world_of(llm: ScriptedLlm, more: &str, set: impl FnOnce(Setup) -> Setup) -> World {
    let set = |setup: Setup| set(one_attempt(setup));
    World::of_model(llm, Some("intelligent"), None, more, (own_tools_fail, set)).await
}

async fn world(llm: ScriptedLlm) -> World {
    world_of(llm, ALTERNATIVES, |setup| setup).await
}

fn asked(world: &World) -> usize {
    requests(&world.llm, QuestionKind::Decide).len()
}

/// What reached each of the three tools for a cell.
pub(super) fn wire(world: &World, tool: &str, cell: &str) -> [usize; 3] {
    ["", "Elsewhere", "Abroad"].map(|place| world.wire(&format!("{tool}{place}"), cell))
}

#[tokio::test]
async fn model_chooses_which_alternative_is_called() {
    let world = world(chooses_the_second()).await;
    let run = world.ask("Look", "503").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((wire(&world, "Look", "503"), asked(&world)), ([1, 0, 1], 1));
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, Some("alternative_2"))]);
    let calls = &run.answer.steps[0].tool_calls;
    assert_eq!((calls[0].outcome, calls[0].by.as_deref()), (CallOutcome::Failed, Some("LookAbroad")));
    let decided =
        run.answer.metadata.decisions.iter().find(|made| made.purpose == Purpose::Decision).unwrap();
    assert_eq!(decided.decided.as_deref(), Some("alternative_2"));
    assert_eq!((decided.model.as_str(), decided.tool.as_deref()), ("scripted", Some("Look")));
    let explained = Explanation::new(&run.events, &run.state, true);
    let [entry] = explained.unexpected.as_slice() else { panic!("{explained:#?}") };
    let told = entry.consultation.as_ref().unwrap();
    assert_eq!(told.offered, ["alternative_1 (LookElsewhere)", "alternative_2 (LookAbroad)"]);
    assert_eq!(
        (told.chosen.as_deref(), entry.replaced_by.as_deref()),
        (Some("alternative_2"), Some("LookAbroad"))
    );
    assert_eq!((entry.by.as_deref(), entry.cost.llm_calls), (Some("scripted"), 1));
}

#[tokio::test]
async fn question_has_the_options_and_the_criteria_but_no_value() {
    let world = world(chooses_the_second()).await;
    world.ask("Look", "secret-503").await;
    let request = requests(&world.llm, QuestionKind::Decide)[0].clone();
    assert_eq!(offered_options(&request), ["alternative_1", "alternative_2"]);
    assert!(section(&request, "options").unwrap().contains("LookAbroad something up, once."));
    assert_eq!(section(&request, "criteria").unwrap(), "Prefer the one that is abroad.");
    let messages = request["messages"].to_string();
    for hidden in ["secret-503", "127.0.0.1", "keysersoze"] {
        assert!(!messages.contains(hidden), "{hidden} is in {messages}");
    }
}

#[tokio::test]
async fn equal_failures_of_many_runs_are_one_question() {
    let world = world(chooses_the_second()).await;
    for cell in ["a-503", "b-503", "c-503"] {
        let run = world.ask("Look", cell).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{cell}: {:#?}", names(&run));
        assert_eq!(wire(&world, "Look", cell), [1, 0, 1], "{cell}");
    }
    assert_eq!(asked(&world), 1, "the others share its reply");
}

#[tokio::test]
async fn without_a_usable_choice_the_first_alternative_is_called() {
    for reply in ["alternative_3", "LookAbroad", ""] {
        let world = world(chosen_by(move |_| choice(reply))).await;
        let run = world.ask("Look", "503").await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{reply}: {:#?}", names(&run));
        assert_eq!((wire(&world, "Look", "503"), asked(&world)), ([1, 1, 0], 4), "{reply}");
        assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, None)], "{reply}");
    }
}

#[tokio::test]
async fn others_follow_in_their_order_where_the_chosen_one_fails() {
    let world = world(chooses_the_second()).await;
    let run = world.ask("Look", "abroad-down").await;
    assert_eq!(run.answer.status, RunStatus::Failed, "{:#?}", names(&run));
    assert_eq!(wire(&world, "Look", "abroad-down"), [1, 1, 1], "each is called once");
    let decided = run.consultations().into_iter().filter(|(_, chosen)| *chosen == Some("alternative_2"));
    assert_eq!((decided.count(), asked(&world)), (1, 1), "nobody is asked which one is next");
    let world = self::world(chosen_by(|_| choice("alternative_1"))).await;
    let run = world.ask("Look", "down").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((wire(&world, "Look", "down"), asked(&world)), ([1, 1, 1], 1));
}

#[tokio::test]
async fn several_alternatives_are_called_in_their_order_where_no_model_may_choose() {
    let without_criteria = ALTERNATIVES.replace("choose_by = \"Prefer the one that is abroad.\"", "");
    let cases = [
        (Some("basic"), None, ALTERNATIVES),
        (Some("adaptive"), None, ALTERNATIVES),
        (None, Some("adaptive"), ALTERNATIVES),
        (Some("intelligent"), None, without_criteria.as_str()),
    ];
    for (level, mode, more) in cases {
        let llm = chooses_the_second();
        let world = World::of_model(llm, level, mode, more, (own_tools_fail, one_attempt)).await;
        for (cell, expected) in [("503", [1, 1, 0]), ("down-503", [1, 1, 1])] {
            let run = world.ask("Look", cell).await;
            assert_eq!(run.answer.status, RunStatus::Completed, "{level:?} {cell}: {:#?}", names(&run));
            assert_eq!(
                (wire(&world, "Look", cell), asked(&world)),
                (expected, 0),
                "{level:?} {mode:?} {cell}"
            );
        }
    }
    let llm = chooses_the_second();
    let strict = (Some("intelligent"), Some("strict"));
    let world = World::of_model(llm, strict.0, strict.1, ALTERNATIVES, (own_tools_fail, one_attempt)).await;
    world.ask("Look", "503").await;
    assert_eq!((wire(&world, "Look", "503"), asked(&world)), ([1, 0, 0], 0));
}

#[tokio::test]
async fn bound_of_the_run_and_a_silent_model_leave_the_choice_to_the_order() {
    let none = |setup: Setup| setup.set("execution.consultations.max_per_run", 0);
    let world = world_of(chooses_the_second(), ALTERNATIVES, none).await;
    let run = world.ask("Look", "503").await;
    assert_eq!((wire(&world, "Look", "503"), asked(&world)), ([1, 1, 0], 0), "{:#?}", names(&run));
    let gate = Gate::closed();
    let held = gate.clone();
    let llm = rules()
        .decide(move |request, _| Scripted::forced(request, choice("alternative_2")).held(&held))
        .start();
    let soon = |setup: Setup| setup.set("execution.consultations.timeout_ms", 300);
    let world = world_of(llm, ALTERNATIVES, soon).await;
    let run = world.ask("Look", "503").await;
    assert_eq!((run.answer.status, wire(&world, "Look", "503")), (RunStatus::Completed, [1, 1, 0]));
    gate.open();
}

#[tokio::test]
async fn chosen_alternative_that_writes_needs_its_own_yes_and_is_one_act() {
    for confirm in ["unclear", "never"] {
        let set = |setup: Setup| setup.set("execution.confirm", confirm);
        let world = world_of(chooses_the_second(), ALTERNATIVES, set).await;
        let asked = world.ask("Book", "429").await;
        assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{confirm}: {:#?}", names(&asked));
        assert!(asked.answer.answer.contains("BookAbroad"), "{}", asked.answer.answer);
        assert_eq!(wire(&world, "Book", "429"), [1, 0, 0], "{confirm}: nobody said yes");
        let done = world.test.chat("Book-429", "yes").await;
        assert_eq!(done.answer.status, RunStatus::Completed, "{confirm}: {:#?}", done.answer);
        assert_eq!(wire(&world, "Book", "429"), [1, 0, 1], "{confirm}");
    }
    let world = world(chooses_the_second()).await;
    world.ask("Book", "429").await;
    world.test.chat("Book-429", "no").await;
    assert_eq!(wire(&world, "Book", "429"), [1, 0, 0], "a no to one alternative is not walked around");
}

#[tokio::test]
async fn write_that_may_be_done_is_referred_to_a_person_and_nobody_chooses() {
    let world = world(chooses_the_second()).await;
    let run = world.ask("Book", "503").await;
    assert_eq!(run.answer.approvals.len(), 1, "{:#?}", names(&run));
    assert_eq!((wire(&world, "Book", "503"), asked(&world)), ([1, 0, 0], 0));
}

#[tokio::test]
async fn decision_survives_a_kill_and_nothing_is_sent_twice() {
    for at in ["after:unexpected", "after:model_replied", "after:consultation", "after:adapted"] {
        let (backend, workspace) = (FaultyBackend::start(own_tools_fail), Workspace::bare());
        let llm = chooses_the_second();
        write_scene(&workspace.path().join("scenes"), backend.address(), ALTERNATIVES);
        workspace.write_house(
            &llm,
            "[planning]\nfallback_enabled = false\n[execution]\nlevel = \"intelligent\"\n",
        );
        // The plan is asked for first.
        let skipped = u32::from(at.contains("model"));
        let run = run_after_a_kill(&workspace, (at, skipped), "Look cell x", || {}).await;
        assert_eq!(run["status"], "completed", "{at}: {run:#}");
        let reached = |place: &str| backend.requests(&format!("GET /{place}/x")).len();
        assert_eq!((reached("LookElsewhere"), reached("LookAbroad")), (0, 1), "{at}");
        // A read whose end was not on disk may be made again.
        assert!((1..=2).contains(&reached("Look")), "{at}");
        assert!((1..=2).contains(&requests(&llm, QuestionKind::Decide).len()), "{at}");
    }
}
