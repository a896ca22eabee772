//! `check` reports every error at once, each with its place, its code and the remedy.

use std::collections::BTreeMap;

use super::process::Workspace;
use super::support::postgres::PostgresServer;
use super::support::{self, Scripted, ScriptedLlm};
use serde_json::json;

const CONFIG: &str = r#"[planning]
max_steps = 0
temprature = 0.5

[execution]
time_zone = "Europe/Roma"

[memory]
window_share = "half"

[scenes]
dir = "scenes"

[llm]
forcing = "named"

[[llm.models]]
name = "main"
base_url = "model.example/v1"
"#;

const ROOMS: &str = r#"name = "Rooms"
descripton = "Meeting rooms of the company."

[[tools]]
name = "ListRooms"
description = "Lists the meeting rooms."
effect = "reads"
native = "rooms.list"
[tools.parameters]
type = "object"

[[tools]]
name = "BookRoom"
description = "Books a meeting room."
effect = "write"
timeout_ms = 0
[tools.parameters]
type = "object"
[tools.http]
method = "POST"
url = "https://rooms.example/book/{room}"
"#;

#[test]
fn all_configuration_and_scene_errors_are_reported_at_once() {
    let workspace = Workspace::bare();
    workspace.write("site.toml", CONFIG);
    workspace.write("scenes/rooms/scene.toml", ROOMS);
    workspace.write("scenes/desks/scene.toml", "name = \"Desks\"\ndescription = \"Desks\n");
    workspace.write("scenes/empty/notes.txt", "nothing here");
    let ran = workspace.run(&["check", "--config", "site.toml"]);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    insta::assert_snapshot!(ran.out, @r#"
    site.toml:2: error[config.value]: `planning.max_steps` = `0` is out of range
      help: set a value from 1 to 100
    site.toml:3: error[config.unknown_key]: there is no key `planning.temprature`
      help: did you mean `planning.temperature`?
    site.toml:6: error[config.value]: `execution.time_zone` = `Europe/Roma` is not a time zone: failed to find time zone `Europe/Roma` in time zone database
      help: did you mean `Europe/Rome`?
    site.toml:9: error[config.type]: `memory.window_share` = `half` is text, and must be a number
      help: fix it, or remove it to use the default `0.5`
    site.toml:15: error[config.unknown_key]: there is no key `llm.forcing`
      help: remove it; keys of `llm` are backoff_ms, between_tokens_timeout_ms, breaker, connect_timeout_ms, deadline_ms, first_token_timeout_ms, max_attempts, max_retry_after_ms, models, offline_context_window, purposes, slow_ms
    site.toml:19: error[config.value]: `llm.models.0.base_url` = `model.example/v1` is not an http or https address
      help: write the API's address, such as `https://api.openai.com/v1`
    scenes/desks/scene.toml:2: error[scene.syntax]: invalid TOML: invalid basic string, expected `"`
      help: fix this first: the rest of the file is checked afterwards
    scenes/rooms/scene.toml: warning[scene.no_examples]: the scene has no examples
      help: add [[examples]] with say = "…": requests are routed by them
    scenes/rooms/scene.toml:1: error[scene.missing_key]: `description` is missing
      help: add description = …
    scenes/rooms/scene.toml:1: error[scene.missing_key]: `instructions` is missing
      help: add instructions = …
    scenes/rooms/scene.toml:2: error[scene.unknown_key]: `descripton` is not a key of a scene
      help: did you mean "description"?
    scenes/rooms/scene.toml:7: error[scene.invalid_value]: `tools[0].effect` is "reads"
      help: write one of: read, write; did you mean "read"?
    scenes/rooms/scene.toml:8: error[scene.native_unknown]: no native tool is registered as "rooms.list"
      help: registered are: identity.find_user, identity.get_user_name, identity.get_user_profile, inventory.change_price, inventory.get_price, inventory.get_stock, inventory.list_sales, inventory.list_stock, inventory.restock, inventory.sell, inventory.take_back, text_to_sql.classify and 18 more
    scenes/rooms/scene.toml:16: error[scene.bound]: the timeout_ms of BookRoom is 0
      help: use 1 or more, or omit it for the default 10000
    scenes/rooms/scene.toml:21: error[scene.http_placeholder]: {room} is not among the tool's parameters
      help: declare it in `parameters`, or use one of: (none)
    scenes/empty: warning[scene.no_file]: the folder has no scene.toml and no flow.toml
      help: add scene.toml or flow.toml, or move the folder away

    14 errors, 2 warnings
    "#);

    let ran = workspace.run(&["chat", "Ciao", "--scenes", "scenes"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("scene.toml:16") && ran.err.contains("proscenium check"), "{}", ran.err);
}

#[test]
fn valid_setup_is_reported_with_what_was_found() {
    let ran = Workspace::bare().run(&["check"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for expected in [
        "offline (rules in this program, no network)",
        "4 scenes:",
        "MakeRequest (write)",
        "Nothing is wrong.",
    ] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
}

#[test]
fn programs_that_nobody_writes_or_executes_are_reported() {
    let workspace = Workspace::bare()
        .with("PROSCENIUM__PLANNING__MAKER", "code")
        .with("PROSCENIUM__SANDBOX__WORKER", "/nonexistent/worker");
    let ran = workspace.run(&["check"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for expected in [
        "planning.maker: error[check.programs_without_models]: ",
        "sandbox: error[sandbox.unavailable]: no program can be executed: `/nonexistent/worker` cannot be started",
    ] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    let ran = workspace.with("PROSCENIUM__PLANNING__MAKER", "scenes").run(&["check"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("sandbox: warning[sandbox.unavailable]"), "{ran:?}");
}

#[test]
fn settings_that_tools_in_rust_cannot_use_are_reported_with_their_place() {
    let workspace = Workspace::bare();
    let settings = "[scenes.settings.Weather]\nsource = \"open_meteo\"\n[scenes.settings.text_to_sql]\n\
                    max_rows = 0\n[scenes.settings.VacationManagement]\ndefault_days = \"many\"\n";
    workspace.write("site.toml", settings);
    let ran = workspace.run(&["check", "--config", "site.toml"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for expected in [
        "site.toml:2: error[weather.settings]: `scenes.settings.Weather.source` of the configuration is invalid: ",
        "site.toml:4: error[text_to_sql.settings]: `scenes.settings.text_to_sql.max_rows` must be from 1 to ",
        "site.toml:6: error[vacation.settings]: `scenes.settings.VacationManagement.default_days` ",
    ] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    // A scene of the same name whose tools are no functions of the program has settings of its own.
    let scene = "name = \"Weather\"\ndescription = \"Weather of the roofs.\"\ninstructions = \"Look it up.\"\n\
                 examples = [{ say = \"Roof weather\", tool = \"Roof\" }]\n[settings]\nsource = \"roof\"\n[[tools]]\n\
                 name = \"Roof\"\ndescription = \"Tells the weather.\"\neffect = \"read\"\nparameters = { type = \"object\" }\n\
                 http = { method = \"GET\", url = \"https://roof.example/now\" }\n";
    workspace.write("own/weather/scene.toml", scene);
    let ran = workspace.run(&["--scenes", "own", "check"]);
    assert_eq!(ran.status, 0, "{ran:?}");
}

#[test]
fn live_check_finds_how_to_force_a_model() {
    // Calls a function only if `tool_choice` is `required`.
    let llm = ScriptedLlm::start(|request, _| match support::forced_tool(request) {
        Some(name) if request["tool_choice"] == "required" => {
            let parameters = &request["tools"][0]["function"]["parameters"];
            Scripted::call(name, value_for_schema(parameters))
        }
        _ => Scripted::Text("I would rather talk.".to_owned()),
    });
    let workspace =
        Workspace::bare().with("OPENAI_BASE_URL", llm.base_url()).with("OPENAI_MODEL", "some-model");
    let ran = workspace.run(&["check", "--live"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for expected in [
        "forcing = \"required\" works",
        "forcing = \"named\" does not work",
        "    use forcing = \"required\"",
        "model some-model: warning[llm.forcing]: it is not forced by \"named\"",
        "help: set `forcing = \"required\"` in its [[llm.models]]",
    ] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
}

#[cfg(unix)]
#[test]
fn live_check_finds_that_the_simulated_model_can_be_forced() {
    let workspace = Workspace::bare();
    let mut simulator = workspace.spawn(&["simulate-llm", "--addr", "127.0.0.1:0"]);
    simulator.read_until("http://");
    let address = format!("http://{}", simulator.output().rsplit("http://").next().unwrap().trim());
    let ran = workspace.with("OPENAI_BASE_URL", &address).run(&["check", "--live"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for forcing in ["named", "required", "json_schema"] {
        let expected = format!("forcing = \"{forcing}\" works [");
        assert!(ran.out.contains(&expected), "no {expected:?} in {}", ran.out);
    }
    simulator.signal("TERM");
    assert_eq!(simulator.end().status, 0);
}

#[test]
fn live_check_of_a_dead_address_says_that_the_connection_is_refused() {
    let workspace =
        Workspace::bare().with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1").with("OPENAI_MODEL", "m");
    let ran = workspace.run(&["check", "--live"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.out.contains("model m: error[llm.connect]: "), "{}", ran.out);
    assert_eq!(ran.out.matches("Connection refused").count(), 1, "{}", ran.out);
    assert!(!ran.out.contains("forcing ="), "{}", ran.out);
}

/// A value that matches an object's schema.
fn value_for_schema(schema: &serde_json::Value) -> serde_json::Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let value = |schema: &serde_json::Value| match (&schema["enum"], schema["type"].as_str()) {
        (serde_json::Value::Array(choices), _) => choices[0].clone(),
        (_, Some("integer" | "number")) => json!(1),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!([]),
        _ => json!("word"),
    };
    properties
        .iter()
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The files of the data directory with their contents.
fn stored_files(workspace: &Workspace) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(workspace.data()).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn check_reads_the_data_directory_without_changing_it() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["check"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("Data directory: data\n  nothing is stored there yet\n"), "{}", ran.out);
    assert!(!workspace.data().exists(), "nothing is created");

    assert_eq!(workspace.run(&["chat", "Che tempo fa a Milano?"]).status, 0);
    let before = stored_files(&workspace);
    let ran = workspace.run(&["check"]);
    assert!(stored_files(&workspace) == before);
    assert!(ran.status == 0 && ran.out.contains("\n  schema version "), "{ran:?}");
    assert!(!ran.out.contains("in use by"), "{}", ran.out);

    // A newer version's file and a damaged file are refused, as by every other command.
    let file = workspace.data().join("proscenium.db");
    let whole = std::fs::read(&file).unwrap();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&99u32.to_be_bytes());
    let garbage = b"This is no database. ".repeat(500);
    for (bytes, code) in [(newer, "store.newer_schema"), (garbage, "store.corrupt")] {
        std::fs::write(&file, &bytes).unwrap();
        let before = stored_files(&workspace);
        let ran = workspace.run(&["check", "--data-dir", "data"]);
        assert!(stored_files(&workspace) == before);
        assert_eq!((ran.status, ran.err.as_str()), (1, ""), "{ran:?}");
        assert!(ran.out.contains(&format!("flag --data-dir: error[{code}]: ")), "{}", ran.out);
        assert!(workspace.run(&["chat", "Ciao"]).err.contains(&format!("error[{code}]")));
    }

    // An older version's file is reported and not migrated.
    let mut older = whole.clone();
    older[60..64].copy_from_slice(&3u32.to_be_bytes());
    std::fs::write(&file, &older).unwrap();
    let before = stored_files(&workspace);
    let ran = workspace.run(&["check"]);
    assert!(
        ran.status == 0 && ran.out.contains("schema version 3, which the next command that writes"),
        "{ran:?}"
    );
    assert!(stored_files(&workspace) == before);
}

#[cfg(unix)]
#[test]
fn unusable_data_directory_path_is_reported() {
    let workspace = Workspace::new();
    std::os::unix::fs::symlink("nowhere", workspace.path().join("link")).unwrap();
    let mut places = vec!["link", "link/below"];
    if cfg!(target_os = "linux") {
        places.push("/proc/proscenium");
    }
    for place in places {
        let ran = workspace.run(&["check", "--data-dir", place]);
        assert_eq!((ran.status, ran.err.as_str()), (1, ""), "{ran:?}");
        assert!(ran.out.contains("flag --data-dir: error[store."), "{}", ran.out);
        assert!(!ran.out.contains("nothing is stored there yet"), "{}", ran.out);
        let ran = workspace.run(&["chat", "Ciao", "--data-dir", place]);
        assert!(ran.status == 1 && ran.err.contains("error[store."), "{ran:?}");
    }
    // A new database is an empty file.
    std::fs::create_dir(workspace.data()).unwrap();
    std::fs::write(workspace.data().join("proscenium.db"), "").unwrap();
    let ran = workspace.run(&["check"]);
    assert!(ran.status == 0 && ran.out.contains("\n  nothing is stored there yet: its database"), "{ran:?}");
    assert_eq!(workspace.run(&["chat", "Che tempo fa a Milano?"]).status, 0);
}

#[cfg(unix)]
#[test]
fn data_directory_is_checked_while_a_server_owns_it() {
    let workspace = Workspace::new();
    let server = workspace.serve(&[]);
    let ran = workspace.run(&["check"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    let owned = "; served at http://127.0.0.1:";
    assert!(
        ran.out.contains(owned) && ran.out.contains(&format!(" by process {}, since ", server.id())),
        "{}",
        ran.out
    );
    server.signal("TERM");
    assert_eq!(server.end().status, 0);
    let mut owner = workspace.spawn(&["chat"]);
    owner.write("Che tempo fa a Milano?\n");
    owner.read_stderr_until("model calls");
    let ran = workspace.run(&["check"]);
    assert!(ran.status == 0 && ran.out.contains(&format!("; in use by process {}", owner.id())), "{ran:?}");
    assert_eq!(owner.end().status, 0);
}

#[cfg(unix)]
#[test]
fn data_directory_readable_by_others_is_reported_and_fixed() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new();
    workspace.ask("Che tempo fa a Milano?", &[]);
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // As an older version left it.
    let (data, file) = (workspace.data(), workspace.data().join("proscenium.db"));
    open(&data, 0o755);
    open(&file, 0o644);
    let ran = workspace.run(&["check"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for place in ["data: warning[store.exposed]", "proscenium.db: warning[store.exposed]", "its mode is 644"]
    {
        assert!(ran.out.contains(place), "{place}: {}", ran.out);
    }
    // With any umask, other users get no access.
    let mut shell = std::process::Command::new("sh");
    let program = workspace.command(&["chat", "Che tempo fa a Roma?", "--json"]);
    let line = std::iter::once(program.get_program()).chain(program.get_args());
    shell.args(["-c", "umask 000; exec \"$@\"", "sh"]).args(line).current_dir(workspace.path());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let ran = shell.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let entries = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.chain([data.clone()]) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
    assert!(!workspace.run(&["check"]).out.contains("store.exposed"));
}

#[test]
fn passwords_in_urls_are_never_shown() {
    let config = |url: &str, webhook: &str| {
        format!(
            "[llm]\n[[llm.models]]\nname = \"main\"\nbase_url = \"{url}\"\n\
             [approval.webhook]\nurl = \"{webhook}\"\nsecret_env = \"HOOK\"\n"
        )
    };
    let ran = |url: &str, webhook: &str, line: &[&str]| {
        let workspace =
            Workspace::bare().with("HOOK", "whsec_c2VjcmV0").with("PROSCENIUM__TELEMETRY__LOG", "trace");
        workspace.write("site.toml", &config(url, webhook));
        let ran = workspace.run(&[&["--config", "site.toml"], line].concat());
        let output = format!("{}{}", ran.out, ran.err);
        assert!(!output.contains("ter2"), "{output}");
        output
    };
    for (url, webhook) in [
        ("http://bob:hunter2@models.example/v1", "http://bob:hunter2@hooks.example/hunter2?token=hunter2"),
        ("http://127.0.0.1:1/v1?api_key=hunter2", "https://hunter2@hooks.example"),
        ("ftp://bob:hunter2@models.example/v1", "ftp://bob:hunter2@hooks.example"),
        ("http://bob:hun/ter2@models.example", "http://bob:hun/ter2@hooks.example"),
        ("http:/bob:hunter2@models.example", "http:bob:hunter2@hooks.example"),
        ("bob:hunter2@models.example", "bob:hunter2@hooks.example"),
        ("http://bob:fade/hunter2@models.example", "http://bob:hun'ter2@hooks.example:99999"),
    ] {
        let output = ran(url, webhook, &["check"]);
        assert!(output.contains("models.example") || output.contains("127.0.0.1:1"), "{output}");
        // An unreadable URL is reported by every command.
        if !["http://bob:hunter2", "http://127", "http:/bob"].iter().any(|start| url.starts_with(start)) {
            assert!(ran(url, webhook, &["plan", "Ciao"]).contains("base_url"));
        }
    }
    // A configured model that cannot be reached.
    let webhook = "http://bob:hunter2@127.0.0.1:1";
    ran("http://bob:hunter2@127.0.0.1:1/v1", webhook, &["check", "--live"]);
    ran("http://bob:hunter2@127.0.0.1:1/v1", webhook, &["plan", "Ciao"]);
}

#[test]
fn plain_http_webhook_is_warned_about_unless_local() {
    for (url, warned) in [
        ("http://hooks.example/a", true),
        ("http://10.0.0.1/a", true),
        ("https://hooks.example/a", false),
        ("http://localhost:9/a", false),
        ("http://[::1]:9/a", false),
    ] {
        let workspace = Workspace::bare().with("HOOK", "whsec_c2VjcmV0");
        workspace
            .write("site.toml", &format!("[approval.webhook]\nurl = \"{url}\"\nsecret_env = \"HOOK\"\n"));
        let ran = workspace.run(&["check", "--config", "site.toml"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        let is_warned = ran.out.contains("site.toml:2: warning[config.insecure]");
        assert_eq!(is_warned, warned, "{url}: {}", ran.out);
    }
}

#[test]
fn policies_that_no_run_uses_are_warned_about() {
    let scene = r#"name = "Orders"
description = "Orders."
instructions = "Look."
[[examples]]
say = "Where is order 3?"
[[tools]]
name = "GetOrder"
description = "Looks an order up."
effect = "read"
http = { url = "https://orders.example/" }
policies = { unavailable = { do = ["retry"] } }
"#;
    let workspace = Workspace::bare();
    workspace.write("scenes/orders/scene.toml", scene);
    for (config, warned) in [("", true), ("[execution]\nmode = \"strict\"\n", false)] {
        workspace.write("house.toml", &format!("[scenes]\nbuiltin = false\ndir = \"scenes\"\n{config}"));
        let ran = workspace.run(&["check", "--config", "house.toml"]);
        let told = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.status, 0, "{told}");
        assert_eq!(told.contains("check.policies_without_mode"), warned, "{told}");
    }
}

#[test]
fn live_check_names_the_databases_that_must_not_or_cannot_be_used() {
    let workspace = Workspace::bare();
    let config = "[scenes.settings.text_to_sql.databases.sales]\nurl_env = \"SALES\"\n\
                  [scenes.settings.text_to_sql.databases.lost]\nsqlite = \"/nowhere/lost.sqlite\"\n";
    workspace.write("site.toml", config);
    let ran = workspace.run(&["check", "--live", "--config", "site.toml"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for line in [
        "text_to_sql: lost: error[sql.engine.unreadable]",
        "text_to_sql: sales: error[text_to_sql.settings]",
        "text_to_sql: shop: the sample of the program",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }

    let Some(server) = PostgresServer::start("live check") else { return };
    for (role, told) in [("owner", "error[sql.engine.role]"), ("reader", "can be used")] {
        let script = "CREATE TABLE sales (day date); CREATE ROLE reader LOGIN; GRANT SELECT ON sales TO reader; \
                      REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC";
        if role == "owner" {
            tokio::runtime::Runtime::new().unwrap().block_on(server.run("postgres", script));
        }
        let workspace = Workspace::bare().with("SALES", &server.url(role, "postgres"));
        workspace.write("site.toml", "[scenes.settings.text_to_sql.databases.sales]\nurl_env = \"SALES\"\n");
        let ran = workspace.run(&["check", "--live", "--config", "site.toml"]);
        assert!(ran.out.contains(&format!("text_to_sql: sales: {told}")), "{role}: {}", ran.text());
        assert_eq!(ran.status, i32::from(role == "owner"), "{role}: {}", ran.text());
    }
}
