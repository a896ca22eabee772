//! Prompts that fit into the model's context window: the least important parts are cut first, and the prompt says what
//! was cut.
//!
//! The order: long results, to shorter and shorter beginnings; then the examples of scenes; then facts of the conversation,
//! from the last; then its oldest turns. Both have a share of their own, beyond which turns are summarised (`memory/`). The
//! request, the instructions and the schemas are never cut. If that does not suffice, the prompt is left as it is, and
//! the provider reports the limit of its model.

use serde_json::{Value, json};

use super::constraints::SWITCHED_OFF;
use crate::llm::{Message, Request, sections, tokens};
use crate::run::{Fault, FaultClass, RunState};

/// Bytes of a result that are kept, one after another until the prompt fits.
const RESULT_BYTES: [usize; 3] = [8000, 2000, 500];

/// The sections with one line of JSON per step, whose calls have results.
const WORK: [&str; 2] = ["executed", "earlier"];
/// The sections with one line of JSON per scene.
const SCENES: [&str; 4] = ["scenes", "shortlist", "not_allowed", SWITCHED_OFF];

/// The fault of a user's request that alone does not fit into the model's window.
pub fn unfit_request(state: &RunState) -> Option<Fault> {
    let max = u64::from(state.settings().prompt_tokens);
    let needed = tokens::text(state.request());
    (max > 0 && needed > max).then(|| {
        let message = format!(
            "the request has about {needed} tokens, and a prompt may have {max} (`context_window` less \
             `max_output_tokens` of the smallest model): shorten it, or configure a model with a larger window"
        );
        Fault::new("prompt.too_large", message).classed(FaultClass::BadData)
    })
}

/// The request, cut to at most `max` tokens where that is possible; 0 does not limit it.
pub(super) fn fit_into_window(request: Request, max: u32) -> Request {
    let fits = |request: &Request| tokens::request(request) <= u64::from(max);
    if max == 0 || fits(&request) {
        return request;
    }
    let mut cut = request.clone();
    for bytes in RESULT_BYTES {
        shorten_results(&mut cut, bytes);
        if fits(&cut) {
            return cut;
        }
    }
    drop_examples(&mut cut);
    while !fits(&cut) && drop_last_fact(&mut cut) {}
    // A dropped turn may be what the user asks about, and the estimate is on the high side: turns are dropped only if
    // the prompt exceeds the window by a sixteenth.
    let surely_exceeds = |request: &Request| tokens::request(request) * 15 / 16 > u64::from(max);
    while surely_exceeds(&cut) {
        if !drop_oldest_turn(&mut cut) {
            return request;
        }
    }
    cut
}

/// Rewrites each line of a section of the first user message that is a JSON object.
fn rewrite(request: &mut Request, name: &str, mut change: impl FnMut(&mut Value)) {
    let first = request.messages.iter_mut().find_map(|message| match message {
        Message::User { text } => Some(text),
        _ => None,
    });
    let Some(text) = first else { return };
    let Some(body) = sections::get(text, name) else { return };
    let lines = body.lines().map(|line| match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            change(&mut value);
            value.to_string()
        }
        Err(_) => line.to_owned(),
    });
    sections::replace(text, name, &lines.collect::<Vec<_>>().join("\n"));
}

/// Shortens results of more than `max` bytes of JSON.
fn shorten_results(request: &mut Request, max: usize) {
    for name in WORK {
        rewrite(request, name, |step| {
            let calls = step["calls"].as_array_mut().into_iter().flatten();
            calls.for_each(|call| shorten(call, max));
        });
    }
    for message in &mut request.messages {
        if let Message::Tool { text, .. } = message
            && let Ok(mut outcome) = serde_json::from_str::<Value>(text)
        {
            shorten(&mut outcome, max);
            *text = outcome.to_string();
        }
    }
}

fn shorten(outcome: &mut Value, max: usize) {
    let Some(result) = outcome.get_mut("result") else { return };
    let whole = match result.get("beginning").and_then(Value::as_str) {
        Some(beginning) => beginning.to_owned(),
        None => result.to_string(),
    };
    if whole.len() > max {
        let bytes = result["bytes"].as_u64().unwrap_or(whole.len() as u64);
        let end = whole.floor_char_boundary(max);
        *result = json!({"cut": true, "bytes": bytes, "beginning": &whole[..end]});
    }
}

fn drop_examples(request: &mut Request) {
    for name in SCENES {
        rewrite(request, name, |scene| {
            let tools = scene["tools"].as_array_mut().into_iter().flatten();
            tools.for_each(|tool| tool["examples"] = json!([]));
            scene["examples"] = json!([]);
        });
    }
}

/// Drops the last fact of their section; false if there is none. Its first line explains what facts are.
fn drop_last_fact(request: &mut Request) -> bool {
    let first = request.messages.iter_mut().find_map(|message| match message {
        Message::User { text } => Some(text),
        _ => None,
    });
    let Some(text) = first else { return false };
    let Some(body) = sections::get(text, "facts") else { return false };
    let lines: Vec<&str> = body.lines().collect();
    let Some((_, kept)) = lines.split_last().filter(|(_, kept)| !kept.is_empty()) else { return false };
    sections::replace(text, "facts", &kept.join("\n"));
    true
}

/// Drops the oldest turn of the conversation and counts it in `left_out`; false if only the last one is there.
fn drop_oldest_turn(request: &mut Request) -> bool {
    let mut dropped = false;
    rewrite(request, "conversation", |conversation| {
        let Some(turns) = conversation["turns"].as_array_mut().filter(|turns| turns.len() > 1) else {
            return;
        };
        turns.remove(0);
        dropped = true;
        conversation["left_out"] = json!(conversation["left_out"].as_u64().unwrap_or(0) + 1);
    });
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{Purpose, ToolChoice};

    fn request(data: &str, results: &[&str]) -> Request {
        let tool = |text: &&str| Message::Tool { call_id: "call_1".to_owned(), text: (*text).to_owned() };
        let mut messages =
            vec![Message::System { text: "Plan.".to_owned() }, Message::User { text: data.to_owned() }];
        messages.extend(results.iter().map(tool));
        let (tools, choice) = (Vec::new(), ToolChoice::None);
        Request {
            purpose: Purpose::Scene,
            messages,
            tools,
            choice,
            temperature: None,
            max_output_tokens: None,
        }
    }

    fn data() -> String {
        let mut data = String::new();
        sections::push(&mut data, "request", "What else?");
        data
    }

    #[test]
    fn prompt_that_fits_is_unchanged() {
        let whole = request(&data(), &[]);
        assert_eq!(fit_into_window(whole.clone(), 0), whole);
        assert_eq!(fit_into_window(whole.clone(), 10_000), whole);
    }

    #[test]
    fn oldest_turns_are_left_out_and_counted_until_the_prompt_fits() {
        let turn = |n: usize| json!({"request": format!("turn {n}"), "answer": "x".repeat(400)});
        let turns: Vec<Value> = (1..=5).map(turn).collect();
        let mut text = data();
        sections::push(&mut text, "conversation", &json!({"summary": "Before.", "turns": turns}).to_string());
        let cut = fit_into_window(request(&text, &[]), 400);
        assert!(tokens::request(&cut) * 15 / 16 <= 400);
        let Message::User { text } = &cut.messages[1] else { panic!("{cut:?}") };
        let kept: Value = serde_json::from_str(&sections::get(text, "conversation").unwrap()).unwrap();
        assert_eq!((&kept["summary"], &kept["left_out"]), (&json!("Before."), &json!(2)));
        assert_eq!(kept["turns"][0]["request"], "turn 3");
        assert!(text.contains("What else?"));
    }

    #[test]
    fn facts_are_left_out_from_the_last_and_before_turns() {
        let facts: Vec<String> = (1..=9).map(|n| json!({"claim": format!("fact {n}")}).to_string()).collect();
        let mut text = data();
        sections::push(&mut text, "facts", &format!("What is known.\n{}", facts.join("\n")));
        let whole = request(&text, &[]);
        let max = tokens::request(&whole) - 10;
        let cut = fit_into_window(whole, u32::try_from(max).unwrap());
        assert!(tokens::request(&cut) <= max);
        let Message::User { text } = &cut.messages[1] else { panic!("{cut:?}") };
        assert!(
            text.contains("What is known.") && text.contains("fact 1") && !text.contains("fact 9"),
            "{text}"
        );
        assert!(text.contains("What else?"));
    }

    #[test]
    fn examples_of_scenes_are_left_out_after_results() {
        let scene = json!({"scene": "Library", "tools": [{"name": "Find", "examples": ["x".repeat(4000)]}]});
        let mut text = String::new();
        sections::push(&mut text, "scenes", &scene.to_string());
        let cut = fit_into_window(request(&text, &[r#"{"outcome":"ok","result":"kept"}"#]), 400);
        assert!(tokens::request(&cut) * 15 / 16 <= 400);
        let Message::User { text } = &cut.messages[1] else { panic!("a user message") };
        assert!(text.contains("Find") && !text.contains("xxx"), "{text}");
        assert!(matches!(&cut.messages[2], Message::Tool { text, .. } if text.contains("kept")));
    }

    #[test]
    fn long_results_keep_their_beginning_and_their_size() {
        let long = json!({"outcome": "ok", "result": "é".repeat(20_000)}).to_string();
        let cut = fit_into_window(request(&data(), &[&long]), 1500);
        assert!(tokens::request(&cut) <= 1500);
        let Message::Tool { text, .. } = &cut.messages[2] else { panic!("a result") };
        let outcome: Value = serde_json::from_str(text).unwrap();
        assert_eq!((&outcome["outcome"], &outcome["result"]["cut"]), (&json!("ok"), &json!(true)));
        assert_eq!(outcome["result"]["bytes"], 40_002);
    }

    #[test]
    fn prompt_that_cannot_fit_is_not_cut() {
        let whole = request(&data(), &[]);
        assert_eq!(fit_into_window(whole.clone(), 20), whole);
    }
}
