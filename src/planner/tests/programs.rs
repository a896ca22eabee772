//! The prompt for programs, and the names that Python does not take.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::planner::program_functions::{arguments, function, stub};
use crate::run::Effect;
use crate::scene::{Scene, SceneTool};
use crate::tools::{ToolContext, native};

fn scene() -> Scene {
    let does = || native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    let read = json!({"type": "object", "required": ["to"], "properties": {
        "from": {"type": "string", "format": "date", "description": "The first day"},
        "to": {"type": "string", "format": "date", "description": "The last \"\"\"day\"\"\""},
        "kind": {"enum": ["sale", "return", null, true]},
        "a-b": {"type": "number"}, "a_b": {"type": ["integer", "null"]}}});
    let write = json!({"type": "object", "required": ["items"], "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"},
            "quantity": {"type": "integer"}}}}}});
    Scene::builder("Shop")
        .description("A shop's\nsales.")
        .instructions("Do it.")
        .example("sell", "Sell")
        .tool(SceneTool::dynamic("Sales", "Lists sales.", Effect::Read, read, does()))
        .tool(SceneTool::dynamic("Sell", "Sells items.", Effect::Write, write, does()))
        .build()
        .unwrap()
}

#[test]
fn tools_are_stubs_in_python() {
    let scene = scene();
    let tools: Vec<&SceneTool> = scene.tools.iter().collect();
    insta::assert_snapshot!(stub(&scene, &tools), @r#"
    class Shop:  # A shop's sales.
        def Sales(to: str(date), a_b: float | None = None, a_b_: int | None = None, from_: str(date) | None = None, kind: Literal["sale", "return", None, True] | None = None) -> Any:
            """Lists sales.
            to: The last '''day'''
            from_: The first day
            """
        def Sell(items: list[{"name": str, "quantity": int}]) -> Any:  # changes something
            """Sells items.
            """
    "#);
}

#[test]
fn arguments_get_the_names_of_the_schema() {
    let scene = scene();
    let sales = scene.tool("Sales").unwrap();
    assert_eq!(function(&scene, sales).parameters, ["to", "a_b", "a_b_", "from_", "kind"]);
    let written = json!({"to": null, "from_": "2026-05-04", "kind": null, "a_b_": 2, "a_b": 1.5, "other": 1});
    let sent: BTreeMap<String, Value> = arguments(sales, written.as_object().unwrap()).into_iter().collect();
    let expected = json!({"to": null, "from": "2026-05-04", "a_b": 2, "a-b": 1.5, "other": 1});
    assert_eq!(json!(sent), expected);
}
