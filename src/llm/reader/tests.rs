use proptest::prelude::*;
use serde_json::json;

use super::*;

const TOOL: &str = "CreateExecutionPlan";

fn text(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

fn calls(calls: &[(&str, &str)]) -> Reply {
    let call = |(name, arguments): &(&str, &str)| ReplyCall {
        id: "same".into(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Reply { calls: calls.iter().map(call).collect(), ..Reply::default() }
}

fn tolerantly(reply: &Reply) -> Result<Value, String> {
    read(reply, TOOL, ReaderMode::Tolerant).map_err(|problems| problems[0].code.clone())
}

fn assert_means(reply: &Reply, meant: &Value) {
    assert_eq!(tolerantly(reply).as_ref(), Ok(meant), "{reply:?}");
}

fn assert_problem(reply: &Reply, code: &str) {
    assert_eq!(tolerantly(reply), Err(code.to_owned()), "{reply:?}");
}

/// Every way in which real servers and models were seen to wrap the arguments.
fn wrappings(arguments: &Value) -> Vec<Reply> {
    let plain = arguments.to_string();
    let pretty = serde_json::to_string_pretty(arguments).unwrap();
    let encoded = Value::String(plain.clone()).to_string();
    let call = json!({"name": TOOL, "arguments": arguments}).to_string();
    vec![
        calls(&[(TOOL, &plain)]),
        calls(&[("functions.CreateExecutionPlan", &pretty)]),
        calls(&[("make_plan", &plain)]),
        calls(&[(TOOL, &plain), (TOOL, &pretty)]),
        calls(&[("GetWeather", r#"{"city": "Milan"}"#), (TOOL, &plain)]),
        calls(&[(TOOL, &encoded)]),
        calls(&[(TOOL, &call)]),
        calls(&[(TOOL, &format!("```json\n{plain}\n```"))]),
        Reply { text: "I will now plan.".into(), ..calls(&[(TOOL, &plain)]) },
        text(&plain),
        text(&encoded),
        text(&format!("Here is the plan:\n```json\n{pretty}\n```\nAnything else?")),
        text(&format!("The user (it's {{name}}) asks two things: {plain}")),
        text(&format!("<tool_call>\n{call}\n</tool_call>")),
        text(&format!("[TOOL_CALLS] [{call}]")),
        text(&json!({"type": "function", "function": {"name": TOOL, "arguments": plain}}).to_string()),
        text(
            &json!({"tool_calls": [{"id": "1", "function": {"name": TOOL, "arguments": arguments}}]})
                .to_string(),
        ),
        text(&json!({TOOL: arguments}).to_string()),
        text(&format!("{TOOL}({plain})")),
        text(&format!("<think>Perhaps {{\"a\": 1}}?</think>{plain}")),
        text(&format!("{plain}\n\nAgain: {pretty}")),
        text(&format!("{plain}}}")),
    ]
}

#[test]
fn a_plan_is_read_from_every_wrapping() {
    let plan = json!({"needs_execution": true, "reasoning": "it's \"both\" {x}\n", "steps": [
        {"step_number": 1, "scene_name": "Weather", "depends_on_step": null, "expected_tools": []}]});
    for reply in wrappings(&plan) {
        assert_means(&reply, &plan);
    }
}

#[test]
fn almost_json_is_read_where_its_meaning_is_plain() {
    let plan = json!({"needs_execution": false, "steps": []});
    assert_means(&text("{'needs_execution': False, 'steps': [],}"), &plan);
    assert_means(&calls(&[(TOOL, "{needs_execution: false, // none\n steps: [],}")]), &plan);
}

#[test]
fn truncated_json_is_neither_completed_nor_used() {
    let cut = r#"{"needs_execution": true, "steps": [{"step_number": 1, "scene_name": "Weather"}, {"step"#;
    for reply in [
        calls(&[(TOOL, cut)]),
        text(cut),
        text(&format!("```json\n{cut}")),
        text(&format!("<tool_call>{{\"name\": \"{TOOL}\", \"arguments\": {cut}")),
        text(r#"{"step_number": 1, "scene_name": "Weather"}"#).tap_cut(),
        text(r#""needs_execution": true, "steps": [{"step_number": 1}]}"#),
        calls(&[(TOOL, r#"{"a": 1}"#), (TOOL, r#"{"a": 1"#)]),
    ] {
        assert_problem(&reply, "reply.truncated");
    }
    let limited = Reply { finish_reason: Some("length".into()), ..text(cut) };
    let problems = read(&limited, TOOL, ReaderMode::Tolerant).unwrap_err();
    assert!(problems[0].message.contains("limit of tokens"), "{problems:?}");
}

trait TapCut {
    fn tap_cut(self) -> Self;
}

impl TapCut for Reply {
    /// Loses the last byte.
    fn tap_cut(mut self) -> Self {
        self.text.pop();
        self
    }
}

#[test]
fn several_answers_are_no_answer() {
    for reply in [
        text(r#"Either {"a": 1} or {"a": 2}"#),
        text(r#"{"a": 1} or rather {"a": }"#),
        calls(&[(TOOL, r#"{"a": 1}"#), (TOOL, r#"{"a": 2}"#)]),
        calls(&[("x", r#"{"a": 1}"#), ("y", r#"{"a": 2}"#)]),
    ] {
        assert_problem(&reply, "reply.ambiguous");
    }
}

#[test]
fn missing_json_and_json_without_an_object_are_different_problems() {
    assert_problem(&text("I would look up the weather."), "reply.no_json");
    assert_problem(&text(""), "reply.no_json");
    assert_problem(&text("<think>{\"a\": 1}"), "reply.no_json");
    assert_problem(&calls(&[(TOOL, "")]), "reply.no_json");
    assert_problem(&calls(&[(TOOL, "42")]), "reply.not_an_object");
    assert_problem(&calls(&[(TOOL, r#"{"a": nonsense}"#)]), "reply.invalid_json");
}

#[test]
fn json_in_the_text_replaces_a_call_without_arguments() {
    let reply = Reply { text: r#"{"a": 1}"#.into(), ..calls(&[(TOOL, "")]) };
    assert_means(&reply, &json!({"a": 1}));
}

#[test]
fn strict_reading_takes_only_the_named_first_call() {
    let strictly = |reply: &Reply| read(reply, TOOL, ReaderMode::Strict).map_err(|p| p[0].code.clone());
    assert_eq!(strictly(&calls(&[(TOOL, r#"{"a": 1}"#)])), Ok(json!({"a": 1})));
    assert_eq!(strictly(&calls(&[("x", r#"{"a": 1}"#)])), Err("reply.wrong_tool".into()));
    assert_eq!(strictly(&calls(&[(TOOL, "{\"a\": 1,}")])), Err("reply.invalid_json".into()));
    assert_eq!(strictly(&text(r#"{"a": 1}"#)), Err("reply.no_json".into()));
}

#[test]
fn calls_written_as_text_are_found_if_they_name_an_offered_function() {
    let written = "Sure!\n<tool_call>{\"name\": \"get_user_name\", \"arguments\": {\"user\": \"k\"}}</tool_call>\n\
                   {\"name\": \"unknown\", \"arguments\": {}} {\"user\": \"k\"}";
    let found = calls_in_text(written, &["get_user_name"]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].arguments.as_str()), ("get_user_name", r#"{"user":"k"}"#));
    assert!(calls_in_text("It is 21 °C in Milan.", &["get_user_name"]).is_empty());
    assert!(calls_in_text("{\"name\": \"get_user_name\", \"arguments\": {", &["get_user_name"]).is_empty());
}

#[test]
fn arguments_written_as_text_after_the_name_are_a_call() {
    for written in [
        "functions.get_user_name: {&#34;user&#34;:&#34;k&#34;}",
        "functions.get_user_name:\n{\"user\": \"k\"}",
        "get_user_name({\"user\": \"k\"})",
    ] {
        let found = calls_in_text(written, &["get_user_name"]);
        assert_eq!(found.len(), 1, "{written}");
        assert_eq!(found[0].arguments, r#"{"user":"k"}"#);
    }
    for (written, arguments) in
        [("functions.get_user_name:", ""), ("functions.get_user_name: {&#34;user&#34; k}", "{\"user\" k}")]
    {
        assert_eq!(calls_in_text(written, &["get_user_name"])[0].arguments, arguments);
    }
    for words in [
        "get_user_name:",
        "get_user_name: nobody",
        "The result of get_user_name: {}",
        "find_user: {\"user\": \"k\"}",
    ] {
        assert!(calls_in_text(words, &["get_user_name"]).is_empty(), "{words}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        ".{0,12}".prop_map(Value::String),
        "[\"'{}\\[\\]\\\\:,/\n` a]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-z_]{2,8}", json_value(), 1..5).prop_map(|m| json!(m))
}

proptest! {
    #[test]
    fn an_object_is_read_back_equal_from_every_wrapping(arguments in object()) {
        for reply in wrappings(&arguments) {
            let understood = tolerantly(&reply);
            prop_assert_eq!(understood.as_ref(), Ok(&arguments), "{:?}", reply);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(any in ".{0,200}", almost in "[{}\\[\\]\"':,/*\\\\a1 \n-]{0,80}") {
        for given in [&any, &almost] {
            let _ = tolerantly(&text(given));
            let _ = tolerantly(&calls(&[(TOOL, given)]));
            let _ = calls_in_text(given, &[TOOL]);
            let _ = parse::parse(given);
        }
    }

    #[test]
    fn a_reply_cut_anywhere_is_a_problem(arguments in object(), at in 0.0..1.0_f64) {
        let whole = arguments.to_string();
        let mut end = 1 + ((whole.len() - 1) as f64 * at) as usize;
        while !whole.is_char_boundary(end) { end -= 1; }
        prop_assume!(end > 0 && end < whole.len());
        prop_assert!(tolerantly(&text(&whole[..end])).is_err());
        prop_assert!(tolerantly(&calls(&[(TOOL, &whole[..end])])).is_err());
    }
}
