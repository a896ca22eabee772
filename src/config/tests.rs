use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::run::{ApprovalPolicy, ApprovalScope, TenantId};

fn env(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>().into_iter()
}

fn none() -> impl Iterator<Item = (String, String)> {
    std::iter::empty()
}

/// A file `site.toml` in a directory that is deleted with the first value.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

/// The faults as text, without the directory of the test file.
fn load_errors(text: &str, pairs: &[(&str, &str)], flags: ConfigFlags) -> String {
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

/// `default.toml` with the commented-out keys that have no default.
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
fn default_file_matches_built_in_defaults() {
    let config: Config = toml::from_str(DEFAULT_TOML).unwrap();
    assert_eq!(config, Config::default());
    let loaded = Config::load(None, none(), ConfigFlags::default()).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.warnings, []);
    assert!(loaded.sources.is_empty());
}

#[test]
fn default_file_names_every_key_and_no_other() {
    let text = with_optional_keys();
    let file: Value = toml::from_str(&text).unwrap();
    let config: Config = toml::from_str(&text).unwrap();
    assert_eq!(keys_of(&file), keys_of(&serde_json::to_value(&config).unwrap()));
}

#[test]
fn every_default_key_has_a_comment() {
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
fn unknown_key_is_rejected_in_every_section() {
    let shape = serde_json::to_value(Config::default()).unwrap();
    for section in shape.as_object().unwrap().keys() {
        let told = load_errors(&format!("[{section}]\nno_such_key = 1\n"), &[], ConfigFlags::default());
        // Below `tenants`, keys are names.
        let code = if section == "tenants" { "config.type" } else { "config.unknown_key" };
        assert!(told.contains(&format!("error[{code}]")), "{section}: {told}");
    }
    let told = load_errors(
        "[[llm.models]]\nname='a'\nmodel='a'\nbase_url='http://[::1]/v1'\ntemperatur = 1",
        &[],
        ConfigFlags::default(),
    );
    assert!(told.contains("`llm.models.0.temperatur`"), "{told}");
}

#[test]
fn production_file_is_valid() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/production.toml"));
    let loaded = Config::load(Some(&path), env(&[("OPENAI_API_KEY", "k")]), ConfigFlags::default()).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.llm.models[0].name, "main");
}

#[test]
fn later_layers_win_and_every_value_keeps_its_origin() {
    let (_dir, path) = file("[planning]\nmax_steps = 5\nmax_replans = 1\n[store]\ndata_dir = 'a'\n");
    let pairs = [
        ("PROSCENIUM__PLANNING__MAX_STEPS", "7"),
        ("PROSCENIUM__STORE__DATA_DIR", "b"),
        ("PROSCENIUM__AUTH__DEFAULT_USER", "007"),
        ("PROSCENIUM__SCENES__ALLOW_HOSTS", "[intranet.example, other.example]"),
        ("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "bundled"),
    ];
    let flags = ConfigFlags { data_dir: Some("c".into()), ..ConfigFlags::default() };
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
    insta::assert_snapshot!(sources.join("\n"), @r"
    auth.default_user: environment variable PROSCENIUM__AUTH__DEFAULT_USER
    planning.max_replans: site.toml:3
    planning.max_steps: environment variable PROSCENIUM__PLANNING__MAX_STEPS
    scenes.allow_hosts: environment variable PROSCENIUM__SCENES__ALLOW_HOSTS
    scenes.settings.Weather.source: environment variable PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE
    store.data_dir: flag --data-dir
    ");
}

#[test]
fn all_problems_are_reported_with_origin_value_and_remedy() {
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

[gateway]
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
    let flags = ConfigFlags { user: Some(" ".to_owned()), ..ConfigFlags::default() };
    insta::assert_snapshot!(load_errors(text, &pairs, flags), @r#"
    site.toml:2: error[config.unknown_key]: there is no key `planing`
      help: did you mean `planning`?
    site.toml:6: error[config.unknown_key]: there is no key `planning.max_stpes`
      help: did you mean `planning.max_steps`?
    site.toml:7: error[config.unknown_key]: there is no key `planning.max_rounds`
      help: did you mean `execution.max_rounds`?
    site.toml:8: error[config.type]: `planning.max_retries` = `three` is text, and must be a whole number, not negative
      help: fix it, or remove it to use the default `3`
    site.toml:9: error[config.value]: `planning.temperature` = `2.5` is out of range
      help: set a value from 0 to 2
    site.toml:10: error[config.value]: `planning.out_of_scope` = `refuse` is not one of its choices
      help: the choices are "answer", "decline"
    site.toml:11: error[config.value]: `planning.reader` = `tolerent` is not one of its choices
      help: did you mean "tolerant"? The choices are "tolerant", "strict"
    site.toml:13: error[config.unknown_key]: there is no key `gateway`
      help: remove it; sections are approval, auth, budget, cache, documents, execution, limits, llm, memory, planning, sandbox, scenes, server, store, telemetry, tenants
    site.toml:17: error[config.value]: `execution.time_zone` = `Europe/Roma` is not a time zone: failed to find time zone `Europe/Roma` in time zone database
      help: did you mean `Europe/Rome`?
    site.toml:18: error[config.value]: `execution.fixed_now` = `yesterday` is invalid: failed to parse four digit integer as year: invalid digit, expected 0-9 but got y
      help: fix it, or remove `fixed_now`
    site.toml:19: error[config.value]: `execution.max_calls` = `0` is out of range
      help: set a value from 1 to 256
    site.toml:22: error[config.value]: `memory.max_turns_in_prompt` = `20` is not more than `memory.keep_turns` = `20`
      help: raise the one or lower the other
    site.toml:30: error[config.type]: `llm.models.1.name` = `3` is a whole number, and must be text
      help: fix it, or remove `name`
    site.toml:32: error[config.value]: `llm.models.1.base_url` = `ftp://example.org` is not an http or https address
      help: write the API's address, such as `https://api.openai.com/v1`
    site.toml:33: error[config.value]: `llm.models.1.forcing` = `name` is not one of its choices
      help: did you mean "named"? The choices are "named", "required", "json_schema"
    site.toml:36: error[config.value]: `llm.models.2.name` = `a` is the name of an earlier model, too
      help: give each model a name of its own
    site.toml:39: error[config.value]: `llm.models.2.output_usd_per_million` = `-1` is out of range
      help: set a value from 0 to 100000
    site.toml:42: error[config.value]: `llm.purposes.plan.1` = `bb` is the name of no model
      help: use one of: a, offline
    site.toml:43: error[config.value]: `llm.purposes.dinner` = `dinner` is not one of its choices
      help: the choices are "plan", "continuation", "scene", "answer", "summary", "embedding", "recovery", "interpretation", "decision", "adaptation", "path", "node", "program"
    environment variable PROSCENIUM__AUTH__DEFAULT_TENANT: error[config.value]: `auth.default_tenant` = `a b` is invalid: tenant "a b" is not allowed: use 1 to 128 characters from A-Z a-z 0-9 . _ : -
      help: fix it, or remove it to use the default `local`
    environment variable PROSCENIUM__LLM__DEADLINE_MS: error[config.value]: `llm.deadline_ms` = `-5` is invalid: it must be a whole number, not negative
      help: fix it, or remove it to use the default `120000`
    environment variable PROSCENIUM__PLANNING__MAX_STEP: error[config.unknown_key]: there is no key `planning.max_step`
      help: did you mean `PROSCENIUM__PLANNING__MAX_STEPS`?
    environment variable PROSCENIUM__TELEMETRY__LOG: error[config.value]: `telemetry.log` = `loud==` is not a valid filter: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
      help: write a level (`warn`) or levels by module (`info,proscenium::llm=debug`)
    flag --user: error[config.value]: `auth.default_user` must have 1 to 128 printable characters
      help: write the user's name in the directory
    "#);
}

#[test]
fn log_filters_with_a_word_that_is_no_level_are_reported() {
    let problems = |log: &str| {
        let problems = TelemetryConfig { log: log.to_owned(), ..TelemetryConfig::default() }.problems();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    for (log, word) in [
        ("inof", "inof"),
        ("loud", "loud"),
        ("warm,proscenium::llm=debug", "warm"),
        ("info;proscenium::llm", "info;proscenium::llm"),
        ("info, sqlx warn", "sqlx warn"),
    ] {
        assert!(problems(log).contains(&format!("`{word}` is not a level")), "{log}: {}", problems(log));
    }
    for log in
        ["", "INFO", "3", "proscenium", "info,sqlx,hyper=off", "warn,proscenium::llm", "[runs{run}]=debug"]
    {
        assert_eq!(problems(log), "", "{log}");
    }
}

#[test]
fn whole_numbers_that_are_too_large_are_not_called_text() {
    let errors = load_errors(
        "[planning]\nmax_steps = 99999999999999999999\nmax_retries = \"many\"\n",
        &[("PROSCENIUM__SERVER__WORKERS", "-99999999999999999999")],
        ConfigFlags::default(),
    );
    insta::assert_snapshot!(errors, @r"
    site.toml:2: error[config.type]: `planning.max_steps` = `99999999999999999999` is a number that is too large, and must be a whole number, not negative
      help: fix it, or remove it to use the default `20`
    site.toml:3: error[config.type]: `planning.max_retries` = `many` is text, and must be a whole number, not negative
      help: fix it, or remove it to use the default `3`
    environment variable PROSCENIUM__SERVER__WORKERS: error[config.type]: `server.workers` = `-99999999999999999999` is a number that is too large, and must be a whole number, not negative
      help: fix it, or remove it to use the default `0`
    ");
}

#[test]
fn every_syntax_error_is_reported_with_its_line() {
    insta::assert_snapshot!(
        load_errors("[planning]\nmax_steps = \n\n[execution\nmax_calls = 0\n", &[], ConfigFlags::default()), @r"
    site.toml:2: error[config.syntax]: this is not TOML: string values must be quoted, expected literal string
      help: write `key = value` under `[section]`; put text in double quotes
    site.toml:4: error[config.syntax]: this is not TOML: unclosed table, expected `]`
      help: write `key = value` under `[section]`; put text in double quotes
    "
    );
}

#[test]
fn missing_file_is_reported_with_a_remedy() {
    let faults = Config::load(Some(Path::new("no/such.toml")), none(), ConfigFlags::default()).unwrap_err();
    insta::assert_snapshot!(faults, @r"
    no/such.toml: error[config.file]: the configuration cannot be read: No such file or directory (os error 2)
      help: give an existing TOML file with --config
    ");
}

#[test]
fn openai_variables_configure_a_model() {
    let model = |pairs: &[(&str, &str)]| {
        let loaded = Config::load(None, env(pairs), ConfigFlags::default()).unwrap();
        loaded.config.llm.models.into_iter().next()
    };
    assert_eq!(model(&[]), None);
    assert_eq!(model(&[("OPENAI_API_KEY", "")]), None);
    assert_eq!(model(&[("OPENAI_MODEL", "m")]), None);
    let hosted = model(&[("OPENAI_API_KEY", "secret"), ("OPENAI_MODEL", "m")]).unwrap();
    assert_eq!((hosted.name.as_str(), hosted.model), ("m", None));
    assert_eq!(hosted.base_url, "https://api.openai.com/v1");
    assert_eq!(hosted.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
    let local = model(&[("OPENAI_BASE_URL", "http://127.0.0.1:8090/v1")]).unwrap();
    assert_eq!(local.base_url, "http://127.0.0.1:8090/v1");
    assert_eq!(local.api_key_env, None);
}

#[test]
fn suspicious_but_valid_settings_give_warnings() {
    let (_dir, path) = file(
        "[[llm.models]]\nname='a'\nmodel='a'\nbase_url='http://models.example/v1'\napi_key_env='MY_KEY'\n",
    );
    let pairs = [
        ("OPENAI_MODEL", "other"),
        ("PROSCENIUM_PLANNING_MAX_STEPS", "3"),
        ("PROSCENIUM__EXECUTION__FIXED_NOW", "2026-05-04T09:00:00+02:00"),
    ];
    let loaded = Config::load(Some(&path), env(&pairs), ConfigFlags::default()).unwrap();
    let told: Vec<String> = loaded.warnings.iter().map(|w| format!("{}: {}", w.code, w.message)).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    config.unused: PROSCENIUM_PLANNING_MAX_STEPS is not read: write two underscores before the section and before the key
    config.unused: OPENAI_MODEL is not used: `llm.models` is configured
    config.key: the API key of model `a` is read from MY_KEY, which is not set
    config.insecure: model `a` is called without encryption at http://models.example/v1
    config.price: no prices are known for model `a`, so its cost is reported as 0, and no budget limits it
    config.clock: the clock is fixed at 2026-05-04T07:00:00Z
    ");
}

#[test]
fn key_that_no_header_can_have_is_warned_about() {
    let pairs = [("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"), ("OPENAI_API_KEY", "sk-quoted\nsk-other")];
    let loaded = Config::load(None, env(&pairs), ConfigFlags::default()).unwrap();
    let told: Vec<_> =
        loaded.warnings.iter().map(|w| (w.code, w.message.contains("OPENAI_API_KEY"))).collect();
    assert_eq!(told, [("config.key", true)]);
    assert!(!loaded.warnings[0].message.contains("quoted"));
}

#[test]
fn remedies_of_common_mistakes_can_be_copied() {
    let remedy = |name: &str, value: &str| {
        let (loaded, faults) = Config::read(None, env(&[(name, value)]), ConfigFlags::default());
        let found: Vec<ConfigFault> = faults.0.into_iter().chain(loaded.warnings).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0].remedy.clone()
    };
    let hosts = remedy("PROSCENIUM__SCENES__ALLOW_HOSTS", "127.0.0.1:8000");
    assert_eq!(hosts, r#"write `["127.0.0.1:8000"]`"#);
    let address = remedy("PROSCENIUM_SERVER__ADDR", "127.0.0.1:1");
    assert!(address.ends_with("such as PROSCENIUM__SERVER__ADDR"), "{address}");
    let directory = remedy("PROSCENIUM_DATA_DIR", "d");
    assert!(directory.ends_with("such as PROSCENIUM__STORE__DATA_DIR"), "{directory}");
    let timeout = remedy("PROSCENIUM_LLM_BREAKER_PAUSE_MS", "1");
    assert!(timeout.ends_with("such as PROSCENIUM__LLM__BREAKER__PAUSE_MS"), "{timeout}");
    let deadline = remedy("PROSCENIUM__LLM__DEADLINE", "60");
    assert_eq!(deadline, "did you mean `PROSCENIUM__LLM__DEADLINE_MS`?");
    assert_eq!(remedy("PROSCENIUM__TELEMETRY__LOG", "wran"), "did you mean `warn`?");
    let verbose = remedy("PROSCENIUM__TELEMETRY__LOG", "verbose");
    assert_eq!(verbose, "the levels are error, warn, info, debug, trace, off");
}

#[test]
fn invalid_base_url_names_its_environment_variable() {
    let faults =
        Config::load(None, env(&[("OPENAI_BASE_URL", "localhost:80")]), ConfigFlags::default()).unwrap_err();
    assert_eq!(faults.0.len(), 1);
    assert_eq!(faults.0[0].origin, ValueOrigin::Variable("OPENAI_BASE_URL".to_owned()));
}

#[test]
fn unknown_levels_and_bounds_out_of_range_are_refused_and_levels_of_tenants_only_lower() {
    for (text, expected) in [
        ("[execution]\nlevel = 'basc'", "execution.level"),
        (
            "[execution.consultations]\ntimeout_ms = 99",
            "`execution.consultations.timeout_ms` = `99` is out of range",
        ),
        ("[execution.policies]\nattempts = 11", "`execution.policies.attempts` = `11` is out of range"),
    ] {
        let told = load_errors(text, &[], ConfigFlags::default());
        assert!(told.contains(expected), "{told}");
    }
    let (_dir, path) = file("[execution]\nmode = 'strict'\n[tenants.acme]\nmode = 'adaptive'\n");
    let loaded = Config::load(Some(&path), env(&[]), ConfigFlags::default()).unwrap();
    let warned: Vec<(&str, &str)> = loaded.warnings.iter().map(|w| (w.code, w.key.as_str())).collect();
    assert_eq!(warned, [("config.no_effect", "tenants.acme.mode")]);
}

#[test]
fn settings_of_a_tenant_are_in_one_place_and_still_read_where_they_were() {
    let acme = TenantId::new("acme").unwrap();
    let read = |text: &str| {
        let (_dir, path) = file(text);
        Config::load(Some(&path), env(&[]), ConfigFlags::default()).unwrap()
    };
    let of = |config: &Config| {
        let own = config.tenants.get("acme").cloned().unwrap_or_default();
        config.approval.policy_of(&acme, &own.approval)
    };
    let now = read("[tenants.acme]\napproval = { plans = 'writes', by_oneself = false }\n");
    assert!(now.warnings.is_empty(), "{:?}", now.warnings);
    let before = read("[approval.tenants]\nacme = { plans = 'writes', by_oneself = false }\n");
    let warned: Vec<(&str, &str)> = before.warnings.iter().map(|w| (w.code, w.key.as_str())).collect();
    assert_eq!(warned, [("config.moved", "approval.tenants.acme")]);
    let expected =
        ApprovalPolicy { plans: ApprovalScope::Writes, by_oneself: false, ..ApprovalPolicy::default() };
    assert_eq!((of(&now.config), of(&before.config)), (expected, expected));
    let both =
        "[approval.tenants]\nacme = { plans = 'writes' }\n[tenants.acme]\napproval = { plans = 'never' }\n";
    let told = load_errors(both, &[], ConfigFlags::default());
    assert!(told.contains("`tenants.acme.approval.plans` and `approval.tenants.acme.plans`"), "{told}");
}
