//! `check`: reports every fault at once, and what is configured.

use std::collections::BTreeMap;
use std::io::{self, Write};

use proscenium::adapt::ExecutionLevel;
use proscenium::config::{Config, ConfigFault, LoadedConfig, ValueOrigin};
use proscenium::flow::Flow;
use proscenium::llm::cache::Mode;
use proscenium::run::{Effect, PlanningMaker, Purpose};
use proscenium::sandbox;
use proscenium::scene::Scene;
use proscenium::setting::redact_url;
use proscenium::store::{DataDir, DataDirContents, DataDirReport, ErrorCode, Store, inspect};
use proscenium::tools::{NativeTools, ToolError};

use super::address;
use super::failure::{Exit, Failure};
use super::text::{clean, count, one_line};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing can be run with it.
    Error,
    /// It works, but is probably not intended.
    Warning,
}

/// One thing that is wrong, in the configuration, a scene or a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `file:line`, an environment variable, a flag, or the name of a model.
    pub place: String,
    /// How bad it is.
    pub level: Level,
    /// Stable, such as `scene.unknown_native`.
    pub code: String,
    /// The problem.
    pub message: String,
    /// The remedy; may be empty.
    pub remedy: String,
}

impl Finding {
    /// A fault or a warning of the configuration.
    pub fn of(fault: &ConfigFault, level: Level) -> Self {
        Self {
            place: fault.origin.to_string(),
            level,
            code: fault.code.to_owned(),
            message: fault.message.clone(),
            remedy: fault.remedy.clone(),
        }
    }
}

/// The checked configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Where the configuration comes from, and how many keys from each place.
    pub sources: Vec<String>,
    /// The data directory.
    pub data_dir: String,
    /// The state of the store; empty if it was not inspected or is reported as an error.
    pub store: String,
    /// The models.
    pub models: Vec<CheckedModel>,
    /// A line a scene: its name and its tools.
    pub scenes: Vec<String>,
    /// A line a flow: its name and its nodes.
    pub flows: Vec<String>,
    /// The results of live probes of what scenes depend on, a line each.
    pub dependencies: Vec<String>,
}

/// A model as it is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedModel {
    /// Its configured name; empty for the offline model.
    pub name: String,
    /// Its configuration on one line.
    pub line: String,
    /// The results of live probes, a line each.
    pub live: Vec<String>,
}

impl CheckReport {
    /// The report of a configuration; the caller adds scenes and probes.
    pub fn of(loaded: &LoadedConfig) -> Self {
        Self {
            sources: sources(&loaded.sources),
            data_dir: loaded.config.store.data_dir.display().to_string(),
            store: String::new(),
            models: models(&loaded.config),
            scenes: Vec::new(),
            flows: Vec::new(),
            dependencies: Vec::new(),
        }
    }
}

/// The state of the data directory on one line. Nothing is changed there.
///
/// # Errors
/// Why no command could use it, with the place where the directory is configured.
pub async fn store(loaded: &LoadedConfig) -> Result<String, Finding> {
    let dir = &loaded.config.store.data_dir;
    let DataDirReport { owner, contents: holds, needed, migrated_keys } =
        inspect(dir).await.map_err(|error| Finding {
            place: loaded.sources.get("store.data_dir").unwrap_or(&ValueOrigin::BuiltIn).to_string(),
            level: Level::Error,
            code: error.code().to_owned(),
            // The message has the remedy.
            message: error.to_string(),
            remedy: String::new(),
        })?;
    let holds = match holds {
        DataDirContents::Empty => "nothing is stored there yet".to_owned(),
        DataDirContents::Schema(0) => "nothing is stored there yet: its database is empty".to_owned(),
        DataDirContents::Schema(version) if version < needed => {
            format!("schema version {version}, which the next command that writes brings up to {needed}")
        }
        DataDirContents::Schema(version) => format!("schema version {version}"),
    };
    let holds = match usize::try_from(migrated_keys).unwrap_or(usize::MAX) {
        0 => holds,
        keys => format!(
            "{holds}; {} from before there were roles, each an approver now: see `proscenium keys list`, and set \
             another with `proscenium keys set-role`",
            count(keys, "key")
        ),
    };
    Ok(match owner {
        None => holds,
        Some(owner) => {
            let owned = Failure::new(ErrorCode::InUse.as_str(), String::new());
            let what = match address::find(dir, owned) {
                Ok(address) => format!("served at {} by {owner}", address.url),
                Err(_) => format!("in use by {owner}"),
            };
            format!("{holds}; {what}")
        }
    })
}

/// A warning for each path of the data directory that other users can read.
pub fn exposed(loaded: &LoadedConfig) -> Vec<Finding> {
    let warning = |(path, mode): (std::path::PathBuf, u32)| Finding {
        place: path.display().to_string(),
        level: Level::Warning,
        code: "store.exposed".to_owned(),
        message: format!("its mode is {mode:o}: other users of this machine can reach what is stored there"),
        remedy: format!(
            "the next command that owns the directory removes this access; or run `chmod go= {}`",
            path.display()
        ),
    };
    proscenium::store::exposed_files(&loaded.config.store.data_dir).into_iter().map(warning).collect()
}

/// A finding about tools with declared failure policies, if no configured level and mode lets these policies apply.
/// Requests and tenants can set a level and a mode.
pub fn idle_policies(config: &Config, scenes: &[Scene]) -> Option<Finding> {
    let execution = &config.execution;
    let mut tenants = config.tenants.values();
    let is_set = execution.level.is_some()
        || execution.mode.is_some()
        || tenants.any(|tenant| tenant.level.is_some() || tenant.mode.is_some());
    let declared = |scene: &&Scene| scene.tools.iter().any(|tool| !tool.policies.is_empty());
    let names: Vec<&str> = scenes.iter().filter(declared).map(|scene| scene.name.as_str()).collect();
    (!is_set && !names.is_empty()).then(|| Finding {
        place: "execution".to_owned(),
        level: Level::Warning,
        code: "check.policies_without_mode".to_owned(),
        message: format!(
            "tools of {} declare policies, and neither `execution.level` nor `execution.mode` is set: only requests \
             that ask for a level or a mode use them",
            names.join(", ")
        ),
        remedy: "set execution.mode = \"adaptive\"".to_owned(),
    })
}

/// Finds what keeps programs from being written and executed, if the configuration lets plans be programs.
pub fn unfit_programs(loaded: &LoadedConfig) -> Vec<Finding> {
    let config = &loaded.config;
    let level = match config.planning.maker {
        // A program that is named and cannot be started is a mistake, even if none is needed now.
        PlanningMaker::Scenes if config.sandbox.worker.is_none() => return Vec::new(),
        PlanningMaker::Scenes | PlanningMaker::Auto => Level::Warning,
        PlanningMaker::Code => Level::Error,
    };
    let mut findings = Vec::new();
    if config.planning.maker != PlanningMaker::Scenes
        && config.llm.models.iter().all(|model| model.embeddings)
    {
        findings.push(Finding {
            place: "planning.maker".to_owned(),
            level,
            code: "check.programs_without_models".to_owned(),
            message: "no model is configured, and the offline model writes no programs".to_owned(),
            remedy: "configure a model, or set planning.maker = \"scenes\"".to_owned(),
        });
    }
    if let Err(missing) = sandbox::read_module(&super::engine::sandbox_options(config), "x = 1") {
        let remedy = match config.planning.maker {
            PlanningMaker::Scenes => "correct `sandbox.worker`, or remove it",
            PlanningMaker::Auto | PlanningMaker::Code => {
                "correct `sandbox.worker`, or set planning.maker = \"scenes\""
            }
        };
        findings.push(Finding {
            place: match loaded.sources.get("sandbox.worker") {
                Some(file @ ValueOrigin::File { .. }) => file.to_string(),
                _ => "sandbox".to_owned(),
            },
            level,
            code: missing.code.to_owned(),
            message: format!("no program can be executed: {}", missing.message),
            remedy: remedy.to_owned(),
        });
    }
    findings
}

/// Finds the settings of scenes with tools in Rust that these tools cannot use: each of their calls would fail.
pub fn unusable_settings(loaded: &LoadedConfig, scenes: &[Scene], tools: &NativeTools) -> Vec<Finding> {
    // A folder of the same name with other tools has settings of its own.
    let is_native = |scene: &&Scene| {
        scene.flow.is_some() || scene.tools.iter().any(|tool| !tool.source["native"].is_null())
    };
    let wrong = scenes.iter().filter(is_native).filter_map(|scene| {
        let ToolError { code, message, .. } = tools.check_settings(&scene.name, &scene.settings).err()?;
        let mut own = loaded.sources.iter().filter(|(key, _)| {
            key.strip_prefix("scenes.settings.").is_some_and(|key| {
                let name = key.split('.').next().unwrap_or(key);
                name.eq_ignore_ascii_case(&scene.name)
            })
        });
        let named = message.to_lowercase();
        let place = own.clone().find(|(key, _)| named.contains(&format!("`{}`", key.to_lowercase())));
        let place = place.or_else(|| own.next()).map_or(&ValueOrigin::BuiltIn, |(_, origin)| origin);
        let (place, remedy) =
            (place.to_string(), "correct it: every call of the scene would fail".to_owned());
        Some(Finding { place, level: Level::Error, code, message, remedy })
    });
    wrong.collect()
}

/// Tries the `schema.sql` of each scene in a new database, which is removed: at a first start, and at a second one, when
/// its tables exist.
pub async fn unusable_schemas(scenes: &[Scene]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let own = |scene: &&Scene| scene.schema_sql.is_some();
    if !scenes.iter().any(|scene| own(&scene)) {
        return findings;
    }
    // Without a temporary directory, the SQL is checked where a server starts.
    let Ok(dir) = tempfile::Builder::new().prefix("proscenium-check-").tempdir() else { return findings };
    let Ok(owned) = DataDir::open(dir.path()) else { return findings };
    let Ok(store) = Store::open(owned).await else { return findings };
    for scene in scenes.iter().filter(own) {
        let sql = scene.schema_sql.as_deref().unwrap_or_default();
        let (error, remedy) = match store.apply_scene_schema(&scene.name, sql).await {
            Err(error) => (error, "correct it: no command that uses the scenes would start"),
            Ok(()) => match store.apply_scene_schema(&scene.name, sql).await {
                Err(error) => (error, "it is run at every start: write CREATE TABLE IF NOT EXISTS"),
                Ok(()) => continue,
            },
        };
        findings.push(Finding {
            place: format!("scene {}", scene.name),
            level: Level::Error,
            code: error.code().to_owned(),
            message: error.to_string(),
            remedy: remedy.to_owned(),
        });
    }
    store.close().await;
    findings
}

/// Finds what keeps consultations from being useful or cheap, where the configured level allows them.
pub fn unfit_consultations(config: &Config) -> Vec<Finding> {
    if config.execution.level < Some(ExecutionLevel::Adaptive) {
        return Vec::new();
    }
    let warning = |place: &str, code: &str, message: &str, remedy: &str| Finding {
        place: place.to_owned(),
        level: Level::Warning,
        code: code.to_owned(),
        message: message.to_owned(),
        remedy: remedy.to_owned(),
    };
    let mut findings = Vec::new();
    if config.llm.models.iter().all(|model| model.embeddings) {
        findings.push(warning(
            "execution.level",
            "check.level_without_models",
            "no model is configured: the offline model chooses the first option of every consultation",
            "configure a model, or set execution.level = \"basic\"",
        ));
    }
    let shares = config.cache.purposes.get(&Purpose::Recovery) == Some(&Mode::On);
    if config.cache.max_bytes == 0 || !shares {
        findings.push(warning(
            "cache",
            "check.consultations_unshared",
            "replies to consultations are not cached: when a tool fails, every run asks a model by itself",
            "set cache.purposes.recovery = \"on\" and a cache.max_bytes above 0",
        ));
    }
    findings
}

fn sources(keys: &BTreeMap<String, ValueOrigin>) -> Vec<String> {
    let mut places: BTreeMap<ValueOrigin, usize> = BTreeMap::new();
    for origin in keys.values() {
        let place = match origin {
            ValueOrigin::File { path, .. } => ValueOrigin::File { path: path.clone(), line: None },
            other => other.clone(),
        };
        *places.entry(place).or_default() += 1;
    }
    let counted = places.iter().map(|(place, keys)| match place {
        ValueOrigin::File { .. } => format!("{place} ({})", count(*keys, "key")),
        _ => place.to_string(),
    });
    std::iter::once(ValueOrigin::BuiltIn.to_string()).chain(counted).collect()
}

fn models(config: &Config) -> Vec<CheckedModel> {
    if config.llm.models.is_empty() {
        let line = "offline (rules in this program, no network)".to_owned();
        return vec![CheckedModel { line, ..CheckedModel::default() }];
    }
    let line = |model: &proscenium::llm::ModelOptions| {
        let key = match &model.api_key_env {
            Some(variable) => format!("key from {variable}"),
            None => "no key".to_owned(),
        };
        let (name, id) = (&model.name, model.id());
        let served = match model.embeddings {
            true => "for embeddings".to_owned(),
            false => format!("forced by \"{}\"", model.forcing),
        };
        format!("{name}: {id} at {}, {served}, {key}", redact_url(&model.base_url))
    };
    let checked = |model| CheckedModel { line: line(model), name: model.name.clone(), live: Vec::new() };
    config.llm.models.iter().map(checked).collect()
}

/// A scene and its tools on one line.
pub fn scene(scene: &Scene) -> String {
    if scene.summarises {
        return format!("{}: summarises documents", scene.name);
    }
    let tools: Vec<String> = scene
        .tools
        .iter()
        .map(|tool| match tool.effect {
            Effect::Read => tool.name.clone(),
            Effect::Write => format!("{} (write)", tool.name),
        })
        .collect();
    format!("{}: {}", scene.name, tools.join(", "))
}

/// A flow and its nodes on one line.
pub fn flow(flow: &Flow) -> String {
    let nodes: Vec<&str> = flow.nodes.iter().map(|node| node.name.as_str()).collect();
    format!("{}: {}", flow.name, nodes.join(", "))
}

/// Writes the findings, the report and the totals. The exit status says whether there are errors.
pub fn report(out: &mut impl Write, findings: &[Finding], found: Option<&CheckReport>) -> io::Result<Exit> {
    for finding in findings {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        let (place, message) = (one_line(&finding.place), clean(&finding.message));
        writeln!(out, "{place}: {level}[{}]: {message}", finding.code)?;
        if !finding.remedy.is_empty() {
            writeln!(out, "  help: {}", one_line(&finding.remedy))?;
        }
    }
    if !findings.is_empty() {
        writeln!(out)?;
    }
    if let Some(found) = found {
        describe(out, found)?;
    }
    let of = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (of(Level::Error), of(Level::Warning));
    match (errors, warnings) {
        (0, 0) => writeln!(out, "Nothing is wrong.")?,
        (errors, warnings) => writeln!(out, "{}, {}", count(errors, "error"), count(warnings, "warning"))?,
    }
    out.flush()?;
    Ok(if errors == 0 { Exit::Completed } else { Exit::Failed })
}

fn describe(out: &mut impl Write, found: &CheckReport) -> io::Result<()> {
    writeln!(out, "Configuration: {}", one_line(&found.sources.join(", ")))?;
    writeln!(out, "Data directory: {}", one_line(&found.data_dir))?;
    if !found.store.is_empty() {
        writeln!(out, "  {}", one_line(&found.store))?;
    }
    writeln!(out, "{}:", count(found.models.len(), "model"))?;
    for model in &found.models {
        writeln!(out, "  {}", one_line(&model.line))?;
        for line in &model.live {
            writeln!(out, "    {}", one_line(line))?;
        }
    }
    let end = if found.scenes.is_empty() { "" } else { ":" };
    writeln!(out, "{}{end}", count(found.scenes.len(), "scene"))?;
    for scene in &found.scenes {
        writeln!(out, "  {}", one_line(scene))?;
    }
    if !found.flows.is_empty() {
        writeln!(out, "{}:", count(found.flows.len(), "flow"))?;
    }
    for flow in &found.flows {
        writeln!(out, "  {}", one_line(flow))?;
    }
    for (at, dependency) in found.dependencies.iter().enumerate() {
        if at == 0 {
            writeln!(out, "What scenes depend on:")?;
        }
        writeln!(out, "  {}", one_line(dependency))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use proscenium::config::ConfigFlags;

    use super::*;

    fn load(pairs: &[(&str, &str)]) -> Result<LoadedConfig, proscenium::config::ConfigFaults> {
        let env: Vec<(String, String)> =
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Config::load(
            None,
            env.into_iter(),
            ConfigFlags { data_dir: Some("d".into()), ..ConfigFlags::default() },
        )
    }

    fn written(findings: &[Finding], found: Option<&CheckReport>) -> (Exit, String) {
        let mut out = Vec::new();
        let exit = report(&mut out, findings, found).unwrap();
        (exit, String::from_utf8(out).unwrap())
    }

    #[test]
    fn check_report_names_what_was_found() {
        let mut found = CheckReport::of(&load(&[]).unwrap());
        found.scenes = vec!["Weather: WeatherForecast_Get, AddCity (write)".to_owned()];
        let (exit, text) = written(&[], Some(&found));
        assert_eq!(exit, Exit::Completed);
        insta::assert_snapshot!(text, @r"
        Configuration: built-in defaults, flag --data-dir
        Data directory: d
        1 model:
          offline (rules in this program, no network)
        1 scene:
          Weather: WeatherForecast_Get, AddCity (write)

        Nothing is wrong.
        ");
    }

    #[tokio::test]
    async fn tables_of_a_scene_are_tried_as_at_two_starts() {
        let scene = |sql: &str| {
            let scene = Scene::builder("Orders").description("Orders.").instructions("Look.");
            scene.schema_sql(sql).build().unwrap()
        };
        let told = async |sql: &str| {
            let found = unusable_schemas(&[scene(sql)]).await;
            found.into_iter().map(|f| format!("{}: {}: {}", f.code, f.message, f.remedy)).collect::<Vec<_>>()
        };
        assert!(told("CREATE TABLE IF NOT EXISTS orders (id INTEGER);").await.is_empty());
        assert_eq!(
            told("CREATE TABEL orders (id INTEGER);").await,
            [
                "store.scene_schema: the schema.sql of scene Orders cannot be applied: near \"TABEL\": syntax error: \
              correct it: no command that uses the scenes would start"
            ]
        );
        assert_eq!(
            told("CREATE TABLE orders (id INTEGER);").await,
            [
                "store.scene_schema: the schema.sql of scene Orders cannot be applied: table orders already exists: \
              it is run at every start: write CREATE TABLE IF NOT EXISTS"
            ]
        );
        assert!(told("DROP TABLE runs;").await[0].contains("it changes the store's own tables"));
    }

    #[test]
    fn warnings_are_told_and_are_no_failure() {
        let loaded = load(&[("OPENAI_BASE_URL", "http://models.example/v1"), ("OPENAI_MODEL", "m")]).unwrap();
        let findings: Vec<Finding> = loaded.warnings.iter().map(|w| Finding::of(w, Level::Warning)).collect();
        let mut found = CheckReport::of(&loaded);
        found.models[0].live =
            vec!["named: called the function".to_owned(), "json_schema: refused".to_owned()];
        let (exit, text) = written(&findings, Some(&found));
        assert_eq!(exit, Exit::Completed);
        insta::assert_snapshot!(text, @r#"
        environment variable OPENAI_BASE_URL: warning[config.insecure]: model `m` is called without encryption at http://models.example/v1
          help: use https
        environment variable OPENAI_MODEL: warning[config.price]: no prices are known for model `m`, so its cost is reported as 0, and no budget limits it
          help: set `input_usd_per_million` and `output_usd_per_million` of the model

        Configuration: built-in defaults, environment variable OPENAI_BASE_URL, flag --data-dir
        Data directory: d
        1 model:
          m: m at http://models.example/v1, forced by "named", no key
            named: called the function
            json_schema: refused
        0 scenes

        0 errors, 2 warnings
        "#);
    }

    #[test]
    fn errors_are_told_with_place_and_remedy_and_end_with_status_1() {
        let faults = load(&[("PROSCENIUM__PLANNING__MAX_STEPS", "0")]).unwrap_err();
        let mut findings: Vec<Finding> = faults.0.iter().map(|f| Finding::of(f, Level::Error)).collect();
        findings.push(Finding {
            place: "scenes/rooms/scene.toml:12".to_owned(),
            level: Level::Error,
            code: "scene.unknown_native".to_owned(),
            message: "there is no native tool \"rooms.book\"".to_owned(),
            remedy: String::new(),
        });
        let (exit, text) = written(&findings, None);
        assert_eq!(exit, Exit::Failed);
        insta::assert_snapshot!(text, @r#"
        environment variable PROSCENIUM__PLANNING__MAX_STEPS: error[config.value]: `planning.max_steps` = `0` is out of range
          help: set a value from 1 to 100
        scenes/rooms/scene.toml:12: error[scene.unknown_native]: there is no native tool "rooms.book"

        2 errors, 0 warnings
        "#);
    }
}
