//! What Identity promises.

use jiff::Zoned;
use serde_json::{Value, json};

use proscenium::run::{RunId, SessionId, TenantId};
use proscenium::tools::{NativeTools, Principal, RunDocuments, SceneStore, ToolContext, ToolError};

fn context(user: &str, settings: Value) -> ToolContext {
    ToolContext {
        principal: Principal { tenant: TenantId::new("acme").unwrap(), user: user.to_owned() },
        now: "2026-05-04T09:00:00+02:00[Europe/Rome]".parse::<Zoned>().unwrap(),
        language: None,
        session: SessionId::new("s").unwrap(),
        run: RunId(uuid::Uuid::now_v7()),
        step: 1,
        idempotency_key: None,
        store: SceneStore::new(sqlx::SqlitePool::connect_lazy("sqlite::memory:").unwrap()),
        documents: RunDocuments::default(),
        http: reqwest::Client::new(),
        interpreter: None,
        settings,
        cancelled: tokio_util::sync::CancellationToken::new(),
        trace_parent: None,
    }
}

async fn call(tool: &str, arguments: Value) -> Value {
    call_as("keysersoze", json!({}), tool, arguments).await.unwrap()
}

async fn call_as(user: &str, settings: Value, tool: &str, arguments: Value) -> Result<Value, ToolError> {
    let tools = super::register(NativeTools::new());
    tools.get(&format!("identity.{tool}")).unwrap().call(context(user, settings), arguments).await
}

/// The scene's file, as data.
fn scene() -> toml::Table {
    include_str!("scene.toml").parse().unwrap()
}

/// The sentence that `scene.toml` makes of a result.
fn said(language: &str, tool: &str, result: &Value) -> String {
    crate::shipped::testing::said(include_str!("scene.toml"), language, tool, result)
}

#[tokio::test]
async fn the_full_name_behind_a_user_name_is_told() {
    let found = call("get_user_name", json!({"username": "keysersoze"})).await;
    assert_eq!(
        found,
        json!({"found": true, "username": "keysersoze", "name": "Alessandro Rapiti", "you": true})
    );
    let found = call("get_user_name", json!({"username": " @MRossi "})).await;
    assert_eq!((&found["name"], &found["you"]), (&json!("Mario Rossi"), &json!(false)));
}

#[tokio::test]
async fn a_name_that_only_one_person_has_stands_for_the_user_name() {
    for asked in ["Nina", "weber", "Nina Weber"] {
        assert_eq!(
            call("get_user_profile", json!({"username": asked})).await["username"],
            "nweber",
            "{asked}"
        );
    }
    assert_eq!(call("get_user_profile", json!({"username": "Rossi"})).await["found"], false);
}

#[tokio::test]
async fn without_a_user_name_the_person_who_asks_is_told_their_own() {
    for arguments in [json!({}), json!({"username": ""}), json!({"username": null})] {
        assert_eq!(call("get_user_name", arguments.clone()).await["name"], "Alessandro Rapiti");
        assert_eq!(call("get_user_profile", arguments).await["email"], "alessandro.rapiti@example.com");
    }
}

#[tokio::test]
async fn nobody_of_that_name_is_an_answer_and_not_a_failure() {
    let found = call("get_user_name", json!({"username": "nobody"})).await;
    assert_eq!(found, json!({"found": false, "username": "nobody", "name": null, "you": false}));
    assert!(said("it", "get_user_name", &found).contains("nessuno con il nome utente nobody"));
    assert_eq!(call("get_user_profile", json!({"username": "nobody"})).await["found"], false);
}

#[tokio::test]
async fn several_people_of_one_name_are_told() {
    for tool in ["get_user_name", "get_user_profile"] {
        let found = call(tool, json!({"username": "Rossi"})).await;
        assert_eq!(found["found"], false);
        for lang in ["it", "en", "fr", "de", "es"] {
            let text = said(lang, tool, &found);
            assert!(text.contains("Mario Rossi (mrossi), Paola Rossi (prossi)."), "{text}");
        }
    }
}

#[tokio::test]
async fn ones_own_profile_is_whole_and_names_the_manager() {
    let own = call("get_user_profile", json!({"username": "keysersoze"})).await;
    assert_eq!(own["manager"], json!({"username": "lferrari", "name": "Lucia Ferrari"}));
    assert_eq!(own["department"], "Engineering");
    assert!(own.get("withheld").is_none());
}

#[tokio::test]
async fn of_another_person_only_what_is_public_is_told_whatever_was_said_in_the_conversation() {
    let other = call("get_user_profile", json!({"username": "mrossi"})).await;
    assert_eq!(
        other,
        json!({"found": true, "username": "mrossi", "name": "Mario Rossi", "department": "Sales",
               "you": false, "withheld": ["email", "manager"]})
    );
    let own = call_as("mrossi", json!({}), "get_user_profile", json!({"username": "mrossi"})).await.unwrap();
    assert_eq!(own["email"], "mario.rossi@example.com");
}

#[tokio::test]
async fn people_are_found_by_a_part_of_their_name_whatever_case_and_accents() {
    let found = call("find_user", json!({"name": "ROSSI"})).await;
    assert_eq!(found["count"], 2);
    let names: Vec<_> = found["matches"].as_array().unwrap().iter().map(|m| m["name"].clone()).collect();
    assert_eq!(names, ["Mario Rossi", "Paola Rossi"]);
    assert_eq!(
        call("find_user", json!({"name": "joel lefevre"})).await["matches"][0]["username"],
        "jlefevre"
    );
    assert_eq!(call("find_user", json!({"name": "Weber, Nina"})).await["count"], 1);
    assert_eq!(call("find_user", json!({"name": "  "})).await["count"], 0);
    assert!(!found.to_string().contains("example.com"), "addresses are private: {found}");
}

#[tokio::test]
async fn a_name_that_two_people_have_is_nobody_in_particular() {
    let person = |username: &str| json!({"username": username, "name": "Ada Neri", "department": "X"});
    let settings = json!({"people": [person("a1"), person("a2")]});
    let by_name =
        call_as("a1", settings.clone(), "get_user_name", json!({"username": "ada neri"})).await.unwrap();
    assert_eq!(by_name["found"], false);
    assert_eq!(call("get_user_name", json!({"username": "Mario Rossi"})).await["username"], "mrossi");
    let many: Vec<_> = (0..12).map(|i| person(&format!("a{i}"))).collect();
    let found = call_as("a1", json!({"people": many}), "find_user", json!({"name": "neri"})).await.unwrap();
    assert_eq!((found["matches"].as_array().unwrap().len(), &found["more"]), (10, &json!(true)));
}

#[tokio::test]
async fn settings_replace_the_people_and_a_fault_in_them_is_named() {
    let settings = json!({"people": [{"username": "neo", "name": "Thomas Anderson", "department": "IT"}]});
    let own = call_as("neo", settings, "get_user_profile", json!({})).await.unwrap();
    assert_eq!(
        (&own["name"], &own["email"], &own["manager"]),
        (&json!("Thomas Anderson"), &json!(null), &json!(null))
    );
    assert_eq!(
        said("en", "get_user_profile", &own),
        "You are Thomas Anderson (user name neo), department IT."
    );
    let error = call_as("neo", json!({"folks": []}), "get_user_name", json!({})).await.unwrap_err();
    assert_eq!(error.code, "identity.settings");
    assert!(error.message.contains("folks"), "{error}");
}

#[tokio::test]
async fn every_tool_answers_in_five_languages() {
    let cases = [
        ("get_user_name", json!({"username": "keysersoze"}), "Alessandro Rapiti"),
        ("get_user_name", json!({"username": "mrossi"}), "Mario Rossi"),
        ("get_user_name", json!({"username": "nobody"}), "nobody"),
        ("get_user_profile", json!({}), "Lucia Ferrari (lferrari)"),
        ("get_user_profile", json!({"username": "mrossi"}), "Sales"),
        ("find_user", json!({"name": "Weber"}), "Nina Weber"),
        ("find_user", json!({"name": "rossi"}), "Paola Rossi"),
        ("find_user", json!({"name": "zzz"}), "zzz"),
    ];
    for (tool, arguments, mention) in cases {
        let result = call(tool, arguments).await;
        for language in ["it", "en", "fr", "de", "es"] {
            let sentence = said(language, tool, &result);
            assert!(sentence.contains(mention) && sentence.ends_with('.'), "{language} {tool}: {sentence}");
        }
    }
}

#[test]
fn the_scene_names_each_registered_tool_once_and_only_those() {
    let scene = scene();
    let tools = scene["tools"].as_array().unwrap();
    let mut named: Vec<_> = tools.iter().map(|t| t["native"].as_str().unwrap().to_owned()).collect();
    named.sort();
    assert_eq!(named, super::register(NativeTools::new()).names().collect::<Vec<_>>());
    for tool in tools {
        let schema = serde_json::to_value(&tool["parameters"]).unwrap();
        jsonschema::validator_for(&schema).unwrap();
    }
    let names: Vec<_> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    for example in scene["examples"].as_array().unwrap() {
        assert!(names.contains(&example["tool"].as_str().unwrap()), "{example}");
    }
}
