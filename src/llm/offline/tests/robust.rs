//! Every input gets a reply.

use proptest::prelude::*;

use super::support::{World, send};
use crate::llm::{Message, Purpose, ToolChoice, ToolSpec, sections};

fn purposes() -> [Purpose; 5] {
    [Purpose::Plan, Purpose::Scene, Purpose::Continuation, Purpose::Answer, Purpose::Summary]
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "do_it".into(),
        description: "Does it".into(),
        parameters: serde_json::json!({"type": "object", "required": ["when"], "properties": {
            "when": {"type": "string", "format": "date"}, "who": {"type": "string"}, "n": {"type": "integer"}, "x": 3,
            "kind": {"enum": ["a", 1, null]}, "deep": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"t": {"type": "array"}}}}}}}).into(),
        strict: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_text_in_any_section_gets_a_reply(words in "\\PC{0,200}", junk in "[a-z{}\\[\\]\":,0-9 \n]{0,80}") {
        for purpose in purposes() {
            let mut text = String::new();
            for name in ["now", "language", "scenes", "conversation", "pending", "executed", "expected_tools", "earlier", "summary", "turns"] {
                sections::push(&mut text, name, &junk);
            }
            sections::push(&mut text, "purpose", &words);
            sections::push(&mut text, "request", &words);
            let messages = vec![Message::User { text }, Message::Tool { call_id: "x".into(), text: junk.clone() }];
            send(purpose, messages.clone(), vec![tool()], ToolChoice::Auto);
            send(purpose, messages[..1].to_vec(), vec![tool()], ToolChoice::Auto);
            send(purpose, vec![Message::User { text: words.clone() }], Vec::new(), ToolChoice::None);
        }
        World::all().plan(&words);
        World::all().run(&words);
    }

    #[test]
    fn any_order_of_known_words_gets_a_valid_plan(parts in prop::collection::vec(prop::sample::select(vec![
        "meteo", "a", "Milano", "e", "poi", "ferie", "dal", "15", "al", "17", "giugno", ",", ".", "prima", "di", "dopo", "è", "\"", "alle", "20",
        "tavolo", "per", "due", "prenota", "ma", "and", "then", "from", "to", "ticket", ":", "?", "'", "sala", "as", "well", "after", "before", "June", "-"
    ]), 0..25)) {
        let mut world = World::all();
        world.run("Che tempo fa a Milano?");
        world.run(&parts.join(" "));
    }
}

#[test]
fn room_named_twice_without_a_time_is_prepared_once() {
    let mut world = World::all();
    world.run("Che tempo fa a Milano?");
    let request =
        "sala sala dopo Milano e Milano giugno dopo poi \" ma ferie e ma dopo a alle alle al al prenota";
    let prepared = world.run(request).prepared;
    assert_eq!(prepared.iter().filter(|(tool, _)| tool == "book_room").count(), 1, "{prepared:?}");
}

#[test]
fn single_possessive_word_gets_a_reply() {
    for words in ["mia", "my", "il mio"] {
        World::all().run(words);
    }
}

#[test]
fn request_without_messages_gets_a_reply() {
    for purpose in purposes() {
        send(purpose, Vec::new(), Vec::new(), ToolChoice::None);
    }
}

#[test]
fn same_request_gets_the_same_reply() {
    let world = World::all();
    let words = "Prima il meteo a Roma, poi prenota un tavolo per due da Gino domani alle 20";
    assert_eq!(world.plan(words), world.plan(words));
}

#[test]
fn very_long_request_gets_a_bounded_plan() {
    let world = World::all();
    let plan = world.plan(&"Che tempo fa a Milano e poi ".repeat(5000));
    assert!(plan["steps"].as_array().unwrap().len() <= 10);
}
