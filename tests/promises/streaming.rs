//! The answer reaches the client while the model is still writing it, and slow subscribers do not slow
//! others.

use futures::StreamExt;
use proscenium::run::{RunId, RunStatus, TenantId};
use proscenium::{EventId, PublicEvent, PublicStream};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    FROM_CHECK, ModelRules, Town, book_plan, has_results, more, plan, step,
};
use crate::support::{Gate, Scripted, ScriptedLlm, StreamEnd, arguments, finish, section, words};

const CHECK: &str = "CheckContinuation";
const ANSWER: &str = "È sullo scaffale \"B4\", 🙂 e\\o B5.\n";

/// No scene is needed, so the answer is the model's text.
fn talk() -> Value {
    plan(json!([]))
}

async fn town(llm: &ScriptedLlm) -> Town {
    Town::open(llm, |_| {}).await
}

/// What a client has after the events it received.
#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    last: EventId,
    answer: String,
    /// Everything except the text of the answer.
    others: Vec<(&'static str, Value)>,
    resets: usize,
    deltas: usize,
}

impl Seen {
    fn see(&mut self, event: PublicEvent) {
        assert!(event.id.seq >= self.last.seq, "{event:?} after {}", self.last);
        self.last = event.id;
        match event.name {
            "answer_delta" => {
                self.answer.push_str(event.data["text"].as_str().unwrap());
                self.deltas += 1;
            }
            "answer_reset" => {
                self.answer.clear();
                self.resets += 1;
            }
            name => self.others.push((name, event.data)),
        }
        assert_eq!(
            event.id.offset as usize,
            self.answer.len(),
            "an id contains the length of the received answer"
        );
        if let Some(("answered", data)) = self.others.last() {
            assert_eq!(data["answer"], json!(self.answer));
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.others.iter().map(|(name, _)| *name).collect()
    }

    /// The visible result, whatever the delivery.
    fn whole(&self) -> (&str, &[(&'static str, Value)]) {
        (&self.answer, &self.others)
    }

    async fn until(&mut self, stream: &mut PublicStream, answer: &str) {
        while self.answer != answer {
            let event = stream.next().await.unwrap().unwrap();
            assert!(!event.is_last(), "the run ended before {answer:?} was read: {self:?}");
            self.see(event);
        }
    }

    async fn and_the_rest(mut self, mut stream: PublicStream) -> Self {
        while let Some(event) = stream.next().await {
            self.see(event.unwrap());
        }
        self
    }
}

async fn all(stream: PublicStream) -> Seen {
    Seen::default().and_the_rest(stream).await
}

impl Town {
    async fn replay(&self, run: RunId, last: Option<EventId>) -> PublicStream {
        let tenant = self.engine.request("x", None).tenant;
        self.engine.stream(&tenant, run, last).await.unwrap()
    }
}

/// The check's arguments with this answer, as models write them.
fn verdict(answer: &str) -> String {
    format!(
        r#"{{"should_continue": false, "can_answer_now": true, "missing_information": null, "answer": {}, "reasoning": "done"}}"#,
        json!(answer)
    )
}

/// A model that has written the check's arguments up to `cut`, and continues once the gate is open.
fn held_check(text: &str, cut: &str, gate: &Gate) -> Scripted {
    let (before, after) = text.split_at(text.find(cut).unwrap());
    let rest = Scripted::Stream(vec![arguments(CHECK, after), finish("tool_calls")], StreamEnd::Done);
    Scripted::Paused(vec![arguments(CHECK, before)], gate.clone(), Box::new(rest))
}

#[tokio::test]
async fn first_words_arrive_while_the_model_is_still_writing() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm = ModelRules::of(talk())
        .answer(move |_, _| {
            let rest = Scripted::Stream(vec![words(" is fine. \n"), finish("stop")], StreamEnd::Done);
            Scripted::Paused(vec![words("\n "), words("All ")], held.clone(), Box::new(rest))
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("How are you?", None)).await.unwrap();
    let mut stream = ticket.stream();
    let mut seen = Seen::default();
    // The trailing space is part of the answer only once more text arrives.
    seen.until(&mut stream, "All").await;
    assert!(!seen.names().contains(&"answered"));
    gate.open();
    let seen = seen.and_the_rest(stream).await;
    assert_eq!((seen.answer.as_str(), seen.resets), ("All  is fine.", 0));
    assert_eq!(seen.names(), ["run_started", "planning", "plan_created", "answered", "run_completed"]);
    assert_eq!(ticket.answer().await.unwrap().answer, seen.answer);
}

#[tokio::test]
async fn first_words_in_a_forced_call_arrive_while_still_writing() {
    for schema in [false, true] {
        let gate = Gate::closed();
        let held = gate.clone();
        let llm = ModelRules::of(book_plan())
            .check(move |_, _| {
                let text = verdict(ANSWER);
                let (before, after) = text.split_at(text.find("B5").unwrap());
                let event = |text: &str| if schema { words(text) } else { arguments(CHECK, text) };
                let rest = Scripted::Stream(vec![event(after), finish("stop")], StreamEnd::Done);
                Scripted::Paused(vec![event(before)], held.clone(), Box::new(rest))
            })
            .start();
        let town = Town::open(&llm, |config| {
            if schema {
                config.llm.models[0].forcing = proscenium::llm::Forcing::JsonSchema;
            }
        })
        .await;
        let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
        let mut stream = ticket.stream();
        let mut seen = Seen::default();
        seen.until(&mut stream, "È sullo scaffale \"B4\", 🙂 e\\o ").await;
        assert!(!seen.names().contains(&"continuation"));
        gate.open();
        let seen = seen.and_the_rest(stream).await;
        assert_eq!((seen.answer.as_str(), seen.resets), (ANSWER, 0));
        let answer = ticket.answer().await.unwrap();
        assert_eq!(answer.answer, ANSWER);
        // Calls are published as in the answer document.
        let (_, called) = seen.others.iter().find(|(name, _)| *name == "tool_completed").unwrap();
        let document = serde_json::to_value(&answer.steps[0].tool_calls[0]).unwrap();
        for key in ["tool", "arguments", "outcome", "result"] {
            assert_eq!(called[key], document[key], "{key}");
        }
        assert_eq!((&called["step_number"], &called["scene_name"]), (&json!(1), &json!("Library")));
    }
}

#[tokio::test]
async fn answer_beside_a_continuation_request_is_not_shown() {
    let llm = ModelRules::of(book_plan())
        .check(|request, nth| {
            let mut verdict = more("A parking space is to be booked.");
            verdict["answer"] = json!("Not yet all of it.");
            if nth == 0 {
                Scripted::forced(request, verdict)
            } else {
                streamed(CHECK, &[&self::verdict(ANSWER)])
            }
        })
        .plan(|request, nth| {
            let parking = plan(json!([step(2, "Parking", &["FreeSpaces"], Value::Null)]));
            Scripted::forced(request, if nth == 0 { book_plan() } else { parking })
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune, and a space.", None)).await.unwrap();
    let seen = all(ticket.stream()).await;
    assert_eq!((seen.answer.as_str(), seen.resets), (ANSWER, 0));
    assert_eq!(seen.names().iter().filter(|name| **name == "continuation").count(), 2);
}

fn streamed(function: &str, pieces: &[&str]) -> Scripted {
    let mut events: Vec<String> = pieces.iter().map(|piece| arguments(function, piece)).collect();
    events.push(finish("tool_calls"));
    Scripted::Stream(events, StreamEnd::Done)
}

#[tokio::test]
async fn words_of_a_broken_stream_are_retracted_and_replaced() {
    // The first attempt breaks off; the second is retried because its reply cannot be used.
    let llm = ModelRules::of(book_plan())
        .check(|_, nth| match nth {
            0 => {
                let text =
                    r#"{"should_continue": false, "can_answer_now": true, "answer": "It is on the wrong"#;
                Scripted::Stream(vec![arguments(CHECK, text)], StreamEnd::Cut)
            }
            1 => streamed(
                CHECK,
                &[r#"{"should_continue": false, "answer": "Nor is it here", "#, r#""can_answer_now": 7}"#],
            ),
            _ => streamed(CHECK, &[&verdict(ANSWER)]),
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
    let seen = all(ticket.stream()).await;
    assert_eq!(seen.answer, ANSWER);
    assert_eq!(ticket.answer().await.unwrap().answer, ANSWER);
}

#[tokio::test]
async fn subscriber_sees_the_retraction_and_then_the_right_words() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm = ModelRules::of(talk())
        .answer(move |_, nth| match nth {
            0 => {
                let cut = Scripted::Stream(vec![], StreamEnd::Cut);
                Scripted::Paused(vec![words("The wrong one")], held.clone(), Box::new(cut))
            }
            _ => Scripted::Stream(vec![words("The right one"), finish("stop")], StreamEnd::Done),
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("How are you?", None)).await.unwrap();
    let mut stream = ticket.stream();
    let mut seen = Seen::default();
    seen.until(&mut stream, "The wrong one").await;
    let early = seen.last;
    gate.open();
    let seen = seen.and_the_rest(stream).await;
    assert_eq!((seen.answer.as_str(), seen.resets), ("The right one", 1));
    // A client that returns with retracted words is told so.
    let mut back = Seen { last: early, answer: "The wrong one".to_owned(), ..Seen::default() };
    back = back.and_the_rest(town.replay(ticket.run, Some(early)).await).await;
    assert_eq!((back.answer.as_str(), back.resets), ("The right one", 1));
    assert_eq!(back.names(), ["answered", "run_completed"]);
}

#[tokio::test]
async fn answer_echoing_the_request_is_hidden_and_retried() {
    let llm = ModelRules::of(book_plan()).check(|_, _| streamed(CHECK, &[&verdict("find Dune")])).start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune!", None)).await.unwrap();
    let seen = all(ticket.stream()).await;
    let expected = crate::support::planner_engine::FROM_ANSWER;
    assert_eq!((seen.answer.as_str(), seen.resets), (expected, 0));
}

#[tokio::test]
async fn subscribers_that_never_read_do_not_slow_others() {
    let long: String = "word ".repeat(20_000);
    let long_text = long.clone();
    let llm = ModelRules::of(talk())
        .answer(move |_, _| {
            let events = long_text.as_bytes().chunks(50).map(|piece| words(str::from_utf8(piece).unwrap()));
            Scripted::Stream(events.chain([finish("stop")]).collect(), StreamEnd::Done)
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Tell me a lot.", None)).await.unwrap();
    let mut idle = Vec::new();
    let mut slow = ticket.stream();
    let first = slow.next().await.unwrap().unwrap();
    for _ in 0..50 {
        idle.push(town.replay(ticket.run, None).await);
    }
    let run = ticket.run;
    let answer = ticket.answer().await.unwrap();
    assert_eq!(answer.answer, long.trim());
    // Once they read, they miss nothing.
    let mut seen = Seen::default();
    seen.see(first);
    let seen = seen.and_the_rest(slow).await;
    assert_eq!(seen.answer, long.trim());
    let late = all(idle.pop().unwrap()).await;
    assert_eq!(late.whole(), seen.whole());
    assert_eq!(all(town.replay(run, None).await).await.whole(), seen.whole());
}

#[tokio::test]
async fn late_or_returning_subscriber_gets_missing_events_once() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm =
        ModelRules::of(book_plan()).check(move |_, _| held_check(&verdict(ANSWER), "B5", &held)).start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
    let mut stream = ticket.stream();
    // What a client has after each event, up to the gate.
    let mut before = vec![Seen::default()];
    while before.last().unwrap().answer.is_empty() {
        let mut seen = before.last().unwrap().clone();
        seen.see(stream.next().await.unwrap().unwrap());
        before.push(seen);
    }
    let mut back = Vec::new();
    for seen in &before {
        let last = (seen.last != EventId::default()).then_some(seen.last);
        back.push((seen.clone(), town.replay(ticket.run, last).await));
    }
    gate.open();
    let full = before.last().unwrap().clone().and_the_rest(stream).await;
    assert_eq!((full.answer.as_str(), full.resets), (ANSWER, 0));
    for (seen, stream) in back {
        let resumed = seen.clone().and_the_rest(stream).await;
        assert_eq!(resumed.whole(), full.whole(), "after {}", seen.last);
        assert_eq!(resumed.resets, 0);
    }
}

#[tokio::test]
async fn ended_run_is_streamed_from_the_journal_from_any_event() {
    let llm = ModelRules::of(book_plan()).start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
    let live = all(ticket.stream()).await;
    let run = ticket.run;
    ticket.answer().await.unwrap();
    let tenant = town.engine.request("x", None).tenant;
    assert!(town.engine.watch(&tenant, run).is_none());
    assert!(!town.engine.cancel(&tenant, run, "nobody").await.unwrap());

    let mut after = vec![Seen::default()];
    let mut stream = town.replay(run, None).await;
    while let Some(event) = stream.next().await {
        let mut seen = after.last().unwrap().clone();
        seen.see(event.unwrap());
        after.push(seen);
    }
    let full = after.last().unwrap().clone();
    assert_eq!(full.whole(), live.whole());
    assert_eq!((full.answer.as_str(), full.deltas), (FROM_CHECK, 1));
    for seen in after {
        let resumed = seen.clone().and_the_rest(town.replay(run, Some(seen.last)).await).await;
        assert_eq!(resumed.whole(), full.whole(), "after {}", seen.last);
    }
    let text = serde_json::to_string(&full.others.iter().map(|(_, data)| data).collect::<Vec<_>>()).unwrap();
    for inside in ["prompt_hash", "provider_id", "\"key\"", "call_0"] {
        assert!(!text.contains(inside), "{inside} is in {text}");
    }
    for (name, data) in &full.others {
        assert_eq!(data["run_id"], json!(run), "{name}");
    }
}

#[tokio::test]
async fn run_of_another_tenant_is_not_found() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm =
        ModelRules::of(book_plan()).check(move |_, _| held_check(&verdict(ANSWER), "B5", &held)).start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
    let other = TenantId::new("somebody-else").unwrap();
    let code = |found: Result<PublicStream, proscenium::run::Fault>| found.err().map(|fault| fault.code);
    let unknown = Some("run.unknown".to_owned());
    assert_eq!(code(town.engine.stream(&other, ticket.run, None).await), unknown);
    assert!(town.engine.watch(&other, ticket.run).is_none());
    assert!(!town.engine.cancel(&other, ticket.run, "somebody").await.unwrap());
    gate.open();
    assert_eq!(all(ticket.stream()).await.answer, ANSWER);
    assert_eq!(code(town.engine.stream(&other, ticket.run, None).await), unknown);
    let nowhere = RunId(uuid::Uuid::from_u128(7));
    assert_eq!(
        code(town.engine.stream(&town.engine.request("x", None).tenant, nowhere, None).await),
        unknown
    );
}

#[tokio::test]
async fn cached_reply_is_streamed() {
    let llm = ModelRules::of(book_plan()).check(|_, _| streamed(CHECK, &[&verdict(ANSWER)])).start();
    let town = town(&llm).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut ticket = town.engine.submit(town.engine.request("Find Dune.", None)).await.unwrap();
        seen.push(all(ticket.stream()).await);
    }
    let stats = town.engine.gateway().guards().cache.report().await.unwrap();
    assert!(stats.hits >= 1, "{stats:?}");
    assert_eq!((seen[1].answer.as_str(), seen[1].resets), (ANSWER, 0));
    assert!(seen[1].deltas >= 1);
}

#[tokio::test]
async fn shown_part_of_an_abandoned_answer_is_retracted() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm =
        ModelRules::of(book_plan()).check(move |_, _| held_check(&verdict(ANSWER), "B5", &held)).start();
    let town = town(&llm).await;
    let request = town.engine.request("Find Dune.", None);
    let tenant = request.tenant.clone();
    let mut ticket = town.engine.submit(request).await.unwrap();
    let mut stream = ticket.stream();
    let mut seen = Seen::default();
    while seen.answer.is_empty() {
        seen.see(stream.next().await.unwrap().unwrap());
    }
    let early = seen.clone();
    assert!(town.engine.cancel(&tenant, ticket.run, "keysersoze").await.unwrap());
    let seen = seen.and_the_rest(stream).await;
    assert_eq!((seen.answer.as_str(), seen.resets), ("", 1));
    assert_eq!(seen.others.last().unwrap().0, "run_cancelled");
    let run = ticket.run;
    assert_eq!(ticket.answer().await.unwrap().status, RunStatus::Cancelled);
    let back = early.clone().and_the_rest(town.replay(run, Some(early.last)).await).await;
    assert_eq!(back.whole(), seen.whole());
    gate.open();
}

#[tokio::test]
async fn lagging_subscriber_reads_missed_events_from_the_journal() {
    let steps: Vec<Value> =
        (1..=8).map(|number| step(number, "Library", &["FindBook"], Value::Null)).collect();
    let llm = ModelRules::of(plan(json!(steps)))
        .scene(|request, _| {
            if has_results(request) {
                return Scripted::Text("Found.".to_owned());
            }
            let number = section(request, "step").unwrap();
            let calls = (0..16).map(|n| crate::support::ScriptedCall {
                id: "call_0".to_owned(),
                name: "FindBook".to_owned(),
                arguments: json!({"title": format!("Book {n} of {number}")}).to_string(),
            });
            Scripted::Calls { text: String::new(), calls: calls.collect() }
        })
        .start();
    let town = town(&llm).await;
    let mut ticket = town.engine.submit(town.engine.request("Find all of them.", None)).await.unwrap();
    let mut stream = ticket.stream();
    let mut seen = Seen::default();
    seen.see(stream.next().await.unwrap().unwrap());
    let run = ticket.run;
    let answer = ticket.answer().await.unwrap();
    let stored = town.engine.store().run_events(&town.engine.request("x", None).tenant, run).await.unwrap();
    assert!(stored.len() > 300, "{} events are too few to cause a lag", stored.len());
    let seen = seen.and_the_rest(stream).await;
    let public: Vec<&str> = stored.iter().filter_map(|event| event.body.public_name()).collect();
    assert_eq!(seen.names(), public);
    assert_eq!(seen.answer, answer.answer);
}

#[tokio::test]
async fn shown_words_equal_the_answer_however_chunks_are_split() {
    let answers = |seed: u64| {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let signs =
            ["a", "è", "🙂", "\"", "\\", "\n", " ", "{", "}", "answer", "\u{2028}", "should_continue", ":"];
        let count = 1 + dice.next_u32() % 30;
        let text: String = (0..count).map(|_| signs[dice.next_u32() as usize % signs.len()]).collect();
        format!("{seed}{text}.")
    };
    // Each reply of the check is split differently; some break off, some cannot be used.
    let llm = ModelRules::of(book_plan())
        .check(move |request, nth| {
            let mut dice = ChaCha8Rng::seed_from_u64(1000 + nth as u64);
            let seed = section(request, "request").unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            let answer = json!(answers(seed));
            let mut fields = [
                "\"should_continue\": false".to_owned(),
                "\"can_answer_now\":true".to_owned(),
                format!("\"answer\" : {answer}"),
                "\"reasoning\": \"so \\\"answer\\\": \\\"no\\\"\"".to_owned(),
            ];
            let turn = dice.next_u32() as usize % fields.len();
            fields.rotate_left(turn);
            let text: Vec<char> = format!("{{{}}}", fields.join(", ")).chars().collect();
            let fate = dice.next_u32() % 4;
            let end = if fate == 0 { 1 + dice.next_u32() as usize % (text.len() - 1) } else { text.len() };
            let mut rest = &text[..end];
            let mut events = Vec::new();
            while !rest.is_empty() {
                let (piece, others) = rest.split_at((1 + dice.next_u32() as usize % 9).min(rest.len()));
                events.push(arguments(CHECK, &piece.iter().collect::<String>()));
                rest = others;
            }
            match (fate, dice.next_u32() % 2) {
                (0, 0) => return Scripted::Stream(events, StreamEnd::Cut),
                (1, 0) => events.push(arguments(CHECK, " and more")),
                _ => {}
            }
            events.push(finish("tool_calls"));
            Scripted::Stream(events, StreamEnd::Done)
        })
        .start();
    let town = Town::open(&llm, |config| {
        config.llm.max_attempts = 5;
        config.planning.max_retries = 6;
    })
    .await;
    for seed in 0..40 {
        let request = town.engine.request(&format!("Find Dune {seed}"), None);
        let mut ticket = town.engine.submit(request).await.unwrap();
        let seen = all(ticket.stream()).await;
        let result = ticket.answer().await.unwrap();
        assert_eq!(
            (seen.answer.as_str(), result.answer.as_str()),
            (answers(seed).as_str(), seen.answer.as_str())
        );
    }
}
