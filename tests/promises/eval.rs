//! The labelled requests of `tests/eval`, played with the embedded rules: how many are carried out as their
//! words say. `EVAL_SHOW=all` or the id of a request shows what was done, `-- --nocapture` the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use jiff::civil::{Date, Weekday};
use proscenium::run::{Effect, RunId, RunState, TenantId};
use proscenium::{Answer, ChatRequest};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::eval::{self, Call, Class, Labelled, Lang, Service, Set};
use crate::support::{Backend, Reached, Served, Setup, said};

/// Requests at once.
const AT_ONCE: usize = 8;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the scenes of a catalogue, and their back ends.
struct Place {
    served: Served,
    today: Date,
    _backends: Vec<Backend>,
    _scenes: TempDir,
}

/// A tool call that was begun.
struct Made {
    tool: String,
    arguments: Map<String, Value>,
    writes: bool,
    schema: Value,
}

/// A request and what became of it.
struct Played {
    labelled: Labelled,
    status: String,
    answer: String,
    scenes: BTreeSet<String>,
    calls: Vec<Made>,
    /// The whole document, to be shown.
    document: Value,
}

impl Place {
    async fn of(set: &Set) -> Self {
        let scenes = tempfile::tempdir().unwrap();
        let mut backends = vec![];
        for service in Service::of(&set.catalogue) {
            let folder = scenes.path().join(&service.folder);
            fs::create_dir(&folder).unwrap();
            let replies = service.replies;
            let backend = Backend::start(move |reached| reply(&replies, reached));
            let scene = service.scene.replace("http://eval.invalid", backend.address());
            fs::write(folder.join("scene.toml"), scene).unwrap();
            backends.push(backend);
        }
        let setup = Setup::offline()
            .set("execution.fixed_now", &set.clock)
            .set("execution.time_zone", &set.time_zone)
            .set("scenes.allow_private_addresses", true)
            .scenes(scenes.path());
        let setup = if set.alone { setup.alone() } else { setup };
        let now: jiff::Zoned = format!("{}[{}]", set.clock, set.time_zone).parse().unwrap();
        let served = Served::start(setup).await;
        Self { served, today: now.date(), _backends: backends, _scenes: scenes }
    }

    /// Plays a request in a conversation of its own.
    async fn plays(&self, labelled: &Labelled) -> Played {
        let playing = async {
            if labelled.system.is_none() && labelled.history.is_empty() {
                self.says(labelled).await
            } else {
                self.sends(labelled).await
            }
        };
        match tokio::time::timeout(PATIENCE, playing).await {
            Ok(Ok((answer, state))) => self.played(labelled, &answer, &state),
            Ok(Err(refused)) => Played::without_a_run(labelled, refused),
            Err(_) => Played::without_a_run(labelled, "no answer in time".into()),
        }
    }

    /// Each has a tenant of its own, so that no request finds the vacation of another.
    async fn says(&self, labelled: &Labelled) -> Result<(Answer, RunState), String> {
        let (tenant, (_, user)) =
            (TenantId::new(&labelled.id).unwrap(), self.served.engine.default_principal());
        let request = ChatRequest::new(labelled.say.as_str(), tenant.clone(), user);
        let ticket = self.served.engine.submit(request).await.map_err(|fault| fault.to_string())?;
        let answer = ticket.answer().await.map_err(|fault| fault.to_string())?;
        let state = self.served.engine.run(&tenant, answer.run_id).await.unwrap();
        Ok((answer, state))
    }

    /// Over the OpenAI protocol, with the messages before it.
    async fn sends(&self, labelled: &Labelled) -> Result<(Answer, RunState), String> {
        let message = |role: &str, words: &str| json!({"role": role, "content": words});
        let mut messages: Vec<Value> =
            labelled.system.iter().map(|system| message("system", system)).collect();
        for turn in &labelled.history {
            messages.extend([message("user", &turn.user), message("assistant", &turn.assistant)]);
        }
        messages.push(message("user", &labelled.say));
        let body = json!({"model": "proscenium", "messages": messages});
        let reply = self.served.post("/v1/chat/completions", &body).await;
        let Ok(run) = reply.header("x-run-id").parse::<RunId>() else { return Err(reply.body) };
        let tenant = &self.served.tenant;
        let answer = self.served.engine.answer_of(tenant, run).await.unwrap();
        let answer = answer.ok_or_else(|| format!("{run} has no answer"))?;
        let state = self.served.engine.run(tenant, run).await.unwrap();
        Ok((answer, state))
    }

    fn played(&self, labelled: &Labelled, answer: &Answer, state: &RunState) -> Played {
        let catalogue = self.served.engine.catalogue();
        let begun = state.calls.values().filter(|call| call.attempts > 0 && call.undoes.is_none());
        let calls = begun.map(|call| {
            let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.requested.tool));
            Made {
                tool: call.requested.tool.clone(),
                arguments: call.requested.arguments.as_object().cloned().unwrap_or_default(),
                writes: call.requested.effect == Effect::Write,
                schema: tool.map_or(Value::Null, |tool| (*tool.parameters).clone()),
            }
        });
        Played {
            labelled: labelled.clone(),
            status: json!(answer.status).as_str().unwrap().to_owned(),
            answer: answer.answer.clone(),
            scenes: answer.steps.iter().map(|step| step.scene_name.clone()).collect(),
            calls: calls.collect(),
            document: json!({"plan": answer.plan, "steps": answer.steps}),
        }
    }

    /// The labels name tools and arguments that there are, and every value that is required.
    fn knows(&self, set: &Set) {
        let catalogue = self.served.engine.catalogue();
        for labelled in &set.requests {
            let known = |name: &String| catalogue.iter().find_map(|scene| scene.tool(name));
            for Call { tool, arguments } in &labelled.calls {
                let tool = known(tool).unwrap_or_else(|| panic!("{}: there is no {tool}", labelled.id));
                let properties = &tool.parameters["properties"];
                let unknown = arguments.keys().find(|name| properties[name.as_str()].is_null());
                assert_eq!(unknown, None, "{}: no such argument", labelled.id);
                let required = tool.parameters["required"].as_array().into_iter().flatten();
                let missing = required.filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
                assert_eq!(missing, None, "{}: a required argument has no label", labelled.id);
            }
            assert!(labelled.optional.iter().all(|tool| known(tool).is_some()), "{}", labelled.id);
            let scenes = labelled.scenes.iter().flatten();
            let unknown = scenes.into_iter().find(|scene| catalogue.get(scene).is_none());
            assert_eq!(unknown, None, "{}: no such scene", labelled.id);
        }
    }
}

/// What stands in `replies.json`, with the arguments sent.
fn reply(replies: &BTreeMap<String, Value>, reached: &Reached) -> Value {
    let mut reply = Map::new();
    reply.extend(reached.query.iter().map(|(name, value)| (name.clone(), json!(value))));
    let sent = reached.body.as_object().cloned().unwrap_or_default();
    reply.extend(sent.into_iter().filter(|(_, value)| !value.is_null()));
    let Some(said) = replies.get(&reached.place) else {
        return json!({"error": format!("there is no {}", reached.place)});
    };
    reply.extend(said.as_object().cloned().unwrap());
    if reached.place == "POST /reservations" { json!({"reservation": reply}) } else { Value::Object(reply) }
}

/// A labelled call of which something may still be done.
struct Wanted<'a> {
    call: &'a Call,
    /// The days that are still to be covered, of a call with a first and a last one.
    days: Option<BTreeSet<Date>>,
    done: bool,
}

fn range(from: Option<&Value>, to: Option<&Value>) -> Option<BTreeSet<Date>> {
    let day = |value: Option<&Value>| value?.as_str()?.parse::<Date>().ok();
    let (from, to) = (day(from)?, day(to)?);
    let days = from.series(jiff::Span::new().days(1)).take_while(|day| *day <= to);
    Some(days.collect()).filter(|days: &BTreeSet<Date>| !days.is_empty())
}

impl<'a> Wanted<'a> {
    fn of(call: &'a Call) -> Self {
        let days = range(call.arguments.get("from"), call.arguments.get("to"));
        Self { call, days, done: false }
    }

    /// Whether the call's arguments are those of the label, its days aside where they are a range.
    fn is_meant(&self, made: &Made, words: &str) -> bool {
        let aside = |name: &str| self.days.is_some() && (name == "from" || name == "to");
        self.call.tool == made.tool
            && self.call.arguments.iter().filter(|(name, _)| !aside(name)).all(|(name, label)| {
                made.arguments.get(name).is_some_and(|given| said::is_meant(label, given, words))
            })
    }

    /// Days off are no loss.
    fn is_left(&self) -> bool {
        let working = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
        self.days.as_ref().map_or(!self.done, |days| days.iter().any(working))
    }
}

/// Takes a call off what is wanted; false if nobody wanted it, or not once more.
fn take(wanted: &mut [Wanted], made: &Made, words: &str) -> bool {
    let days = range(made.arguments.get("from"), made.arguments.get("to"));
    let mut meant: Vec<&mut Wanted> = wanted.iter_mut().filter(|w| w.is_meant(made, words)).collect();
    if let Some(days) = days.filter(|_| meant.iter().any(|wanted| wanted.days.is_some())) {
        let left: BTreeSet<Date> = meant.iter().filter_map(|w| w.days.clone()).flatten().collect();
        if !days.is_subset(&left) {
            return !made.writes && days.iter().all(|day| left.is_empty() || left.contains(day));
        }
        meant.iter_mut().filter_map(|w| w.days.as_mut()).for_each(|left| left.retain(|d| !days.contains(d)));
        return true;
    }
    let Some(place) = meant.iter().position(|w| !w.done && w.days.is_none()) else {
        return !made.writes && meant.iter().any(|wanted| wanted.days.is_none());
    };
    meant[place].done = true;
    true
}

/// What was wrong with a request.
#[derive(Default)]
struct Judged {
    wrong_writes: Vec<String>,
    /// Calls with a value that nobody said.
    invented: Vec<String>,
    dropped: Vec<String>,
    scenes: Option<bool>,
    tools_out_of_scope: bool,
    needless: bool,
    /// It did not ask, though it had to.
    unasked: bool,
    /// Labelled calls that were not carried out.
    left: usize,
}

impl Played {
    fn without_a_run(labelled: &Labelled, why: String) -> Self {
        let (scenes, calls) = (BTreeSet::new(), vec![]);
        let status = "none".to_owned();
        Self { labelled: labelled.clone(), status, answer: why, scenes, calls, document: Value::Null }
    }

    fn judged(&self, today: Date) -> Judged {
        let words = self.labelled.words();
        let mut judged = Judged::default();
        let mut wanted: Vec<Wanted> = self.labelled.calls.iter().map(Wanted::of).collect();
        for made in &self.calls {
            let meant = take(&mut wanted, made, &words) && self.extras_are_said(made, &words, today);
            if made.writes && !meant {
                judged.wrong_writes.push(made.to_string());
            }
            if let Some(name) = self.unsaid(made, &words, today) {
                judged.invented.push(format!("{name} of {made}"));
            }
        }
        let left: Vec<&Call> = wanted.iter().filter(|w| w.is_left()).map(|w| w.call).collect();
        judged.left = left.len();
        judged.dropped = self.dropped(&left);
        let asked = self.status == "needs_input";
        judged.scenes = self.labelled.scenes.as_ref().and_then(|scenes| {
            // Whoever asks before anything is planned has chosen no scene.
            let before = asked && self.scenes.is_empty() && (self.labelled.asks || self.labelled.may_ask);
            (!before).then(|| scenes.iter().cloned().collect::<BTreeSet<_>>() == self.scenes)
        });
        let uncalled_for = |made: &Made| !self.labelled.optional.contains(&made.tool);
        judged.tools_out_of_scope =
            self.labelled.class == Class::OutOfScope && self.calls.iter().any(uncalled_for);
        judged.needless = self.labelled.plain && asked;
        judged.unasked = self.labelled.asks && !asked;
        judged
    }

    /// Arguments beside the labelled ones derive from the words.
    fn extras_are_said(&self, made: &Made, words: &str, today: Date) -> bool {
        let labels = self.labelled.calls.iter().filter(|call| call.tool == made.tool);
        let labels: BTreeSet<&String> = labels.flat_map(|call| call.arguments.keys()).collect();
        let mut extras = made.arguments.iter().filter(|(name, _)| !labels.contains(name));
        extras.all(|(name, value)| said::is_said(value, &made.schema["properties"][name], words, today))
    }

    /// A required argument that is neither labelled so nor said.
    fn unsaid<'a>(&self, made: &'a Made, words: &str, today: Date) -> Option<&'a str> {
        let required = made.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let labelled = |name: &str, given: &Value| {
            let calls = self.labelled.calls.iter().filter(|call| call.tool == made.tool);
            let mut labels = calls.filter_map(|call| call.arguments.get(name));
            labels.any(|label| said::is_meant(label, given, words))
        };
        let mut given = required.filter_map(|name| Some(made.arguments.get_key_value(name)?));
        let unsaid = given.find(|(name, value)| {
            let schema = &made.schema["properties"][name.as_str()];
            !labelled(name, value) && !said::is_said(value, schema, words, today)
        });
        unsaid.map(|(name, _)| name.as_str())
    }

    fn dropped(&self, left: &[&Call]) -> Vec<String> {
        let mut dropped = vec![];
        if self.status == "completed" {
            let silent = left.iter().filter(|call| !names(&self.answer, call));
            dropped.extend(silent.map(|call| format!("{} {}", call.tool, json!(call.arguments))));
        }
        let answer = self.answer.to_lowercase();
        let unnamed = |words: &&String| !words.split('|').any(|w| answer.contains(&w.to_lowercase()));
        dropped.extend(
            self.labelled.undone.iter().filter(unnamed).map(|words| format!("{words:?} is not named")),
        );
        if self.status == "completed" && !self.labelled.undone.is_empty() {
            dropped.push("completed, though something was not done".into());
        }
        dropped
    }

    fn brief(&self) -> String {
        let scenes: Vec<&str> = self.scenes.iter().map(String::as_str).collect();
        let calls: Vec<String> = self.calls.iter().map(Made::to_string).collect();
        let answer: String = self.answer.chars().take(200).collect::<String>().replace('\n', " ");
        let (id, say) = (&self.labelled.id, &self.labelled.say);
        let calls = if calls.is_empty() { "none".to_owned() } else { calls.join("; ") };
        format!(
            "{id}: {say:?}\n    {} [{}] calls: {calls}\n    answer: {answer}",
            self.status,
            scenes.join(", ")
        )
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.tool, json!(self.arguments))
    }
}

/// Whether an answer names one of a call's values.
fn names(answer: &str, call: &Call) -> bool {
    let all = said::tokens(answer);
    call.arguments.values().any(|value| match value {
        Value::String(text) => match text.parse::<Date>() {
            Ok(date) => answer.contains(text) || all.contains(&date.day().to_string()),
            Err(_) => text.split('|').any(|text| {
                let words = said::tokens(text);
                words.iter().all(|word| all.contains(word))
            }),
        },
        value => all.contains(&value.to_string()),
    })
}

/// What the table is made of.
#[derive(Default)]
struct Tally {
    requests: usize,
    calls: usize,
    writes: usize,
    wrong_writes: usize,
    invented: usize,
    dropped: usize,
    scenes: usize,
    scenes_right: usize,
    out_of_scope: usize,
    tools_out_of_scope: usize,
    plain: usize,
    plain_done: usize,
    needless: usize,
    asks: usize,
    unasked: usize,
}

impl Tally {
    fn add(&mut self, played: &Played, judged: &Judged) {
        let labelled = &played.labelled;
        self.requests += 1;
        self.calls += played.calls.len();
        self.writes += played.calls.iter().filter(|made| made.writes).count();
        self.wrong_writes += judged.wrong_writes.len();
        self.invented += judged.invented.len();
        self.dropped += usize::from(!judged.dropped.is_empty());
        self.scenes += usize::from(judged.scenes.is_some());
        self.scenes_right += usize::from(judged.scenes == Some(true));
        self.out_of_scope += usize::from(labelled.class == Class::OutOfScope);
        self.tools_out_of_scope += usize::from(judged.tools_out_of_scope);
        self.plain += usize::from(labelled.plain);
        self.plain_done += usize::from(labelled.plain && judged.left == 0);
        self.needless += usize::from(judged.needless);
        self.asks += usize::from(labelled.asks);
        self.unasked += usize::from(judged.unasked);
    }

    /// What is held to a bar: what it is, how often, of how many, the bar, and whether it is kept.
    fn bars(&self) -> [(&'static str, usize, usize, &'static str, bool); 6] {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        [
            ("wrong writes", self.wrong_writes, self.writes, "0", self.wrong_writes == 0),
            (
                "calls with a value nobody said",
                self.invented,
                self.calls,
                "<= 5%",
                share(self.invented, self.calls) <= 0.05,
            ),
            ("requests with a dropped half", self.dropped, self.requests, "0", self.dropped == 0),
            (
                "exact scene sets",
                self.scenes_right,
                self.scenes,
                ">= 85%",
                share(self.scenes_right, self.scenes) >= 0.85,
            ),
            (
                "out-of-scope requests that call a tool",
                self.tools_out_of_scope,
                self.out_of_scope,
                "<= 0.5%",
                share(self.tools_out_of_scope, self.out_of_scope) <= 0.005,
            ),
            (
                "needless questions",
                self.needless,
                self.plain,
                "<= 10%",
                share(self.needless, self.plain) <= 0.1,
            ),
        ]
    }

    fn table(&self) -> String {
        let mut table = format!("{} requests\n", self.requests);
        let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
        for (what, part, whole, bar, kept) in self.bars() {
            let kept = if kept { "kept" } else { "NOT KEPT" };
            let share = percent(part, whole);
            writeln!(table, "| {what:<40} | {part:>4} of {whole:>4} | {share:>5.1}% | {bar:>7} | {kept} |")
                .unwrap();
        }
        for (what, part, whole) in [
            ("plain requests carried out whole", self.plain_done, self.plain),
            ("questions that were not asked", self.unasked, self.asks),
        ] {
            let share = percent(part, whole);
            writeln!(table, "| {what:<40} | {part:>4} of {whole:>4} | {share:>5.1}% |         |  |").unwrap();
        }
        table
    }
}

/// One line a class: where the faults are.
fn by_class(all: &[(Played, Judged)]) -> String {
    let mut classes: BTreeMap<Class, Tally> = BTreeMap::new();
    for (played, judged) in all {
        classes.entry(played.labelled.class).or_default().add(played, judged);
    }
    let mut table =
        "| class | requests | wrong writes | invented | dropped | wrong scenes | needless | unasked |\n"
            .to_owned();
    for (class, t) in classes {
        let (class, wrong_scenes) = (format!("{class:?}"), t.scenes - t.scenes_right);
        let cells = [t.requests, t.wrong_writes, t.invented, t.dropped, wrong_scenes, t.needless, t.unasked];
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        writeln!(table, "| {class} | {} |", cells.join(" | ")).unwrap();
    }
    table
}

/// The faulty requests, by what was wrong.
fn faults(all: &[(Played, Judged)]) -> String {
    let mut told = String::new();
    for (played, judged) in all {
        let mut wrong: Vec<String> = vec![];
        wrong.extend(judged.wrong_writes.iter().map(|call| format!("wrong write: {call}")));
        wrong.extend(judged.invented.iter().map(|value| format!("nobody said: {value}")));
        wrong.extend(judged.dropped.iter().map(|half| format!("dropped: {half}")));
        if judged.scenes == Some(false) {
            wrong.push(format!("scenes, meant: {:?}", played.labelled.scenes.as_deref().unwrap_or_default()));
        }
        for (fault, what) in [
            (judged.tools_out_of_scope, "a tool out of scope"),
            (judged.needless, "a needless question"),
            (judged.unasked, "no question (no bar)"),
            (played.labelled.plain && judged.left > 0 && !judged.needless, "not carried out (no bar)"),
        ] {
            wrong.extend(fault.then(|| what.to_owned()));
        }
        if !wrong.is_empty() {
            writeln!(told, "- {}\n    FAULT {}", played.brief(), wrong.join("\n    FAULT ")).unwrap();
        }
    }
    told
}

fn show(played: &Played) {
    let wanted = std::env::var("EVAL_SHOW").unwrap_or_default();
    if wanted == "all" {
        println!("- {}", played.brief());
    } else if wanted == played.labelled.id {
        println!("- {}\n{:#}\n{}", played.brief(), played.document, played.answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labelled_requests_are_carried_out_as_their_words_say() {
    let begun = Instant::now();
    let mut all = vec![];
    for set in eval::sets() {
        let place = Place::of(&set).await;
        place.knows(&set);
        let playing = set.requests.iter().map(|labelled| place.plays(labelled));
        let played: Vec<Played> = futures::stream::iter(playing).buffered(AT_ONCE).collect().await;
        for played in played {
            show(&played);
            let judged = played.judged(place.today);
            all.push((played, judged));
        }
    }
    let mut tally = Tally::default();
    all.iter().for_each(|(played, judged)| tally.add(played, judged));
    println!("{}\n{}\n{}({:.1?})", faults(&all), by_class(&all), tally.table(), begun.elapsed());
    let missed: Vec<&str> = tally.bars().iter().filter(|bar| !bar.4).map(|bar| bar.0).collect();
    assert!(missed.is_empty(), "bars that are not kept: {}", missed.join(", "));
}

#[test]
fn the_labelled_set_is_balanced() {
    let all: Vec<Labelled> = eval::sets().into_iter().flat_map(|set| set.requests).collect();
    let count = |test: &dyn Fn(&Labelled) -> bool| all.iter().filter(|labelled| test(labelled)).count();
    let ids: BTreeSet<&String> = all.iter().map(|labelled| &labelled.id).collect();
    assert_eq!(ids.len(), all.len(), "ids are unique");
    assert!(all.len() >= 330, "{}", all.len());
    let english = count(&|labelled| labelled.lang == Lang::En);
    assert!((all.len() * 4 / 10..=all.len() * 6 / 10).contains(&english), "{english} of {}", all.len());
    let none = count(&|labelled| labelled.class.must_not_write());
    assert!((all.len() * 45 / 100..=all.len() * 55 / 100).contains(&none), "{none} of {}", all.len());
    let blind = count(&|labelled| labelled.blind);
    assert!(blind * 4 >= all.len() * 3, "{blind} of {}", all.len());
    let torn = count(&|labelled| labelled.asks && (labelled.plain || labelled.may_ask));
    assert_eq!(torn, 0, "what must ask is not plain");
}
