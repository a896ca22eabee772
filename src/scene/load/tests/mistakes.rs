//! What people who write their first scene get wrong, and what they are told.

use super::*;

const ORDERS: &str = r#"name = "Orders"
description = "Orders of the shop."
instructions = "Look orders up."
examples = [{ say = "Where is order 7?", tool = "GetOrder" }]
[[tools]]
name = "GetOrder"
description = "Tells where an order is."
effect = "read"
parameters = { type = "object", required = ["number"], properties = { number = { type = "integer" } } }
http = { url = "https://orders.example/{number}.json" }
"#;

/// The faults of the scene in which the first text is replaced by the second one, with their remedies.
fn faults_with(from: &str, to: &str) -> String {
    assert!(ORDERS.contains(from), "{from}");
    rendered_faults(&load_one(&ORDERS.replacen(from, to, 1)))
}

fn faults_with_more(line: &str) -> String {
    rendered_faults(&load_one(&format!("{ORDERS}{line}\n")))
}

#[test]
fn scene_without_mistakes_has_no_faults() {
    assert_eq!(faults_with_more(""), "");
    assert_eq!(faults_with_more(r#"say = { en = "Order {{ number }}: {% if a %}{{ b }}{% endif %}" }"#), "");
}

#[test]
fn key_in_the_wrong_table_is_told_where_it_belongs() {
    let late = ORDERS.replace("instructions = \"Look orders up.\"\n", "") + "instructions = \"Look.\"\n";
    let told = rendered_faults(&load_one(&late));
    assert!(told.contains("move `instructions` above the first [[tools]]"), "{told}");
    let told = faults_with("http = { url", "url = \"https://a.example\"\nhttp = { url");
    assert!(told.contains(":10: error[scene.unknown_key]"), "{told}");
    assert!(told.contains("it is a key of [tools.http]: move `url` below that"), "{told}");
    let told = faults_with_more("[parameters]\ntype = \"object\"");
    assert!(told.contains("write it below [[tools]], or as [tools.parameters]"), "{told}");
    let told = faults_with("instructions", "[settings]\nsource = \"a\"\ninstructions");
    assert!(
        told.contains(
            "move `instructions` from line 5 above [settings]: below it, it is a key of that table"
        ),
        "{told}"
    );
}

#[test]
fn value_of_a_wrong_type_is_told_what_to_write() {
    for (line, told) in [
        ("timeout_ms = -1", "`tools[0].timeout_ms` is -1\n  write a whole number of 0 or more"),
        ("repeat = true", "`tools[0].repeat` is true or false\n  write one of: \"never\", \"key\""),
        ("say = \"Order\"", "`tools[0].say` is a string\n  write a table, such as { en = \"…\" }"),
    ] {
        let found = faults_with_more(line);
        assert!(found.contains(told), "{line}: {found}");
    }
    let found = faults_with(
        "http = { url = \"https://orders.example/{number}.json\" }",
        "http = \"https://a.example\"",
    );
    assert!(found.contains("write a table, such as [tools.http] on a line of its own"), "{found}");
}

#[test]
fn wrong_braces_are_warned_about() {
    let found = faults_with("{number}.json", "{{number}}.json");
    assert!(found.contains(":10: warning[scene.http_placeholder]"), "{found}");
    assert!(found.contains("write {number} for the argument"), "{found}");
    let found = faults_with_more("say = { en = \"Order {number}\" }");
    assert!(found.contains(":11: warning[scene.say_braces]"), "{found}");
    assert!(found.contains("write {{ number }} for a value"), "{found}");
    // Literal braces around anything else are meant.
    assert_eq!(faults_with("{number}.json", "{number}.json?q={{x}}"), "");
}

#[test]
fn sentence_that_sees_no_result_may_use_arguments_only() {
    let write = ORDERS.replace("\"read\"", "\"write\"").replace("{ url", "{ method = \"POST\", url");
    let told = |line: &str| rendered_faults(&load_one(&format!("{write}{line}\n")));
    assert_eq!(told("confirm = { en = \"Cancel {{ arguments.number }}?\" }"), "");
    let found = told("confirm = { en = \"Cancel {{ number }}?\" }");
    assert!(found.contains("error[scene.say_variable]"), "{found}");
    assert!(found.contains("write {{ arguments.number }}"), "{found}");
    assert!(told("confirm = { en = \"Cancel {{ city }}?\" }").contains("there is no result to tell here"));
    let status = |text: &str| {
        faults_with(".json\" }", &format!(".json\", on_status = {{ 404 = {{ en = \"{text}\" }} }} }}"))
    };
    assert_eq!(status("No order {{ arguments.number }} ({{ status }})."), "");
    assert!(status("No order {{ arguments.nummer }}.").contains("did you mean \"number\"?"));
    assert!(status("No order {{ number }}.").contains("write {{ arguments.number }}"));
}

#[test]
fn question_before_a_read_is_never_asked() {
    let found = faults_with_more("confirm = { en = \"Sure?\" }");
    assert!(found.contains(":11: warning[scene.confirm]: GetOrder only reads"), "{found}");
}

#[test]
fn this_machine_by_name_is_not_public_unless_it_is_allowed() {
    let text = ORDERS.replace("https://orders.example", "http://localhost:8000");
    let found = rendered_faults(&load_one(&text));
    assert!(found.contains(":10: error[scene.http_private_address]: localhost is not"), "{found}");
    assert!(found.contains("add \"localhost:8000\" to `scenes.allow_hosts`"), "{found}");
    let policy = NetworkPolicy { allow_hosts: vec!["localhost:8000".to_owned()], ..NetworkPolicy::default() };
    let loaded =
        SceneLoader::new(&natives()).network(policy).load(vec![vec![folder("s", &text)]], &BTreeMap::new());
    assert_eq!(rendered_faults(&loaded), "");
}

#[test]
fn unreadable_functions_are_not_reported_as_missing() {
    let text = ORDERS.replace("http = {", "kind = \"python\"\n#");
    let mut folder = folder("s", &text);
    folder.files.insert(TOOLS_FILE.to_owned(), b"# \xe9\n".to_vec());
    let found = rendered_faults(&load_all(vec![vec![folder]], &json!({})));
    assert!(found.contains("tools.py is not UTF-8 text"), "{found}");
    assert!(!found.contains("there is no tools.py"), "{found}");
}

#[test]
fn misnamed_file_is_told_its_right_name() {
    for (name, remedy) in [
        ("Scene.toml", Some("rename Scene.toml to scene.toml")),
        ("scene.toml.txt", Some("rename scene.toml.txt to scene.toml")),
        ("flows.toml", Some("rename flows.toml to flow.toml")),
        ("notes.md", None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("orders")).unwrap();
        std::fs::write(dir.path().join("orders").join(name), ORDERS).unwrap();
        let found = rendered_faults(&load_dir(dir.path(), &natives(), &NetworkPolicy::default()));
        let remedy = remedy.unwrap_or("add scene.toml or flow.toml");
        assert!(found.contains(remedy), "{name}: {found}");
    }
}

#[test]
fn arguments_of_undo_that_cannot_fit_are_errors() {
    let with = |number: &str| {
        let undo = format!("undo = {{ tool = \"Cancel\", arguments = {{ number = {number} }} }}");
        let write = |name: &str, more: &str| {
            format!(
                "[[tools]]\nname = {name:?}\ndescription = \"x\"\neffect = \"write\"\n{more}\n\
                 parameters = {{ type = \"object\", required = [\"number\"], properties = {{ number = {{ type = \"integer\" }} }} }}\n\
                 http = {{ method = \"POST\", url = \"https://orders.example/{{number}}\" }}\n"
            )
        };
        faults_with_more(&(write("Order", &undo) + &write("Cancel", "")))
    };
    for right in ["\"/result/data/number\"", "\"/arguments/number\"", "7"] {
        assert_eq!(with(right), "");
    }
    for (wrong, told) in [
        ("\"result.number\"", "/number must be an integer; got \"result.number\""),
        ("\"/arguments/nummber\"", "did you mean \"number\"?"),
        ("\"/results/number\"", "points neither into the arguments nor into the result"),
    ] {
        let faults = with(wrong);
        assert!(faults.contains("error[scene.undo_arguments]") && faults.contains(told), "{faults}");
    }
}

#[test]
fn lists_in_another_form_are_told_how_they_are_written() {
    let tools = ORDERS.replace("[[tools]]", "[tools]");
    let second = tools.find("[tools]").map(|at| tools[at..].replace("GetOrder", "FindOrder")).unwrap();
    let told = rendered_faults(&load_one(&format!("{tools}{second}")));
    assert!(told.contains("write [[tools]] above each of them"), "{told}");
    assert!(told.matches("error[scene.syntax]").count() <= 5, "{told}");
    let told =
        faults_with("[{ say = \"Where is order 7?\", tool = \"GetOrder\" }]", "[\n\"Where is order 7?\",\n]");
    assert!(told.contains(":5: error[scene.wrong_type]: `examples[0]` is a string\n"), "{told}");
    assert!(told.contains("write a table"), "{told}");
}
