//! The continuation check: it may ask for more, but not forever; it may contain the answer; and missing
//! information that only the user has is asked for, not invented.

use proscenium::plan::StepStatus;
use proscenium::run::{Event, OutOfScope, RunStatus};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, FROM_ANSWER, FROM_CHECK, ModelRules, QuestionKind, Town, arguments_of, book_plan,
    final_verdict, has_results, more, plan, question_kind, requests, step,
};
use crate::support::{Scripted, forced_tool, last_message, section, tool_names};

const MISSING: &str = "A parking space for 5 May has still to be booked.";

/// First the book; then, because the check reports it missing, this plan.
fn two_plans(second: Value) -> ModelRules {
    let plans = [book_plan(), second];
    ModelRules::of(book_plan())
        .plan(move |request, nth| Scripted::forced(request, plans[nth.min(1)].clone()))
        .check(|request, nth| {
            Scripted::forced(request, if nth == 0 { more(MISSING) } else { final_verdict() })
        })
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn replan_prompt_states_missing_and_completed_work() {
    let llm = two_plans(plan(json!([step(2, "Parking", &["BookSpace"], json!(1))]))).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Find Dune and book a parking space for 5 May.").await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);

    let asked = requests(&llm, QuestionKind::Plan);
    assert_eq!(section(&asked[0], "missing"), None);
    assert_eq!(section(&asked[1], "missing").as_deref(), Some(MISSING));
    assert_eq!(section(&asked[1], "number_from").as_deref(), Some("2"));
    let executed = lines(&section(&asked[1], "executed").unwrap());
    assert_eq!(executed.len(), 1);
    assert_eq!(executed[0]["status"], "completed");
    assert_eq!(executed[0]["calls"][0]["arguments"], arguments_of("FindBook"));
    assert_eq!(executed[0]["calls"][0]["result"], json!({"shelf": "B4"}));

    // The new step depends on a completed one and gets its result.
    let parking = requests(&llm, QuestionKind::Scene)
        .into_iter()
        .find(|request| section(request, "scene").as_deref() == Some("Parking"))
        .unwrap();
    assert_eq!(lines(&section(&parking, "earlier").unwrap())[0]["step"], 1);

    // The second check judges all of it.
    let checks = requests(&llm, QuestionKind::Check);
    assert_eq!(lines(&section(&checks[1], "executed").unwrap()).len(), 2);
    assert!(finished.has("replanned"));
}

#[tokio::test]
async fn replan_numbered_from_one_continues_the_step_numbers() {
    let again = plan(json!([
        step(1, "Canteen", &["Menu"], Value::Null),
        step(2, "Parking", &["BookSpace"], json!(1)),
    ]));
    let llm = two_plans(again).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Find Dune, see the menu and book a parking space.").await;
    let numbers: Vec<(u32, &str)> =
        finished.answer.steps.iter().map(|step| (step.step_number, step.scene_name.as_str())).collect();
    assert_eq!(numbers, [(1, "Library"), (2, "Canteen"), (3, "Parking")]);
    assert!(finished.plans()[1].plan.steps[1].depends_on_step.contains(2));
    assert_eq!(town.log.names(), ["FindBook", "Menu", "BookSpace"]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn max_replans_bounds_a_check_that_always_continues() {
    let play = ModelRules::of(book_plan())
        .plan(|request, nth| {
            let number = nth as u32 + 1;
            Scripted::forced(request, plan(json!([step(number, "Library", &["FindBook"], Value::Null)])))
        })
        .scene(|request, nth| match has_results(request) {
            true => Scripted::Text("Found.".into()),
            // A different book each time, so that every round makes a new call.
            false => Scripted::call("FindBook", json!({"title": format!("Volume {nth}")})),
        })
        .check(|request, _| Scripted::forced(request, more("Yet another volume.")));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.planning.max_replans = 2).await;
    let finished = town.ask("Find all the volumes.").await;
    assert_eq!(requests(&llm, QuestionKind::Plan).len(), 3);
    assert_eq!(requests(&llm, QuestionKind::Check).len(), 3);
    assert_eq!(requests(&llm, QuestionKind::Answer).len(), 1);
    assert_eq!(town.log.calls().len(), 3);
    assert_eq!((finished.answer.status, finished.answer.answer.as_str()), (RunStatus::Partial, FROM_ANSWER));
}

#[tokio::test]
async fn round_without_new_calls_ends_the_run() {
    let same = plan(json!([step(2, "Library", &["FindBook"], Value::Null)]));
    let play = two_plans(same).check(|request, _| Scripted::forced(request, more("The shelf of Dune.")));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.planning.max_replans = 10).await;
    let finished = town.ask("Where is Dune?").await;
    assert_eq!(requests(&llm, QuestionKind::Plan).len(), 2);
    assert_eq!(town.log.names(), ["FindBook"], "the equal call is not repeated");
    assert!(finished.has("tool_skipped"));
    assert_eq!(finished.answer.status, RunStatus::Partial);
}

#[tokio::test]
async fn replan_without_steps_ends_the_run() {
    let llm = two_plans(plan(json!([]))).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Where is Dune, and who wrote the weather?").await;
    assert_eq!((requests(&llm, QuestionKind::Plan).len(), requests(&llm, QuestionKind::Check).len()), (2, 1));
    let answers = requests(&llm, QuestionKind::Answer);
    assert_eq!(answers.len(), 1);
    assert_eq!(section(&answers[0], "mode").as_deref(), Some("answer"), "completed work is reported");
    assert_eq!(finished.answer.status, RunStatus::Partial);
}

#[tokio::test]
async fn answer_in_the_check_saves_the_answer_call() {
    for (with_check, calls, text) in [(true, 0, FROM_CHECK), (false, 1, FROM_ANSWER)] {
        let llm = ModelRules::of(book_plan()).start();
        let town = Town::open(&llm, |config| config.planning.answer_with_check = with_check).await;
        let finished = town.ask("Where is Dune?").await;
        assert_eq!(requests(&llm, QuestionKind::Answer).len(), calls);
        assert_eq!((finished.answer.status, finished.answer.answer.as_str()), (RunStatus::Completed, text));
        let check = &requests(&llm, QuestionKind::Check)[0];
        let schema = &check["tools"][0]["function"]["parameters"];
        assert_eq!(schema["properties"].get("answer").is_some(), with_check);
    }
}

#[tokio::test]
async fn check_without_an_answer_is_followed_by_an_answer_call() {
    for answer in [Value::Null, json!("  ")] {
        let mut verdict = final_verdict();
        verdict["answer"] = answer;
        let llm = ModelRules::of(book_plan())
            .check(move |request, _| Scripted::forced(request, verdict.clone()))
            .start();
        let town = Town::open(&llm, |_| {}).await;
        let finished = town.ask("Where is Dune?").await;
        assert_eq!(
            (finished.answer.status, finished.answer.answer.as_str()),
            (RunStatus::Completed, FROM_ANSWER)
        );
    }
}

#[tokio::test]
async fn verdict_without_missing_information_is_rejected() {
    let vague = json!({"should_continue": true, "can_answer_now": false, "reasoning": "", "missing_information": null});
    let play = ModelRules::of(book_plan()).check(move |request, nth| {
        Scripted::forced(request, if nth == 0 { vague.clone() } else { final_verdict() })
    });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Where is Dune?").await;
    assert_eq!(finished.rejected(), [["verdict.nothing_missing"]]);
    let second = &requests(&llm, QuestionKind::Check)[1];
    assert!(last_message(second).unwrap().contains(finished.problems()[0]));
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

/// Whether each `continuation` event is marked as degraded.
fn degraded(finished: &AnsweredRun) -> Vec<bool> {
    let verdicts = finished.events.iter().filter_map(|event| match event {
        Event::Continuation { degraded, .. } => Some(*degraded),
        _ => None,
    });
    verdicts.collect()
}

#[tokio::test]
async fn unreadable_check_degrades_and_is_recorded() {
    let play = ModelRules::of(book_plan()).check(|_, _| Scripted::Text("It looks fine to me.".into()));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.planning.max_retries = 1).await;
    let finished = town.ask("Where is Dune?").await;
    assert_eq!(requests(&llm, QuestionKind::Check).len(), 2);
    assert_eq!(finished.rejected(), [["reply.no_json"], ["reply.no_json"]]);
    assert_eq!(degraded(&finished), [true]);
    assert_eq!(finished.answer.answer, FROM_ANSWER, "completed work is reported all the same");
}

#[tokio::test]
async fn fallback_rules_replace_an_unreadable_check() {
    let play = ModelRules::of(book_plan()).check(|_, _| Scripted::Text("It looks fine to me.".into()));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.planning.fallback_enabled = true).await;
    let finished = town.ask("Where is the book Dune?").await;
    assert_eq!(requests(&llm, QuestionKind::Check).len(), 4);
    let by_rules =
        finished.events.iter().filter(|event| matches!(event, Event::ModelAsked { fallback: true, .. }));
    assert_eq!(by_rules.count(), 1);
    assert_eq!(finished.answer.status, RunStatus::Completed);
    assert!(!finished.answer.answer.trim().is_empty());
}

#[tokio::test]
async fn verdict_asks_the_user_and_the_next_message_continues() {
    const QUESTION: &str = "Which plate has the car?";
    for with_check in [true, false] {
        let play = ModelRules::of(book_plan())
            .plan(|request, nth| {
                let booking = plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)]));
                Scripted::forced(request, if nth == 0 { book_plan() } else { booking })
            })
            .check(|request, nth| match nth {
                0 => {
                    let mut verdict = more(QUESTION);
                    verdict["should_continue"] = json!(false);
                    verdict["answer"] = json!(QUESTION);
                    Scripted::forced(request, verdict)
                }
                _ => Scripted::forced(request, final_verdict()),
            })
            // The words of the answer call can only come from its prompt.
            .answer(|request, nth| match nth {
                0 => Scripted::Text(section(request, "missing").unwrap_or_default()),
                _ => Scripted::Text(FROM_ANSWER.into()),
            });
        let llm = play.start();
        let town = Town::open(&llm, |config| config.planning.answer_with_check = with_check).await;
        let first = town.ask("Find Dune and book me a parking space.").await;
        assert_eq!((first.answer.status, first.answer.answer.as_str()), (RunStatus::NeedsInput, QUESTION));
        assert_eq!(requests(&llm, QuestionKind::Plan).len(), 1, "nothing continues before the user replies");

        let second = town.ask_in(Some(first.answer.session_id.clone()), "AB123CD").await;
        assert_eq!(second.answer.status, RunStatus::Completed);
        let conversation = section(&requests(&llm, QuestionKind::Plan)[1], "conversation").unwrap();
        let conversation: Value = serde_json::from_str(&conversation).unwrap();
        assert_eq!(conversation["turns"][0]["answer"], QUESTION);
        assert_eq!(conversation["turns"][0]["status"], "needs_input");
        assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    }
}

#[tokio::test]
async fn scene_missing_a_value_asks_the_user_and_invents_nothing() {
    const QUESTION: &str = "Which plate has the car?";
    let booking = plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)]));
    let play = ModelRules::of(booking)
        .scene(|request, nth| match nth {
            0 => Scripted::call(
                "AskUser",
                json!({"question": QUESTION, "tool": "BookSpace", "missing": ["plate"], "known": {"day": "2026-05-05"}}),
            ),
            _ if has_results(request) => Scripted::Text("Space 17 is booked.".into()),
            _ => Scripted::call("BookSpace", arguments_of("BookSpace")),
        })
        .check(|request, nth| match nth {
            0 => {
                let mut verdict = final_verdict();
                verdict["can_answer_now"] = json!(false);
                verdict["missing_information"] = json!("the plate");
                verdict["answer"] = json!(QUESTION);
                Scripted::forced(request, verdict)
            }
            _ => Scripted::forced(request, final_verdict()),
        });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let first = town.ask("Book me a parking space for tomorrow.").await;
    assert_eq!((first.answer.status, first.answer.answer.as_str()), (RunStatus::NeedsInput, QUESTION));
    assert_eq!(first.answer.steps[0].status, StepStatus::NeedsInput);
    assert!(town.log.calls().is_empty());
    assert!(tool_names(&requests(&llm, QuestionKind::Scene)[0]).contains(&"AskUser"));

    let second = town.ask_in(Some(first.answer.session_id.clone()), "AB123CD").await;
    assert_eq!(second.answer.status, RunStatus::Completed);
    for what in [QuestionKind::Plan, QuestionKind::Scene] {
        let carried_on = requests(&llm, what).into_iter().nth(1).unwrap();
        let pending: Value = serde_json::from_str(&section(&carried_on, "pending").unwrap()).unwrap();
        assert_eq!(pending["scene"], "Parking");
        assert_eq!(pending["question"]["text"], QUESTION);
        assert_eq!(pending["question"]["known"], json!({"day": "2026-05-05"}));
    }
    assert_eq!(town.log.calls(), [("BookSpace".to_owned(), arguments_of("BookSpace"))]);
}

#[tokio::test]
async fn question_to_the_user_is_kept_when_the_check_overlooks_it() {
    let play = ModelRules::of(plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)])))
        .scene(|_, _| Scripted::call("AskUser", json!({"question": "Which plate?", "missing": ["plate"]})));
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Book me a parking space for tomorrow.").await;
    assert_eq!(finished.answer.status, RunStatus::NeedsInput);
    assert!(town.log.calls().is_empty());
}

#[tokio::test]
async fn request_outside_all_scenes_is_answered_by_the_plan() {
    for choice in [OutOfScope::Answer, OutOfScope::Decline] {
        let mut written = plan(json!([]));
        written["answer"] = json!("Leonardo da Vinci painted it.");
        let llm = ModelRules::of(written).start();
        let town = Town::open(&llm, |config| config.planning.out_of_scope = choice).await;
        let finished = town.ask("Who painted the Mona Lisa?").await;
        let kinds: Vec<QuestionKind> = llm.requests().iter().map(question_kind).collect();
        assert_eq!(kinds, [QuestionKind::Plan]);
        assert_eq!(finished.answer.status, RunStatus::Completed);
        assert_eq!(finished.answer.answer, "Leonardo da Vinci painted it.");
    }
}

#[tokio::test]
async fn answer_in_a_plan_counts_only_if_it_is_one() {
    // Of a plan with steps, empty, and an echo of the request.
    let steps = plan(json!([step(1, "Library", &["FindBook"], Value::Null)]));
    let cases = [
        (steps, "Done.", FROM_CHECK),
        (plan(json!([])), " ", FROM_ANSWER),
        (plan(json!([])), "who painted the Mona Lisa", FROM_ANSWER),
    ];
    for (mut written, answer, expected) in cases {
        written["answer"] = json!(answer);
        let llm = ModelRules::of(written).start();
        let town = Town::open(&llm, |_| {}).await;
        let finished = town.ask("Who painted the Mona Lisa?").await;
        assert_eq!(finished.answer.answer, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn request_outside_all_scenes_without_an_answer_in_the_plan_takes_one_more_call() {
    for (choice, mode) in [(OutOfScope::Answer, "out_of_scope"), (OutOfScope::Decline, "decline")] {
        let llm = ModelRules::of(plan(json!([]))).start();
        let town = Town::open(&llm, |config| config.planning.out_of_scope = choice).await;
        let finished = town.ask("Who painted the Mona Lisa?").await;
        let all = llm.requests();
        assert_eq!(
            all.iter().map(question_kind).collect::<Vec<_>>(),
            [QuestionKind::Plan, QuestionKind::Answer]
        );
        assert_eq!(section(&all[1], "mode").as_deref(), Some(mode));
        assert_eq!(section(&all[1], "capabilities").unwrap().lines().count(), 3);
        assert_eq!(
            (forced_tool(&all[1]), tool_names(&all[1]).len()),
            (None, 0),
            "nothing is forced any more"
        );
        assert_eq!(
            (finished.answer.status, finished.answer.answer.as_str()),
            (RunStatus::Completed, FROM_ANSWER)
        );
        assert!(town.log.calls().is_empty());
        assert!(finished.answer.steps.is_empty());
    }
}

#[tokio::test]
async fn answer_with_ungrounded_figures_is_rejected_then_replaced_by_results() {
    let invented = "Dune is on shelf B4, and 22 copies are left.";
    let verdict = json!({"should_continue": false, "can_answer_now": true, "reasoning": "",
        "missing_information": null, "answer": invented});
    // Corrected in the second attempt, and never.
    for (last, answer) in [("Dune is on shelf B4.", "Dune is on shelf B4."), (invented, "Library is done.")] {
        let verdict = verdict.clone();
        let llm = ModelRules::of(book_plan())
            .check(move |request, _| Scripted::forced(request, verdict.clone()))
            .answer(move |_, nth| Scripted::Text([invented, last][nth.min(1)].to_owned()))
            .start();
        let town = Town::open(&llm, |_| {}).await;
        let finished = town.ask("Where is Dune?").await;
        assert_eq!(finished.rejected()[0], ["reply.unfounded"]);
        assert!(finished.problems()[0].contains("22"), "{:?}", finished.problems());
        assert_eq!(finished.answer.answer, answer);
        assert_eq!(finished.answer.status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn answer_that_only_echoes_its_input_is_rejected() {
    let request = "Hello! I am called keysersoze and I would like to know on which shelf Dune is.";
    let parrot = "Hello! I am called Keysersoze and would like to know on which shelf Dune is.";
    let verdict = json!({"should_continue": false, "can_answer_now": true, "reasoning": "",
        "missing_information": null, "answer": parrot});
    let llm = ModelRules::of(book_plan())
        .check(move |request, _| Scripted::forced(request, verdict.clone()))
        .answer(move |_, _| Scripted::Text(parrot.to_owned()))
        .start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(request).await;
    assert_eq!(finished.rejected(), [["reply.parroted"], ["reply.parroted"]]);
    assert_eq!(finished.answer.answer, "Library is done.");
}
