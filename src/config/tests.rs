use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::*;

fn env(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>().into_iter()
}

fn none() -> impl Iterator<Item = (String, String)> {
    std::iter::empty()
}

/// A file called `site.toml` in a directory that lasts as long as the first value.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

/// The faults as text, without the directory of the test's file.
fn told(text: &str, pairs: &[(&str, &str)], flags: Flags) -> String {
    let (dir, path) = file(text);
    let faults = Config::load(Some(&path), env(pairs), flags).unwrap_err();
    faults.to_string().replace(&format!("{}/", dir.path().display()), "")
}

fn keys(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                keys(value, &format!("{at}.{key}"), out);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                keys(item, &format!("{at}[]"), out);
            }
        }
        _ => {
            out.insert(at.trim_start_matches('.').to_owned());
        }
    }
}

fn keys_of(value: &Value) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    keys(value, "", &mut out);
    out
}

/// `default.toml` with the keys that have no default.
fn with_optional_keys() -> String {
    DEFAULT_TOML
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => rest,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_default_file_says_what_the_program_does() {
    let config: Config = toml::from_str(DEFAULT_TOML).unwrap();
    assert_eq!(config, Config::default());
    let loaded = Config::load(None, none(), Flags::default()).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.warnings, []);
    assert!(loaded.sources.is_empty());
}

#[test]
fn the_default_file_names_every_key_and_no_other() {
    let text = with_optional_keys();
    let file: Value = toml::from_str(&text).unwrap();
    let config: Config = toml::from_str(&text).unwrap();
    assert_eq!(keys_of(&file), keys_of(&serde_json::to_value(&config).unwrap()));
}

#[test]
fn every_key_of_the_default_file_has_a_comment() {
    let mut before = "";
    for line in DEFAULT_TOML.lines() {
        let key = line.trim_start_matches('#');
        let is_key = key.contains(" = ") && !line.starts_with("# ");
        // The purposes share the comment of their table.
        if is_key && !key.starts_with(|c: char| c.is_uppercase()) && !key.ends_with("[\"main\"]") {
            assert!(before.starts_with("# "), "{line}");
        }
        before = line;
    }
}

#[test]
fn an_unknown_key_is_refused_in_every_section() {
    let shape = serde_json::to_value(Config::default()).unwrap();
    for section in shape.as_object().unwrap().keys() {
        let told = told(&format!("[{section}]\nno_such_key = 1\n"), &[], Flags::default());
        assert!(told.contains("error[config.unknown_key]"), "{section}: {told}");
    }
    let told = told("[[llm.models]]\nname='a'\nmodel='a'\nbase_url='http://[::1]/v1'\ntemperatur = 1", &[], Flags::default());
    assert!(told.contains("`llm.models.0.temperatur`"), "{told}");
}

#[test]
fn the_production_file_is_valid() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/production.toml"));
    let loaded = Config::load(Some(&path), env(&[("OPENAI_API_KEY", "k")]), Flags::default()).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.llm.models[0].name, "main");
}

#[test]
fn later_layers_win_and_each_value_knows_its_place() {
    let (_dir, path) = file("[planning]\nmax_steps = 5\nmax_replans = 1\n[store]\ndata_dir = 'a'\n");
    let pairs = [
        ("PROSCENIUM__PLANNING__MAX_STEPS", "7"),
        ("PROSCENIUM__STORE__DATA_DIR", "b"),
        ("PROSCENIUM__AUTH__DEFAULT_USER", "007"),
        ("PROSCENIUM__SCENES__ALLOW_HOSTS", "[intranet.example, other.example]"),
        ("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "bundled"),
    ];
    let flags = Flags { data_dir: Some("c".into()), ..Flags::default() };
    let loaded = Config::load(Some(&path), env(&pairs), flags).unwrap();
    let config = &loaded.config;
    assert_eq!((config.planning.max_steps, config.planning.max_replans), (7, 1));
    assert_eq!(config.store.data_dir, PathBuf::from("c"));
    assert_eq!(config.auth.default_user, "007");
    assert_eq!(config.scenes.allow_hosts, ["intranet.example", "other.example"]);
    assert_eq!(config.scenes.settings["Weather"]["source"], "bundled");
    assert_eq!(config.run_settings().max_steps, 7);
    let sources: Vec<String> = loaded
        .sources
        .iter()
        .map(|(key, origin)| format!("{key}: {origin}").replace(&path.display().to_string(), "site.toml"))
        .collect();
    insta::assert_snapshot!(sources.join("\n"), @"");
}

#[test]
fn all_problems_are_told_at_once_with_place_value_and_remedy() {
    let text = r#"
[planing]
max_steps = 3

[planning]
max_stpes = 3
max_rounds = 2
max_retries = "three"
temperature = 2.5
out_of_scope = "refuse"
reader = "tolerent"

[server]
port = 8080

[execution]
time_zone = "Europe/Roma"
fixed_now = "yesterday"
max_calls = 0

[memory]
keep_turns = 20

[[llm.models]]
name = "a"
model = "a"
base_url = "http://127.0.0.1:1/v1"

[[llm.models]]
name = 3
model = "b"
base_url = "ftp://example.org"
forcing = "name"

[[llm.models]]
name = "a"
model = "c"
base_url = "https://example.org/v1"
output_usd_per_million = -1

[llm.purposes]
plan = ["a", "bb"]
dinner = ["a"]
"#;
    let pairs = [
        ("PROSCENIUM__PLANNING__MAX_STEP", "3"),
        ("PROSCENIUM__LLM__DEADLINE_MS", "-5"),
        ("PROSCENIUM__AUTH__DEFAULT_TENANT", "a b"),
        ("PROSCENIUM__TELEMETRY__LOG", "loud=="),
    ];
    let flags = Flags { user: Some(" ".to_owned()), ..Flags::default() };
    insta::assert_snapshot!(told(text, &pairs, flags), @"");
}

#[test]
fn every_syntax_error_is_told_with_its_line() {
    insta::assert_snapshot!(
        told("[planning]\nmax_steps = \n\n[execution\nmax_calls = 0\n", &[], Flags::default()), @""
    );
}

#[test]
fn a_missing_file_is_told_with_what_to_do() {
    let faults = Config::load(Some(Path::new("no/such.toml")), none(), Flags::default()).unwrap_err();
    insta::assert_snapshot!(faults, @"");
}

#[test]
fn a_key_or_an_address_in_the_environment_makes_a_model() {
    let model = |pairs: &[(&str, &str)]| {
        let loaded = Config::load(None, env(pairs), Flags::default()).unwrap();
        loaded.config.llm.models.into_iter().next()
    };
    assert_eq!(model(&[]), None);
    assert_eq!(model(&[("OPENAI_API_KEY", "")]), None);
    assert_eq!(model(&[("OPENAI_MODEL", "m")]), None);
    let hosted = model(&[("OPENAI_API_KEY", "secret"), ("OPENAI_MODEL", "m")]).unwrap();
    assert_eq!((hosted.name.as_str(), hosted.model.as_str()), ("m", "m"));
    assert_eq!(hosted.base_url, "https://api.openai.com/v1");
    assert_eq!(hosted.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
    let local = model(&[("OPENAI_BASE_URL", "http://127.0.0.1:8090/v1")]).unwrap();
    assert_eq!(local.base_url, "http://127.0.0.1:8090/v1");
    assert_eq!(local.api_key_env, None);
}

#[test]
fn what_works_but_was_hardly_meant_is_a_warning() {
    let (_dir, path) = file(
        "[[llm.models]]\nname='a'\nmodel='a'\nbase_url='http://models.example/v1'\napi_key_env='MY_KEY'\n",
    );
    let pairs = [
        ("OPENAI_MODEL", "other"),
        ("PROSCENIUM_PLANNING_MAX_STEPS", "3"),
        ("PROSCENIUM__EXECUTION__FIXED_NOW", "2026-05-04T09:00:00+02:00"),
    ];
    let loaded = Config::load(Some(&path), env(&pairs), Flags::default()).unwrap();
    let told: Vec<String> = loaded.warnings.iter().map(|w| format!("{}: {}", w.code, w.message)).collect();
    insta::assert_snapshot!(told.join("\n"), @"");
}

#[test]
fn a_bad_address_from_the_environment_names_its_variable() {
    let faults = Config::load(None, env(&[("OPENAI_BASE_URL", "localhost:80")]), Flags::default()).unwrap_err();
    assert_eq!(faults.0.len(), 1);
    assert_eq!(faults.0[0].origin, Origin::Variable("OPENAI_BASE_URL".to_owned()));
}
