//! From the text of a `scene.toml` to a draft.

use serde_json::Value;
use toml::de::DeTable;

use super::ToolApproval;
use super::document::{Fields, Lines, Need};
use super::draft::{CallDraft, ExampleDraft, HttpDraft, SceneDraft, ToolDraft, UndoDraft};
use super::fault::Report;
use crate::run::{ConfirmPolicy, Effect, Repeat};
use crate::tools::http;

/// The words of a scene's `confirm`.
const CONFIRM: [(&str, ConfirmPolicy); 3] =
    [("unclear", ConfirmPolicy::Unclear), ("writes", ConfirmPolicy::Writes), ("never", ConfirmPolicy::Never)];

/// The draft, or `None` where the text is no TOML. What is wrong goes into the report.
pub(super) fn read(text: &str, report: &Report) -> Option<SceneDraft> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let lines = Lines::new(text);
    if errors.is_empty() {
        return Some(scene(Fields::root(report, &lines, table.get_ref())));
    }
    for error in errors {
        let line = error.span().map(|span| lines.of(span.start));
        let message = format!("this is no TOML: {}", error.message());
        report.error(line, "syntax", message, "mend this first: the rest of the file is checked after");
    }
    None
}

fn scene(mut fields: Fields<'_>) -> SceneDraft {
    let draft = SceneDraft {
        name: fields.string("name", Need::Required),
        description: fields.string("description", Need::Required),
        instructions: fields.string("instructions", Need::Required),
        concurrency: fields.number("concurrency"),
        mailbox: fields.number("mailbox"),
        approval: fields.word("approval", Need::Optional, &ToolApproval::WORDS),
        confirm: fields.word("confirm", Need::Optional, &CONFIRM),
        max_writes: fields.number("max_writes"),
        settings: fields
            .table("settings")
            .is_some()
            .then(|| fields.json("settings"))
            .flatten()
            .map(|(v, _)| v.value),
        schema_sql: None,
        examples: fields.tables("examples").into_iter().map(example).collect(),
        tools: fields.tables("tools").into_iter().map(|table| tool(table)).collect(),
    };
    fields.finish();
    draft
}

fn example(mut fields: Fields<'_>) -> ExampleDraft {
    let draft = ExampleDraft {
        say: fields.string("say", Need::Required),
        tool: fields.string("tool", Need::Optional),
    };
    fields.finish();
    draft
}

fn tool(mut fields: Fields<'_>) -> ToolDraft {
    let (parameters, places) = fields.json("parameters").unzip();
    let draft = ToolDraft {
        name: fields.string("name", Need::Required),
        description: fields.string("description", Need::Required),
        effect: fields.word("effect", Need::Required, &[("read", Effect::Read), ("write", Effect::Write)]),
        repeat: fields.word("repeat", Need::Optional, &[("never", Repeat::Never), ("key", Repeat::Key)]),
        approval: fields.word("approval", Need::Optional, &ToolApproval::WORDS),
        undo: fields.table("undo").map(undo),
        identity: fields.strings("identity"),
        timeout_ms: fields.number("timeout_ms"),
        max_result_bytes: fields.number("max_result_bytes"),
        parameters,
        places: places.unwrap_or_default(),
        say: fields.texts("say"),
        confirm: fields.texts("confirm"),
        repeatable: fields.flag("repeatable"),
        volatile: fields.flag("volatile"),
        call: call(&mut fields),
    };
    fields.finish();
    draft
}

fn undo(mut fields: Fields<'_>) -> UndoDraft {
    let draft = UndoDraft {
        tool: fields.string("tool", Need::Required),
        arguments: fields
            .table("arguments")
            .is_some()
            .then(|| fields.json("arguments"))
            .flatten()
            .map(|(arguments, _)| arguments),
    };
    fields.finish();
    draft
}

fn call(fields: &mut Fields<'_>) -> Option<CallDraft> {
    let native = fields.string("native", Need::Optional);
    let source = fields.json("http");
    let http = fields.table("http");
    match (fields.has("native"), fields.has("http")) {
        (true, true) => {
            let remedy = "keep `native` or [tools.http], whichever is meant";
            fields.report().error(
                fields.line_of("http"),
                "implementation",
                "a tool is either native or an HTTP request, and this is both",
                remedy,
            );
        }
        (false, false) => {
            let remedy = "add native = \"name.of_the_tool\" or a table [tools.http]";
            fields.report().error(fields.line(), "implementation", "the tool has nothing to call", remedy);
        }
        _ => {}
    }
    if let (Some((source, places)), Some(mut table)) = (source, http) {
        let spec = request(&mut table, &source.value);
        table.finish();
        return Some(CallDraft::Http(Box::new(HttpDraft { spec: spec?, source: source.value, places })));
    }
    native.map(CallDraft::Native)
}

fn request(fields: &mut Fields<'_>, source: &Value) -> Option<http::Spec> {
    let text = |texts: std::collections::BTreeMap<String, super::document::At<String>>| {
        texts.into_iter().map(|(name, text)| (name, text.value)).collect()
    };
    let method = fields.string("method", Need::Optional);
    let url = fields.string("url", Need::Required);
    let query = text(fields.texts("query"));
    let headers = text(fields.texts("headers"));
    // Read for its key; the value, whose dates and numbers are JSON already, is in `source`.
    let body = fields.json("body").and_then(|_| source.get("body").cloned());
    let result = fields.string("result", Need::Optional);
    let most = fields.number("max_response_bytes");
    if let Some(most) = most.as_ref().filter(|most| most.value == 0) {
        fields.report().error(
            most.line,
            "bound",
            "max_response_bytes must be more than 0",
            "leave it out for 1 MiB",
        );
    }
    Some(http::Spec {
        method: method.map_or_else(|| "GET".to_owned(), |method| method.value),
        url: url?.value,
        query,
        headers,
        body,
        result: result.map(|result| result.value),
        max_response_bytes: most
            .and_then(|most| usize::try_from(most.value).ok())
            .unwrap_or(http::DEFAULT_MAX_RESPONSE_BYTES),
    })
}
