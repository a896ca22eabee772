//! Scenes and tools built in Rust, for users of the library.
//!
//! What is built passes the same checks as a `scene.toml`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{Surroundings, check};
use super::document::{At, Places};
use super::draft::{CallDraft, ExampleDraft, SceneDraft, ToolDraft, UndoDraft};
use super::fault::{Fault, Report};
use super::{Scene, SceneTool, ToolApproval, parameters};
use crate::run::{ConfirmPolicy, Effect, Repeat};
use crate::tools::guard::NetworkPolicy;
use crate::tools::{NativeTools, Tool, ToolContext, ToolError, native};

/// Builds a [`Scene`]; see [`Scene::builder`].
#[must_use = "a scene is made by `build`"]
pub struct SceneBuilder {
    name: String,
    draft: SceneDraft,
}

/// Builds a tool of a scene; see [`SceneTool::native`].
#[must_use = "a tool takes part once a scene has it"]
pub struct ToolBuilder {
    draft: ToolDraft,
}

impl Scene {
    /// A scene called `name` (1 to 64 characters from `A-Z a-z 0-9 _ -`), to be given a description,
    /// instructions and tools.
    pub fn builder(name: &str) -> SceneBuilder {
        let draft = SceneDraft {
            name: Some(At::nowhere(name.to_owned())),
            description: Some(At::nowhere(String::new())),
            instructions: Some(At::nowhere(String::new())),
            ..SceneDraft::default()
        };
        SceneBuilder { name: name.to_owned(), draft }
    }
}

impl SceneBuilder {
    /// What it is for, as the planner reads it. Required.
    pub fn description(mut self, text: &str) -> Self {
        self.draft.description = Some(At::nowhere(text.to_owned()));
        self
    }

    /// What its own model is told. Required.
    pub fn instructions(mut self, text: &str) -> Self {
        self.draft.instructions = Some(At::nowhere(text.to_owned()));
        self
    }

    /// A request that one of its tools serves. Requests are routed by examples: give several, in the
    /// languages of the users.
    pub fn example(mut self, say: &str, tool: &str) -> Self {
        let tool = Some(At::nowhere(tool.to_owned()));
        self.draft.examples.push(ExampleDraft { say: Some(At::nowhere(say.to_owned())), tool });
        self
    }

    /// A tool.
    pub fn tool(mut self, tool: ToolBuilder) -> Self {
        self.draft.tools.push(tool.draft);
        self
    }

    /// Most steps and calls it works on at once; 8 unless told.
    pub fn concurrency(mut self, most: u32) -> Self {
        self.draft.concurrency = Some(At::nowhere(most.into()));
        self
    }

    /// Most calls waiting for it; 1024 unless told.
    pub fn mailbox(mut self, most: u32) -> Self {
        self.draft.mailbox = Some(At::nowhere(most.into()));
        self
    }

    /// For what a person is asked before its tools write; for nothing unless told.
    pub fn approval(mut self, approval: ToolApproval) -> Self {
        self.draft.approval = Some(At::nowhere(approval));
        self
    }

    /// A JSON object that its tools find in their context.
    pub fn settings(mut self, settings: Value) -> Self {
        self.draft.settings = Some(settings);
        self
    }

    /// SQL that makes its tables, run at every start (`CREATE TABLE IF NOT EXISTS …`).
    pub fn schema_sql(mut self, sql: &str) -> Self {
        self.draft.schema_sql = Some(sql.to_owned());
        self
    }

    /// Which of its writes the user is asked to confirm; as configured unless told.
    pub fn confirm(mut self, confirm: ConfirmPolicy) -> Self {
        self.draft.confirm = Some(At::nowhere(confirm));
        self
    }

    /// Most write calls that a run in which it takes part may begin unasked; as configured unless told,
    /// and never fewer than that.
    pub fn max_writes(mut self, most: u32) -> Self {
        self.draft.max_writes = Some(At::nowhere(most.into()));
        self
    }

    /// The scene, or every error found in it.
    pub fn build(self) -> Result<Scene, Vec<Fault>> {
        let report = Report::new(format!("scene {:?}", self.name));
        let natives = NativeTools::new();
        let around = Surroundings {
            natives: &natives,
            policy: NetworkPolicy::default(),
            environment: &|_| None,
            network: OnceCell::new(),
        };
        check(self.draft, &around, &report).ok_or_else(|| report.into_faults())
    }
}

impl SceneTool {
    /// An async function as a tool. The type of its arguments says what they are: `serde` reads them
    /// and `schemars` makes the JSON Schema that models see, with doc comments as descriptions.
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
        Self::dynamic(name, description, effect, parameters::of::<A>(), tool)
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
                name: Some(At::nowhere(name.to_owned())),
                description: Some(At::nowhere(description.to_owned())),
                effect: Some(At::nowhere(effect)),
                repeat: None,
                approval: None,
                undo: None,
                identity: Vec::new(),
                timeout_ms: None,
                max_result_bytes: None,
                parameters: Some(At::nowhere(parameters)),
                places: Places::default(),
                say: BTreeMap::new(),
                confirm: BTreeMap::new(),
                repeatable: None,
                volatile: None,
                call: Some(CallDraft::Ready(Arc::new(tool))),
            },
        }
    }
}

impl ToolBuilder {
    /// How a write may be repeated when its outcome is unknown; never unless told.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.draft.repeat = Some(At::nowhere(repeat));
        self
    }

    /// For what a person is asked before it writes; as its scene says unless told.
    pub fn approval(mut self, approval: ToolApproval) -> Self {
        self.draft.approval = Some(At::nowhere(approval));
        self
    }

    /// The tool of the same scene that undoes a finished call, with its arguments: a string that begins
    /// with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …, "result": …}` of that call.
    pub fn undo(mut self, tool: &str, arguments: Value) -> Self {
        let (tool, arguments) = (At::nowhere(tool.to_owned()), At::nowhere(arguments));
        self.draft.undo = Some(UndoDraft { tool: Some(tool), arguments: Some(arguments) });
        self
    }

    /// The arguments that make two calls the same; all unless told.
    pub fn identity(mut self, arguments: &[&str]) -> Self {
        self.draft.identity = arguments.iter().map(|name| At::nowhere((*name).to_owned())).collect();
        self
    }

    /// An equal write in the same step is a new act: it is done each time it is asked for.
    pub fn repeatable(mut self) -> Self {
        self.draft.repeatable = Some(At::nowhere(true));
        self
    }

    /// What it reads may change at any moment: it is read each time.
    pub fn volatile(mut self) -> Self {
        self.draft.volatile = Some(At::nowhere(true));
        self
    }

    /// The question by which the user confirms a call in one language: a template over `arguments`.
    pub fn confirm(mut self, language: &str, template: &str) -> Self {
        self.draft.confirm.insert(language.to_owned(), At::nowhere(template.to_owned()));
        self
    }

    /// How long one call may take, in milliseconds; 10,000 unless told.
    pub fn timeout_ms(mut self, most: u64) -> Self {
        self.draft.timeout_ms = Some(At::nowhere(most));
        self
    }

    /// How much of its result a model sees, in bytes of JSON, at least 256; 16,384 unless told.
    pub fn max_result_bytes(mut self, most: u64) -> Self {
        self.draft.max_result_bytes = Some(At::nowhere(most));
        self
    }

    /// A sentence for its result in one language: a template over the result's fields and
    /// `arguments`.
    pub fn say(mut self, language: &str, template: &str) -> Self {
        self.draft.say.insert(language.to_owned(), At::nowhere(template.to_owned()));
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
    async fn a_scene_with_two_tools_is_built_and_called() {
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
    fn every_fault_of_a_built_scene_is_told_at_once() {
        let nothing = |_: GetOrder, _: ToolContext| async { Ok(Value::Null) };
        let faults = Scene::builder("My orders")
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
        let told: Vec<String> = faults.iter().map(|fault| fault.code.clone()).collect();
        assert_eq!(
            told,
            [
                "scene.name",
                "scene.empty",
                "scene.duplicate_tool",
                "scene.example_tool",
                "scene.empty",
                "scene.bound",
                "scene.identity",
                "scene.say_language",
                "scene.say_template",
                "scene.reserved_name",
                "scene.parameters",
            ]
        );
        assert!(faults.iter().all(|fault| fault.file == "scene \"My orders\"" && !fault.remedy.is_empty()));
    }
}
