//! Votes: several models decide which alternative is called, judged by what reached each of them and the back ends.

use proscenium::Explanation;
use proscenium::adapt::ConsultationOutcome;
use proscenium::run::{Event, Purpose, RunStatus, Subject};

use super::decision::{ALTERNATIVES, one_attempt, own_tools_fail, wire};
use super::fault_matrix::{World, names, rules, run_after_a_kill, write_scene};
use super::process::Workspace;
use crate::support::planner_engine::{QuestionKind, choice, requests};
use crate::support::{FaultyBackend, FinishedRun, Gate, Scripted, ScriptedLlm, Setup};

/// A model that votes for this option.
fn votes_for(option: &'static str) -> ScriptedLlm {
    rules().decide(move |request, _| Scripted::forced(request, choice(option))).start()
}

/// A model that cannot be used.
fn broken() -> ScriptedLlm {
    rules().decide(|_, _| Scripted::status(500)).start()
}

/// An engine whose decisions these models make, named `a`, `b`, `c`, of which `vote` vote.
async fn world(voters: &[&ScriptedLlm], vote: u32, set: impl FnOnce(Setup) -> Setup) -> World {
    let setup = |setup: Setup| {
        let names = &["\"a\"", "\"b\"", "\"c\""][..voters.len()];
        let setup = ["a", "b", "c"]
            .iter()
            .zip(voters)
            .fold(setup, |setup, (name, llm)| setup.another_model(name, llm));
        let setup = setup.set("llm.purposes.decision", format!("[{}]", names.join(",")));
        set(one_attempt(setup).set("execution.consultations.vote", vote).set("llm.max_attempts", 1))
    };
    let main = rules().recovery(|request, _| Scripted::forced(request, choice("abort"))).start();
    World::of_model(main, Some("intelligent"), None, ALTERNATIVES, (own_tools_fail, setup)).await
}

fn asked(llm: &ScriptedLlm) -> usize {
    requests(llm, QuestionKind::Decide).len()
}

/// How the decision of a run ended, and with what.
fn decided(run: &FinishedRun) -> (ConsultationOutcome, Option<&'static str>) {
    let mut ends = run.events.iter().filter_map(|event| match &event.body {
        Event::Consultation { how, chosen, .. } => Some((*how, chosen.as_ref().map(|chosen| chosen.id()))),
        _ => None,
    });
    ends.next_back().unwrap()
}

/// How many models were asked for their vote.
fn voters(run: &FinishedRun) -> usize {
    let is_vote = |event: &Event| matches!(event, Event::ModelAsked { subject: Subject::Vote { .. }, .. });
    run.events.iter().filter(|event| is_vote(&event.body)).count()
}

#[tokio::test]
async fn majority_of_three_models_decides() {
    let (a, b, c) = (votes_for("alternative_1"), votes_for("alternative_2"), votes_for("alternative_2"));
    let world = world(&[&a, &b, &c], 3, |setup| setup).await;
    let run = world.ask("Look", "503").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(wire(&world, "Look", "503"), [1, 0, 1]);
    // The two that agree are enough.
    assert_eq!(([&b, &c].map(asked), asked(&a) <= 1, voters(&run)), ([1, 1], true, 3));
    assert_eq!(asked(&world.llm), 0, "nobody else is");
    assert_eq!(decided(&run), (ConsultationOutcome::Asked, Some("alternative_2")));
}

#[tokio::test]
async fn tie_is_decided_by_the_first_and_the_answer_says_who_voted_for_what() {
    let (a, b) = (votes_for("alternative_2"), votes_for("alternative_1"));
    let world = world(&[&a, &b], 2, |setup| setup).await;
    let run = world.ask("Look", "503").await;
    assert_eq!(wire(&world, "Look", "503"), [1, 0, 1], "{:#?}", names(&run));
    let votes = run.answer.metadata.decisions.iter().filter(|made| made.purpose == Purpose::Decision);
    let mut votes: Vec<(&str, Option<&str>)> =
        votes.map(|made| (made.model.as_str(), made.decided.as_deref())).collect();
    votes.sort_unstable();
    assert_eq!(votes, [("a", Some("alternative_2")), ("b", Some("alternative_1"))]);
    let explained = Explanation::new(&run.events, &run.state, true);
    let told = explained.unexpected[0].consultation.as_ref().unwrap();
    assert_eq!(told.votes, ["a: alternative_2 (LookAbroad)", "b: alternative_1 (LookElsewhere)"]);
    assert_eq!((told.model.as_deref(), explained.unexpected[0].cost.llm_calls), (Some("a"), 2));
}

#[tokio::test]
async fn model_that_gives_no_usable_vote_abstains() {
    let (a, b, c) = (broken(), votes_for("nonsense"), votes_for("alternative_2"));
    let world = world(&[&a, &b, &c], 3, |setup| setup).await;
    let run = world.ask("Look", "503").await;
    assert_eq!(wire(&world, "Look", "503"), [1, 0, 1], "{:#?}", names(&run));
    assert_eq!([&a, &b, &c].map(asked), [1, 4, 1], "no other model is asked for the vote of one that failed");
    let (a, b) = (broken(), broken());
    let world = self::world(&[&a, &b], 2, |setup| setup).await;
    let run = world.ask("Look", "503").await;
    assert_eq!((run.answer.status, wire(&world, "Look", "503")), (RunStatus::Completed, [1, 1, 0]));
    assert_eq!(decided(&run), (ConsultationOutcome::Asked, None));
}

#[tokio::test]
async fn more_than_half_decide_without_waiting_for_the_rest() {
    let gate = Gate::closed();
    let held = gate.clone();
    let slow = rules()
        .decide(move |request, _| Scripted::forced(request, choice("alternative_1")).held(&held))
        .start();
    let (b, c) = (votes_for("alternative_2"), votes_for("alternative_2"));
    let never = |setup: Setup| setup.set("execution.consultations.timeout_ms", 120_000);
    let world = world(&[&slow, &b, &c], 3, never).await;
    let run = world.ask("Look", "503").await;
    assert_eq!((run.answer.status, wire(&world, "Look", "503")), (RunStatus::Completed, [1, 0, 1]));
    gate.open();
}

#[tokio::test]
async fn number_of_votes_is_frozen_within_the_models_and_the_bound_of_the_run() {
    let all = [votes_for("alternative_2"), votes_for("alternative_2"), votes_for("alternative_2")];
    let [a, b, c] = &all;
    let world = world(&[a, b, c], 5, |setup| setup).await;
    let run = world.ask("Look", "503").await;
    assert_eq!((run.state.settings().consultations.vote, voters(&run)), (3, 3), "there are three models");
    assert!([a, b, c].map(asked).iter().all(|count| *count <= 1));
    // Two questions are left to a run: two models vote.
    let all = [votes_for("alternative_2"), votes_for("alternative_2"), votes_for("alternative_2")];
    let [a, b, c] = &all;
    let world = self::world(&[a, b, c], 3, |setup| setup.set("execution.consultations.max_per_run", 2)).await;
    world.ask("Look", "503").await;
    assert_eq!(([a, b, c].map(asked), wire(&world, "Look", "503")), ([1, 1, 0], [1, 0, 1]));
}

#[tokio::test]
async fn equal_failures_of_other_runs_share_the_votes_and_nothing_else_is_voted_on() {
    let (a, b) = (votes_for("alternative_2"), votes_for("alternative_2"));
    let world = world(&[&a, &b], 2, |setup| setup).await;
    world.ask("Look", "1-503").await;
    let run = world.ask("Look", "2-503").await;
    assert_eq!(([&a, &b].map(asked), wire(&world, "Look", "2-503")), ([1, 1], [1, 0, 1]));
    assert_eq!(decided(&run), (ConsultationOutcome::Cached, Some("alternative_2")));
    // After all alternatives have failed, one model chooses how to continue.
    let run = world.ask("Look", "abroad-down").await;
    assert_eq!(wire(&world, "Look", "abroad-down"), [1, 1, 1], "{:#?}", names(&run));
    let recoveries = [&world.llm, &a, &b].map(|llm| requests(llm, QuestionKind::Recovery).len());
    assert_eq!((recoveries[1..].to_vec(), recoveries[0] <= 1), (vec![0, 0], true), "{recoveries:?}");
}

#[tokio::test]
async fn votes_survive_a_kill_and_nothing_is_sent_twice() {
    for at in ["after:unexpected", "after:model_replied", "after:voted", "after:consultation"] {
        let (backend, workspace) = (FaultyBackend::start(own_tools_fail), Workspace::bare());
        let (main, a, b) = (rules().start(), votes_for("alternative_2"), votes_for("alternative_2"));
        write_scene(&workspace.path().join("scenes"), backend.address(), ALTERNATIVES);
        let models = [("main", &main), ("a", &a), ("b", &b)].map(|(name, llm)| {
            format!("[[llm.models]]\nname = {name:?}\nbase_url = {:?}\nforcing = \"named\"\n", llm.base_url())
        });
        workspace.write(
            "house.toml",
            &format!(
                "[scenes]\nbuiltin = false\nallow_private_addresses = true\n[planning]\nfallback_enabled = false\n\
                 [execution]\nlevel = \"intelligent\"\n[execution.consultations]\nvote = 2\n\
                 [llm.purposes]\ndecision = [\"a\", \"b\"]\n{}",
                models.concat()
            ),
        );
        // The plan is asked for first.
        let skipped = u32::from(at.contains("model"));
        let run = run_after_a_kill(&workspace, (at, skipped), "Look cell x", || {}).await;
        assert_eq!(run["status"], "completed", "{at}: {run:#}");
        let reached = |place: &str| backend.requests(&format!("GET /{place}/x")).len();
        assert_eq!((reached("LookElsewhere"), reached("LookAbroad")), (0, 1), "{at}");
        assert!([&a, &b].map(asked).iter().all(|count| (1..=2).contains(count)), "{at}");
    }
}
