//! Parses the text of a `scene.toml` into a draft.

use std::collections::BTreeMap;

use serde_json::Value;
use strum::IntoEnumIterator;

use super::ToolApproval;
use super::document::{Located, NamedTable, Presence, TableReader, read_toml};
use super::draft::{
    AlternativeDraft, CachedDraft, CallDraft, ExampleDraft, ExpectDraft, HttpDraft, PolicyDraft, PythonDraft,
    RequestDraft, SceneDraft, ToolDraft, UndoDraft,
};
use super::fault::FaultReport;
use super::python::ToolsFile;
use super::sentences::check_sentence;
use super::tables::parse_table;
use crate::adapt::ExecutionLevel;
use crate::fault::FaultClass;
use crate::run::{ConfirmPolicy, Effect, PlanningMaker, Repeat};
use crate::tools::http;

/// The values of a scene's `confirm`.
const CONFIRM_KEYWORDS: [(&str, ConfirmPolicy); 3] =
    [("unclear", ConfirmPolicy::Unclear), ("writes", ConfirmPolicy::Writes), ("never", ConfirmPolicy::Never)];

/// The values of a scene's `maker`.
const MAKER_KEYWORDS: [(&str, PlanningMaker); 3] =
    [("scenes", PlanningMaker::Scenes), ("auto", PlanningMaker::Auto), ("code", PlanningMaker::Code)];

/// The values of a scene's `level`.
pub(super) const LEVEL_KEYWORDS: [(&str, ExecutionLevel); 4] = [
    ("basic", ExecutionLevel::Basic),
    ("adaptive", ExecutionLevel::Adaptive),
    ("intelligent", ExecutionLevel::Intelligent),
    ("autonomous", ExecutionLevel::Autonomous),
];

/// Parses a document. Returns `None` if the text is not TOML. Faults are reported.
pub(super) fn parse_document(text: &str, report: &FaultReport) -> Option<SceneDraft> {
    read_toml(text, report, parse_scene)
}

fn parse_scene(mut fields: TableReader<'_>) -> SceneDraft {
    let draft = SceneDraft {
        name: fields.string("name", Presence::Required),
        description: fields.string("description", Presence::Required),
        about: fields.texts("about"),
        instructions: fields.string("instructions", Presence::Required),
        concurrency: fields.number("concurrency"),
        mailbox: fields.number("mailbox"),
        approval: fields.keyword("approval", Presence::Optional, &ToolApproval::KEYWORDS),
        confirm: fields.keyword("confirm", Presence::Optional, &CONFIRM_KEYWORDS),
        max_writes: fields.number("max_writes"),
        level: fields.keyword("level", Presence::Optional, &LEVEL_KEYWORDS),
        summarises: fields.flag("summarises").is_some_and(|flag| flag.value),
        maker: fields.keyword("maker", Presence::Optional, &MAKER_KEYWORDS),
        statuses: fields.strings("statuses"),
        mixed_writes: fields.flag("mixed_writes").is_some_and(|flag| flag.value),
        settings: fields
            .table("settings")
            .is_some()
            .then(|| fields.json("settings"))
            .flatten()
            .map(|(v, _)| v.value),
        schema_sql: None,
        tools_py: None,
        tables: fields.tables("tables").into_iter().map(parse_table).collect(),
        examples: fields.tables("examples").into_iter().map(parse_example).collect(),
        tools: fields.tables("tools").into_iter().map(|table| parse_tool(table)).collect(),
    };
    fields.reject_misplaced_keys(|key| {
        let is_of_tool = TOOL_KEYS.contains(&key);
        is_of_tool.then(|| format!("it is a key of a tool: write it below [[tools]], or as [tools.{key}]"))
    });
    draft
}

const TOOL_KEYS: [&str; 8] = ["effect", "parameters", "native", "http", "kind", "say", "undo", "timeout_ms"];

/// Keys that only a scene has: below `[[tools]]`, they would be those of the tool.
const SCENE_KEYS: [&str; 12] = [
    "about", "instructions", "examples", "settings", "tables", "concurrency", "mailbox", "max_writes",
    "level", "maker", "statuses", "summarises",
];

/// Keys of `[tools.http]`.
const HTTP_KEYS: [&str; 6] = ["url", "method", "query", "headers", "body", "on_status"];

/// Where a key belongs that was found in a tool.
fn place_of_tool_key(key: &str) -> Option<String> {
    if SCENE_KEYS.contains(&key) {
        return Some(format!("it is a key of the scene: move `{key}` above the first [[tools]]"));
    }
    HTTP_KEYS.contains(&key).then(|| format!("it is a key of [tools.http]: move `{key}` below that"))
}

fn parse_example(mut fields: TableReader<'_>) -> ExampleDraft {
    let draft = ExampleDraft {
        say: fields.string("say", Presence::Required),
        tool: fields.string("tool", Presence::Optional),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_tool(mut fields: TableReader<'_>) -> ToolDraft {
    let (parameters, places) = fields.json("parameters").unzip();
    let draft = ToolDraft {
        name: fields.string("name", Presence::Required),
        description: fields.string("description", Presence::Required),
        effect: fields.keyword(
            "effect",
            Presence::Required,
            &[("read", Effect::Read), ("write", Effect::Write)],
        ),
        repeat: fields.keyword(
            "repeat",
            Presence::Optional,
            &[("never", Repeat::Never), ("key", Repeat::Key)],
        ),
        approval: fields.keyword("approval", Presence::Optional, &ToolApproval::KEYWORDS),
        undo: fields.table("undo").map(parse_undo),
        identity: fields.strings("identity"),
        timeout_ms: fields.number("timeout_ms"),
        max_result_bytes: fields.number("max_result_bytes"),
        parameters,
        parameter_lines: places.unwrap_or_default(),
        say: fields.texts("say"),
        confirm: fields.texts("confirm"),
        repeatable: fields.flag("repeatable"),
        volatile: fields.flag("volatile"),
        optional: fields.flag("optional"),
        alternatives: fields.table_or_tables("alternative").into_iter().map(parse_alternative).collect(),
        choose_by: fields.string("choose_by", Presence::Optional),
        cached: fields.table("cached").map(parse_cached),
        expect: fields.table("expect").map(parse_expectations).unwrap_or_default(),
        policies: fields.table("policies").map(parse_policies).unwrap_or_default(),
        call: parse_call(&mut fields),
    };
    fields.reject_misplaced_keys(place_of_tool_key);
    draft
}

/// Policies by the class of failures that they are for.
fn parse_policies(mut fields: TableReader<'_>) -> Vec<PolicyDraft> {
    let mut policies = Vec::new();
    for class in FaultClass::iter() {
        policies.extend(fields.table(class.name()).map(|table| parse_policy(class, table)));
    }
    fields.reject_unknown_keys();
    policies
}

fn parse_policy(class: FaultClass, mut fields: TableReader<'_>) -> PolicyDraft {
    let is_given = fields.has("do");
    let actions = fields.strings("do");
    let draft = PolicyDraft {
        class,
        line: fields.line(),
        actions: is_given.then_some(actions),
        attempts: fields.number("attempts"),
        backoff_ms: fields.number("backoff_ms"),
        max_wait_ms: fields.number("max_wait_ms"),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_undo(mut fields: TableReader<'_>) -> UndoDraft {
    let draft = UndoDraft {
        tool: fields.string("tool", Presence::Required),
        arguments: parse_arguments(&mut fields),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_alternative(mut fields: TableReader<'_>) -> AlternativeDraft {
    let draft = AlternativeDraft {
        line: fields.line(),
        tool: fields.string("tool", Presence::Required),
        arguments: parse_arguments(&mut fields),
        same_result: fields.flag("same_result"),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_cached(mut fields: TableReader<'_>) -> CachedDraft {
    let draft = CachedDraft { line: fields.line(), max_age_s: fields.required_number("max_age_s") };
    fields.reject_unknown_keys();
    draft
}

fn parse_expectations(mut fields: TableReader<'_>) -> ExpectDraft {
    let draft = ExpectDraft {
        not_empty: fields.strings("not_empty"),
        ranges: fields.json("ranges").map(|(ranges, _)| ranges),
        same: fields.texts("same"),
        schema: fields.json("schema").map(|(schema, _)| schema),
        interpret: fields.flag("interpret"),
    };
    fields.reject_unknown_keys();
    draft
}

/// The arguments of a call in place of another, or that undoes it.
fn parse_arguments(fields: &mut TableReader<'_>) -> Option<Located<Value>> {
    fields.table("arguments")?;
    fields.json("arguments").map(|(arguments, _)| arguments)
}

fn parse_call(fields: &mut TableReader<'_>) -> Option<CallDraft> {
    let native = fields.string("native", Presence::Optional);
    let source = fields.json("http");
    let http = fields.table("http");
    let kind = fields.keyword("kind", Presence::Optional, &TOOL_KINDS);
    let python = parse_python(fields, kind.as_ref());
    check_implementation(fields);
    if let (Some((source, places)), Some(mut table)) = (source, http) {
        let spec = parse_request(&mut table, &source.value);
        table.reject_unknown_keys();
        return Some(CallDraft::Http(Box::new(HttpDraft {
            spec: spec?,
            source: source.value,
            source_lines: places,
        })));
    }
    let summary = kind.filter(|kind| kind.value == ToolKind::Summary);
    let summary = summary.map(|kind| CallDraft::Summary { line: kind.line });
    python.map(CallDraft::Python).or(summary).or(native.map(CallDraft::Native))
}

/// A tool has exactly one implementation.
fn check_implementation(fields: &TableReader<'_>) {
    let keys = ["native", "http", "kind"].into_iter().filter(|key| fields.has(key));
    match keys.collect::<Vec<_>>().as_slice() {
        [_] => {}
        [] => {
            let remedy = "add native = \"name.of_the_tool\", a table [tools.http], kind = \"python\" for a function in tools.py, or \
                          kind = \"summary\"";
            fields.report().error(fields.line(), "implementation", "the tool has no implementation", remedy);
        }
        [.., last] => fields.report().error(
            fields.line_of(last),
            "implementation",
            "a tool is native, an HTTP request, in Python or a summary, and this is more than one",
            "keep one of `native`, [tools.http] and `kind`",
        ),
    }
}

/// The kind of a tool that is neither native nor an HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Python,
    Summary,
}

const TOOL_KINDS: [(&str, ToolKind); 2] = [("python", ToolKind::Python), ("summary", ToolKind::Summary)];

/// The keys of a tool in Python.
fn parse_python(fields: &mut TableReader<'_>, kind: Option<&Located<ToolKind>>) -> Option<PythonDraft> {
    let is_python = |kind: &&Located<ToolKind>| kind.value == ToolKind::Python;
    let function = fields.string("function", Presence::Optional);
    let host = fields.strings("host");
    let requests = fields.table("requests").map(parse_requests).unwrap_or_default();
    if kind.is_some_and(|kind| !is_python(&kind)) || !fields.has("kind") {
        for key in ["function", "host", "requests"].into_iter().filter(|key| fields.has(key)) {
            let message = format!("`{key}` is a key of a tool in Python");
            let remedy = format!("add kind = \"python\", or remove `{key}`");
            fields.report().error(fields.line_of(key), "implementation", message, remedy);
        }
    }
    let line = kind.filter(is_python)?.line;
    Some(PythonDraft { line, function, host, requests, has_tables: false, file: ToolsFile::default() })
}

/// The HTTP requests that functions in Python can make, by name.
fn parse_requests(mut fields: TableReader<'_>) -> Vec<RequestDraft> {
    let mut requests = Vec::new();
    for NamedTable { key, mut table, source, lines } in fields.named_tables() {
        let parameters = table.strings("parameters");
        let spec = parse_get(&mut table);
        table.reject_unknown_keys();
        requests.extend(spec.map(|spec| RequestDraft {
            name: key,
            parameters,
            http: HttpDraft { spec, source, source_lines: lines },
        }));
    }
    requests
}

fn parse_request(fields: &mut TableReader<'_>, source: &Value) -> Option<http::HttpSpec> {
    let method = fields.string("method", Presence::Optional);
    // Read to mark the key as known; the value is already converted to JSON in `source`.
    let body = fields.json("body").and_then(|_| source.get("body").cloned());
    let spec = parse_get(fields)?;
    Some(http::HttpSpec { method: method.map_or(spec.method, |method| method.value), body, ..spec })
}

/// A GET request.
fn parse_get(fields: &mut TableReader<'_>) -> Option<http::HttpSpec> {
    let text = |texts: BTreeMap<String, Located<String>>| {
        texts.into_iter().map(|(name, text)| (name, text.value)).collect()
    };
    let url = fields.string("url", Presence::Required);
    let query = text(fields.texts("query"));
    let headers = text(fields.texts("headers"));
    let result = fields.string("result", Presence::Optional);
    let max = fields.number("max_response_bytes");
    if let Some(max) = max.as_ref().filter(|max| max.value == 0) {
        fields.report().error(
            max.line,
            "bound",
            "max_response_bytes must be more than 0",
            "omit it for the default of 1 MiB",
        );
    }
    let on_status = parse_status_sentences(fields);
    Some(http::HttpSpec {
        method: "GET".to_owned(),
        url: url?.value,
        query,
        headers,
        body: None,
        result: result.map(|result| result.value),
        max_response_bytes: max
            .and_then(|max| usize::try_from(max.value).ok())
            .unwrap_or(http::DEFAULT_MAX_RESPONSE_BYTES),
        on_status,
    })
}

/// The sentences for end users by status and language: `[tools.http.on_status]`.
fn parse_status_sentences(fields: &mut TableReader<'_>) -> BTreeMap<u16, BTreeMap<String, String>> {
    let mut sentences = BTreeMap::new();
    let Some(mut table) = fields.table("on_status") else { return sentences };
    for (status, texts) in table.text_tables() {
        let Some(code) = status.value.parse().ok().filter(|code| (300..=599).contains(code)) else {
            let message = format!("`on_status` has {:?}, which is not a status of a failure", status.value);
            fields.report().error(status.line, "http_on_status", message, "use a status from 300 to 599");
            continue;
        };
        for (language, text) in &texts {
            check_sentence("`on_status`", language, text, fields.report());
        }
        sentences.insert(code, texts.into_iter().map(|(language, text)| (language, text.value)).collect());
    }
    sentences
}
