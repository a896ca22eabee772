//! The OpenAI protocol: the answer, streamed and not, errors, and clients that retry by themselves.

use proscenium::run::RunStatus;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::served_engine::{read_to_end, wire};
use crate::support::{Reply, ServedEngine, Setup, Shelf};

const CHAT: &str = "/v1/chat/completions";

fn ask(words: &str) -> Value {
    json!({"model": "proscenium", "messages": [{"role": "user", "content": words}]})
}

fn streamed(words: &str) -> Value {
    with(ask(words), "stream", true)
}

fn with(mut body: Value, key: &str, value: impl Into<Value>) -> Value {
    body[key] = value.into();
    body
}

/// Sends with headers.
async fn send(served: &ServedEngine, body: &Value, headers: &[(&str, &str)]) -> Reply {
    let request = headers
        .iter()
        .fold(served.request("POST", CHAT), |request, (name, value)| request.header(*name, *value));
    Reply::of(request.json(body).send().await.unwrap()).await
}

/// The chunks of a stream that ended with `[DONE]`.
fn chunks(reply: &Reply) -> Vec<Value> {
    let mut chunks: Vec<Value> = reply.events().into_iter().map(|event| event.data).collect();
    assert_eq!(chunks.pop(), Some(json!("[DONE]")), "{reply:#?}");
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk:#}");
        assert_eq!((&chunk["id"], &chunk["model"]), (&chunks[0]["id"], &json!("proscenium")));
    }
    chunks
}

/// The concatenated values of a key in the deltas.
fn delta_text(chunks: &[Value], key: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][key].as_str()).collect()
}

/// A chat interface sends the conversation with each request, without the calls.
#[tokio::test]
async fn follow_up_is_understood_from_the_messages_alone() {
    let served = ServedEngine::start(Setup::offline()).await;
    for (first, next) in [
        ("weather in Rome", ["And the day after?", "And in Naples?"]),
        ("Che tempo fa a Roma?", ["E il giorno dopo?", "E a Napoli?"]),
    ] {
        let mut messages = Vec::new();
        let mut told = Vec::new();
        for words in [first].into_iter().chain(next) {
            messages.push(json!({"role": "user", "content": words}));
            let body = json!({"model": "proscenium", "messages": messages});
            let reply = send(&served, &body, &[]).await.json();
            let text = reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
            messages.push(json!({"role": "assistant", "content": text}));
            told.push(text);
        }
        let [today, tomorrow, elsewhere] = &told[..] else { unreachable!() };
        assert!(today.contains("Rom") && tomorrow.contains("Rom") && today != tomorrow, "{told:#?}");
        assert!(elsewhere.contains("Nap"), "{told:#?}");
        // It has the day of the question before.
        let day = |text: &str| {
            text.split_once("Rom").map(|(_, rest)| rest.chars().skip(1).take(11).collect::<String>())
        };
        let naples = elsewhere.replace("Naples", "Rome").replace("Napoli", "Roma");
        assert_eq!(day(&naples), day(tomorrow), "{told:#?}");
    }
}

#[tokio::test]
async fn wrong_type_is_reported_by_field_without_names_of_types() {
    let served = ServedEngine::start(Setup::offline()).await;
    for (body, param, expected) in [
        (with(ask("x"), "messages", json!(["x"])), json!("messages"), "expected an object with `role`"),
        (
            with(ask("x"), "messages", json!([{"role": "user", "content": 5}])),
            json!("messages"),
            "expected text",
        ),
        (with(ask("x"), "stream", "true"), json!("stream"), "`stream`"),
        (with(ask("x"), "model", 3), json!("model"), "expected a string"),
        (Value::Null, Value::Null, "the body: invalid type: null, expected an object"),
    ] {
        let error = send(&served, &body, &[]).await.json()["error"].clone();
        assert_eq!((&error["code"], &error["param"]), (&json!("request.body"), &param), "{error:#}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        for internal in ["struct", "enum", "untagged", "line 1"] {
            assert!(!message.contains(internal), "{message}");
        }
    }
    let problem = served.get("/api/runs?limit=x").await.assert_problem(422, "request.query");
    assert!(problem["detail"].as_str().unwrap().starts_with("`limit`: "), "{problem:#}");
}

#[tokio::test]
async fn day_that_does_not_exist_is_asked_about() {
    let served = ServedEngine::start(Setup::offline()).await;
    for (words, day) in [
        ("weather in Rome on 31 February", "«31 February» is not a date"),
        ("Che tempo fa a Roma il 31 febbraio?", "«31 febbraio» non è una data"),
        ("weather in Rome on 30/02/2027", "«30/02/2027» is not a date"),
    ] {
        let reply = send(&served, &ask(words), &[]).await.json();
        let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(text.contains(day), "{text}");
    }
}

#[tokio::test]
async fn completion_contains_the_answer_and_usage() {
    let (_shelf, served) = Shelf::serve().await;
    let reply = send(&served, &ask("look"), &[]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let body = reply.json();
    assert_eq!(reply.header("x-request-id"), reply.header("x-run-id"));
    let run = served.get(&format!("/api/runs/{}", reply.header("x-run-id"))).await.json();
    assert_eq!(body["id"], format!("chatcmpl-{}", run["run_id"].as_str().unwrap()));
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("proscenium")));
    assert_eq!(
        body["choices"],
        json!([{"index": 0, "finish_reason": "stop", "logprobs": null,
        "message": {"role": "assistant", "content": run["answer"], "refusal": null}}])
    );
    assert_eq!(body["usage"]["prompt_tokens"], run["usage"]["input_tokens"]);
    assert_eq!(body["usage"]["completion_tokens"], run["usage"]["output_tokens"]);
    let sum = body["usage"]["prompt_tokens"].as_u64().unwrap()
        + body["usage"]["completion_tokens"].as_u64().unwrap();
    assert!(sum > 0 && body["usage"]["total_tokens"] == sum, "{body:#}");
}

#[tokio::test]
async fn streamed_chunks_equal_the_completion() {
    let (_shelf, served) = Shelf::serve().await;
    let whole = send(&served, &ask("look"), &[]).await.json();
    let chunks = chunks(&send(&served, &streamed("look"), &[]).await);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(delta_text(&chunks, "content"), whole["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(delta_text(&chunks, "reasoning_content"), "");
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert!(before.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[tokio::test]
async fn stream_ends_with_usage_when_requested() {
    let (_shelf, served) = Shelf::serve().await;
    let body = with(streamed("look"), "stream_options", json!({"include_usage": true}));
    let reply = send(&served, &body, &[]).await;
    let chunks = chunks(&reply);
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(reply.header("x-request-id"), reply.header("x-run-id"));
    let run = served.get(&format!("/api/runs/{}", reply.header("x-run-id"))).await.json();
    let actual = (&last["choices"], &last["usage"]["prompt_tokens"], &last["usage"]["completion_tokens"]);
    assert_eq!(actual, (&json!([]), &run["usage"]["input_tokens"], &run["usage"]["output_tokens"]));
    assert!(last["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert!(before.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
}

#[tokio::test]
async fn progress_is_told_in_the_language_of_the_request() {
    let served = ServedEngine::start(Setup::offline().set("server.progress", "reasoning")).await;
    for (request, lines) in [
        (
            "Che tempo fa a Milano?",
            ["Preparo un piano…", "Passo 1, Weather: iniziato", "Passo 1, Weather: fatto"],
        ),
        (
            "Wie ist das Wetter in Mailand?",
            ["Ich plane…", "Schritt 1, Weather: begonnen", "Schritt 1, Weather: erledigt"],
        ),
        (
            "Quel temps fait-il à Milan ?",
            ["Je prépare un plan…", "Étape 1, Weather : commencée", "Étape 1, Weather : terminée"],
        ),
        ("What is the weather in Milan?", ["Planning…", "Step 1, Weather: started", "Step 1, Weather: done"]),
    ] {
        let chunks = chunks(&send(&served, &streamed(request), &[]).await);
        let progress = delta_text(&chunks, "reasoning_content");
        for line in lines {
            assert!(progress.lines().any(|told| told == line), "{line}: {progress}");
        }
    }
}

#[tokio::test]
async fn progress_is_streamed_when_enabled() {
    for (progress, key) in [("off", ""), ("reasoning", "reasoning_content"), ("text", "content")] {
        let served = ServedEngine::start(Setup::offline().set("server.progress", progress)).await;
        let whole = send(&served, &ask("Che tempo fa a Milano?"), &[]).await.json();
        let answer = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        let chunks = chunks(&send(&served, &streamed("Che tempo fa a Milano?"), &[]).await);
        let progress = "1. Weather: ";
        for place in ["content", "reasoning_content"] {
            assert_eq!(delta_text(&chunks, place).contains(progress), key == place, "{place}: {chunks:#?}");
        }
        let content = delta_text(&chunks, "content");
        assert!(content.ends_with(&answer), "{content}");
        if key != "content" {
            assert_eq!(content, answer);
        }
        let shown = delta_text(&chunks, key);
        assert!(key.is_empty() || shown.contains("Passo 1, Weather: fatto\n"), "{shown}");
    }
}

#[tokio::test]
async fn unsupported_parameters_are_refused_by_name() {
    let (shelf, served) = Shelf::serve().await;
    let tool = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let image = json!([{"role": "user", "content": [{"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:,"}}]}]);
    for (key, value, param) in [
        ("tools", tool.clone(), "tools"),
        ("functions", tool, "functions"),
        ("tool_choice", json!("required"), "tool_choice"),
        ("response_format", json!({"type": "json_object"}), "response_format"),
        ("response_format", json!({"type": "json_schema", "json_schema": {}}), "response_format"),
        ("n", json!(2), "n"),
        ("stop", json!("."), "stop"),
        ("stop", json!(["."]), "stop"),
        ("logprobs", json!(true), "logprobs"),
        ("logprobs", json!(1), "logprobs"),
        ("top_logprobs", json!(3), "top_logprobs"),
        ("function_call", json!({"name": "f"}), "function_call"),
        ("web_search_options", json!({}), "web_search_options"),
        ("modalities", json!(["text", "audio"]), "modalities"),
        ("audio", json!({"voice": "x"}), "audio"),
        ("messages", image, "messages[0].content"),
        ("messages", json!([{"role": "tool", "tool_call_id": "x", "content": "x"}]), "messages[0].role"),
        ("messages", json!([{"role": "boss", "content": "x"}]), "messages[0].role"),
        ("messages", json!([{"role": "assistant", "tool_calls": [{"id": "x"}]}]), "messages[0].tool_calls"),
        ("messages", json!([{"role": "user"}]), "messages[0].content"),
    ] {
        let reply = send(&served, &with(ask("look"), key, value), &[]).await;
        let error = reply.assert_error(400, "request.unsupported");
        assert_eq!((&error["param"], &error["type"]), (&json!(param), &json!("invalid_request_error")));
        assert_eq!(reply.header("x-should-retry"), "false");
    }
    let other = send(&served, &with(ask("look"), "model", "gpt-4o"), &[]).await;
    let error = other.assert_error(404, "model_not_found");
    assert_eq!((&error["param"], &error["type"]), (&json!("model"), &json!("invalid_request_error")));
    let empty = send(&served, &with(ask("look"), "messages", json!([])), &[]).await;
    assert_eq!(empty.assert_error(422, "request.messages")["param"], "messages");
    let broken = served.request("POST", CHAT).header("content-type", "application/json").body("{");
    Reply::of(broken.send().await.unwrap()).await.assert_error(400, "request.json");
    let wrong = send(&served, &with(ask("look"), "messages", json!([{"role": 1}])), &[]).await;
    let error = wrong.assert_error(422, "request.body");
    assert!(error["message"].as_str().unwrap().contains("messages[0].role"), "{error:#}");
    let session = send(&served, &ask("look"), &[("x-session-id", "a b")]).await;
    session.assert_error(422, "request.session");
    assert_eq!(shelf.llm.count(), 0);
}

#[tokio::test]
async fn common_client_defaults_are_accepted() {
    let (_shelf, served) = Shelf::serve().await;
    let habits = json!({"temperature": 0.2, "top_p": 1, "max_tokens": 100, "max_completion_tokens": 100, "seed": 1,
        "user": "u", "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "n": 1, "stop": null,
        "logprobs": false, "modalities": ["text"], "presence_penalty": 0, "metadata": {}, "store": false});
    let mut body = ask("look");
    for (key, value) in habits.as_object().unwrap() {
        body[key] = value.clone();
    }
    body["messages"] = json!([{"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "look"}], "name": "u"}]);
    let reply = send(&served, &body, &[("authorization", "Bearer sk-anything")]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    assert_eq!(served.get("/v1/models").await.json()["data"][0]["id"], "proscenium");
    assert_eq!(served.get("/v1/models/proscenium").await.json()["object"], "model");
    served.get("/v1/models/gpt-4o").await.assert_error(404, "model_not_found");
}

#[tokio::test]
async fn harmless_fields_of_chat_applications_are_ignored() {
    let (_shelf, served) = Shelf::serve().await;
    let tool = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let habits = json!({"n": 1.0, "stream": 0, "stop": "", "logprobs": 0, "top_logprobs": 0, "tools": tool,
        "tool_choice": "none", "functions": tool, "function_call": "none", "response_format": {}, "audio": null,
        "web_search_options": null, "modalities": [], "stream_options": {"include_usage": 0}, "logit_bias": {},
        "parallel_tool_calls": true, "reasoning_effort": "low", "chat_id": "x", "keep_alive": 5});
    let mut body = ask("look");
    for (key, value) in habits.as_object().unwrap() {
        body[key] = value.clone();
    }
    body["messages"] = json!([{"role": "system", "content": null},
        {"role": "user", "content": [{"type": "input_text", "text": "look"}]}]);
    let reply = send(&served, &body, &[]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let reply = send(&served, &with(with(body, "stream", 1), "stop", json!([""])), &[]).await;
    assert!(!chunks(&reply).is_empty());
}

#[tokio::test]
async fn aborted_answers_and_tools_of_another_model_may_be_in_the_history() {
    let (shelf, served) = Shelf::serve().await;
    let call = json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let messages = json!([
        {"role": "user", "content": "put"},
        {"role": "assistant", "content": null},
        {"role": "user", "content": "what time is it?"},
        {"role": "assistant", "content": null, "tool_calls": call},
        {"role": "tool", "tool_call_id": "c", "content": "ten"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "Ten."}]},
        {"role": "user", "content": "hello"},
        {"role": "assistant"},
        {"role": "user", "content": "what did I say?"},
    ]);
    let reply = send(&served, &with(ask(""), "messages", messages.clone()), &[]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let run = reply.header("x-run-id").parse().unwrap();
    let state = served.engine.run(&served.tenant, run).await.unwrap();
    let queued = state.queued.unwrap();
    assert_eq!(queued.request, "what did I say?");
    let turns: Vec<_> = queued.history.iter().flatten().map(|turn| (&*turn.request, &*turn.answer)).collect();
    assert_eq!(turns, [("put", ""), ("what time is it?", "Ten."), ("hello", "")]);
    assert_eq!(shelf.puts(), 0);
    // Results of the client's own tools are not accepted as the request.
    let mut pending = messages.as_array().unwrap()[..5].to_vec();
    let reply = send(&served, &with(ask(""), "messages", pending.clone()), &[]).await;
    assert_eq!(reply.assert_error(400, "request.unsupported")["param"], "messages[3].tool_calls");
    pending.remove(3);
    let reply = send(&served, &with(ask(""), "messages", pending), &[]).await;
    assert_eq!(reply.assert_error(400, "request.unsupported")["param"], "messages[3].role");
}

#[tokio::test]
async fn images_of_answered_messages_are_ignored() {
    let (_shelf, served) = Shelf::serve().await;
    let image = json!({"type": "image_url", "image_url": {"url": "data:,"}});
    let mut messages = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "what is this?"}, image]}),
        json!({"role": "assistant", "content": "A cat."}),
        json!({"role": "user", "content": "look"}),
    ];
    let reply = send(&served, &with(ask(""), "messages", messages.clone()), &[]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let run = reply.header("x-run-id").parse().unwrap();
    let state = served.engine.run(&served.tenant, run).await.unwrap();
    let queued = state.queued.unwrap();
    let turns: Vec<_> = queued.history.iter().flatten().map(|turn| (&*turn.request, &*turn.answer)).collect();
    assert_eq!((&*queued.request, turns), ("look", vec![("what is this?", "A cat.")]));
    // Nobody has answered this one: it belongs to the request.
    messages.remove(1);
    let reply = send(&served, &with(ask(""), "messages", messages), &[]).await;
    assert_eq!(reply.assert_error(400, "request.unsupported")["param"], "messages[0].content");
}

#[tokio::test]
async fn wrong_base_url_of_a_client_is_explained() {
    let (_shelf, served) = Shelf::serve().await;
    for (path, hint) in [
        ("/chat/completions", "must end with `/v1`"),
        ("/models", "must end with `/v1`"),
        ("//v1/chat/completions", "must end with `/v1`"),
        ("/v1/chat/completions/chat/completions", "must end with `/v1`"),
        ("/v1/responses", "this server has /v1/chat/completions and /v1/models"),
        ("/v1/chat/completions/", "this server has /v1/chat/completions and /v1/models"),
        ("/v1/moderations", "this server has /v1/chat/completions and /v1/models"),
        ("/api/nothing", "/api/openapi.json lists all routes"),
    ] {
        let reply = Reply::of(served.request("POST", path).json(&ask("look")).send().await.unwrap()).await;
        assert_eq!(reply.status, 404, "{path} {reply:#?}");
        assert!(reply.body.contains(hint), "{path} {reply:#?}");
    }
}

#[tokio::test]
async fn oldest_messages_of_a_long_conversation_are_left_out() {
    let shelf = Shelf::new();
    let served = ServedEngine::start(shelf.setup().set("server.max_messages", 4)).await;
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for at in 0..5 {
        messages.push(json!({"role": "user", "content": format!("request {at}")}));
        messages.push(json!({"role": "assistant", "content": format!("answer {at}")}));
    }
    messages.push(json!({"role": "user", "content": "look"}));
    let reply = send(&served, &with(ask(""), "messages", messages), &[]).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let run = reply.header("x-run-id").parse().unwrap();
    let state = served.engine.run(&served.tenant, run).await.unwrap();
    let queued = state.queued.unwrap();
    assert_eq!((&*queued.request, queued.instructions.as_deref()), ("look", Some("Be brief.")));
    let turns: Vec<_> = queued.history.iter().flatten().map(|turn| &*turn.request).collect();
    assert_eq!(turns, ["request 4"]);
    // A request is never cut.
    let words = json!({"role": "user", "content": "look"});
    let reply = send(&served, &with(ask(""), "messages", vec![words; 5]), &[]).await;
    reply.assert_error(422, "request.messages");
}

#[tokio::test]
async fn named_conversation_is_kept() {
    let (_shelf, served) = Shelf::serve().await;
    let named = [("x-session-id", "s-1")];
    for _ in 0..2 {
        assert_eq!(send(&served, &ask("look"), &named).await.header("x-session-id"), "s-1");
    }
    let reply = send(&served, &ask("what did I say?"), &named).await.json();
    let content = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(content.matches("look").count(), 2, "{content}");
}

#[tokio::test]
async fn unnamed_conversations_never_mix() {
    let (_shelf, served) = Shelf::serve().await;
    let look = ask("look");
    let (first, second) = tokio::join!(send(&served, &look, &[]), send(&served, &look, &[]));
    assert_ne!(first.header("x-run-id"), second.header("x-run-id"));
    assert_ne!(first.header("x-session-id"), second.header("x-session-id"));
    // Each continues with its own messages, and nothing of the other's.
    for reply in [first, second] {
        let answer = reply.json()["choices"][0]["message"]["content"].clone();
        let body = json!({"model": "proscenium", "messages": [{"role": "user", "content": "look"},
            {"role": "assistant", "content": answer}, {"role": "user", "content": "what did I say?"}]});
        let content = send(&served, &body, &[]).await.json();
        let content = content["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(content.matches("look").count(), 1, "{content}");
    }
    let alone = send(&served, &ask("what did I say?"), &[]).await.json();
    assert_eq!(alone["choices"][0]["message"]["content"].as_str().unwrap().matches("look").count(), 0);
}

#[tokio::test]
async fn failure_after_acceptance_forbids_retries() {
    let (_shelf, served) = Shelf::serve().await;
    let reply = send(&served, &ask("fail"), &[]).await;
    assert!(reply.status >= 500, "{reply:#?}");
    let error = reply.json()["error"].clone();
    reply.assert_error(reply.status, error["code"].as_str().unwrap());
    assert_eq!((reply.header("x-should-retry"), &error["type"]), ("false", &json!("server_error")));
    let run = reply.header("x-run-id").parse().unwrap();
    let state = served.engine.run(&served.tenant, run).await.unwrap();
    assert_eq!(state.status, RunStatus::Failed);
    // In a stream the error takes the place of the answer's end.
    let events = send(&served, &streamed("fail"), &[]).await.events();
    let [.., last, done] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&last.data["error"]["code"], &done.data), (&error["code"], &json!("[DONE]")));
}

#[tokio::test]
async fn request_with_idempotency_key_executes_once() {
    let (shelf, served) = Shelf::serve().await;
    let named = [("idempotency-key", "k-1")];
    let first = send(&served, &ask("put at once"), &named).await;
    let again = send(&served, &ask("put at once"), &named).await;
    assert_eq!(
        (first.header("x-run-id"), again.header("idempotent-replayed")),
        (again.header("x-run-id"), "true")
    );
    assert_eq!(first.json()["choices"], again.json()["choices"]);
    let streams = chunks(&send(&served, &streamed("put at once"), &named).await);
    assert_eq!(
        delta_text(&streams, "content"),
        first.json()["choices"][0]["message"]["content"].as_str().unwrap()
    );
    assert_eq!(shelf.puts(), 1);
    let conflict = send(&served, &ask("look"), &named).await;
    conflict.assert_error(422, "request.idempotency_conflict");
    assert_eq!(conflict.header("x-should-retry"), "false");
}

/// When the connection of a first attempt breaks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    /// Right after the request was sent.
    Sent,
    /// While a write is in progress.
    Working,
    /// In the middle of the stream.
    Streaming,
    /// When the answer was being sent.
    Answered,
}

async fn broken_and_sent_again(how: Break, stream: bool) {
    let (shelf, served) = Shelf::serve().await;
    let body = if stream { streamed("put") } else { ask("put") };
    let first = wire(CHAT, "x-stainless-retry-count: 0\r\n", &body);
    let mut connection = served.raw(first.as_bytes()).await;
    match how {
        Break::Sent => {}
        Break::Working => shelf.started.wait_open().await,
        Break::Streaming => {
            shelf.started.wait_open().await;
            let mut some = [0; 200];
            connection.read_exact(&mut some).await.unwrap();
        }
        Break::Answered => {
            shelf.done.open();
            let mut some = [0; 1];
            connection.read_exact(&mut some).await.unwrap();
        }
    }
    // A request interrupted on arrival may not have been accepted; all others continue.
    if how == Break::Sent {
        // A retry is read after the first attempt: the official clients wait for 0.375 s at least. The server
        // closes the connection when it has read all, and its end.
        connection.shutdown().await.unwrap();
        assert_eq!(read_to_end(&mut connection).await, "");
    } else {
        drop(connection);
        shelf.started.wait_open().await;
    }
    let again = async {
        let headers = [("x-stainless-retry-count", "1")];
        send(&served, &body, &headers).await
    };
    let open = async {
        shelf.done.open();
    };
    let (reply, ()) = tokio::join!(again, open);
    assert_eq!(reply.status, 200, "{how:?}: {reply:#?}");
    let words = if stream {
        delta_text(&chunks(&reply), "content")
    } else {
        reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let runs = served.get("/api/runs").await.json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{how:?} {stream}: {runs:#?}");
    let run = served.get(&format!("/api/runs/{}", runs[0]["run_id"].as_str().unwrap())).await.json();
    assert_eq!(
        (reply.header("x-run-id"), words.as_str()),
        (run["run_id"].as_str().unwrap(), run["answer"].as_str().unwrap())
    );
    assert_eq!(shelf.puts(), 1, "{how:?}");
    // Another client with the same request has its own run.
    let other = send(&served, &ask("put"), &[]).await;
    assert_ne!(other.header("x-run-id"), reply.header("x-run-id"));
}

#[tokio::test]
async fn retry_after_a_broken_connection_executes_once() {
    for how in [Break::Sent, Break::Working, Break::Answered] {
        broken_and_sent_again(how, false).await;
    }
    for how in [Break::Sent, Break::Working, Break::Streaming, Break::Answered] {
        broken_and_sent_again(how, true).await;
    }
}

#[tokio::test]
async fn server_notices_a_disconnected_client() {
    let (shelf, served) = Shelf::serve().await;
    let mut first = served.raw(wire(CHAT, "", &ask("put")).as_bytes()).await;
    shelf.started.wait_open().await;
    // It half-closes; the server closes the connection without an answer.
    first.shutdown().await.unwrap();
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&rest), "");
    shelf.done.open();
    assert_eq!(send(&served, &ask("look"), &[]).await.status, 200);
    assert_eq!(shelf.puts(), 1);
}

#[tokio::test]
async fn first_attempt_never_matches_another_run() {
    let (shelf, served) = Shelf::serve().await;
    let lost = served.raw(wire(CHAT, "", &ask("put")).as_bytes()).await;
    shelf.started.wait_open().await;
    drop(lost);
    shelf.done.open();
    let mut runs = Vec::new();
    for headers in [vec![], vec![("x-stainless-retry-count", "0")], vec![("x-stainless-retry-count", "many")]]
    {
        runs.push(send(&served, &ask("put"), &headers).await.header("x-run-id").to_owned());
    }
    // Neither does a retry with other words, in another conversation or with a key.
    let again = ("x-stainless-retry-count", "1");
    for (words, headers) in [
        ("put at once", vec![again]),
        ("put", vec![again, ("x-session-id", "s-1")]),
        ("put", vec![again, ("idempotency-key", "k-1")]),
    ] {
        runs.push(send(&served, &ask(words), &headers).await.header("x-run-id").to_owned());
    }
    runs.sort();
    runs.dedup();
    assert_eq!((runs.len(), shelf.puts()), (6, 7));
}

#[tokio::test]
async fn refused_client_is_served_when_it_retries() {
    let shelf = Shelf::new();
    let served = ServedEngine::start(shelf.setup().set("server.max_in_flight", 1)).await;
    let first = served.raw(wire(CHAT, "", &ask("put")).as_bytes()).await;
    shelf.started.wait_open().await;
    let refused = send(&served, &ask("put"), &[]).await;
    refused.assert_error(503, "server.overloaded");
    shelf.done.open();
    let again = [("x-stainless-retry-count", "1")];
    let mut reply = send(&served, &ask("put"), &again).await;
    while reply.status == 503 {
        reply = send(&served, &ask("put"), &again).await;
    }
    assert_eq!(reply.status, 200, "{reply:#?}");
    assert_eq!(shelf.puts(), 2);
    drop(first);
}
