//! Faults of real model servers, over the wire: each is handled, or reported with its stable code.

use std::sync::Arc;
use std::time::Duration;

use proscenium::llm::{
    Caller, Error, Forcing, Gateway, Latency, Message, Options, Purpose, Replied, Request, StreamMode,
    ToolChoice, ToolSpec, Worked, reader,
};
use proscenium::run::{Fault, ReaderMode, SessionId, TenantId, Usage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{NoModel, Scripted, ScriptedCall, ScriptedLlm, StreamEnd, chunk, forced_tool};

const TOOL: &str = "CreateExecutionPlan";

fn caller() -> Caller {
    Caller {
        tenant: TenantId::new("acme").unwrap(),
        session: SessionId::new("s").unwrap(),
        run: None,
        cache: None,
        voter: None,
        trace: None,
    }
}

fn plan() -> Value {
    json!({"needs_execution": true, "reasoning": "weather", "steps": [{"step_number": 1, "scene_name": "Weather"}]})
}

fn question() -> Request {
    Request {
        purpose: Purpose::Plan,
        messages: vec![
            Message::System { text: "You plan.".into() },
            Message::User { text: "<request>\nChe tempo fa a Milano?\n</request>\n".into() },
        ],
        tools: vec![ToolSpec {
            name: TOOL.into(),
            description: "Makes a plan.".into(),
            parameters: json!({"type": "object"}).into(),
            strict: true,
        }],
        choice: ToolChoice::Forced(TOOL.into()),
        temperature: Some(0.3),
        max_output_tokens: None,
    }
}

fn gateway(options: Options) -> Gateway {
    Gateway::new(options, Arc::new(NoModel)).unwrap()
}

async fn ask(options: Options) -> Result<Replied, Error> {
    gateway(options).complete(&caller(), &question(), false, &CancellationToken::new()).await
}

fn streamed(llm: &ScriptedLlm) -> Options {
    let mut options = llm.options();
    options.models[0].stream = StreamMode::All;
    options
}

/// Questions here have no subscriber, so a model streams either all of them or none.
fn stream_mode(stream: bool) -> StreamMode {
    if stream { StreamMode::All } else { StreamMode::No }
}

fn once(mut options: Options) -> Options {
    options.max_attempts = 1;
    options
}

fn understood(completion: &Replied) -> Value {
    reader::read(&completion.reply, TOOL, ReaderMode::Tolerant).unwrap()
}

fn problem(completion: &Replied) -> String {
    reader::read(&completion.reply, TOOL, ReaderMode::Tolerant).unwrap_err()[0].code.clone()
}

/// Asserts that the reply is parsed as the plan, streamed and not.
async fn assert_understood(answer: Scripted) {
    let llm = ScriptedLlm::sequence([answer]);
    for options in [llm.options(), streamed(&llm)] {
        let completion = ask(options).await.unwrap();
        assert_eq!(understood(&completion), plan());
        assert_eq!(completion.reply.model, "scripted");
    }
}

async fn code_of(options: Options) -> &'static str {
    ask(options).await.unwrap_err().code()
}

#[tokio::test]
async fn forced_call_is_parsed_in_every_forcing_mode() {
    let llm = ScriptedLlm::start(|request, _| Scripted::forced(request, plan()));
    for forcing in [Forcing::Named, Forcing::Required, Forcing::JsonSchema] {
        for stream in [false, true] {
            let mut options = llm.options();
            options.models[0].forcing = forcing;
            options.models[0].stream = stream_mode(stream);
            assert_eq!(understood(&ask(options).await.unwrap()), plan(), "{forcing}, stream {stream}");
        }
    }
    assert!(llm.requests().iter().all(|request| forced_tool(request) == Some(TOOL)));
}

#[tokio::test]
async fn fenced_json_instead_of_the_forced_call_is_parsed() {
    assert_understood(Scripted::Text(format!("Here is the plan:\n```json\n{:#}\n```\n", plan()))).await;
}

#[tokio::test]
async fn prose_instead_of_the_forced_call_needs_repair() {
    let llm = ScriptedLlm::sequence([Scripted::Text("Let me think about the weather.".into())]);
    assert_eq!(problem(&ask(llm.options()).await.unwrap()), "reply.no_json");
}

#[tokio::test]
async fn prose_before_a_required_call_is_ignored() {
    let call = ScriptedCall { id: String::new(), name: TOOL.into(), arguments: plan().to_string() };
    assert_understood(Scripted::Calls { text: "I will use {tools}.".into(), calls: vec![call] }).await;
}

#[tokio::test]
async fn tool_call_as_plain_text_is_parsed() {
    let call = json!({"name": TOOL, "arguments": plan()});
    assert_understood(Scripted::Text(format!("<tool_call>\n{call}\n</tool_call>"))).await;
}

#[tokio::test]
async fn call_under_another_name_is_parsed() {
    assert_understood(Scripted::call("make_plan", plan())).await;
}

#[tokio::test]
async fn object_arguments_and_missing_ids_or_usage_are_accepted() {
    let call = json!({"function": {"name": TOOL, "arguments": plan()}});
    let body = json!({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": 7}], "odd": true});
    assert_understood(Scripted::Json(body)).await;
}

#[tokio::test]
async fn equal_calls_with_equal_ids_are_merged() {
    let call = ScriptedCall { id: "call_0".into(), name: TOOL.into(), arguments: plan().to_string() };
    assert_understood(Scripted::Calls { text: String::new(), calls: vec![call.clone(), call] }).await;
}

#[tokio::test]
async fn stream_chunks_may_repeat_the_name_with_or_without_index() {
    for index in [json!(0), Value::Null] {
        let text = plan().to_string();
        let (a, b) = text.split_at(20);
        let part = |arguments: &str| {
            chunk(json!({"delta": {"tool_calls": [{"index": index, "id": "x", "type": "function",
                "function": {"name": TOOL, "arguments": arguments}}]}}))
        };
        let end = chunk(json!({"delta": {}, "finish_reason": "tool_calls"}));
        let llm =
            ScriptedLlm::sequence([Scripted::Stream(vec![part(""), part(a), part(b), end], StreamEnd::Done)]);
        let completion = ask(streamed(&llm)).await.unwrap();
        assert_eq!(completion.reply.calls.len(), 1);
        assert_eq!(completion.reply.calls[0].name, TOOL);
        assert_eq!(understood(&completion), plan());
    }
}

#[tokio::test]
async fn stream_may_begin_with_a_byte_order_mark() {
    let call = json!({"delta": {"tool_calls": [{"index": 0, "id": "x", "type": "function",
        "function": {"name": TOOL, "arguments": plan().to_string()}}]}});
    let lines = vec![format!("\u{feff}{}", chunk(call))];
    let llm = ScriptedLlm::sequence([Scripted::Stream(lines, StreamEnd::Done)]);
    assert_eq!(understood(&ask(streamed(&llm)).await.unwrap()), plan());
    assert_eq!(llm.count(), 1);
}

#[tokio::test]
async fn empty_stream_with_status_200_is_retried() {
    for end in [StreamEnd::Done, StreamEnd::Unsaid] {
        let llm = ScriptedLlm::sequence([Scripted::Stream(vec![], end), Scripted::call(TOOL, plan())]);
        assert_eq!(understood(&ask(streamed(&llm)).await.unwrap()), plan());
        assert_eq!(llm.count(), 2);
        let llm = ScriptedLlm::sequence([Scripted::Stream(vec![], end)]);
        assert_eq!(code_of(streamed(&llm)).await, "llm.empty_stream");
        assert_eq!(llm.count(), 3);
    }
}

#[tokio::test]
async fn broken_stream_is_retried_and_its_tokens_are_counted() {
    let half = chunk(json!({"delta": {"content": "{\"needs_execution\": "}}));
    for end in [StreamEnd::Cut, StreamEnd::Unsaid] {
        let llm =
            ScriptedLlm::sequence([Scripted::Stream(vec![half.clone()], end), Scripted::call(TOOL, plan())]);
        let completion = ask(streamed(&llm)).await.unwrap();
        assert_eq!(understood(&completion), plan());
        assert_eq!(completion.usage.calls, 2);
        assert!(completion.usage.input_tokens > 10 && completion.usage.output_tokens > 5);
        let llm = ScriptedLlm::sequence([Scripted::Stream(vec![half.clone()], end)]);
        assert_eq!(code_of(streamed(&llm)).await, "llm.cut_stream");
    }
}

#[tokio::test]
async fn stream_broken_after_its_finish_reason_is_complete() {
    let llm = ScriptedLlm::sequence([Scripted::Stream(
        vec![chunk(json!({"delta": {"content": plan().to_string()}, "finish_reason": "stop"}))],
        StreamEnd::Cut,
    )]);
    assert_eq!(understood(&ask(streamed(&llm)).await.unwrap()), plan());
    assert_eq!(llm.count(), 1);
}

#[tokio::test]
async fn stream_left_open_after_its_finish_reason_is_complete() {
    let llm = ScriptedLlm::sequence([Scripted::Stream(
        vec![
            chunk(json!({"delta": {"content": plan().to_string()}, "finish_reason": "stop"})),
            format!(
                "data: {}",
                json!({"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 30}})
            ),
        ],
        StreamEnd::Never,
    )]);
    let reply = ask(streamed(&llm)).await.unwrap();
    assert_eq!((understood(&reply), llm.count()), (plan(), 1));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (70, 30));
}

#[tokio::test]
async fn error_inside_a_stream_is_reported_with_its_status() {
    let lines = vec![
        chunk(json!({"delta": {"content": "half"}})),
        format!("data: {}", json!({"error": {"message": "overloaded", "code": 429}})),
    ];
    let llm = ScriptedLlm::sequence([Scripted::Stream(lines, StreamEnd::Done)]);
    assert_eq!(code_of(once(streamed(&llm))).await, "llm.rate_limited");
}

#[tokio::test]
async fn unstreamed_reply_to_a_streaming_request_is_parsed() {
    let message = json!({"role": "assistant", "content": plan().to_string()});
    let llm = ScriptedLlm::sequence([Scripted::Json(json!({"choices": [{"message": message}]}))]);
    assert_eq!(understood(&ask(streamed(&llm)).await.unwrap()), plan());
}

#[tokio::test]
async fn stream_with_json_content_type_is_parsed() {
    let events = [chunk(json!({"delta": {"content": plan().to_string()}})), "data: [DONE]\n\n".into()];
    let llm = ScriptedLlm::sequence([Scripted::Malformed(events.join("\n\n"))]);
    assert_eq!(understood(&ask(streamed(&llm)).await.unwrap()), plan());
}

#[tokio::test]
async fn reply_cut_by_the_token_limit_is_truncated_despite_its_finish_reason() {
    let text = plan().to_string();
    let cut = Scripted::RawCall { name: TOOL.into(), arguments: text[..text.len() - 3].into() };
    for reason in ["tool_calls", "length"] {
        let llm = ScriptedLlm::sequence([cut.clone().finished(reason)]);
        for options in [llm.options(), streamed(&llm)] {
            assert_eq!(problem(&ask(options).await.unwrap()), "reply.truncated");
        }
    }
}

#[tokio::test]
async fn rate_limit_waits_for_retry_after() {
    for (name, value) in
        [("retry-after", "0"), ("retry-after-ms", "1"), ("retry-after", "Mon, 04 May 2020 07:00:00 GMT")]
    {
        let llm =
            ScriptedLlm::sequence([Scripted::status(429).header(name, value), Scripted::call(TOOL, plan())]);
        let completion = ask(llm.options()).await.unwrap();
        assert_eq!((llm.count(), completion.usage.calls), (2, 1), "a refused call does not count");
    }
}

#[tokio::test]
async fn retry_after_beyond_the_bound_is_reported_at_once() {
    let far = "Fri, 01 Jan 2100 00:00:00 GMT";
    for (value, min) in [("30", Duration::from_secs(30)), (far, Duration::from_secs(1_000_000))] {
        let llm = ScriptedLlm::sequence([Scripted::status(429).header("retry-after", value)]);
        let error = ask(llm.options()).await.unwrap_err();
        assert_eq!((error.code(), llm.count()), ("llm.rate_limited", 1));
        assert!(error.retry_after().is_some_and(|wait| wait >= min), "{error:?}");
        assert_eq!(error.usage(), Usage::default());
    }
}

#[tokio::test]
async fn transient_statuses_are_retried_and_permanent_ones_are_not() {
    for code in [500, 503] {
        let llm = ScriptedLlm::sequence([Scripted::status(code), Scripted::call(TOOL, plan())]);
        assert_eq!(understood(&ask(llm.options()).await.unwrap()), plan());
    }
    for (status, code) in
        [(400, "llm.status"), (401, "llm.unauthorized"), (404, "llm.status"), (307, "llm.status")]
    {
        let llm = ScriptedLlm::sequence([Scripted::status(status)]);
        let error = ask(llm.options()).await.unwrap_err();
        assert_eq!((error.code(), llm.count()), (code, 1));
        assert!(error.to_string().contains("scripted"), "names the model and its reply: {error}");
    }
}

#[tokio::test]
async fn attempts_are_bounded() {
    let llm = ScriptedLlm::sequence([Scripted::status(500)]);
    assert_eq!(code_of(llm.options()).await, "llm.status");
    assert_eq!(llm.count(), 3);
}

#[tokio::test]
async fn request_exceeding_the_context_window_is_reported() {
    let body = json!({"error": {"code": "context_length_exceeded", "message": "too long"}}).to_string();
    let llm = ScriptedLlm::sequence([Scripted::Status { code: 400, headers: vec![], body }]);
    assert_eq!(code_of(llm.options()).await, "llm.context_overflow");
}

#[tokio::test]
async fn refused_connection_is_reported_and_free() {
    let llm = ScriptedLlm::sequence([Scripted::Silence]);
    let options = llm.options();
    drop(llm);
    let error = ask(options).await.unwrap_err();
    assert_eq!((error.code(), error.usage()), ("llm.connect", Usage::default()));
}

#[tokio::test]
async fn silence_before_the_first_token_times_out_and_counts_the_prompt() {
    let llm = ScriptedLlm::sequence([Scripted::Silence]);
    let partial = ScriptedLlm::sequence([Scripted::Stream(
        vec![chunk(json!({"delta": {"role": "assistant"}}))],
        StreamEnd::Never,
    )]);
    for options in [llm.options(), streamed(&partial)] {
        let error = ask(once(Options { first_token_timeout_ms: 50, ..options })).await.unwrap_err();
        assert_eq!((error.code(), error.usage().calls), ("llm.silence", 1));
        assert!(error.usage().input_tokens > 0);
        assert!(error.to_string().contains("llm.first_token_timeout_ms"), "{error}");
    }
}

#[tokio::test]
async fn silence_between_tokens_times_out() {
    let llm = ScriptedLlm::sequence([Scripted::Stream(
        vec![chunk(json!({"delta": {"content": "half"}}))],
        StreamEnd::Never,
    )]);
    let error = ask(once(Options { between_tokens_timeout_ms: 50, ..streamed(&llm) })).await.unwrap_err();
    assert_eq!(error.code(), "llm.silence");
    assert!(error.usage().output_tokens > 0 && error.to_string().contains("between_tokens"), "{error}");
}

#[tokio::test]
async fn whole_call_has_a_deadline_and_can_be_cancelled() {
    let llm = ScriptedLlm::sequence([Scripted::Silence]);
    assert_eq!(code_of(Options { deadline_ms: 50, ..llm.options() }).await, "llm.timeout");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let error = gateway(llm.options()).complete(&caller(), &question(), false, &cancelled).await.unwrap_err();
    assert_eq!(error.code(), "llm.cancelled");
}

#[tokio::test]
async fn non_completion_reply_is_malformed() {
    for answer in [
        Scripted::Malformed("{\"choices\": [".into()),
        Scripted::Malformed(String::new()),
        Scripted::WrongContentType,
        Scripted::Json(json!({"choices": []})),
    ] {
        let llm = ScriptedLlm::sequence([answer]);
        assert_eq!(code_of(once(llm.options())).await, "llm.malformed");
    }
    let page = ScriptedLlm::sequence([Scripted::WrongContentType]);
    assert_eq!(code_of(once(streamed(&page))).await, "llm.malformed");
    let llm = ScriptedLlm::sequence([Scripted::Stream(vec!["data: {half".into()], StreamEnd::Done)]);
    assert_eq!(code_of(once(streamed(&llm))).await, "llm.malformed");
}

#[tokio::test]
async fn endless_reply_is_cut_off() {
    let llm = ScriptedLlm::sequence([Scripted::Oversize(5_000_000)]);
    assert_eq!(code_of(llm.options()).await, "llm.too_large");
    let line = chunk(json!({"delta": {"content": "x".repeat(100_000)}}));
    let endless = ScriptedLlm::sequence([Scripted::Stream(vec![line; 60], StreamEnd::Done)]);
    assert_eq!(code_of(streamed(&endless)).await, "llm.too_large");
    assert_eq!((llm.count(), endless.count()), (1, 1));
}

#[tokio::test]
async fn next_model_takes_over_when_one_fails() {
    for fault in
        [Scripted::status(500), Scripted::status(401), Scripted::Malformed("oops".into()), Scripted::Silence]
    {
        let out = ScriptedLlm::sequence([fault]);
        let next = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
        let models = vec![out.model("first"), next.model("second")];
        let options = Options { models, first_token_timeout_ms: 1_500, ..out.options() };
        let completion = ask(options).await.unwrap();
        assert_eq!(completion.reply.model, "second");
        assert!(out.count() >= 1);
    }
}

/// Attempts of a reply, as the journal has them.
fn outcomes(replied: &proscenium::llm::Replied) -> Vec<(&str, &str)> {
    replied.attempts.iter().map(|attempt| (attempt.model.as_str(), attempt.outcome.as_str())).collect()
}

#[tokio::test]
async fn next_model_is_asked_when_a_reply_does_not_begin_in_time() {
    let slow = ScriptedLlm::sequence([Scripted::Silence]);
    let next = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
    for stream in [true, false] {
        let mut models = vec![slow.model("slow"), next.model("next")];
        models[0].stream = stream_mode(stream);
        let slow_ms = [(Purpose::Plan, 50)].into();
        let replied = ask(Options { models, slow_ms, ..slow.options() }).await.unwrap();
        assert_eq!(outcomes(&replied), [("slow", "too_slow"), ("next", "ok")]);
        assert!(replied.usage.input_tokens > 0 && replied.usage.calls == 2, "what was sent is counted");
    }
    // Each model was asked once a time: one that is slow is not asked again.
    assert_eq!((slow.count(), next.count()), (2, 2));
}

#[tokio::test]
async fn last_model_and_a_reply_that_has_begun_are_waited_for() {
    let silent = ScriptedLlm::sequence([Scripted::Silence]);
    let options = Options { slow_ms: [(Purpose::Plan, 50)].into(), deadline_ms: 400, ..silent.options() };
    assert_eq!(code_of(options).await, "llm.timeout", "there is no other model");
    let begun = ScriptedLlm::sequence([Scripted::Stream(
        vec![chunk(json!({"delta": {"content": "half"}}))],
        StreamEnd::Never,
    )]);
    let next = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
    let mut models = vec![begun.model("begun"), next.model("next")];
    models[0].stream = stream_mode(true);
    // It begins in this time on a busy machine, too, and is silent for longer.
    let slow_ms = [(Purpose::Plan, 2_000)].into();
    let options =
        Options { models, slow_ms, between_tokens_timeout_ms: 2_500, max_attempts: 1, ..begun.options() };
    let replied = ask(options).await.unwrap();
    assert_eq!(outcomes(&replied), [("begun", "silence"), ("next", "ok")], "its own timeout ended it");
}

#[tokio::test]
async fn each_purpose_has_its_own_models() {
    let llm = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
    let purposes = [(Purpose::Plan, vec!["big".to_owned()])].into();
    let options = Options { models: vec![llm.model("small"), llm.model("big")], purposes, ..llm.options() };
    assert_eq!(gateway(options.clone()).model_names(Purpose::Answer), ["small", "big"]);
    assert_eq!(ask(options).await.unwrap().reply.model, "big");
    assert_eq!(llm.request(0)["model"], "big");
}

#[tokio::test]
async fn fallback_and_empty_configuration_use_the_offline_model() {
    let llm = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
    let never = CancellationToken::new();
    let error = gateway(llm.options()).complete(&caller(), &question(), true, &never).await.unwrap_err();
    assert_eq!((error.model(), llm.count()), ("none", 0));
    assert_eq!(ask(Options::default()).await.unwrap_err().model(), "none");
}

#[tokio::test]
async fn usage_is_reported_by_the_server_or_estimated() {
    let llm = ScriptedLlm::sequence([
        Scripted::call(TOOL, plan()).metered(1_000, 400, 50),
        Scripted::Text("x".into()).unmetered(),
    ]);
    for stream in [true, false] {
        let mut options = llm.options();
        let model = &mut options.models[0];
        model.stream = stream_mode(stream);
        (model.input_usd_per_million, model.output_usd_per_million) = (0.15, 0.6);
        model.cached_input_usd_per_million = Some(0.075);
        let usage = ask(options).await.unwrap().usage;
        if stream {
            let meant = Usage {
                calls: 1,
                input_tokens: 1_000,
                cached_input_tokens: 400,
                output_tokens: 50,
                cost_nano_usd: 150_000,
            };
            assert_eq!(usage, meant);
        } else {
            assert!(usage.input_tokens > 0 && usage.output_tokens == 1 && usage.cost_nano_usd > 0);
        }
    }
}

#[tokio::test]
async fn api_key_is_sent_and_appears_nowhere_else() {
    let body = json!({"error": {"message": "Incorrect API key provided: sk-secret"}}).to_string();
    let llm = ScriptedLlm::sequence([Scripted::Status { code: 401, headers: vec![], body }]);
    let mut options = llm.options();
    options.models[0].api_key_env = Some("A_KEY".into());
    let get = |name: &str| (name == "A_KEY").then(|| "sk-secret".to_owned());
    let gateway = Gateway::with_keys(options.clone(), Arc::new(NoModel), get).unwrap();
    let error = gateway.complete(&caller(), &question(), false, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(llm.authorization(0).as_deref(), Some("Bearer sk-secret"));
    let shown = format!("{gateway:?} {error:?} {error} {:?}", Fault::from(error.clone()));
    assert!(!shown.contains("secret"), "{shown}");

    let without = Gateway::with_keys(options, Arc::new(NoModel), |_| None).unwrap();
    let error = without.complete(&caller(), &question(), false, &CancellationToken::new()).await.unwrap_err();
    assert_eq!((error.code(), llm.count()), ("llm.not_configured", 1));
    assert!(error.to_string().contains("A_KEY"), "{error}");
}

#[tokio::test]
async fn probe_finds_the_working_forcing_mode() {
    let llm =
        ScriptedLlm::start(|request, _| match (request["tool_choice"].as_str(), forced_tool(request)) {
            // An object is ignored; `required` is obeyed, in text; a schema is enforced.
            (Some("required"), Some(_)) => Scripted::Text("```json\n{\"colour\": \"red\"}\n```".into()),
            (None, Some(_)) if request.get("response_format").is_some() => {
                Scripted::Text("{\"colour\": \"blue\"}".into())
            }
            _ => Scripted::Text("Good morning!".into()),
        });
    let probes = gateway(llm.options()).probe().await.unwrap();
    let worked: Vec<&Worked> = probes[0].tried.iter().map(|tried| &tried.worked).collect();
    assert!(matches!(worked[..], [Worked::No(_), Worked::Understood, Worked::Exactly]), "{worked:?}");
    assert_eq!((probes[0].recommended, probes[0].latency.is_some()), (Some(Forcing::JsonSchema), true));
    assert!(Latency::Fast < Latency::Slow);
}

#[test]
fn gateway_works_on_any_runtime_and_can_be_dropped_in_one() {
    let llm = ScriptedLlm::sequence([Scripted::call(TOOL, plan())]);
    let gateway = gateway(llm.options());
    let waiting = gateway.clone();
    // No tokio runtime here.
    let completion = futures::executor::block_on(async {
        waiting.complete(&caller(), &question(), false, &CancellationToken::new()).await
    });
    assert_eq!(understood(&completion.unwrap()), plan());
    drop(waiting);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async move { drop(gateway) });
}
