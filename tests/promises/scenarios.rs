//! Every request of `tests/scenarios/multi-scene.yaml` with everything a user would check afterwards: with
//! the offline model, and with a sensible model over the OpenAI protocol.

use std::collections::BTreeSet;

use proscenium::CallOutcome;
use proscenium::eval::{Scenario, ScenarioTurn};
use proscenium::memory;
use proscenium::plan::StepStatus;
use proscenium::run::{Context, Event, RunStatus, SessionEvent};
use serde_json::{Value, json};

use crate::support::model_script::ModelScript;
use crate::support::scenario::{self, next_day, today};
use crate::support::{FinishedRun, ScriptedLlm, Setup, TestEngine, journal, wire};

/// The context window of a conversation that has to be summarised, in tokens.
const SMALL_WINDOW: u32 = 2048;
/// USD per million tokens: prompt, cached prompt, completion.
const PRICES: [&str; 3] = ["0.15", "0.0375", "0.6"];

/// Which model answers.
enum Model {
    Offline,
    Scripted(ScriptedLlm),
}

/// One scenario being played.
struct ScenarioRun {
    scenario: Scenario,
    model: Model,
    test: TestEngine,
}

/// Plays a scenario of the file and checks each of its fields.
async fn play_scenario(id: &str, scripted: bool) {
    let scenario = scenario::all().into_iter().find(|scenario| scenario.id == id).unwrap();
    let model = if scripted { Model::Scripted(sensible()) } else { Model::Offline };
    let test = setup(&scenario, &model).start().await;
    let play = ScenarioRun { scenario, model, test };
    let finished = play.play_all().await;
    if let Some(check) = &play.scenario.check {
        play.check_scenario(check, &finished).await;
    }
    if let Model::Scripted(llm) = &play.model {
        wire::assert_valid_requests(llm);
        let asked: u32 = finished.iter().map(|finished| finished.answer.usage.llm_calls).sum();
        // A summary may still be in progress after the last turn.
        let all_kept = async {
            while llm.count() != asked as usize + play.summaries().await.len() {
                tokio::task::yield_now().await;
            }
        };
        let all_kept = tokio::time::timeout(std::time::Duration::from_secs(30), all_kept).await;
        assert!(all_kept.is_ok(), "every sent question is in a journal");
    }
}

fn sensible() -> ScriptedLlm {
    let script = ModelScript::for_scenarios();
    ScriptedLlm::start(move |request, nth| {
        let tokens = nth as u64;
        script.reply(request).metered(1_000 + 7 * tokens, 100, 50 + tokens)
    })
}

fn setup(scenario: &Scenario, model: &Model) -> Setup {
    let setup = match model {
        Model::Offline => Setup::offline(),
        Model::Scripted(llm) => Setup::scripted(llm),
    };
    match scenario.with.as_deref() {
        None => setup,
        // There is nothing that caches replies.
        Some("a scripted model with prices, caching off") => match model {
            Model::Offline => setup,
            Model::Scripted(_) => setup
                .model("input_usd_per_million", PRICES[0])
                .model("cached_input_usd_per_million", PRICES[1])
                .model("output_usd_per_million", PRICES[2]),
        },
        Some("context_window: 2048; 'il giorno {i}' is the next such day of the month") => match model {
            Model::Offline => setup.set("llm.offline_context_window", SMALL_WINDOW),
            Model::Scripted(_) => {
                // The shipped scenes take more than half of a window this small.
                let setup = setup.set("memory.window_share", 0.4);
                setup.model("context_window", &SMALL_WINDOW.to_string()).model("max_output_tokens", "512")
            }
        },
        Some(other) => panic!("no setup for {other:?}"),
    }
}

impl ScenarioRun {
    /// All its requests, in one conversation unless they are concurrent.
    async fn play_all(&self) -> Vec<FinishedRun> {
        let mut finished = Vec::new();
        for turn in &self.scenario.turns {
            finished.push(self.turn(turn).await);
        }
        finished.extend(self.play_concurrently().await);
        if let Some(repeat) = &self.scenario.repeat {
            for day in 1..=repeat.times {
                let one = self.test.chat("s-1", &repeat.say.replace("{i}", &day.to_string())).await;
                assert_eq!(one.answer.status, RunStatus::Completed);
                assert_eq!(completed_scenes(&one), ["Weather"].map(str::to_owned).into());
                let asked_for = next_day(day);
                assert!(executed(&one).iter().all(|(_, arguments)| arguments["date"] == asked_for.as_str()));
                finished.push(one);
            }
        }
        for turn in &self.scenario.then {
            finished.push(self.turn(turn).await);
        }
        finished
    }

    async fn turn(&self, turn: &ScenarioTurn) -> FinishedRun {
        let finished = self.test.chat("s-1", &turn.say).await;
        if let Some(scenes) = &turn.scenes {
            assert_eq!(
                completed_scenes(&finished),
                scenes.iter().cloned().collect(),
                "{}",
                finished.answer.answer
            );
        }
        for [first, second] in &turn.before {
            assert_in_order(&finished, first, second);
        }
        for tool in &turn.tools {
            let calls = finished.answer.steps.iter().flat_map(|step| &step.tool_calls);
            let mut done = calls.filter(|call| call.tool == tool.name && call.outcome == CallOutcome::Ok);
            assert!(
                done.any(|call| tool.fits(&call.arguments, today())),
                "{tool:?} in {:#?}",
                finished.answer.steps
            );
        }
        for words in &turn.answer_mentions {
            assert!(finished.answer.answer.contains(words), "{words:?} in {:?}", finished.answer.answer);
        }
        for never in &turn.never {
            self.check_never(never, &finished).await;
        }
        match &turn.check {
            Some(check) => self.check_turn(check, &finished),
            None => assert_eq!(finished.answer.status, RunStatus::Completed, "{:?}", finished.answer),
        }
        finished
    }

    async fn play_concurrently(&self) -> Vec<FinishedRun> {
        let requests = self.scenario.concurrent_sessions.iter().enumerate();
        let finished = requests
            .map(|(number, words)| async move { self.test.chat(&format!("s-{number}"), words).await });
        futures::future::join_all(finished).await
    }

    async fn check_never(&self, what: &str, finished: &FinishedRun) {
        let calls = executed(finished);
        match what {
            "the same tool with the same arguments twice" => {
                let distinct: BTreeSet<String> =
                    calls.iter().map(|call| json!([call.0, call.1]).to_string()).collect();
                assert_eq!(distinct.len(), calls.len(), "{calls:#?}");
                assert_eq!(self.test.vacations().await.len(), 1);
            }
            "any tool call" => {
                assert!(
                    finished.state.calls.is_empty() && finished.state.steps.is_empty(),
                    "{:#?}",
                    finished.answer.steps
                );
            }
            "MakeRequest without dates from the user" => {
                assert!(finished.state.calls.values().all(|call| call.requested.tool != "MakeRequest"));
                assert_eq!(self.test.vacations().await, []);
            }
            "MakeRequest twice" => {
                assert_eq!(calls.iter().filter(|(tool, _)| tool == "MakeRequest").count(), 1, "{calls:#?}");
                assert_eq!(self.test.vacations().await.len(), 1);
            }
            "a request stored for anyone but the principal keysersoze" => {
                let stored = self.test.vacations().await;
                assert!(stored.iter().all(|(user, _, _)| user == "keysersoze"), "{stored:?}");
            }
            other => panic!("no check for never {other:?}"),
        }
    }

    fn check_turn(&self, check: &str, finished: &FinishedRun) {
        let answer = &finished.answer.answer;
        match check {
            "status needs_input; the answer gives the weather and asks for the dates" => {
                assert_eq!(finished.answer.status, RunStatus::NeedsInput);
                for figure in figures(finished, &["min_c", "max_c"]) {
                    assert!(answer.contains(&figure), "{figure} in {answer:?}");
                }
                assert!(answer.contains('?') && answer.contains("date"), "{answer:?}");
            }
            "the answer says for whom it can act" => {
                let named = answer.contains("keysersoze") || answer.contains("Alessandro Rapiti");
                assert!(named, "{answer:?}");
            }
            other => panic!("no check for {other:?}"),
        }
    }

    async fn check_scenario(&self, check: &str, finished: &[FinishedRun]) {
        match check {
            "three sessions, three answers, none mentions another's city" => check_three_answers(finished),
            "the sum of the costs of all LLM calls equals the session's cost; session_cost_usd after turn 2 is more \
             than after turn 1" => self.check_costs(finished).await,
            "the conversation is summarised before it outgrows the context; the summary names Milan and the days" =>
            {
                self.check_summaries(finished).await;
            }
            other => panic!("no check for {other:?}"),
        }
    }

    async fn check_costs(&self, finished: &[FinishedRun]) {
        let mut sum = 0;
        for one in finished {
            sum += journal::usage(one).cost_nano_usd;
            assert_eq!(one.answer.usage.session_cost_usd, sum as f64 / 1e9);
        }
        assert_eq!(self.summaries().await, [] as [String; 0]);
        if let Model::Scripted(llm) = &self.model {
            // 900 + 7n uncached prompt tokens, 100 cached ones, 50 + n completion tokens.
            let calls = 0..llm.count() as u64;
            let nano: u64 = calls.map(|n| (900 + 7 * n) * 150 + (100 * 75 / 2) + (50 + n) * 600).sum();
            assert_eq!(sum, nano, "by the prices and the reported usage");
            let after = |turn: usize| finished[turn].answer.usage.session_cost_usd;
            assert!(after(1) > after(0) && after(0) > 0.0);
        }
    }

    async fn summaries(&self) -> Vec<String> {
        let events = self.test.session("s-1").await;
        let summaries = events.into_iter().filter_map(|event| match event {
            SessionEvent::Summarised { summary, .. } => Some(summary),
            SessionEvent::SummaryFailed { error, .. } => panic!("no summary was written: {error}"),
            _ => None,
        });
        summaries.collect()
    }

    async fn check_summaries(&self, finished: &[FinishedRun]) {
        assert!(!self.summaries().await.is_empty());
        let share = self.test.config.memory.budget(SMALL_WINDOW as usize);
        for one in finished {
            let held = context(one);
            let tokens = memory::tokens(&serde_json::to_string(&held).unwrap());
            assert!(tokens <= share, "{tokens} tokens of {share} before {:?}", one.state.request());
        }
        let last = finished.last().unwrap();
        let held = serde_json::to_string(&context(last)).unwrap();
        assert!(context(last).summary.is_some());
        for text in [&last.answer.answer, &held] {
            assert!(text.contains("Milan"), "{text}");
            let missing: Vec<i8> = (1..=15).filter(|day| !names_day(text, *day)).collect();
            assert!(missing.is_empty(), "days {missing:?} are not in {text}");
        }
    }
}

fn context(finished: &FinishedRun) -> Context {
    finished.state.started.as_ref().unwrap().context.clone()
}

/// Whether the text names this day of the month, in any form.
fn names_day(text: &str, day: i8) -> bool {
    let iso = next_day(day);
    let month = if iso.starts_with("2026-05") { "maggio" } else { "giugno" };
    let word = |words: String| {
        text.match_indices(&words).any(|(at, _)| {
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            !digit(text[..at].chars().next_back()) && !digit(text[at + words.len()..].chars().next())
        })
    };
    text.contains(&iso) || word(format!("giorno {day}")) || word(format!("{day} {month}"))
}

fn check_three_answers(finished: &[FinishedRun]) {
    let cities = [["Milano", "Milan"], ["Roma", "Rome"], ["Napoli", "Naples"]];
    assert_eq!(finished.len(), cities.len());
    for (one, own) in finished.iter().zip(&cities) {
        let answer = &one.answer.answer;
        assert_eq!(one.answer.status, RunStatus::Completed);
        for city in &cities {
            let named = city.iter().any(|name| answer.contains(name));
            assert_eq!(named, city == own, "{city:?} in {answer:?}");
        }
    }
    let sessions: BTreeSet<&str> = finished.iter().map(|one| one.answer.session_id.as_str()).collect();
    assert_eq!(sessions.len(), finished.len());
}

fn completed_scenes(finished: &FinishedRun) -> BTreeSet<String> {
    let steps = finished.answer.steps.iter().filter(|step| step.status == StepStatus::Completed);
    steps.map(|step| step.scene_name.clone()).collect()
}

/// The executed calls with their arguments.
fn executed(finished: &FinishedRun) -> Vec<(String, Value)> {
    let started = finished.events.iter().filter_map(|event| match &event.body {
        Event::ToolStarted { call, .. } => Some(&finished.state.calls[call].requested),
        _ => None,
    });
    started.map(|call| (call.tool.clone(), call.arguments.clone())).collect()
}

/// Numbers in the results, as written there.
fn figures(finished: &FinishedRun, names: &[&str]) -> Vec<String> {
    let calls = finished.answer.steps.iter().flat_map(|step| &step.tool_calls);
    let results: Vec<&Value> = calls.filter_map(|call| call.result.as_ref()).collect();
    let found = names.iter().flat_map(|name| results.iter().filter_map(|result| result.get(*name)));
    let found: Vec<String> = found.map(Value::to_string).collect();
    assert_eq!(found.len(), names.len(), "{results:?}");
    found
}

/// Asserts that every step of one scene had completed when the first step of the other started.
fn assert_in_order(finished: &FinishedRun, first: &str, second: &str) {
    let of = |scene: &str, number: u32| finished.state.steps[&number].step.scene_name == scene;
    let started_at = finished.events.iter().find_map(|event| match event.body {
        Event::StepStarted { step } if of(second, step) => Some(event.seq),
        _ => None,
    });
    let ended = finished.events.iter().filter_map(|event| match event.body {
        Event::StepCompleted { step, .. } if of(first, step) => Some(event.seq),
        _ => None,
    });
    let ended = ended.max();
    assert!(
        ended.is_some() && started_at.is_some() && ended < started_at,
        "{first} ends at {ended:?}, {second} begins at {started_at:?}"
    );
}

macro_rules! scenarios {
    ($($id:literal => $name:ident,)*) => {
        mod with_the_offline_model {
            $(#[tokio::test] async fn $name() { super::play_scenario($id, false).await; })*
        }

        mod with_a_scripted_model {
            $(#[tokio::test] async fn $name() { super::play_scenario($id, true).await; })*
        }

        #[test]
        fn every_scenario_is_played() {
            let in_the_file: Vec<String> = scenario::all().into_iter().map(|scenario| scenario.id).collect();
            assert_eq!(in_the_file, [$($id),*]);
        }
    };
}

scenarios! {
    "weather-simple" => weather_of_a_city_is_reported,
    "weather-and-identity" => user_name_and_weather_use_two_scenes,
    "vacation-three-days" => three_days_of_vacation_are_requested,
    "vacation-range" => vacation_range_is_requested,
    "identity-remembered" => user_identity_is_remembered,
    "weather-then-vacation" => weather_precedes_vacation_and_nothing_is_repeated,
    "weather-then-vacation-english" => weather_precedes_vacation_in_english,
    "outside-every-scene" => request_outside_every_scene_calls_no_tool,
    "three-at-once" => three_concurrent_conversations_keep_their_cities_apart,
    "cost-adds-up" => conversation_cost_is_the_sum_of_its_calls,
    "who-approves" => conversation_over_three_scenes_continues,
    "long-conversation" => long_conversation_is_summarised_before_it_exceeds_the_window,
    "nothing-is-invented" => unknown_dates_are_asked_for,
    "a-write-changes-what-is-read" => balance_after_a_booking_is_read_again,
    "not-for-somebody-else" => users_cannot_act_for_other_users,
}
