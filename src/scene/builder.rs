//! Scenes and tools built in Rust, for users of the library.
//!
//! Built scenes pass the same checks as a `scene.toml`.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{CheckContext, check};
use super::document::Located;
use super::draft::{
    AlternativeDraft, CachedDraft, CallDraft, ExampleDraft, PolicyDraft, SceneDraft, ToolDraft, UndoDraft,
};
use super::fault::{FaultReport, SceneFaults};
use super::{Scene, SceneTool, ToolApproval, parameters};
use crate::adapt::{ExecutionLevel, FaultPolicy, PolicyAction};
use crate::fault::FaultClass;
use crate::run::{ConfirmPolicy, Effect, PlanningMaker, Repeat};
use crate::tools::summary::SummaryTool;
use crate::tools::{NativeTools, Tool, ToolContext, ToolError, native};

/// Builds a [`Scene`]; see [`Scene::builder`].
#[must_use = "call `build` to create the scene"]
pub struct SceneBuilder {
    name: String,
    draft: SceneDraft,
}

/// Builds a tool of a scene; see [`SceneTool::native`].
#[must_use = "add the tool to a scene"]
pub struct ToolBuilder {
    draft: ToolDraft,
}

impl std::fmt::Debug for SceneBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SceneBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolBuilder").finish_non_exhaustive()
    }
}

impl Scene {
    /// A builder for a scene called `name` (1 to 64 characters from `A-Z a-z 0-9 _ -`).
    pub fn builder(name: &str) -> SceneBuilder {
        let draft = SceneDraft {
            name: Some(Located::without_line(name.to_owned())),
            description: Some(Located::without_line(String::new())),
            instructions: Some(Located::without_line(String::new())),
            ..SceneDraft::default()
        };
        SceneBuilder { name: name.to_owned(), draft }
    }
}

impl SceneBuilder {
    /// Its purpose, as the planner reads it. Required.
    pub fn description(mut self, text: &str) -> Self {
        self.draft.description = Some(Located::without_line(text.to_owned()));
        self
    }

    /// The instructions for its model. Required.
    pub fn instructions(mut self, text: &str) -> Self {
        self.draft.instructions = Some(Located::without_line(text.to_owned()));
        self
    }

    /// What users read about it in one language (such as `it`) when they ask what can be done; the description by
    /// default.
    pub fn about(mut self, language: &str, text: &str) -> Self {
        self.draft.about.insert(language.to_owned(), Located::without_line(text.to_owned()));
        self
    }

    /// Adds an example request that one of its tools serves. Requests are routed by examples, so give
    /// several, in the users' languages.
    pub fn example(mut self, say: &str, tool: &str) -> Self {
        let tool = Some(Located::without_line(tool.to_owned()));
        self.draft.examples.push(ExampleDraft { say: Some(Located::without_line(say.to_owned())), tool });
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: ToolBuilder) -> Self {
        self.draft.tools.push(tool.draft);
        self
    }

    /// The maximum number of concurrent tool calls; 32 by default.
    pub fn concurrency(mut self, max: u32) -> Self {
        self.draft.concurrency = Some(Located::without_line(max.into()));
        self
    }

    /// The maximum number of waiting calls; 1024 by default.
    pub fn mailbox(mut self, max: u32) -> Self {
        self.draft.mailbox = Some(Located::without_line(max.into()));
        self
    }

    /// Sets what needs approval before its tools write; nothing by default.
    pub fn approval(mut self, approval: ToolApproval) -> Self {
        self.draft.approval = Some(Located::without_line(approval));
        self
    }

    /// A JSON object that its tools get in their context.
    pub fn settings(mut self, settings: Value) -> Self {
        self.draft.settings = Some(settings);
        self
    }

    /// SQL that creates its tables, run at every start (`CREATE TABLE IF NOT EXISTS …`).
    pub fn schema_sql(mut self, sql: &str) -> Self {
        self.draft.schema_sql = Some(sql.to_owned());
        self
    }

    /// Its steps summarise the documents that the request names. Such a scene has no tools but [`SceneTool::summary`].
    pub fn summarises(mut self) -> Self {
        self.draft.summarises = true;
        self
    }

    /// Which of its writes the user has to confirm; as configured by default.
    pub fn confirm(mut self, confirm: ConfirmPolicy) -> Self {
        self.draft.confirm = Some(Located::without_line(confirm));
        self
    }

    /// How many write calls a run with this scene may start without approval; as configured by default, and
    /// never fewer.
    pub fn max_writes(mut self, max: u32) -> Self {
        self.draft.max_writes = Some(Located::without_line(max.into()));
        self
    }

    /// Sets who may be asked about its steps when something unexpected happens; as configured by default, and never more.
    pub fn level(mut self, level: ExecutionLevel) -> Self {
        self.draft.level = Some(Located::without_line(level));
        self
    }

    /// Sets whether programs take part: with `scenes` none calls its tools, with `code` its steps are programs.
    pub fn maker(mut self, maker: PlanningMaker) -> Self {
        self.draft.maker = Some(Located::without_line(maker));
        self
    }

    /// Sets what `STATUS` may be in a program with this scene, in place of the built-in words.
    pub fn statuses(mut self, statuses: &[&str]) -> Self {
        self.draft.statuses = statuses.iter().map(|word| Located::without_line((*word).to_owned())).collect();
        self
    }

    /// A program may stage changes of the scene's tables and call writes, where all scenes concerned allow it.
    pub fn mixed_writes(mut self) -> Self {
        self.draft.mixed_writes = true;
        self
    }

    /// Builds the scene.
    ///
    /// # Errors
    /// Every fault found in it.
    pub fn build(self) -> Result<Scene, SceneFaults> {
        let report = FaultReport::new(label(&self.name));
        let natives = NativeTools::new();
        let around = CheckContext::of_builder(&natives);
        check(self.draft, &around, &report).ok_or_else(|| SceneFaults(report.into_faults()))
    }
}

/// Returns the label of a scene built in Rust, which its faults have in place of a file.
pub(super) fn label(name: &str) -> String {
    format!("scene {name:?}")
}

impl SceneTool {
    /// An async function as a tool. The type of its arguments, a struct with named fields, defines them: `serde`
    /// deserializes them and `schemars` generates the JSON Schema that models see, with doc comments as descriptions.
    ///
    /// ```
    /// # use proscenium::{run::Effect, scene::SceneTool};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct GetOrder {
    ///     /// The order's number.
    ///     number: u32,
    /// }
    /// let tool = SceneTool::native("GetOrder", "Looks an order up.", Effect::Read, |order: GetOrder, _| async move {
    ///     Ok(serde_json::json!({"number": order.number, "status": "shipped"}))
    /// })
    /// .say("en", "Order {{ number }} is {{ status }}.");
    /// ```
    pub fn native<A, F, R, V>(name: &str, description: &str, effect: Effect, function: F) -> ToolBuilder
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<V, ToolError>> + Send + 'static,
        V: Serialize,
    {
        let tool = native(move |arguments: A, context: ToolContext| {
            let work = function(arguments, context);
            async move {
                let result = work.await?;
                serde_json::to_value(result).map_err(|error| {
                    let message = format!("the result has no JSON form: {error}");
                    match effect {
                        Effect::Read => ToolError::failed("tool.result", message),
                        Effect::Write => ToolError::unknown("tool.result", message),
                    }
                })
            }
        });
        Self::dynamic(name, description, effect, parameters::schema_of::<A>(), tool)
    }

    /// A tool that summarises documents of the request, part by part, as steps of a scene with `summarises` do. Its
    /// arguments are `documents`, a list of ids, and `purpose`, both optional.
    pub fn summary(name: &str, description: &str) -> ToolBuilder {
        let mut tool = Self::dynamic(name, description, Effect::Read, Value::Null, SummaryTool);
        tool.draft.parameters = None;
        tool.draft.call = Some(CallDraft::Summary { line: None });
        tool
    }

    /// A tool whose arguments are described by a JSON Schema of the type `object`.
    pub fn dynamic(
        name: &str,
        description: &str,
        effect: Effect,
        parameters: Value,
        tool: impl Tool + 'static,
    ) -> ToolBuilder {
        ToolBuilder {
            draft: ToolDraft {
                name: Some(Located::without_line(name.to_owned())),
                description: Some(Located::without_line(description.to_owned())),
                effect: Some(Located::without_line(effect)),
                parameters: Some(Located::without_line(parameters)),
                call: Some(CallDraft::Ready(Arc::new(tool))),
                ..ToolDraft::default()
            },
        }
    }
}

impl ToolBuilder {
    pub(super) fn into_draft(self) -> ToolDraft {
        self.draft
    }

    /// How a write may be repeated when its outcome is unknown; never by default.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.draft.repeat = Some(Located::without_line(repeat));
        self
    }

    /// Sets what needs approval before it writes; as in its scene by default.
    pub fn approval(mut self, approval: ToolApproval) -> Self {
        self.draft.approval = Some(Located::without_line(approval));
        self
    }

    /// The tool of the same scene that undoes a completed call, with its arguments. A string that begins
    /// with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …, "result": …}` of that call.
    pub fn undo(mut self, tool: &str, arguments: Value) -> Self {
        let (tool, arguments) = (Located::without_line(tool.to_owned()), Located::without_line(arguments));
        self.draft.undo = Some(UndoDraft { tool: Some(tool), arguments: Some(arguments) });
        self
    }

    /// The arguments that identify equal calls; all by default.
    pub fn identity(mut self, arguments: &[&str]) -> Self {
        self.draft.identity =
            arguments.iter().map(|name| Located::without_line((*name).to_owned())).collect();
        self
    }

    /// Executes an equal write in the same step each time it is requested.
    pub fn repeatable(mut self) -> Self {
        self.draft.repeatable = Some(Located::without_line(true));
        self
    }

    /// Reads anew each time, because the result may change at any moment.
    pub fn volatile(mut self) -> Self {
        self.draft.volatile = Some(Located::without_line(true));
        self
    }

    /// Sets what is done about failures of one class, in a run with a level or a mode.
    pub fn policy(mut self, class: FaultClass, policy: FaultPolicy) -> Self {
        let named = |action: PolicyAction| Located::without_line(action.name().to_owned());
        self.draft.policies.push(PolicyDraft {
            class,
            line: None,
            actions: policy.actions.map(|actions| actions.into_iter().map(named).collect()),
            attempts: policy.attempts.map(|attempts| Located::without_line(attempts.into())),
            backoff_ms: policy.backoff_ms.map(Located::without_line),
            max_wait_ms: policy.max_wait_ms.map(Located::without_line),
        });
        self
    }

    /// Its calls may be left out when they fail, if a policy says so.
    pub fn optional(mut self) -> Self {
        self.draft.optional = Some(Located::without_line(true));
        self
    }

    /// The greatest age in seconds, 1 to 2,592,000, up to which its last good result is used when it fails, if a policy
    /// says so. For a read whose result depends on its arguments, the user and the language alone.
    pub fn cached(mut self, max_age_s: u32) -> Self {
        let max_age_s = Some(Located::without_line(max_age_s.into()));
        self.draft.cached = Some(CachedDraft { line: None, max_age_s });
        self
    }

    /// Places of its results, as JSON Pointers (RFC 6901), that are not empty; `""` is the whole result. In a run with a
    /// level or a mode, a result that breaks this has failed.
    pub fn expect_not_empty(mut self, places: &[&str]) -> Self {
        let places = places.iter().map(|place| Located::without_line((*place).to_owned()));
        self.draft.expect.not_empty.extend(places);
        self
    }

    /// The place of its results, as a JSON Pointer (RFC 6901), that repeats an argument.
    pub fn expect_same(mut self, argument: &str, place: &str) -> Self {
        let place = Located::without_line(place.to_owned());
        self.draft.expect.same.insert(argument.to_owned(), place);
        self
    }

    /// The JSON Schema of its results.
    pub fn expect_schema(mut self, schema: Value) -> Self {
        self.draft.expect.schema = Some(Located::without_line(schema));
        self
    }

    /// A model may say where the expected values are in a result of another shape than its schema; for reads.
    pub fn expect_interpret(mut self) -> Self {
        self.draft.expect.interpret = Some(Located::without_line(true));
        self
    }

    /// The tool of the same scene, with the same effect, that is called in its place when it fails, if a policy says so. A
    /// string argument that begins with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …}` of the failed call. Up to
    /// four, which are called in their order.
    pub fn alternative(mut self, tool: &str, arguments: Value) -> Self {
        let (tool, arguments) = (Located::without_line(tool.to_owned()), Located::without_line(arguments));
        let (tool, arguments) = (Some(tool), Some(arguments));
        self.draft.alternatives.push(AlternativeDraft { line: None, tool, arguments, same_result: None });
        self
    }

    /// By what a model chooses among several alternatives, at the level `intelligent` and above.
    pub fn choose_by(mut self, criteria: &str) -> Self {
        self.draft.choose_by = Some(Located::without_line(criteria.to_owned()));
        self
    }

    /// The template of the confirmation question for a call in one language, over `arguments`.
    pub fn confirm(mut self, language: &str, template: &str) -> Self {
        self.draft.confirm.insert(language.to_owned(), Located::without_line(template.to_owned()));
        self
    }

    /// The timeout of one call, in milliseconds; 10,000 by default.
    pub fn timeout_ms(mut self, max: u64) -> Self {
        self.draft.timeout_ms = Some(Located::without_line(max));
        self
    }

    /// How much of its result a model sees, in bytes of JSON, at least 256; 16,384 by default.
    pub fn max_result_bytes(mut self, max: u64) -> Self {
        self.draft.max_result_bytes = Some(Located::without_line(max));
        self
    }

    /// The template of the sentence for its result in one language, over the result's fields and
    /// `arguments`.
    pub fn say(mut self, language: &str, template: &str) -> Self {
        self.draft.say.insert(language.to_owned(), Located::without_line(template.to_owned()));
        self
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::scene::arguments;
    use crate::tools::testing::context;

    #[derive(Deserialize, JsonSchema)]
    struct GetOrder {
        /// The order's number.
        number: u32,
    }

    #[derive(Deserialize, JsonSchema)]
    struct CancelOrder {
        number: u32,
        reason: Option<String>,
    }

    fn orders() -> SceneBuilder {
        Scene::builder("Orders")
            .description("Looks up and cancels orders.")
            .instructions("Answer with the order's status.")
            .example("Where is order 12?", "GetOrder")
            .tool(
                SceneTool::native("GetOrder", "Looks an order up.", Effect::Read, |order: GetOrder, _| async move {
                    Ok(json!({"number": order.number, "status": "shipped"}))
                })
                .say("en", "Order {{ number }} is {{ status }}."),
            )
            .tool(
                SceneTool::native("CancelOrder", "Cancels.", Effect::Write, |order: CancelOrder, context| async move {
                    let key = context.idempotency_key;
                    Ok((order.number, order.reason, key))
                })
                .repeat(Repeat::Key)
                .identity(&["number"])
                .timeout_ms(500),
            )
    }

    #[tokio::test]
    async fn built_scene_calls_its_two_tools() {
        let scene = orders().build().unwrap();
        let tool = scene.tool("GetOrder").unwrap();
        let given = arguments::check(tool, r#"{"number": 12}"#).unwrap();
        assert_eq!(tool.tool.call(context(), given).await, Ok(json!({"number": 12, "status": "shipped"})));
        let wrong = arguments::check(tool, r#"{"number": "twelve"}"#).unwrap_err();
        assert!(wrong.message.contains("/number must be an integer"), "{}", wrong.message);
        let cancel = scene.tool("CancelOrder").unwrap();
        let given = arguments::check(cancel, r#"{"number": 12, "reason": null}"#).unwrap();
        assert_eq!(cancel.tool.call(context(), given).await, Ok(json!([12, null, "key-1"])));
        assert_eq!((cancel.timeout_ms, cancel.repeat), (500, Repeat::Key));
    }

    #[test]
    fn build_reports_every_fault_at_once() {
        let nothing = |_: GetOrder, _: ToolContext| async { Ok(Value::Null) };
        let shown = Scene::builder("My orders")
            .instructions("x")
            .example("x", "GetOder")
            .tool(
                SceneTool::native("GetOrder", "", Effect::Read, nothing)
                    .timeout_ms(0)
                    .identity(&["numbre"])
                    .say("english", "{{ x"),
            )
            .tool(SceneTool::native("AskUser", "x", Effect::Read, nothing))
            .tool(SceneTool::dynamic(
                "getorder",
                "x",
                Effect::Read,
                json!({"type": "array"}),
                native(nothing),
            ))
            .build()
            .err()
            .unwrap();
        // A program that returns it with `?` shows where the first mistake is, and what to do.
        assert!(shown.to_string().starts_with("scene \"My orders\": error[scene.name]: "), "{shown}");
        assert_eq!(shown.to_string().matches("error[").count(), shown.0.len(), "{shown}");
        let faults = shown.0;
        let codes: Vec<String> = faults.iter().map(|fault| fault.code.clone()).collect();
        assert_eq!(
            codes,
            [
                "scene.name", "scene.empty", "scene.duplicate_tool", "scene.example_tool", "scene.empty",
                "scene.bound", "scene.identity", "scene.say_language", "scene.say_template",
                "scene.reserved_name", "scene.parameters",
            ]
        );
        assert!(faults.iter().all(|fault| fault.file == "scene \"My orders\"" && !fault.remedy.is_empty()));
    }
}
