use std::collections::BTreeMap;

use crate::scene::{LoadedScenes, SceneFolder, SceneLoader};
use crate::tools::NativeTools;

/// A scene with this tool in Python, a table, and this `tools.py`.
fn load(tool: &str, file: Option<&str>) -> LoadedScenes {
    let scene = format!(
        r#"name = "Shop"
description = "A shop."
instructions = "Call the tools."
examples = [{{ say = "What is a lamp?" }}]
[[tables]]
name = "items"
description = "Items."
key = ["sku"]
columns = [{{ name = "sku", type = "text" }}, {{ name = "price", type = "integer" }}]
[[tools]]
name = "GetPrice"
description = "Tells what an item costs."
kind = "python"
{tool}
[tools.parameters]
type = "object"
required = ["item"]
properties = {{ item = {{ type = "string" }}, from = {{ type = "string" }} }}
"#
    );
    let mut files = BTreeMap::from([("scene.toml".to_owned(), scene.into_bytes())]);
    files.extend(file.map(|text| ("tools.py".to_owned(), text.as_bytes().to_vec())));
    let folder = SceneFolder { label: "shop".to_owned(), files };
    SceneLoader::new(&NativeTools::new())
        .modules(crate::sandbox::read_module_here)
        .load(vec![vec![folder]], &BTreeMap::new())
}

const READ: &str = "effect = \"read\"\nhost = [\"tables.find\"]";

const GOOD: &str =
    "import math\n\ndef get_price(item, from_=None):\n    return tables.find(\"items\", {\"sku\": item})\n";

#[test]
fn tool_in_python_is_a_tool_and_its_definition_has_the_code() {
    let loaded = load(READ, Some(GOOD));
    assert!(loaded.faults.is_empty(), "{:#?}", loaded.faults);
    let source = &loaded.scenes[0].tools[0].source;
    assert_eq!(source["python"]["function"], "get_price");
    let changed = load(READ, Some(&GOOD.replace("\"items\"", "\"sales\"")));
    assert_ne!(&changed.scenes[0].tools[0].source, source);
    let named = "effect = \"read\"\nfunction = \"price\"\nhost = [\"tables.find\"]";
    assert!(!load(named, Some(&GOOD.replace("get_price", "price"))).has_errors());
    let writes = "effect = \"write\"\nrepeat = \"key\"\nhost = [\"tables.find\", \"tables.update\"]";
    assert!(!load(writes, Some(GOOD)).has_errors());
}

#[test]
fn faults_say_where_what_and_what_to_do() {
    let write = READ.replace("read", "write");
    let cases = [
        (READ, None),
        (READ, Some("def get_price(item, from_=None):\n    return (1,\n")),
        (READ, Some("def get_price(item, from_=None):\n    yield item\n")),
        (
            READ,
            Some(
                "import os\nfrom json import loads\nimport sys as system\n\ndef get_price(item, from_=None):\n    return 1\n",
            ),
        ),
        (READ, Some("def get_prices(item):\n    return 1\n")),
        (READ, Some("\nasync def get_price(item, from_=None):\n    return 1\n")),
        (READ, Some("x = 1\n\ndef get_price(item, from_, size, *rest):\n    return tables.drop(item)\n")),
        (
            READ,
            Some(
                "def get_price(item, from_=None):\n    tables.insert(\"items\", {})\n    return tool.refuse(\"no\")\n",
            ),
        ),
        (&write, Some(GOOD)),
        (
            "effect = \"read\"\nhost = [\"tables.fin\", \"open\", \"tables.delete\", \"tool.refuse\"]\nfunction = \"get price\"",
            Some(GOOD),
        ),
        ("effect = \"read\"\nnative = \"x\"", Some(GOOD)),
    ];
    let told = cases.map(|(tool, file)| {
        let loaded = load(tool, file);
        assert!(loaded.has_errors() && loaded.scenes.is_empty(), "{tool} {file:?}");
        loaded.faults.iter().map(|fault| format!("{fault}\n")).collect::<String>()
    });
    insta::assert_snapshot!(told.join("---\n"));
}

#[test]
fn requests_that_cannot_be_made_are_faults() {
    let tool = format!(
        "{READ}\n[tools.requests.rate]\nurl = \"https://example.com/{{day}}\"\nmethod = \"POST\"\n\
         parameters = [\"a day\"]\n"
    );
    let file =
        "def get_price(item, from_=None):\n    return [requests.rate(day=item), requests.rates(item)]\n";
    let told: Vec<String> = load(&tool, Some(file)).faults.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    shop/scene.toml:17: error[scene.http_placeholder]: {day} is not among the tool's parameters
      declare it in `parameters`, or use one of: a day
    shop/scene.toml:18: error[scene.unknown_key]: `tools[0].requests.rate.method` is not a key of a scene
      the keys here are: parameters, url, query, headers, result, max_response_bytes, on_status
    shop/scene.toml:19: error[scene.python_request]: "a day" is not a name in Python
      use letters, digits and _
    shop/tools.py:2: error[scene.python_host]: no tool declares `requests.rates`
      declare it as [tools.requests.rates] of the tool
    "#);
}

#[test]
fn keys_and_files_of_python_without_a_tool_in_it_are_reported() {
    let loaded = load("effect = \"read\"", Some("x = 1\n"));
    assert!(loaded.has_errors());
    let scene = "name = \"S\"\ndescription = \"d\"\ninstructions = \"i\"\nexamples = [{ say = \"s\" }]\n[[tools]]\n\
                 name = \"T\"\ndescription = \"d\"\neffect = \"read\"\nfunction = \"f\"\nhost = []\n\
                 http = { url = \"https://example.com\" }\n";
    let files = BTreeMap::from([
        ("scene.toml".to_owned(), scene.as_bytes().to_vec()),
        ("tools.py".to_owned(), b"x = 1".to_vec()),
    ]);
    let folder = SceneFolder { label: "s".to_owned(), files };
    let loaded = SceneLoader::new(&NativeTools::new())
        .modules(crate::sandbox::read_module_here)
        .load(vec![vec![folder]], &BTreeMap::new());
    let told: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    s/scene.toml:9: error[scene.implementation]: `function` is a key of a tool in Python
      add kind = "python", or remove `function`
    s/scene.toml:10: error[scene.implementation]: `host` is a key of a tool in Python
      add kind = "python", or remove `host`
    s/tools.py: warning[scene.python_unused]: no tool of a scene here is in Python
      write kind = "python" in the tool of a scene that it is for, or remove tools.py
    "#);
}
