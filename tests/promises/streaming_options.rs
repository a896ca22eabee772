//! Which model calls are streamed: by default those whose text may be shown, and nothing that a server
//! refuses.

use std::pin::pin;
use std::sync::{Mutex, mpsc};

use futures::poll;
use proscenium::llm::StreamMode;
use proscenium::run::{Attempt, Event, RunStatus};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, FROM_ANSWER, ModelRules, QuestionKind, Town, book_plan, final_verdict, plan, question_kind,
    requests,
};
use crate::support::{Scripted, ScriptedLlm, StreamEnd};

/// A plan with one scene if a book is requested, otherwise without any.
fn as_asked(request: &Value) -> Scripted {
    let book = crate::support::section(request, "request").unwrap().contains("book");
    Scripted::forced(request, if book { book_plan() } else { plan(json!([])) })
}

fn is_streamed(request: &Value) -> bool {
    assert_ne!(request["stream"], json!(false), "an unstreamed request has no stream options");
    request["stream"] == true
}

/// Whether each question of this kind requested a stream, and its usage.
fn forms(llm: &ScriptedLlm, what: QuestionKind) -> Vec<(bool, bool)> {
    let form = |request: &Value| (is_streamed(request), request["stream_options"]["include_usage"] == true);
    requests(llm, what).iter().map(form).collect()
}

fn status(code: u16, message: &str) -> Scripted {
    let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
    Scripted::Status { code, headers: vec![], body }
}

fn attempts(finished: &AnsweredRun, purpose: &str) -> Vec<Attempt> {
    let of = |event: &Event| match event {
        Event::ModelReplied { attempts, .. } | Event::ModelFailed { attempts, .. } => attempts.clone(),
        _ => Vec::new(),
    };
    finished.events.iter().flat_map(of).filter(|attempt| attempt.purpose == purpose).collect()
}

const STREAMED: (bool, bool) = (true, true);
const WHOLE: (bool, bool) = (false, false);

#[tokio::test]
async fn only_calls_with_visible_text_are_streamed_by_default() {
    for (wish, shown, unseen) in [
        (StreamMode::default(), STREAMED, WHOLE),
        (StreamMode::All, STREAMED, STREAMED),
        (StreamMode::No, WHOLE, WHOLE),
    ] {
        let llm = ModelRules::of(book_plan()).plan(|request, _| as_asked(request)).start();
        let town = Town::open(&llm, |config| config.llm.models[0].stream = wish).await;
        town.ask_reading("Find a book.").await;
        town.ask_reading("Hello.").await;
        for (what, form) in [
            (QuestionKind::Plan, unseen),
            (QuestionKind::Scene, unseen),
            (QuestionKind::Check, shown),
            (QuestionKind::Answer, shown),
        ] {
            let forms = forms(&llm, what);
            assert!(
                !forms.is_empty() && forms.iter().all(|asked| *asked == form),
                "{wish:?}, {what:?}: {forms:?}"
            );
        }
    }
}

#[tokio::test]
async fn answers_that_nobody_reads_as_they_are_written_are_not_streamed() {
    let (release, released) = mpsc::sync_channel(1);
    let released = Mutex::new(released);
    let as_released = move |request: &Value, _: usize| {
        released.lock().unwrap().recv().unwrap();
        as_asked(request)
    };
    let llm = ModelRules::of(book_plan()).plan(as_released).start();
    let town = Town::open(&llm, |_| {}).await;
    // How long this model takes for an answer is known after the first one.
    for words in ["Find a book.", "Hello.", "Find another book.", "Good day."] {
        let ticket = town.engine.submit(town.engine.request(words, None)).await.unwrap();
        let mut answer = pin!(ticket.answer());
        // Until it waits for the whole answer, it may come to read it.
        assert!(poll!(answer.as_mut()).is_pending());
        release.send(()).unwrap();
        answer.await.unwrap();
    }
    for what in [QuestionKind::Check, QuestionKind::Answer] {
        assert_eq!(forms(&llm, what), [STREAMED, WHOLE], "{what:?}");
    }
    release.send(()).unwrap();
    town.ask_reading("Find a third book.").await;
    assert_eq!(forms(&llm, QuestionKind::Check), [STREAMED, WHOLE, STREAMED]);
}

#[tokio::test]
async fn stream_options_are_dropped_after_a_refusal() {
    let say = |request: &Value, good: Scripted| match request.get("stream_options") {
        Some(_) => status(400, "Unrecognized request argument supplied: stream_options"),
        None => good,
    };
    let llm = ModelRules::of(book_plan())
        .check(move |request, _| say(request, Scripted::forced(request, final_verdict())))
        .start();
    let town = Town::open(&llm, |_| {}).await;
    for nth in 0..3 {
        let finished = town.ask_reading(&format!("Find book {nth}.")).await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
        // A refused request is free and is not a separate attempt.
        let attempts = attempts(&finished, "continuation");
        assert_eq!(attempts.iter().map(|attempt| attempt.outcome.as_str()).collect::<Vec<_>>(), ["ok"]);
        let usage = attempts[0].usage;
        assert_eq!((usage.calls, usage.input_tokens, usage.output_tokens), (1, 10, 5));
    }
    assert_eq!(forms(&llm, QuestionKind::Check), [STREAMED, (true, false), (true, false), (true, false)]);
}

#[tokio::test]
async fn streaming_is_dropped_after_a_refusal() {
    // It streams text, but no calls.
    let say = |request: &Value, good: Scripted| match is_streamed(request) {
        true => status(422, "Cannot use tools with stream"),
        false => good,
    };
    let llm = ModelRules::of(book_plan())
        .plan(|request, _| as_asked(request))
        .check(move |request, _| say(request, Scripted::forced(request, final_verdict())))
        .start();
    let town = Town::open(&llm, |config| {
        config.llm.models[0].input_usd_per_million = 1.0;
        config.llm.models[0].output_usd_per_million = 10.0;
    })
    .await;
    for words in ["Find a book.", "Hello.", "Find another book."] {
        let finished = town.ask_reading(words).await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
        for attempt in attempts(&finished, "continuation") {
            assert_eq!((attempt.outcome.as_str(), attempt.usage.calls), ("ok", 1));
            assert_eq!(attempt.usage.cost_nano_usd, 10 * 1_000 + 5 * 10_000);
        }
    }
    assert_eq!(forms(&llm, QuestionKind::Check), [STREAMED, WHOLE, WHOLE]);
    assert_eq!(forms(&llm, QuestionKind::Answer), [STREAMED]);
}

#[tokio::test]
async fn refusing_options_and_streaming_costs_three_requests_once() {
    let llm = ModelRules::of(plan(json!([])))
        .answer(|request, _| match (request.get("stream_options"), is_streamed(request)) {
            (Some(_), _) => status(400, "extra fields not permitted: stream_options"),
            (None, true) => status(400, "Streaming is not supported."),
            (None, false) => Scripted::Text(FROM_ANSWER.to_owned()),
        })
        .start();
    let town = Town::open(&llm, |_| {}).await;
    for words in ["Hello.", "Good day."] {
        assert_eq!(town.ask_reading(words).await.answer.answer, FROM_ANSWER);
    }
    assert_eq!(forms(&llm, QuestionKind::Answer), [STREAMED, (true, false), WHOLE, WHOLE]);
}

#[tokio::test]
async fn unrelated_refusal_is_not_retried_and_suggests_a_setting() {
    let setting = "`stream = false`";
    for (wish, message) in [
        (StreamMode::default(), "the upstream server has no such function"),
        // If everything must be streamed, the refusal is reported.
        (StreamMode::All, "Streaming is not supported."),
    ] {
        let llm = ModelRules::of(plan(json!([])))
            .plan(|request, _| Scripted::forced(request, plan(json!([]))))
            .answer(move |_, _| status(400, message))
            .start();
        let town = Town::open(&llm, |config| config.llm.models[0].stream = wish).await;
        let finished = town.ask_reading("Hello.").await;
        assert_eq!(requests(&llm, QuestionKind::Answer).len(), 1);
        let failed = finished.events.iter().find_map(|event| match event {
            Event::ModelFailed { error, .. } => Some(error.message.clone()),
            _ => None,
        });
        let failed = failed.unwrap();
        assert!(failed.contains(message) && failed.contains(setting), "{failed}");
        assert_eq!(attempts(&finished, "answer")[0].usage.calls, 0);
    }
}

#[tokio::test]
async fn model_with_only_empty_streams_gets_unstreamed_requests() {
    let empty = || Scripted::Stream(vec![], StreamEnd::Done);
    let llm = ModelRules::of(book_plan())
        .check(
            move |request, _| {
                if is_streamed(request) { empty() } else { Scripted::forced(request, final_verdict()) }
            },
        )
        .start();
    let town = Town::open(&llm, |_| {}).await;
    for words in ["Find a book.", "Find another book."] {
        assert_eq!(town.ask_reading(words).await.answer.status, RunStatus::Completed);
    }
    assert_eq!(forms(&llm, QuestionKind::Check), [STREAMED, WHOLE, WHOLE]);

    // A model that has streamed does so again: the fault was transient.
    let llm = ModelRules::of(book_plan())
        .check(
            move |request, nth| if nth == 1 { empty() } else { Scripted::forced(request, final_verdict()) },
        )
        .start();
    let town = Town::open(&llm, |_| {}).await;
    for words in ["Find a book.", "Find another book."] {
        assert_eq!(town.ask_reading(words).await.answer.status, RunStatus::Completed);
    }
    assert_eq!(forms(&llm, QuestionKind::Check), [STREAMED; 3]);
    assert!(
        llm.requests()
            .iter()
            .all(|request| question_kind(request) == QuestionKind::Check || !is_streamed(request))
    );
}
