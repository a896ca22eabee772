mod mistakes;

use serde_json::json;

use super::*;
use crate::run::{Effect, Repeat};
use crate::scene::arguments;
use crate::tools::testing::{Reply, context, serve};
use crate::tools::{ToolContext, native};

const GOOD: &str = r#"
name = "Weather"
description = "Weather of cities."
instructions = "Use the tool."
concurrency = 3

[[examples]]
say = "Che tempo fa a Milano?"
tool = "Forecast"

[settings]
source = "auto"
limits = { days = 7 }
since = 2026-01-01

[[tools]]
name = "Forecast"
description = "The forecast."
effect = "read"
native = "weather.forecast"
timeout_ms = 500
identity = ["city"]
[tools.parameters]
type = "object"
required = ["city"]
[tools.parameters.properties.city]
type = "string"
[tools.parameters.properties.date]
type = "string"
format = "date"
[tools.say]
it = "A {{ city }} il {{ date | day }}."
"#;

fn natives() -> NativeTools {
    let nothing = |_: Value, _: ToolContext| async { Ok(Value::Null) };
    NativeTools::new().with("weather.forecast", native(nothing)).with("weather.cities", native(nothing))
}

fn folder(label: &str, text: &str) -> SceneFolder {
    SceneFolder { label: label.into(), files: [(SCENE_FILE.to_owned(), text.as_bytes().to_vec())].into() }
}

fn load_all(sets: Vec<Vec<SceneFolder>>, settings: &Value) -> LoadedScenes {
    let settings = serde_json::from_value(settings.clone()).unwrap();
    SceneLoader::new(&natives()).environment(|_| None).load(sets, &settings)
}

fn load_one(text: &str) -> LoadedScenes {
    load_all(vec![vec![folder("s", text)]], &json!({}))
}

fn rendered_faults(loaded: &LoadedScenes) -> String {
    loaded.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn scene_file_loads_with_all_its_values() {
    let loaded = load_one(GOOD);
    assert_eq!(rendered_faults(&loaded), "");
    let scene = &loaded.scenes[0];
    assert_eq!((scene.name.as_str(), scene.concurrency, scene.mailbox), ("Weather", 3, 1024));
    assert_eq!(scene.settings, json!({"source": "auto", "limits": {"days": 7}, "since": "2026-01-01"}));
    let tool = scene.tool("Forecast").unwrap();
    assert_eq!(
        (tool.effect, tool.repeat, tool.timeout_ms, tool.max_result_bytes),
        (Effect::Read, Repeat::Never, 500, 16384)
    );
    assert_eq!(tool.identity, ["city"]);
    assert_eq!(tool.source, json!({"native": "weather.forecast"}));
    assert_eq!(tool.say["it"], "A {{ city }} il {{ date | day }}.");
    assert!(arguments::check(tool, r#"{"city":"Milano","date":"2026-06-15"}"#).is_ok());
    assert!(arguments::check(tool, r#"{"city":"Milano","date":"15 giugno"}"#).is_err());
}

#[test]
fn all_faults_are_reported_at_once_with_lines() {
    let bad = r#"name = "Vacation"
descripton = "Typo."
instructions = ""
concurrency = 0
mailbox = "many"

[[examples]]
say = "Chiedi ferie"
tool = "MakeReqest"

[[tools]]
name = "MakeRequest"
description = "Books."
effect = "writes"
repeat = "key"
native = "vacation.make"
identity = ["form"]
timeout_ms = 0
[tools.parameters]
type = "object"
required = ["from", "too"]
[tools.parameters.properties.from]
type = "strng"
[tools.parameters.properties.to]
type = "string"
descripion = "Last day."
[tools.say]
it = "Fatto {{ id"
italian = "Fatto"

[[tools]]
name = "makerequest"
description = "Again."
effect = "read"
repeat = "key"
native = "weather.citys"
[tools.http]
url = "https://example.com"

[[tools]]
name = "CheckContinuation"
description = "Nothing to call."
effect = "read"

[[tools]]
name = "Get it"
description = "Over HTTP."
effect = "reed"
[tools.parameters]
type = "object"
properties.q.type = "string"
[tools.http]
method = "GET"
url = "http://192.168.0.1/{city}"
body = { q = "{q}" }
[tools.http.headers]
Authorization = "Bearer ${env:CRM_TOKEN}"
"#;
    let broken = "name = \"Broken\"\ninstructions = \"x\ndescription = 5\n[[tools]\n";
    let twice = GOOD.replace("Weather\"", "weather\"");
    let folders =
        vec![folder("a", GOOD), folder("b", bad), folder("c", broken), folder("d", &twice), folder("e", "")];
    let loaded = load_all(vec![folders], &json!({"weatherr": {}, "WEATHER": 5}));
    assert_eq!(loaded.scenes.len(), 1);
    assert!(loaded.has_errors());
    insta::assert_snapshot!(rendered_faults(&loaded), @r#"
    b/scene.toml:1: error[scene.missing_key]: `description` is missing
      add description = …
    b/scene.toml:2: error[scene.unknown_key]: `descripton` is not a key of a scene
      did you mean "description"?
    b/scene.toml:3: error[scene.empty]: `instructions` is empty
      fill it in: they are all that the scene's model is told
    b/scene.toml:4: error[scene.bound]: concurrency = 0 is out of bounds
      use 1 or more, or omit it for the default 32
    b/scene.toml:5: error[scene.wrong_type]: `mailbox` is a string
      write a whole number of 0 or more
    b/scene.toml:9: error[scene.example_tool]: the example names the tool "MakeReqest", which the scene does not have
      did you mean "MakeRequest"?
    b/scene.toml:14: error[scene.invalid_value]: `tools[0].effect` is "writes"
      write one of: read, write; did you mean "write"?
    b/scene.toml:16: error[scene.native_unknown]: no native tool is registered as "vacation.make"
      registered are: weather.cities, weather.forecast
    b/scene.toml:17: error[scene.identity]: the identity of MakeRequest names "form", which is not among its properties
      did you mean "from"?
    b/scene.toml:18: error[scene.bound]: the timeout_ms of MakeRequest is 0
      use 1 or more, or omit it for the default 10000
    b/scene.toml:21: error[scene.required]: MakeRequest requires "too", which is not among its properties
      did you mean "to"?
    b/scene.toml:23: error[scene.parameters]: "strng" in the parameters of MakeRequest is not a JSON Schema type
      did you mean "string"?
    b/scene.toml:26: warning[scene.schema_keyword]: "descripion" in the parameters of MakeRequest is not a JSON Schema keyword and has no effect
      did you mean "description"?
    b/scene.toml:28: error[scene.say_template]: the sentence of MakeRequest in "it" cannot be used: syntax error: unexpected end of input, expected end of variable block
      write it as "{{ city }} on {{ date | day }}", with Jinja's built-in filters and `day`
    b/scene.toml:29: error[scene.say_language]: "italian" is not a language code
      use the two letters of ISO 639-1 in lower case, such as it or en
    b/scene.toml:32: error[scene.duplicate_tool]: "makerequest" is the name of two tools; the other one is on line 12
      give each tool a unique name (case-insensitive)
    b/scene.toml:35: warning[scene.repeat]: makerequest only reads, and reads may always be repeated
      remove `repeat`, or set effect = "write"
    b/scene.toml:37: error[scene.implementation]: a tool is native, an HTTP request, in Python or a summary, and this is more than one
      keep one of `native`, [tools.http] and `kind`
    b/scene.toml:40: error[scene.implementation]: the tool has no implementation
      add native = "name.of_the_tool", a table [tools.http], kind = "python" for a function in tools.py, or kind = "summary"
    b/scene.toml:41: error[scene.reserved_name]: "CheckContinuation" is reserved by the engine
      choose another name
    b/scene.toml:46: error[scene.name]: "Get it" is not a valid tool name
      use 1 to 64 characters from A-Z a-z 0-9 _ -
    b/scene.toml:48: error[scene.invalid_value]: `tools[3].effect` is "reed"
      write one of: read, write; did you mean "read"?
    b/scene.toml:54: error[scene.http_private_address]: 192.168.0.1 is not a public address: loopback, private and link-local addresses are reached only with `scenes.allow_private_addresses = true` or the host in `scenes.allow_hosts`
      write a public host, or add "192.168.0.1" to `scenes.allow_hosts`
    b/scene.toml:54: error[scene.http_placeholder]: {city} is not among the tool's parameters
      declare it in `parameters`, or use one of: q
    b/scene.toml:55: error[scene.http_body]: a GET request has no body
      put the values in `query`, or use another `method`
    b/scene.toml:57: error[scene.http_secret]: the environment variable CRM_TOKEN is not set
      set CRM_TOKEN before starting, or remove the reference
    c/scene.toml:2: error[scene.syntax]: invalid TOML: invalid basic string, expected `"`
      fix this first: the rest of the file is checked afterwards
    c/scene.toml:4: error[scene.syntax]: invalid TOML: unclosed array table, expected `]`
      fix this first: the rest of the file is checked afterwards
    d/scene.toml:2: error[scene.duplicate_scene]: a scene or flow named "Weather" already exists in a/scene.toml:2
      give each scene a unique name (case-insensitive)
    e/scene.toml: warning[scene.no_tools]: the scene has no tools
      add a table [[tools]]
    e/scene.toml: warning[scene.no_examples]: the scene has no examples
      add [[examples]] with say = "…": requests are routed by them
    e/scene.toml:1: error[scene.missing_key]: `name` is missing
      add name = …
    e/scene.toml:1: error[scene.missing_key]: `description` is missing
      add description = …
    e/scene.toml:1: error[scene.missing_key]: `instructions` is missing
      add instructions = …
    configuration: error[scene.settings_type]: scenes.settings.WEATHER must be a table
      write [scenes.settings.WEATHER]
    configuration: error[scene.settings_scene]: scenes.settings.weatherr is for a scene that does not exist
      did you mean "Weather"?
    "#);
}

#[test]
fn later_set_replaces_scene_with_warning_and_settings_merge() {
    let own = GOOD
        .replace("Weather of cities.", "Our weather.")
        .replace("name = \"Weather\"", "name = \"WEATHER\"");
    let sets = vec![vec![folder("builtin/weather", GOOD)], vec![folder("mine/weather", &own)]];
    let settings = json!({"weather": {"SOURCE": "bundled", "limits": {"hours": 1}, "sorce": 1}});
    let loaded = load_all(sets, &settings);
    assert!(!loaded.has_errors());
    assert_eq!(loaded.scenes.len(), 1);
    assert_eq!(loaded.scenes[0].description, "Our weather.");
    assert_eq!(
        loaded.scenes[0].settings,
        json!({"source": "bundled", "limits": {"days": 7, "hours": 1}, "since": "2026-01-01", "sorce": 1})
    );
    insta::assert_snapshot!(rendered_faults(&loaded), @r#"
    mine/weather/scene.toml:2: warning[scene.replaced]: this scene replaces "Weather" of builtin/weather/scene.toml:2
      rename it to keep both scenes
    configuration: warning[scene.settings_key]: scenes.settings.weather.sorce is not among the settings that the scene lists
      did you mean "source"?
    "#);
}

#[test]
fn directory_loads_each_folder_and_warns_of_non_scenes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("weather/scene.toml", GOOD);
    write("weather/schema.sql", "CREATE TABLE IF NOT EXISTS cities (name TEXT);");
    write("notes/readme.md", "nothing");
    write(".git/config", "nothing");
    let options = Options { dir: Some(dir.path().into()), ..Options::default() };
    let loaded = load(
        &options,
        &sandbox::read_module_here,
        EmbeddedScenes::default(),
        Vec::new(),
        &natives(),
        Vec::new(),
    );
    assert_eq!(
        loaded.scenes[0].schema_sql.as_deref(),
        Some("CREATE TABLE IF NOT EXISTS cities (name TEXT);")
    );
    assert_eq!(loaded.faults.iter().map(|f| f.code.as_str()).collect::<Vec<_>>(), ["scene.no_file"]);
    assert!(loaded.faults[0].file.ends_with("notes"));

    std::fs::create_dir_all(dir.path().join("notes/scene.toml")).unwrap();
    let folder_for_file = load_dir(dir.path(), &natives(), &NetworkPolicy::default());
    let fault = &folder_for_file.faults[0];
    assert_eq!(fault.code, "scene.unreadable");
    assert!(
        fault.message.ends_with("notes/scene.toml cannot be read: it is not a regular file"),
        "{fault:?}"
    );

    let single = load_dir(&dir.path().join("weather"), &natives(), &NetworkPolicy::default());
    assert_eq!((single.scenes.len(), single.faults.len()), (1, 0));

    let missing = load_dir(&dir.path().join("nowhere"), &natives(), &NetworkPolicy::default());
    assert_eq!(missing.faults[0].code, "scene.unreadable");
    assert!(missing.has_errors());
}

#[test]
fn embedded_folders_load_like_folders_on_disk() {
    use include_dir::{Dir, DirEntry, File};
    const FILES: &[DirEntry<'_>] = &[
        DirEntry::File(File::new("weather/scene.toml", GOOD.as_bytes())),
        DirEntry::File(File::new("weather/tools.rs", b"fn main() {}")),
    ];
    const DIRS: &[DirEntry<'_>] = &[
        DirEntry::Dir(Dir::new("weather", FILES)),
        DirEntry::Dir(Dir::new("empty", &[])),
        DirEntry::Dir(Dir::new("more", INSIDE)),
        DirEntry::File(File::new("README.md", b"")),
    ];
    const OPTIONAL: &[DirEntry<'_>] = &[DirEntry::File(File::new("more/sky/scene.toml", GOOD.as_bytes()))];
    const INSIDE: &[DirEntry<'_>] = &[DirEntry::Dir(Dir::new("more/sky", OPTIONAL))];
    let folders = EmbeddedScenes::of("builtin", &Dir::new("", DIRS));
    assert_eq!(folders.builtin, [folder("builtin/weather", GOOD)]);
    let named = |dir: &str| Options { dir: Some(dir.into()), builtin: false, ..Options::default() };
    let loaded = load(
        &named("shipped:more"),
        &sandbox::read_module_here,
        folders.clone(),
        Vec::new(),
        &natives(),
        Vec::new(),
    );
    assert_eq!((loaded.scenes.len(), loaded.faults.len()), (1, 0));
    let unknown = load(
        &named("shipped:moor"),
        &sandbox::read_module_here,
        folders.clone(),
        Vec::new(),
        &natives(),
        Vec::new(),
    );
    assert!(unknown.faults[0].to_string().contains("one of: more"), "{:?}", unknown.faults);
    let without = Options { builtin: false, ..Options::default() };
    assert_eq!(
        load(
            &Options::default(),
            &sandbox::read_module_here,
            folders.clone(),
            Vec::new(),
            &natives(),
            Vec::new()
        )
        .scenes
        .len(),
        1
    );
    assert_eq!(
        load(&without, &sandbox::read_module_here, folders, Vec::new(), &natives(), Vec::new()).scenes.len(),
        0
    );
}

#[cfg(target_os = "linux")]
#[test]
fn pipe_in_a_folder_is_reported_and_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("weather");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("scene.toml"), GOOD).unwrap();
    mknodat(CWD, folder.join(SCHEMA_FILE), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (folders, faults) = read_folders(dir.path());
    assert!(folders.is_empty());
    assert_eq!(faults[0].code, "scene.unreadable");
    assert!(faults[0].message.ends_with("schema.sql cannot be read: it is not a regular file"), "{faults:?}");
}

#[test]
fn non_text_and_oversized_files_are_reported() {
    let mut binary = folder("a", GOOD);
    binary.files.insert(SCHEMA_FILE.into(), vec![0xff, 0xfe]);
    let large = folder("b", &"#".repeat(MAX_FILE_BYTES + 1));
    let loaded = load_all(vec![vec![binary, large]], &json!({}));
    let codes: Vec<(&str, &str)> = loaded.faults.iter().map(|f| (f.file.as_str(), f.code.as_str())).collect();
    assert_eq!(codes, [("a/schema.sql", "scene.unreadable"), ("b/scene.toml", "scene.unreadable")]);
    assert!(loaded.scenes.is_empty());
}

#[tokio::test]
async fn http_tool_is_loaded_and_called() {
    let server = serve([Reply::json(r#"{"data":[{"name":"Rossi"}]}"#)]).await;
    let text = format!(
        r#"
name = "Crm"
description = "Customers."
instructions = "Use the tool."
examples = [{{ say = "Who is customer 7?", tool = "GetCustomer" }}]
[[tools]]
name = "GetCustomer"
description = "Looks a customer up."
effect = "read"
[tools.parameters]
type = "object"
required = ["id"]
properties.id.type = "integer"
[tools.http]
url = "{}"
headers = {{ Authorization = "Bearer ${{env:CRM_TOKEN}}" }}
query = {{ limit = 1 }}
result = "/data/0"
"#,
        server.url("/customers/{id}")
    );
    let natives = NativeTools::new();
    let loader = SceneLoader::new(&natives)
        .network(NetworkPolicy { allow_hosts: vec![server.authority()], ..NetworkPolicy::default() })
        .environment(|name| (name == "CRM_TOKEN").then(|| "s3cr3t".to_owned()));
    let loaded = loader.load(vec![vec![folder("crm", &text)]], &BTreeMap::new());
    assert_eq!(rendered_faults(&loaded), "");
    let tool = &loaded.scenes[0].tools[0];
    assert_eq!(tool.tool.call(context(), json!({"id": 7})).await, Ok(json!({"name": "Rossi"})));
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /customers/7?limit=1 "), "{request}");
    assert!(request.contains("Bearer s3cr3t"));
    assert!(!serde_json::to_string(&loaded.scenes[0]).unwrap().contains("s3cr3t"));
}

#[test]
fn malformed_allowed_hosts_are_reported() {
    let options = Options { allow_hosts: vec!["http://crm".into()], ..Options::default() };
    let loaded = load(
        &options,
        &sandbox::read_module_here,
        EmbeddedScenes::default(),
        Vec::new(),
        &NativeTools::new(),
        Vec::new(),
    );
    assert_eq!(loaded.faults[0].code, "scene.allow_hosts");
}

#[test]
fn options_have_defaults_and_refuse_unknown_keys() {
    let options: Options =
        serde_json::from_value(json!({"settings": {"Weather": {"source": "bundled"}}})).unwrap();
    assert!(options.builtin && !options.allow_private_addresses && options.dir.is_none());
    assert!(serde_json::from_value::<Options>(json!({"directory": "x"})).is_err());
}

#[test]
fn policies_are_read_and_their_mistakes_are_reported() {
    let with = |policies: &str| load_one(&format!("{GOOD}{policies}"));
    let loaded = with("[tools.policies.timeout]\ndo = ['retry']\nattempts = 4\nmax_wait_ms = 5\n");
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    let policies = &loaded.scenes[0].tools[0].policies;
    let policy = &policies.by_class[&crate::fault::FaultClass::Timeout];
    assert_eq!((policy.attempts, policy.backoff_ms, policy.max_wait_ms), (Some(4), None, Some(5)));
    let line = u32::try_from(GOOD.lines().count() + 1).unwrap();
    for (text, code, at) in [
        ("do = ['rety']", "policy_action", 1),
        ("do = []", "policy_action", 0),
        ("do = ['retry', 'retry']", "policy_action", 1),
        ("do = ['fail', 'retry']", "policy_action", 1),
        ("do = ['alternative']", "policy_alternative", 0),
        ("do = ['cached']", "policy_cached", 0),
        ("do = ['skip']", "policy_skip", 0),
        ("do = ['fail']\nattempts = 2", "policy_unused", 0),
        ("do = ['retry']\nattempts = 1", "bound", 2),
        ("attempts = 11", "bound", 1),
        ("backoff_ms = 60001", "bound", 1),
        ("max_wait_ms = 600001", "bound", 1),
        ("tries = 2", "unknown_key", 1),
    ] {
        let faults = with(&format!("[tools.policies.timeout]\n{text}\n")).faults;
        let found: Vec<(&str, Option<u32>)> = faults.iter().map(|f| (f.code.as_str(), f.line)).collect();
        assert_eq!(found, [(format!("scene.{code}").as_str(), Some(line + at))], "{text}: {faults:?}");
        assert!(!faults[0].remedy.is_empty());
    }
    for (text, code) in [
        ("[tools.policies.timout]\n", "unknown_key"),
        ("[tools.policies.denied]\ndo = ['retry']\n", "policy_retry"),
    ] {
        let faults = with(text).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].code, format!("scene.{code}"));
    }
    alternatives_are_checked();
    expectations_are_checked();
    ages_of_results_are_checked();
    let optional = GOOD.replace("effect = \"read\"", "effect = \"read\"\noptional = true");
    assert_eq!(load_one(&optional).faults[0].code, "scene.policy_unused");
    let skips = format!("{optional}[tools.policies.timeout]\ndo = ['skip']\n");
    assert!(load_one(&skips).faults.is_empty());
}

/// The scene with a second read and a write, and this alternative of the first tool.
fn with_alternative(tool: &str, arguments: &str) -> LoadedScenes {
    let other = |name: &str, effect: &str| {
        format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"x\"\neffect = \"{effect}\"\nsay = {{ en = \"x\" }}\n\
             parameters = {{ type = \"object\", properties = {{ place = {{ type = \"string\" }} }}, required = [\"place\"] }}\n\
             http = {{ url = \"https://example.com/x\" }}\n"
        )
    };
    let of_first = format!(
        "[tools.policies.timeout]\ndo = ['alternative']\n[tools.alternative]\ntool = {tool:?}\narguments = {arguments}\n"
    );
    load_one(&format!("{GOOD}{of_first}{}{}", other("Backup", "read"), other("Order", "write")))
}

fn ages_of_results_are_checked() {
    let with = |age: &str| {
        load_one(&format!("{GOOD}[tools.cached]\n{age}\n[tools.policies.timeout]\ndo = ['cached']\n"))
    };
    let loaded = with("max_age_s = 60");
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    assert_eq!(loaded.scenes[0].tools[0].policies.cached.unwrap().max_age_s, 60);
    for (text, code) in [("max_age_s = 0", "bound"), ("max_age_s = 2592001", "bound"), ("", "missing_key")] {
        let codes: Vec<String> = with(text).faults.into_iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [format!("scene.{code}")], "{text}");
    }
    let denied = format!("{GOOD}[tools.cached]\nmax_age_s = 60\n[tools.policies.denied]\ndo = ['cached']\n");
    assert_eq!(load_one(&denied).faults[0].code, "scene.policy_cached");
    let volatile = denied.replace("policies.denied", "policies.timeout");
    let volatile = volatile.replace("effect = \"read\"", "effect = \"read\"\nvolatile = true");
    assert_eq!(load_one(&volatile).faults[0].code, "scene.policy_cached");
}

fn expectations_are_checked() {
    let with = |text: &str| load_one(&format!("{GOOD}[tools.expect]\n{text}\n"));
    let loaded = with(
        "not_empty = ['', '/x']\nranges = { '/c' = { min = -1, max = 2.5 } }\nsame = { city = '/city' }\nschema = { type = 'object' }",
    );
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    let expectations = &loaded.scenes[0].tools[0].expectations;
    assert!(expectations.schema.is_some() && expectations.not_empty.len() == 2);
    assert_eq!(expectations.ranges["/c"].max, Some(2.5));
    for (text, code) in [
        ("not_empty = ['x']", "expect_pointer"),
        ("same = { citty = '/city' }", "expect_argument"),
        ("same = { city = 'city' }", "expect_pointer"),
        ("ranges = { '/c' = { min = 2, max = 1 } }", "expect_range"),
        ("ranges = { '/c' = { least = 2 } }", "expect_range"),
        ("ranges = { '/c' = 2 }", "expect_range"),
        ("schema = { type = 'thing' }", "expect_schema"),
        ("interpret = true", "expect_interpret"),
    ] {
        let faults = with(text).faults;
        let codes: Vec<&str> = faults.iter().map(|fault| fault.code.as_str()).collect();
        assert_eq!(codes, [format!("scene.{code}")], "{text}");
        assert!(faults[0].line.is_some() && !faults[0].remedy.is_empty());
    }
    let loaded = with("interpret = true\nschema = { type = 'object' }");
    assert!(loaded.faults.is_empty() && loaded.scenes[0].tools[0].policies.interpret, "{:?}", loaded.faults);
    let write = format!("{GOOD}[tools.expect]\ninterpret = true\nschema = {{ type = 'object' }}\n");
    let write = write.replace("effect = \"read\"", "effect = \"write\"");
    assert!(load_one(&write).faults.iter().any(|fault| fault.code == "scene.expect_interpret"));
}

fn alternatives_are_checked() {
    let name = load_one(GOOD).scenes[0].tools[0].name.clone();
    let argument = load_one(GOOD).scenes[0].tools[0].parameters["properties"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .cloned();
    let argument = argument.unwrap();
    let right = format!("{{ place = \"/arguments/{argument}\" }}");
    let loaded = with_alternative("Backup", &right);
    let errors: Vec<_> = loaded.faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let alternative = loaded.scenes[0].tools[0].policies.alternative.clone().unwrap();
    assert_eq!((alternative.tool.as_str(), alternative.same_result), ("Backup", false));
    for (tool, arguments, code) in [
        ("Backupp", right.as_str(), "alternative_tool"),
        (name.as_str(), right.as_str(), "alternative_tool"),
        ("Order", right.as_str(), "alternative_tool"),
        ("Backup", "{}", "alternative_arguments"),
        ("Backup", "{ place = \"/result/x\" }", "alternative_arguments"),
        ("Backup", "{ place = \"/arguments/zzzz\" }", "alternative_arguments"),
        ("Backup", "{ place = \"x\", zzzz = 1 }", "alternative_arguments"),
        ("Backup", "{ place = 1 }", "alternative_arguments"),
    ] {
        let faults = with_alternative(tool, arguments).faults;
        let errors: Vec<_> = faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
        assert_eq!(errors.len(), 1, "{tool} {arguments}: {errors:?}");
        assert_eq!(errors[0].code, format!("scene.{code}"), "{tool} {arguments}");
        assert!(errors[0].line.is_some() && !errors[0].remedy.is_empty());
    }
    several_alternatives_are_checked(&right, &argument);
}

/// A list of alternatives: each another tool, at most four, with criteria that count among several.
fn several_alternatives_are_checked(right: &str, argument: &str) {
    let read = |name: &str| {
        format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"x\"\neffect = \"read\"\nsay = {{ en = \"x\" }}\n\
             parameters = {{ type = \"object\", properties = {{ place = {{ type = \"string\" }} }}, required = [\"place\"] }}\n\
             http = {{ url = \"https://example.com/x\" }}\n"
        )
    };
    let names = ["One", "Two", "Three", "Four", "Five"];
    let with = |tools: &[&str], choose_by: &str| {
        let list =
            tools.iter().map(|tool| format!("[[tools.alternative]]\ntool = {tool:?}\narguments = {right}\n"));
        let criteria = GOOD.replace("effect = \"read\"", &format!("effect = \"read\"\n{choose_by}"));
        let policy = "[tools.policies.timeout]\ndo = ['alternative']\n";
        load_one(&format!("{criteria}{policy}{}{}", list.collect::<String>(), names.map(read).concat()))
    };
    let criteria = "choose_by = 'The fast\\n one.'".replace('\'', "\"");
    let loaded = with(&["One", "Two", "Three", "Four"], &criteria);
    let errors: Vec<_> = loaded.faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let policies = &loaded.scenes[0].tools[0].policies;
    let called: Vec<&str> = policies.alternatives().map(|by| by.tool.as_str()).collect();
    assert_eq!((called, policies.choose_by.as_str()), (vec!["One", "Two", "Three", "Four"], "The fast one."));
    assert!(policies.alternatives().all(|by| by.arguments["place"] == format!("/arguments/{argument}")));
    let long = format!("choose_by = {:?}", "x".repeat(301));
    for (tools, criteria, code, severity) in [
        (&["One", "One"][..], criteria.as_str(), "alternative_tool", Severity::Error),
        (&names[..], criteria.as_str(), "alternative_tool", Severity::Error),
        (&["One", "Two"][..], "choose_by = \" \"", "alternative_criteria", Severity::Error),
        (&["One", "Two"][..], long.as_str(), "alternative_criteria", Severity::Error),
        (&["One"][..], criteria.as_str(), "policy_unused", Severity::Warning),
    ] {
        let faults = with(tools, criteria).faults;
        let found: Vec<_> = faults.iter().filter(|fault| fault.code == format!("scene.{code}")).collect();
        assert_eq!(found.len(), 1, "{tools:?} {criteria}: {faults:?}");
        assert_eq!(found[0].severity, severity, "{tools:?} {criteria}");
        assert!(found[0].line.is_some() && !found[0].remedy.is_empty());
    }
}

#[test]
fn basic_level_of_a_scene_needs_sentences() {
    let level = |level: &str| load_one(&GOOD.replace("concurrency = 3", &format!("level = \"{level}\"")));
    assert!(level("basic").faults.is_empty());
    assert!(level("intelligent").faults.is_empty());
    let silent = GOOD.split("[tools.say]").next().unwrap().replace("concurrency = 3", "level = \"basic\"");
    assert_eq!(load_one(&silent).faults[0].code, "scene.level_no_say");
}

const FLOW: &str = r#"
name = "outing"
description = "Finds a day for an outing."
inputs = ["city"]
max_node_steps = 10

[[examples]]
say = "When can we go out?"
path = ["read", "look", "decide", "tell"]

[[invariants]]
before = ["decide", "tell"]

[[nodes]]
name = "read"
description = "Reads the city from the request."
kind = "llm"
inputs = ["request"]
outputs = ["place"]
possible_next_nodes = ["look"]
template = "Which city is meant? {{ request }}"
fallback = "weather.cities"
[nodes.output]
type = "object"
required = ["place"]
[nodes.output.properties.place]
type = "string"

[[nodes]]
name = "look"
description = "Looks up the weather."
kind = "tool"
inputs = ["place"]
outputs = ["weather"]
possible_next_nodes = ["decide", "tell_bad"]
scene = "Weather"
tool = "Forecast"
arguments = { city = "place" }
fixed = { date = "2026-06-15" }
[[nodes.conditions]]
next = "tell_bad"
value = "weather/rain"
is = true

[[nodes]]
name = "decide"
description = "Lets a person decide."
kind = "approval"
inputs = ["weather"]
possible_next_nodes = ["tell"]
[nodes.question]
en = "Go out with {{ weather }}?"

[[nodes]]
name = "tell"
description = "Tells the result."
kind = "native"
native = "weather.cities"
inputs = ["weather"]
outputs = ["text"]

[[nodes]]
name = "tell_bad"
description = "Ends in rain."
kind = "condition"
"#;

fn load_with_flow(scene: &str, flow: &str) -> LoadedScenes {
    let mut folder = folder("s", scene);
    folder.files.insert(FLOW_FILE.to_owned(), flow.as_bytes().to_vec());
    load_all(vec![vec![folder]], &json!({}))
}

#[test]
fn flow_file_loads_beside_a_scene() {
    let loaded = load_with_flow(GOOD, FLOW);
    assert_eq!(rendered_faults(&loaded), "");
    let catalogue = crate::scene::Catalogue::new(loaded.scenes);
    let shown: Vec<(&str, usize)> =
        catalogue.iter().map(|scene| (scene.name.as_str(), scene.tools.len())).collect();
    assert_eq!(shown, [("Weather", 1), ("outing", 0)], "models are not shown the tools of a flow");
    let flow = catalogue.flow("outing").unwrap();
    assert_eq!((flow.entries.as_slice(), flow.max_node_steps), (["read".to_owned()].as_slice(), 10));
    assert_eq!(flow.node("decide").unwrap().outputs, ["weather"], "an approved value is an output");
    let tools: Vec<&str> =
        catalogue.get("outing").unwrap().tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["read", "read_fallback", "decide", "tell"]);
    assert_eq!(flow.tools().collect::<Vec<_>>(), [("Weather", "Forecast")]);
}

#[test]
fn faults_of_a_flow_name_line_code_and_remedy() {
    let bad = FLOW
        .replace("possible_next_nodes = [\"look\"]", "possible_next_nodes = [\"lok\"]")
        .replace("native = \"weather.cities\"\ninputs", "native = \"weather.towns\"\ninputs")
        .replace("name = \"outing\"", "name = \"Weather\"");
    insta::assert_snapshot!(rendered_faults(&load_with_flow(GOOD, &bad)), @r#"
    s/flow.toml:2: error[scene.duplicate_scene]: a scene or flow named "Weather" already exists in s/scene.toml:2
      give each scene a unique name (case-insensitive)
    s/flow.toml:20: error[flow.unknown_node]: read is followed by "lok", which is not a node
      the nodes are: read, look, decide, tell, tell_bad
    s/flow.toml:58: error[scene.native_unknown]: no native tool is registered as "weather.towns"
      registered are: weather.cities, weather.forecast
    "#);
    let loop_ = FLOW
        .replace(
            "[nodes.question]",
            "[[nodes.conditions]]\nnext = \"look\"\nvalue = \"weather\"\nexists = false\n[nodes.question]",
        )
        .replace("possible_next_nodes = [\"tell\"]", "possible_next_nodes = [\"tell\", \"look\"]");
    insta::assert_snapshot!(rendered_faults(&load_with_flow(GOOD, &loop_)), @r#"
    s/flow.toml:35: error[flow.unbounded_loop]: the loop of look, decide has no bound
      set max_visits of one of its nodes
    "#);
    let unlinked = FLOW.replace("tool = \"Forecast\"", "tool = \"Forcast\"");
    insta::assert_snapshot!(rendered_faults(&load_with_flow(GOOD, &unlinked)), @r#"
    s/flow.toml:37: error[flow.unknown_tool]: look calls "Forcast", which Weather does not have
      its tools are: Forecast
    "#);
    let unlinked = FLOW.replace("arguments = { city = \"place\" }", "arguments = { town = \"place\" }");
    insta::assert_snapshot!(rendered_faults(&load_with_flow(GOOD, &unlinked)), @r#"
    s/flow.toml:38: error[flow.unknown_tool]: Forecast of Weather has no argument "town"
      its arguments are: city, date
    s/flow.toml:38: error[flow.unknown_tool]: look does not give city of Forecast
      add city to [nodes.arguments] or [nodes.fixed]
    "#);
}
