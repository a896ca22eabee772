use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::scene::{SceneFolder, SceneLoader, arguments};
use crate::tools::native as function;
use crate::tools::testing::context;

#[derive(Deserialize, JsonSchema)]
struct Request {
    request: String,
}

#[derive(Deserialize, JsonSchema)]
struct Found {
    /// The order's number.
    number: u32,
    hint: Option<String>,
}

const FILE: &str = r#"
name = "orders"
description = "Says where an order is."
inputs = ["number", "careful"]
entries = ["read", "ask"]
max_node_steps = 9

[[examples]]
say = "Where is it?"
path = ["ask", "look", "tell"]

[[invariants]]
before = ["ask", "look"]
[[invariants]]
excludes = ["nothing", "look"]

[[nodes]]
name = "read"
description = "Finds the number."
kind = "llm"
inputs = ["request"]
outputs = ["number"]
possible_next_nodes = ["ask", "nothing"]
template = "Which number is in {{ request }}?"
fallback = "read_fallback"
[nodes.output]
type = "object"
required = ["number"]
[nodes.output.properties.number]
type = "integer"
[[nodes.conditions]]
next = "ask"
value = "number"
exists = true

[[nodes]]
name = "nothing"
description = "Ends where no order is named."
kind = "condition"

[[nodes]]
name = "ask"
description = "Asks whether to look."
kind = "approval"
inputs = ["number"]
possible_next_nodes = ["look"]
[nodes.question]
en = "Look for {{ number }}?"
[nodes.when]
value = "careful"
is = true

[[nodes]]
name = "look"
description = "Looks the order up."
kind = "tool"
inputs = ["number"]
outputs = ["place"]
possible_next_nodes = ["tell"]
scene = "Store"
tool = "Get"
arguments = { id = "number" }
fixed = { deep = true }
results = { place = "/shelf/name" }

[[nodes]]
name = "tell"
description = "Tells it."
kind = "native"
native = "tell"
inputs = ["number"]
optional_inputs = ["hint", "place"]
outputs = ["text"]
timeout_ms = 700
[nodes.say]
en = "{{ text }}"
"#;

fn orders() -> FlowBuilder {
    let output =
        json!({"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}});
    Flow::builder("orders")
        .description("Says where an order is.")
        .inputs(&["number", "careful"])
        .example("Where is it?", &["ask", "look", "tell"])
        .entries(&["read", "ask"])
        .max_node_steps(9)
        .before("ask", "look")
        .excludes("nothing", &["look"])
        .node(
            Node::llm("read", "Finds the number.", "Which number is in {{ request }}?", output)
                .fallback(|said: Request, _| async move { Ok(json!({"number": said.request.len()})) })
                .next_if("ask", ValueTest::exists("number"))
                .next(&["nothing"]),
        )
        .node(Node::condition("nothing", "Ends where no order is named."))
        .node(
            Node::approval("ask", "Asks whether to look.")
                .inputs(&["number"])
                .question("en", "Look for {{ number }}?")
                .when(ValueTest::is("careful", true))
                .next(&["look"]),
        )
        .node(
            Node::tool("look", "Looks the order up.", "Store", "Get")
                .argument("id", "number")
                .fixed("deep", json!(true))
                .result("place", "/shelf/name")
                .next(&["tell"]),
        )
        .node(
            Node::native("tell", "Tells it.", |found: Found, _| async move {
                Ok(json!({"text": format!("{} {:?}", found.number, found.hint)}))
            })
            .optional_inputs(&["hint", "place"])
            .outputs(&["text"])
            .timeout_ms(700)
            .say("en", "{{ text }}"),
        )
}

/// The flow has a hint that nothing produces.
fn known() -> FlowBuilder {
    orders().inputs(&["hint"])
}

fn codes(faults: &[crate::scene::SceneFault]) -> Vec<&str> {
    faults.iter().map(|fault| fault.code.as_str()).collect()
}

#[test]
fn built_flow_equals_the_one_of_a_file() {
    let store = r#"
name = "Store"
description = "Keeps orders."
instructions = "Look."
examples = [{ say = "Where?", tool = "Get" }]
[[tools]]
name = "Get"
description = "Gets one."
effect = "read"
native = "tell"
[tools.parameters]
type = "object"
[tools.parameters.properties]
id = { type = "integer" }
deep = { type = "boolean" }
"#;
    let nothing = || function(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    let natives = NativeTools::new().with("tell", nothing()).with("read_fallback", nothing());
    let file = FILE.replace("[\"number\", \"careful\"]", "[\"number\", \"careful\", \"hint\"]");
    let files = [("scene.toml", store), ("flow.toml", file.as_str())];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into();
    let folder = SceneFolder { label: "s".to_owned(), files };
    let loaded = SceneLoader::new(&natives).load(vec![vec![folder]], &BTreeMap::new());
    assert_eq!(loaded.faults, []);
    let read = loaded.scenes.iter().find(|scene| scene.name == "orders").unwrap();
    let built = known().build().unwrap();
    assert_eq!(built.flow, read.flow);
    let tools = |scene: &Scene| {
        let tools = scene.tools.iter().map(|tool| (tool.name.clone(), tool.effect, tool.timeout_ms));
        tools.collect::<Vec<_>>()
    };
    assert_eq!(tools(&built), tools(read));
}

#[tokio::test]
async fn functions_get_arguments_of_their_types() {
    let scene = known().build().unwrap();
    let tell = scene.tool("tell").unwrap();
    let given =
        arguments::check(tool_of(&scene, "tell"), r#"{"number": 7, "hint": null, "place": "x"}"#).unwrap();
    assert_eq!(tell.tool.call(context(), given).await, Ok(json!({"text": "7 None"})));
    let wrong = arguments::check(tell, r#"{"number": "seven"}"#).unwrap_err();
    assert!(wrong.message.contains("/number must be an integer"), "{}", wrong.message);
    let fallback = tool_of(&scene, "read_fallback");
    assert_eq!(fallback.tool.call(context(), json!({"request": "four"})).await, Ok(json!({"number": 4})));
}

fn tool_of<'a>(scene: &'a Scene, name: &str) -> &'a SceneTool {
    scene.tool(name).unwrap()
}

#[test]
fn build_reports_every_fault_with_the_name_of_the_flow() {
    let faults = orders()
        .node(Node::condition("tell_twice", "").fixed("x", json!(1)).next(&["tell", "nowhere"]))
        .node(Node::approval("sure", "Asks.").question("english", "{{ x").next(&["tell"]))
        .node(Node::llm("write", "Writes.", "{{ x", json!({"type": "object"})).outputs(&["words"]))
        .node(Node::native("read_fallback", "x", |_: Request, _| async { Ok(Value::Null) }).timeout_ms(0))
        .build()
        .err()
        .unwrap()
        .0;
    assert_eq!(
        codes(&faults),
        [
            "scene.unknown_key", "scene.say_language", "scene.say_template", "scene.flow.template",
            "scene.flow.output", "flow.no_description", "flow.unknown_node", "scene.duplicate_tool",
            "scene.bound",
        ]
    );
    assert!(
        faults.iter().all(|fault| fault.file == "flow \"orders\"" && fault.line.is_none()),
        "{faults:#?}"
    );
    let faults = orders().build().err().unwrap().0;
    assert_eq!(codes(&faults), ["flow.no_producer"], "nothing produces the hint");
    assert_eq!(codes(&Flow::builder("no name").build().err().unwrap().0)[..2], ["scene.name", "scene.empty"]);
}

#[test]
fn tools_that_a_built_flow_calls_are_checked_once_all_scenes_are_known() {
    let get = |name: &str| {
        let nothing = function(|_: Value, _: ToolContext| async { Ok(Value::Null) });
        let parameters = json!({"type": "object", "properties": {"id": {}, "deep": {}}});
        let tool = SceneTool::dynamic(name, "Gets one.", Effect::Read, parameters, nothing);
        Scene::builder("Store")
            .description("x")
            .instructions("x")
            .example("x", name)
            .tool(tool)
            .build()
            .unwrap()
    };
    let natives = NativeTools::new();
    let load = |scenes| SceneLoader::new(&natives).built(scenes).load(Vec::new(), &BTreeMap::new());
    let loaded = load(vec![get("Get"), known().build().unwrap()]);
    assert_eq!((loaded.faults.len(), loaded.scenes.len()), (0, 2), "{:#?}", loaded.faults);
    let loaded = load(vec![get("Find"), known().build().unwrap()]);
    let [fault] = &loaded.faults[..] else { panic!("{:#?}", loaded.faults) };
    assert_eq!((fault.code.as_str(), fault.file.as_str()), ("flow.unknown_tool", "flow \"orders\""));
    assert_eq!(loaded.scenes.len(), 1, "the flow is unusable");
    let twice = load(vec![get("Get"), known().build().unwrap(), known().build().unwrap()]);
    assert_eq!(codes(&twice.faults), ["scene.duplicate_scene"]);
}
