//! The reference of `scene.toml` and its JSON Schema list exactly the keys and keywords that the loader knows.

use std::collections::{BTreeMap, BTreeSet};

use proscenium::scene::{FILE_SCHEMA, LoadedScenes, SceneFolder, SceneLoader};
use proscenium::tools::NativeTools;
use serde_json::Value;

use super::process::Workspace;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A scene with an unknown key in every table.
const UNKNOWN: &str = r#"
zzzzzzzz = 1
[[examples]]
zzzzzzzz = 1
[[tools]]
zzzzzzzz = 1
[tools.undo]
zzzzzzzz = 1
[tools.alternative]
zzzzzzzz = 1
[tools.expect]
zzzzzzzz = 1
[tools.cached]
zzzzzzzz = 1
[tools.http]
zzzzzzzz = 1
[tools.policies]
zzzzzzzz = 1
[tools.policies.timeout]
zzzzzzzz = 1
[tools.requests.rate]
zzzzzzzz = 1
[[tables]]
zzzzzzzz = 1
[[tables.columns]]
zzzzzzzz = 1
[tables.records]
zzzzzzzz = 1
"#;

/// A scene with an unknown keyword in every place of one.
const KEYWORDS: &str = r#"
approval = "zzzzzzzz"
confirm = "zzzzzzzz"
level = "zzzzzzzz"
[[tools]]
effect = "zzzzzzzz"
repeat = "zzzzzzzz"
kind = "zzzzzzzz"
approval = "zzzzzzzz"
[[tables]]
[[tables.columns]]
type = "zzzzzzzz"
filled = "zzzzzzzz"
"#;

type Keys = BTreeMap<String, BTreeSet<String>>;

fn load(text: &str) -> LoadedScenes {
    let files = BTreeMap::from([("scene.toml".to_owned(), text.as_bytes().to_vec())]);
    let folder = SceneFolder { label: "scene".to_owned(), files };
    SceneLoader::new(&NativeTools::new()).load(vec![vec![folder]], &BTreeMap::new())
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(|name| name.trim_matches(['`', '"', ' ']).to_owned()).collect()
}

/// The keys of each table, as the loader lists them for an unknown key.
fn loader_keys() -> Keys {
    let faults = load(UNKNOWN).faults;
    let unknown = faults.iter().filter(|fault| fault.code == "scene.unknown_key");
    let listed = unknown.map(|fault| {
        let table = fault.message.split_once("zzzzzzzz").unwrap().0.trim_start_matches('`');
        let table = match table {
            "" => "scene",
            "examples[0]." => "example",
            "tools[0]." => "tool",
            "tools[0].undo." => "undo",
            "tools[0].alternative." => "alternative",
            "tools[0].expect." => "expect",
            "tools[0].cached." => "cached",
            "tools[0].http." => "http",
            "tools[0].policies." => "policies",
            "tools[0].policies.timeout." => "policy",
            "tools[0].requests.rate." => "request",
            "tables[0]." => "table",
            "tables[0].columns[0]." => "column",
            "tables[0].records." => "records",
            other => panic!("{other}"),
        };
        let keys = fault.remedy.strip_prefix("the keys here are: ").unwrap();
        (table.to_owned(), names(keys.split(',')))
    });
    listed.collect()
}

fn schema() -> Value {
    serde_json::from_str(FILE_SCHEMA).unwrap()
}

/// The part of the schema for each table.
fn schema_tables(schema: &Value) -> BTreeMap<String, &Value> {
    let definitions = schema["definitions"].as_object().unwrap();
    let tables = definitions.iter().map(|(name, table)| (name.clone(), table));
    tables.chain([("scene".to_owned(), schema)]).collect()
}

#[test]
fn schema_and_reference_have_the_keys_of_the_loader() {
    let loader = loader_keys();
    assert_eq!(loader.len(), 14, "{loader:#?}");
    let schema = schema();
    let in_schema: Keys = schema_tables(&schema)
        .into_iter()
        .map(|(name, table)| {
            (name, names(table["properties"].as_object().unwrap().keys().map(String::as_str)))
        })
        .collect();
    assert_eq!(in_schema, loader);
    let reference = std::fs::read_to_string(format!("{REPOSITORY}/scenes/README.md")).unwrap();
    let mut documented = Keys::new();
    for section in reference.split("\n## ").skip(1) {
        let table = match section.lines().next().unwrap() {
            "The scene" => "scene",
            "Examples" => "example",
            "Tools" => "tool",
            "HTTP" => "http",
            "Request" => "request",
            "Undo" => "undo",
            "Alternative" => "alternative",
            "Expectations" => "expect",
            "Last result" => "cached",
            "Policies" => "policies",
            "Policy" => "policy",
            "Tables" => "table",
            "Column" => "column",
            "Records" => "records",
            _ => continue,
        };
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        documented.insert(table.to_owned(), rows.map(|(key, _)| key.to_owned()).collect());
    }
    assert_eq!(documented, loader);
}

#[test]
fn schema_has_the_keywords_and_required_keys_of_the_loader() {
    let schema = schema();
    let tables = schema_tables(&schema);
    let faults = load(KEYWORDS).faults;
    let places = [
        "approval",
        "confirm",
        "level",
        "tools[0].effect",
        "tools[0].repeat",
        "tools[0].kind",
        "tools[0].approval",
        "tables[0].columns[0].type",
        "tables[0].columns[0].filled",
    ];
    for place in places {
        let message = format!("`{place}` is \"zzzzzzzz\"");
        let fault = faults.iter().find(|fault| fault.message == message).unwrap();
        let words = fault.remedy.strip_prefix("write one of: ").unwrap();
        let (table, key) = match place.rsplit_once('.') {
            None => ("scene", place),
            Some((of, key)) => (if of.starts_with("tables") { "column" } else { "tool" }, key),
        };
        let listed = tables[table]["properties"][key]["enum"].as_array().unwrap();
        let listed = names(listed.iter().map(|word| word.as_str().unwrap()));
        assert_eq!(listed, names(words.split([',', ';']).flat_map(|word| word.split(" and "))), "{place}");
    }
    let missing: BTreeSet<String> = load(UNKNOWN)
        .faults
        .iter()
        .filter(|fault| fault.code == "scene.missing_key")
        .map(|fault| fault.message.split('`').nth(1).unwrap().to_owned())
        .collect();
    let prefixes = [
        ("scene", ""),
        ("example", "examples[0]."),
        ("tool", "tools[0]."),
        ("undo", "tools[0].undo."),
        ("alternative", "tools[0].alternative."),
        ("expect", "tools[0].expect."),
        ("cached", "tools[0].cached."),
        ("policies", "tools[0].policies."),
        ("policy", "tools[0].policies.timeout."),
        ("http", "tools[0].http."),
        ("request", "tools[0].requests.rate."),
        ("table", "tables[0]."),
        ("column", "tables[0].columns[0]."),
        ("records", "tables[0].records."),
    ];
    let required: BTreeSet<String> = prefixes
        .iter()
        .flat_map(|(table, prefix)| {
            let keys = tables[*table]["required"].as_array().into_iter().flatten();
            keys.map(move |key| format!("{prefix}{}", key.as_str().unwrap()))
        })
        .collect();
    assert_eq!(required, missing);
}

/// The scene files below a folder of the repository.
fn scene_files(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("{REPOSITORY}/{folder}")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path().join("scene.toml"));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

#[test]
fn scenes_fit_the_printed_schema_and_typing_errors_do_not() {
    let ran = Workspace::bare().run(&["check", "--schema"]);
    assert_eq!(ran.status, 0, "{ran:#?}");
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    let validator = jsonschema::options().offline().build(&printed).unwrap();
    let shipped = scene_files("scenes");
    assert_eq!(shipped.len(), 4);
    let readme = std::fs::read_to_string(format!("{REPOSITORY}/README.md")).unwrap();
    let orders = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    assert!(orders.contains("[[tools]]"), "{orders}");
    for text in shipped
        .iter()
        .chain(&scene_files("scenes/inventory"))
        .chain(&scene_files("scenes/lending"))
        .chain(&scene_files("tests/eval/scenes"))
        .chain([&orders])
    {
        let scene: Value = toml::from_str(text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&scene).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", scene["name"]);
    }
    for (right, wrong) in [
        ("instructions", "instruction"),
        ("effect = \"read\"", "effect = \"reads\""),
        ("description = \"Tells where", "descripton = \"Tells where"),
        ("url = ", "uri = "),
        ("say = ", "says = "),
        ("method = \"GET\"", "method = \"get\""),
        ("type = \"object\"", "type = \"objekt\""),
        ("http = ", "native = \"x\", http = "),
    ] {
        let typo = orders.replacen(right, wrong, 1).replace("native = \"x\", ", "native = \"x\"\n");
        assert_ne!(typo, orders, "{right}");
        assert!(!validator.is_valid(&toml::from_str(&typo).unwrap()), "{wrong}");
    }
}
