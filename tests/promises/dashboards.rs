//! Operations: every panel of the dashboard shows something that is emitted, and every alert can fire.

use std::collections::{BTreeMap, BTreeSet};

use proscenium::flow::{Flow, Node};
use proscenium::planner::{Command, CommandAction};
use proscenium::run::{Effect, RunStatus, SessionId};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::dashboard::{Dashboard, shipped};
use crate::support::exposition::{read, sum};
use crate::support::planner_engine::{
    QuestionKind, final_verdict, has_results, more, plan, question_kind, step,
};
use crate::support::prometheus::{Prometheus, is_installed, promtool};
use crate::support::promql::{Emitted, family, names};
use crate::support::served_engine::Events;
use crate::support::{Gate, Scripted, ScriptedCall, ScriptedLlm, ServedEngine, Setup, section};

/// `$__rate_interval` for two scrapes per second: it covers the whole load.
const INTERVAL: &str = "40s";

/// Panels that show only zero, each with the reason why the load has none of it.
const ZERO: [(&str, &str); 13] = [
    ("Slow requests", "no request takes 30 seconds"),
    ("Documents", "there are none"),
    ("Tool breakers", "no tool fails four times in a row"),
    ("Policies", "no level or mode is set"),
    ("Consultations", "no level or mode is set"),
    ("Plan and path look-ups", "planning.learn is off"),
    ("Learned plans", "planning.learn is off"),
    ("Ratings", "no plan is rated"),
    ("Programs", "every step is carried out by its scene"),
    ("Runs resumed after a restart", "no server was restarted with unfinished runs"),
    ("Restarts of actors", "no actor panicked"),
    ("Spans of traces", "there is no receiver of traces"),
    ("Log lines dropped", "the log is read"),
];

/// Values in expressions that the load never produces.
const UNSEEN: [(&str, &str); 8] = [
    (
        "proscenium_plans_total kind=fallback",
        "the offline model does not plan here, so that requests without a plan are seen",
    ),
    ("proscenium_plan_quality_ratio_sum outcome=needs_input", "nobody is asked for more"),
    ("proscenium_plan_quality_ratio_count outcome=needs_input", "nobody is asked for more"),
    ("proscenium_plan_quality_ratio_bucket outcome=needs_input", "nobody is asked for more"),
    ("proscenium_http_requests_total status=500", "the server has no internal error"),
    ("proscenium_http_requests_total status=503", "no place is missing"),
    ("proscenium_http_requests_total status=504", "nothing takes too long"),
    ("proscenium_http_requests_total status=507", "the disk has room"),
];

/// Metrics that no panel shows, each with the reason.
const NOT_SHOWN: [(&str, &str); 1] =
    [("process_virtual_memory_bytes", "addresses that are only reserved cost nothing")];

#[derive(Deserialize)]
struct Alerts {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<AnyRule>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyRule {
    Alert(Rule),
    Recorded { record: String, expr: String },
}

#[derive(Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    #[serde(rename = "for")]
    lasts: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// The alerts, and the metrics that rules record with their expressions.
fn rules() -> (Vec<Rule>, Vec<(String, String)>) {
    let alerts: Alerts = serde_norway::from_str(&shipped("config/alerts.yml")).unwrap();
    let (mut rules, mut recorded) = (Vec::new(), Vec::new());
    for rule in alerts.groups.into_iter().flat_map(|group| group.rules) {
        match rule {
            AnyRule::Alert(rule) => rules.push(rule),
            AnyRule::Recorded { record, expr } => recorded.push((record, expr)),
        }
    }
    (rules, recorded)
}

fn alerts() -> Vec<Rule> {
    rules().0
}

/// Whether a panel says when it has something to show.
fn tells_when(description: &str) -> bool {
    let sentence = |start: &str| {
        ["until ", "unless ", "while ", "with ", "without "]
            .iter()
            .any(|when| description.contains(&format!("{start} {when}")))
    };
    sentence("No data") || sentence("Zero")
}

#[test]
fn every_alert_has_a_paragraph_in_the_runbook() {
    let text = shipped("dashboards/README.md");
    let (_, runbook) = text.split_once("\n## Runbook\n").unwrap();
    let paragraphs: BTreeMap<&str, &str> =
        runbook.split("\n### ").skip(1).map(|part| part.split_once('\n').unwrap()).collect();
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts.iter().map(|rule| rule.alert.as_str()).collect();
    assert_eq!(names, paragraphs.keys().copied().collect());
    for rule in &alerts {
        // The anchor that GitHub makes of a heading.
        let place = format!("dashboards/README.md#{}", rule.alert.to_lowercase());
        assert_eq!(rule.annotations["runbook_url"], place);
        for part in ["- **Means:** ", "- **Look at:** ", "- **Do:** "] {
            assert!(paragraphs[rule.alert.as_str()].contains(part), "{}: {part}", rule.alert);
        }
    }
    // Panels and rows are called there as on the dashboard, in italics.
    let dashboard = Dashboard::shipped();
    let titles: BTreeSet<&str> =
        dashboard.panels().iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    let plain = runbook.replace("**", "");
    let named: BTreeSet<&str> = plain.split('*').skip(1).step_by(2).collect();
    assert!(named.len() > 20);
    assert_eq!(named.difference(&titles).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn panels_that_show_only_zero_say_when_they_show_more() {
    let dashboard = Dashboard::shipped();
    for (title, _) in ZERO {
        let panel = dashboard.panels().iter().find(|panel| panel["title"] == title).unwrap();
        let description = panel["description"].as_str().unwrap();
        assert!(tells_when(description), "{title}: {description}");
    }
}

#[test]
fn dashboard_layout_units_and_queries_are_valid() {
    let dashboard = Dashboard::shipped();
    let whole = &dashboard.0;
    assert_eq!((&whole["uid"], &whole["title"]), (&json!("proscenium"), &json!("Proscenium")));
    assert!(whole["schemaVersion"].as_u64() >= Some(39) && whole["id"].is_null());
    assert_eq!(
        dashboard.rows(),
        [
            "Requests", "HTTP and tenants", "Scenes and plans", "Models and cost", "Approvals", "Internals",
            "Process and storage", "Learning and facts",
        ]
    );
    let source = &whole["templating"]["list"][0];
    assert_eq!(source["name"], "datasource");
    assert_eq!((&source["type"], &source["query"]), (&json!("datasource"), &json!("prometheus")));
    let ours = json!({"type": "prometheus", "uid": "${datasource}"});
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard.panels() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "duplicate id: {panel:#}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel:#}");
        for cell in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(cells.insert(cell), "it overlaps another panel: {panel:#}");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"].as_str().unwrap().ends_with('.'),
            "the description is a sentence: {panel:#}"
        );
        assert!(!panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap().is_empty(), "{panel:#}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(panel["datasource"] == ours && targets.iter().all(|target| target["datasource"] == ours));
        let refs: BTreeSet<&str> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!(refs.len(), targets.len(), "{panel:#}");
    }
    for target in dashboard.targets() {
        let kept = names(&target.expr("1m", "1h")).labels;
        let shown = target.legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap().trim());
        assert!(
            !target.legend.is_empty() && shown.into_iter().all(|label| kept.contains(label)),
            "{target:?}"
        );
        assert!(
            target.expr.contains("instance=~\"$instance\""),
            "not restricted to the selected instance: {target:?}"
        );
        assert!(!target.expr.contains("rate(") || target.expr.contains("[$__rate_interval]"), "{target:?}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_every_alert_test_fires() {
    let tests: Value = serde_norway::from_str(&shipped("config/alerts_test.yml")).unwrap();
    let cases = tests["tests"].as_array().unwrap().iter();
    let cases = cases.flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let rings = |alert: &str| {
        let rings = |case: &&Value| case["alertname"] == alert && case.get("exp_alerts").is_some();
        cases.clone().any(|case| rings(&case))
    };
    for rule in alerts() {
        let Rule { alert, lasts, labels, annotations, .. } = &rule;
        assert!(rings(alert), "{alert} fires in no test");
        assert!(
            !lasts.is_empty() && ["critical", "warning"].contains(&labels["severity"].as_str()),
            "{alert}"
        );
        assert!(!annotations["summary"].is_empty(), "{alert}");
        assert!(annotations["description"].trim_end().ends_with(['.', ')']), "{alert}");
    }
    if !is_installed() {
        return;
    }
    let config = promtool(&["check", "config", "prometheus.yml"]);
    assert!(config.contains("1 rule files found"), "{config}");
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
}

/// A scene whose tools behave as requested.
fn shop() -> Scene {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Thing {
        /// What it is.
        thing: String,
    }
    let work = |thing: Thing, _: ToolContext| async move {
        match thing.thing.as_str() {
            "broken" => Err(ToolError::failed("shop.broken", "it is broken")),
            "lost" => Err(ToolError::unknown("shop.lost", "nobody knows")),
            thing => Ok(json!({"thing": thing})),
        }
    };
    Scene::builder("Shop")
        .description("Things to look at and to buy.")
        .instructions("Look at them, or buy them.")
        .tool(SceneTool::native("Look", "Looks at a thing.", Effect::Read, work))
        .tool(SceneTool::native("Buy", "Buys a thing.", Effect::Write, work))
        .build()
        .unwrap()
}

/// A flow of one node.
fn browse() -> Scene {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Words {
        request: String,
    }
    let look = |words: Words, _: ToolContext| async move { Ok(json!({"text": words.request})) };
    Flow::builder("browse")
        .description("Shows the shelves.")
        .node(Node::native("shelves", "Looks at the shelves.", look).outputs(&["text"]))
        .build()
        .unwrap()
}

/// | request | what happens |
/// | --- | --- |
/// | `hello` | no scene; the plan is cached from the second time on |
/// | `buy` | a read, one that is shared and one that fails; then, after a re-plan, a write |
/// | `lose` | a write whose outcome is unknown |
/// | `fail` | the first model refuses, and so does the next one, until it reaches its limit |
/// | `spend` | no scene serves it; the plan costs nearly the whole budget of a conversation |
/// | `lose`, with approval | a plan that is changed and approved, and one that keeps waiting |
/// | `hello`, by name of the flow | its graph is followed |
/// | `wait 0`, `wait 1` | the model is `asked` for the answer, which comes when `go` opens |
struct Load {
    served: ServedEngine,
    llm: [ScriptedLlm; 3],
    gates: [[Gate; 2]; 2],
}

impl Load {
    async fn start() -> Self {
        let gates = [[Gate::closed(), Gate::closed()], [Gate::closed(), Gate::closed()]];
        let waits = gates.clone();
        let main = ScriptedLlm::start(move |request, _| {
            let words = section(request, "request").unwrap_or_default();
            match words.strip_prefix("wait ").map(|nth| &waits[nth.parse::<usize>().unwrap()]) {
                Some([asked_for, go]) if question_kind(request) == QuestionKind::Answer => {
                    asked_for.open();
                    reply(request, &words).held(go)
                }
                _ => reply(request, &words),
            }
        });
        let [spare, dead] = [400, 503].map(|code| ScriptedLlm::sequence([Scripted::status(code)]));
        let price = "input_usd_per_million=1.0,cached_input_usd_per_million=0.5,output_usd_per_million=10.0";
        let model = |name: &str, llm: &ScriptedLlm, more: &str| {
            format!("{{name={name:?},base_url={:?}{more}}}", llm.base_url())
        };
        let models = [
            model("main", &main, &format!(",stream=true,{price}")),
            model("spare", &spare, &format!(",{price}")),
            model("dead", &dead, ""),
        ];
        let setup = Setup::offline()
            .alone()
            .scene(shop())
            .scene(browse())
            .set("llm.models", format!("[{}]", models.join(",")))
            .set("llm.purposes.plan", "[\"main\",\"spare\"]")
            .set("llm.purposes.answer", "[\"dead\",\"main\"]")
            .set("llm.max_attempts", 1)
            .set("llm.backoff_ms", 1)
            .set("llm.breaker.failures", 2)
            .set("llm.breaker.pause_ms", 3_600_000)
            .set("planning.fallback_enabled", false)
            // The write of a re-plan is executed without confirmation.
            .set("execution.confirm", "never")
            .set("limits.models.spare.requests_per_minute", 2)
            .set("limits.max_wait_ms", 0)
            .set("budget.session_usd", 0.5)
            .set("budget.run_usd", 10)
            .set("budget.tenant_usd", 1000)
            .set("budget.day_usd", 100)
            .set("server.max_body_bytes", 16_384)
            .set("execution.max_queued_requests", 1);
        Self { served: ServedEngine::start(setup).await, llm: [main, spare, dead], gates }
    }

    /// Executes a request; returns the code of its error, if it has one.
    async fn ask(&self, session: &str, words: &str) -> Option<String> {
        let reply = self.served.post("/api/chat", &in_session(session, words)).await;
        reply.json()["code"].as_str().map(str::to_owned)
    }

    /// All requests once, until Prometheus has scraped the result.
    async fn round(&self, nth: usize, prometheus: &Prometheus) {
        let mut codes = BTreeSet::new();
        let words = ["hello", "fail", "buy", "lose", "hello", "fail", "buy", "hello", "fail"];
        for (n, words) in words.into_iter().enumerate() {
            codes.extend(self.ask(&format!("{nth}-{n}"), words).await);
        }
        let mut flow = in_session(&format!("flow-{nth}"), "hello");
        (flow["flow"], flow["use_planning"]) = (json!("browse"), json!(false));
        assert_eq!(self.served.post("/api/chat", &flow).await.json()["status"], "completed");
        self.edit_and_approve(nth).await;
        for n in 0..2 {
            codes.extend(self.ask("spender", &format!("spend {nth}{n}")).await);
        }
        for code in ["limits.exceeded", "budget.exceeded"] {
            assert!(codes.contains(code), "{codes:?}");
        }
        self.state_facts(nth).await;
        self.be_refused().await;
        let [asked_for, go] = &self.gates[nth];
        let send = |words: String| {
            let mut body = in_session(&format!("busy-{nth}"), &words);
            body["stream"] = json!(true);
            self.served.request("POST", "/api/chat").json(&body).send()
        };
        let held = send(format!("wait {nth}")).await.unwrap();
        asked_for.wait_open().await;
        let queued = send("hello".to_owned()).await.unwrap();
        let refused = send("hello".to_owned()).await.unwrap();
        assert_eq!(refused.status(), 429);
        prometheus.until("proscenium_runs_in_flight{state=\"queued\"}", |runs| runs > 0.0).await;
        go.open();
        for response in [held, queued] {
            let mut events = Events::of(response);
            while events.next().await.is_some() {}
        }
        // Prometheus must have scraped everything that has happened.
        let ended = sum(&self.series().await, "proscenium_requests_total", &[]);
        prometheus.until("sum(proscenium_requests_total)", |seen| seen == ended).await;
    }

    /// A fact is stated and then corrected.
    async fn state_facts(&self, nth: usize) {
        let facts = format!("/api/sessions/{nth}-0/facts");
        let first = self.served.post(&facts, &json!({"claim": "The lamp costs 12 euros."})).await;
        assert_eq!(first.status, 201, "{first:#?}");
        let correction = json!({"claim": "The lamp costs 13 euros.", "supersedes": first.json()["id"]});
        assert_eq!(self.served.post(&facts, &correction).await.status, 201);
    }

    /// Without a valid key, and with too much.
    async fn be_refused(&self) {
        let chat = |key: &str| self.served.request("POST", "/api/chat").header("x-api-key", key);
        assert_eq!(chat("psk_unknown").json(&ask("hello")).send().await.unwrap().status(), 401);
        let body = json!({"messages": [], "padding": "x".repeat(20_000)});
        assert_eq!(chat("").json(&body).send().await.unwrap().status(), 413);
    }

    /// A plan is changed and then approved, and another plan waits forever.
    async fn edit_and_approve(&self, nth: usize) {
        let (engine, tenant) = (&self.served.engine, &self.served.tenant);
        let by = |wish: CommandAction| Command::new("boss", wish);
        let mut runs = Vec::new();
        for name in ["edited", "left"] {
            let session = Some(SessionId::new(&format!("{name}-{nth}")).unwrap());
            let mut request = engine.request("lose", session);
            request.options.require_approval = true;
            let answer = engine.chat(request).await.unwrap();
            assert_eq!(answer.status, RunStatus::Waiting);
            runs.push((answer.run_id, answer.plan.unwrap()));
        }
        let (run, mut plan) = runs.swap_remove(0);
        plan.steps[0].expected_tools = vec!["Look".to_owned()];
        // Until it waits again.
        let changed =
            engine.command_and_wait(tenant, run, by(CommandAction::Edit { plan, version: None })).await;
        assert_eq!(changed.unwrap().unwrap().status, RunStatus::Waiting);
        let yes = CommandAction::Approve { version: Some(2), hash: None, hold: false };
        engine.command_and_wait(tenant, run, by(yes)).await.unwrap().unwrap();
    }

    async fn series(&self) -> crate::support::exposition::Series {
        read(&self.served.get("/metrics").await.body)
    }
}

fn in_session(session: &str, words: &str) -> Value {
    let mut body = ask(words);
    body["session_id"] = json!(session);
    body
}

/// The reply of the first model.
fn reply(request: &Value, words: &str) -> Scripted {
    let executed = section(request, "executed").unwrap_or_default();
    let calls = |calls: &[(&str, &str)]| {
        let call = |(name, thing): &(&str, &str)| {
            let arguments = json!({"thing": thing}).to_string();
            ScriptedCall { id: "call_0".to_owned(), name: (*name).to_owned(), arguments }
        };
        Scripted::Calls { text: String::new(), calls: calls.iter().map(call).collect() }
    };
    match (question_kind(request), words) {
        (QuestionKind::Plan, "fail") => Scripted::status(400),
        (QuestionKind::Plan, "buy") if executed.is_empty() => {
            Scripted::forced(request, plan(json!([step(1, "Shop", &["Look"], json!(null))])))
        }
        (QuestionKind::Plan, "buy") => {
            Scripted::forced(request, plan(json!([step(2, "Shop", &["Buy"], json!(1))])))
                .metered(900, 300, 40)
        }
        (QuestionKind::Plan, "lose") => {
            Scripted::forced(request, plan(json!([step(1, "Shop", &["Buy"], json!(null))])))
        }
        // Cached tokens are cheaper; together 0.485 USD.
        (QuestionKind::Plan, words) if words.starts_with("spend") => {
            let mut plan = plan(json!([]));
            plan["unserved"] = json!([words]);
            Scripted::forced(request, plan).metered(500_000, 30_000, 0)
        }
        (QuestionKind::Plan, _) => Scripted::forced(request, plan(json!([]))),
        (QuestionKind::Scene, _) if has_results(request) => Scripted::Text("That was it.".to_owned()),
        // The expected tools decide, not the words: a changed plan is a different plan.
        (QuestionKind::Scene, words)
            if section(request, "expected_tools").unwrap_or_default().contains("Buy") =>
        {
            calls(&[("Buy", if words == "lose" { "lost" } else { "lamp" })])
        }
        (QuestionKind::Scene, _) => {
            calls(&[("Look", "lamp"), ("Look", "lamp"), ("Look", "broken"), ("Steal", "lamp")])
        }
        (QuestionKind::Check, "buy") if executed.lines().count() < 2 => {
            Scripted::forced(request, more("the lamp itself"))
        }
        (QuestionKind::Check, _) => Scripted::forced(request, final_verdict()),
        (
            QuestionKind::Answer
            | QuestionKind::Recovery
            | QuestionKind::Interpret
            | QuestionKind::Decide
            | QuestionKind::Adapt,
            _,
        ) => Scripted::Text("Good day.".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_shows_data_under_light_load() {
    if !is_installed() {
        return;
    }
    let load = Load::start().await;
    let prometheus = Prometheus::scraping(&load.served.addr().to_string());
    // Metrics that are exported from the start are seen at zero.
    prometheus.until("sum(proscenium_requests_total)", |seen| seen == 0.0).await;
    // A panel that shows nothing on an idle server says what it waits for. A rate needs two scrapes of its metric, and
    // the first scrape is a request that only the second one sees.
    prometheus.until("max(count_over_time(up[1m]))", |scrapes| scrapes >= 3.0).await;
    for target in Dashboard::shipped().targets() {
        let values = prometheus.lately(&target.expr(INTERVAL, "1m")).await.unwrap();
        if !values.iter().any(|value| value.is_finite()) {
            assert!(tells_when(&target.description), "{target:#?}");
        }
    }
    // Metrics that appear with their first count are seen to grow in the second round.
    for nth in 0..2 {
        load.round(nth, &prometheus).await;
    }
    let (_, recorded) = rules();
    let emitted = Emitted::of(&load.series().await);
    let families = emitted.families().into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    let emitted = emitted.with_recorded(recorded.iter().map(|(metric, _)| metric.as_str()));
    let (mut faults, mut unseen) = (Vec::new(), BTreeSet::new());
    let mut shown: BTreeSet<String> = BTreeSet::new();
    for target in Dashboard::shipped().targets() {
        let expr = target.expr(INTERVAL, "1m");
        let mut fault = |what: String| {
            let (row, panel, legend) = (&target.row, &target.panel, &target.legend);
            faults.push(format!("{row} / {panel} / {legend}: {what}\n  {expr}"));
        };
        emitted.faults(&expr, &mut unseen).into_iter().for_each(&mut fault);
        shown.extend(names(&expr).metrics.iter().map(|(metric, _)| family(metric).to_owned()));
        let zero = ZERO.iter().any(|(panel, _)| *panel == target.panel);
        match prometheus.lately(&expr).await {
            Err(error) => fault(error),
            Ok(values) if !values.iter().any(|value| value.is_finite()) => {
                fault(format!("nothing: {values:?}"))
            }
            Ok(values) if zero != values.iter().all(|value| *value == 0.0 || value.is_nan()) => {
                fault(if zero { "is not zero as listed" } else { "is always zero" }.to_owned());
            }
            Ok(_) => {}
        }
    }
    for rule in alerts() {
        for fault in emitted.faults(&rule.expr, &mut unseen) {
            faults.push(format!("{}: {fault}\n  {}", rule.alert, rule.expr));
        }
    }
    for (metric, expr) in &recorded {
        faults.extend(
            emitted.faults(expr, &mut unseen).into_iter().map(|fault| format!("{metric}: {fault}\n  {expr}")),
        );
    }
    let listed = BTreeSet::from_iter(UNSEEN.map(|(value, _)| value.to_owned()));
    let strange = listed.symmetric_difference(&unseen);
    faults.extend(strange.map(|value| format!("{value}: never seen, or listed and seen")));
    let hidden = BTreeSet::from_iter(NOT_SHOWN.map(|(metric, _)| metric.to_owned()));
    let both = &hidden | &shown;
    faults.extend(
        families.symmetric_difference(&both).map(|metric| format!("{metric}: shown nowhere, or no metric")),
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    assert_server_variable(&prometheus, &load).await;
    assert_every_alert_is_evaluated(&prometheus).await;
    assert!(load.llm.iter().all(|llm| llm.count() > 0));
}

async fn assert_server_variable(prometheus: &Prometheus, load: &Load) {
    let dashboard = Dashboard::shipped();
    let variable = &dashboard.0["templating"]["list"][1];
    let query = variable["query"]["query"].as_str().unwrap();
    let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
    let (metric, label) = inside.split_once(", ").unwrap();
    assert_eq!(variable["name"], label);
    let values = prometheus.api(&format!("label/{label}/values"), &[("match[]", metric)]).await.unwrap();
    assert_eq!(values, json!([load.served.addr().to_string()]));
}

async fn assert_every_alert_is_evaluated(prometheus: &Prometheus) {
    let rules = prometheus.api("rules", &[]).await.unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules: Vec<&Value> = groups.flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let (alerts, recorded) = self::rules();
    assert_eq!(rules.len(), alerts.len() + recorded.len());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule:#}");
        if rule["type"] == "recording" {
            continue;
        }
        let rings = rule["state"] == "firing";
        // Their `for` is zero, and the load triggers them.
        let expected = rule["name"] == "ProsceniumWriteUnknown";
        assert_eq!(rings, expected, "{rule:#}");
    }
}
