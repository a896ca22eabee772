//! A tool that is switched off is found, and nothing else is done in its place.

use serde_json::{Value, json};

use super::support::{World, scene_line};

const STORE: &str = r#"
name = "Store"
description = "Books what enters and leaves the store."
examples = [
    { say = "Put 3 crates of lemons on the shelf", tool = "add_goods" },
    { say = "Metti 3 casse di limoni sullo scaffale", tool = "add_goods" },
    { say = "Put 3 crates of lemons in the bin", tool = "discard_goods" },
    { say = "Metti 3 casse di limoni nel cestino", tool = "discard_goods" },
    { say = "How many crates of lemons are there?", tool = "count_goods" },
]
[[tools]]
name = "add_goods"
description = "Puts goods on a shelf."
effect = "write"
parameters.required = ["goods"]
parameters.properties = { goods = { type = "string", description = "How much of what" } }
[[tools]]
name = "discard_goods"
description = "Throws goods away."
effect = "write"
parameters.required = ["goods"]
parameters.properties = { goods = { type = "string", description = "How much of what" } }
[[tools]]
name = "count_goods"
description = "Counts goods."
effect = "read"
parameters.required = ["goods"]
parameters.properties = { goods = { type = "string", description = "What" } }
"#;

/// A world whose planner is offered all tools of the store but one, and the line about that one.
fn without(tool: &str) -> (World, String) {
    let mut world = World::of(&[STORE]);
    let mut off = world.scenes[0].clone();
    let is_of = |value: &Value, field: &str| value[field] == tool;
    for (scene, keep) in [(&mut world.scenes[0], false), (&mut off, true)] {
        scene["tools"].as_array_mut().unwrap().retain(|one| is_of(one, "name") == keep);
        scene["examples"].as_array_mut().unwrap().retain(|one| is_of(one, "tool") == keep);
    }
    (world, format!("These tools are switched off now.\n{}", scene_line(&off)))
}

fn planned(tool: &str, words: &str) -> Value {
    let (world, off) = without(tool);
    world.planned(words, &[("switched_off", &off)], json!({"type": "object"}))
}

#[test]
fn no_other_tool_takes_the_place_of_one_that_is_switched_off() {
    for (off, words) in [
        ("add_goods", "Put 3 crates of lemons on the shelf"),
        ("add_goods", "Please put 5 crates of apples on the shelf"),
        ("add_goods", "Metti 5 casse di mele sullo scaffale"),
        ("discard_goods", "Put 4 crates of lemons in the bin"),
        ("count_goods", "How many crates of lemons are there?"),
    ] {
        let plan = planned(off, words);
        assert_eq!(plan["steps"], json!([]), "{words}: {plan:#}");
        assert_eq!(plan["needs_execution"], false, "{words}: {plan:#}");
        assert_eq!((&plan["unserved"], &plan["unavailable"]), (&json!([words]), &json!([words])), "{plan:#}");
        assert_eq!(plan.get("answer"), None, "the run says it: {plan:#}");
    }
}

#[test]
fn what_else_is_asked_for_is_planned() {
    let plan =
        planned("add_goods", "How many crates of lemons are there? Put 3 crates of apples on the shelf");
    let tools: Vec<&Value> =
        plan["steps"].as_array().unwrap().iter().map(|step| &step["expected_tools"]).collect();
    assert_eq!(tools, [&json!(["count_goods"])], "{plan:#}");
    assert_eq!(plan["unavailable"], json!(["Put 3 crates of apples on the shelf"]), "{plan:#}");
    assert_eq!(plan["unserved"], plan["unavailable"]);
    for words in ["Put 4 crates of lemons in the bin", "Metti 4 casse di limoni nel cestino"] {
        let plan = planned("add_goods", words);
        assert_eq!(plan["steps"][0]["expected_tools"], json!(["discard_goods"]), "{plan:#}");
        assert_eq!(plan.get("unavailable"), None, "{plan:#}");
    }
}
