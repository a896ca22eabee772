//! Programs for the sandbox: a shop, a weather service and a calendar that programs call, and the corpora of
//! `tests/fixtures/sandbox`.

use proscenium::program::{
    Finished, Interpreter, PastCall, PastOutcome, Program, ProgramCall, ProgramFunction, ProgramLimits, Stop,
};
use proscenium::sandbox::WORKER_COMMAND;
use serde::Deserialize;
use serde_json::{Value, json};

/// Monday, 2026-05-04 07:00 UTC.
pub const NOW_MS: i64 = 1_777_878_000_000;

/// What the programs of the corpora may call, with the names of the parameters.
pub fn functions() -> Vec<ProgramFunction> {
    let function = |(name, parameters): (&str, &[&str])| ProgramFunction {
        name: name.to_owned(),
        parameters: parameters.iter().map(|parameter| (*parameter).to_owned()).collect(),
    };
    let all: [(&str, &[&str]); 8] = [
        ("shop.items", &[]),
        ("shop.stock", &["item"]),
        ("shop.sell", &["item", "quantity"]),
        ("shop.set_price", &["item", "cents"]),
        ("shop.sales", &["since", "until"]),
        ("weather.forecast", &["city", "day"]),
        ("calendar.events", &["day"]),
        ("calendar.add", &["title", "day", "hour"]),
    ];
    all.map(function).to_vec()
}

/// A program with these functions and no calls yet.
pub fn program(source: &str, limits: ProgramLimits) -> Program {
    Program {
        source: source.to_owned(),
        functions: functions(),
        now_ms: NOW_MS,
        seed: 7,
        calls: Vec::new(),
        limits,
        entry: None,
    }
}

const STOCK: [(&str, i64, i64); 5] =
    [("apple", 10, 50), ("pear", 3, 80), ("lamp", 2, 4500), ("notebook", 0, 250), ("pen", 120, 99)];

fn stocked(item: &Value) -> Result<(i64, i64), String> {
    let found = STOCK.iter().find(|(name, ..)| item.as_str() == Some(name));
    found.map(|(_, quantity, cents)| (*quantity, *cents)).ok_or_else(|| format!("there is no item {item}"))
}

/// What a call of a program comes to. The same call always comes to the same.
pub fn outcome(call: &ProgramCall) -> PastOutcome {
    let result = result(call);
    match result {
        Ok(value) => PastOutcome::Returned(value),
        Err(message) => PastOutcome::Raised(message),
    }
}

fn result(call: &ProgramCall) -> Result<Value, String> {
    let argument = |name: &str| call.arguments.get(name).cloned().unwrap_or_default();
    Ok(match call.function.as_str() {
        "shop.items" => {
            let item = |(name, quantity, cents): &(&str, i64, i64)| json!({"item": name, "quantity": quantity, "price_cents": cents});
            Value::from(STOCK.iter().map(item).collect::<Vec<_>>())
        }
        "shop.stock" => {
            let (quantity, cents) = stocked(&argument("item"))?;
            json!({"item": argument("item"), "quantity": quantity, "price_cents": cents})
        }
        "shop.sell" => {
            let (quantity, cents) = stocked(&argument("item"))?;
            let sold =
                argument("quantity").as_i64().filter(|sold| *sold > 0).ok_or("a quantity is at least 1")?;
            if sold > quantity {
                return Err(format!("only {quantity} left"));
            }
            json!({"left": quantity - sold, "total_cents": sold * cents})
        }
        "shop.set_price" => json!({"before": stocked(&argument("item"))?.1, "after": argument("cents")}),
        "shop.sales" => json!([
            {"item": "apple", "quantity": 4, "cents": 200, "day": "2026-05-01"},
            {"item": "pen", "quantity": 10, "cents": 990, "day": "2026-05-02"},
            {"item": "apple", "quantity": 1, "cents": 50, "day": "2026-05-03"},
        ]),
        "weather.forecast" => {
            let city = argument("city").as_str().map(str::len).unwrap_or_default();
            let day = argument("day").as_str().map(str::len).unwrap_or_default();
            json!({"city": argument("city"), "high": 10 + city, "rain": (city + day) % 2 == 0})
        }
        "calendar.events" => json!([
            {"title": "Stand-up", "hour": 9}, {"title": "Lunch", "hour": 12}, {"title": "Review", "hour": 15.5},
        ]),
        "calendar.add" => json!({"id": 17, "title": argument("title")}),
        other => return Err(format!("there is no {other}")),
    })
}

/// The ids of this process's workers with this bound of memory, which tells those of a test from others.
pub fn workers_with(memory_mib: u64) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let line = format!("\0{WORKER_COMMAND}\0{memory_mib}\0");
    let is_worker = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("cmdline")).is_ok_and(|found| found.contains(&line))
    };
    let ids = entries.filter(is_worker).filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    let parent = u64::from(std::process::id());
    ids.filter(|process| stat(*process).get(1) == Some(&parent)).collect()
}

/// The numbers of `/proc/PID/stat` after the name: the second is the parent. None for a process that has ended.
fn stat(process: u32) -> Vec<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect()
}

/// The processor time of a process, in ticks of the kernel.
fn ticks(process: u32) -> u64 {
    stat(process).iter().skip(11).take(2).sum()
}

/// Kills the first worker with this bound of memory that computes for a while.
pub async fn kill_computing_worker(memory_mib: u64) {
    let computing = || workers_with(memory_mib).into_iter().find(|process| ticks(*process) > 30);
    super::eventually("a worker computes", async || computing().is_some()).await;
    let line = format!("kill -KILL {}", computing().unwrap());
    assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

/// Where a program stops at last, when its calls come to [`outcome`]; and the program with its calls.
pub async fn executed(interpreter: &dyn Interpreter, mut program: Program) -> (Stop, Program) {
    loop {
        let stop = interpreter.execute(&program).await.unwrap();
        let Stop::Call { call, .. } = stop else { return (stop, program) };
        program.calls.push(PastCall { outcome: outcome(&call), call });
    }
}

/// A hostile program and how it must end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostileProgram {
    pub name: String,
    source: String,
    ends: OneOrMore,
    #[serde(default)]
    past: Vec<PastCall>,
    #[serde(default = "once")]
    times: usize,
    leaves: Option<String>,
    #[serde(default)]
    cut: bool,
    #[serde(default)]
    calls: Vec<ProgramCall>,
    status: Option<Value>,
    /// Whether it must stop at the same call each time.
    #[serde(default)]
    pub same: bool,
}

fn once() -> usize {
    1
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// A program as a model writes it, and what it must come to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenignProgram {
    pub name: String,
    pub source: String,
    pub status: Option<String>,
    pub answer: Option<String>,
    pub rows: Option<Value>,
    pub printed: Option<String>,
    /// Its calls, as `scene.tool {arguments}`.
    #[serde(default)]
    pub calls: Vec<String>,
}

fn corpus<T: serde::de::DeserializeOwned>(file: &str) -> Vec<T> {
    let path = format!("{}/tests/fixtures/sandbox/{file}", env!("CARGO_MANIFEST_DIR"));
    // By way of JSON, whose enums are objects.
    let entries: Value = serde_norway::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(entries).unwrap()
}

/// The hostile programs.
pub fn hostile() -> Vec<HostileProgram> {
    corpus("hostile.yaml")
}

/// The benign programs.
pub fn benign() -> Vec<BenignProgram> {
    corpus("benign.yaml")
}

impl HostileProgram {
    /// The program, with its past calls.
    pub fn program(&self, limits: ProgramLimits) -> Program {
        let calls = std::iter::repeat_n(self.past.clone(), self.times).flatten().collect();
        Program { calls, ..program(&repeated(&self.source), limits) }
    }

    /// What is wrong with this end.
    pub fn fault(&self, stop: &Stop) -> Option<String> {
        let end = match stop {
            Stop::Call { .. } => "call",
            Stop::Finished(_) => "finished",
            Stop::Fault(fault) => &fault.code,
        };
        let allowed = match &self.ends {
            OneOrMore::One(one) => one == end,
            OneOrMore::More(more) => more.iter().any(|one| one == end),
        };
        let good = allowed
            && match stop {
                Stop::Call { call, .. } => self.calls.is_empty() || self.calls.contains(call),
                Stop::Finished(finished) => self.holds(finished),
                Stop::Fault(_) => true,
            };
        (!good).then(|| {
            let mut text = format!("{stop:?}");
            text.truncate(text.floor_char_boundary(300));
            format!("`{}`: {text}", self.name)
        })
    }

    fn holds(&self, finished: &Finished) -> bool {
        self.leaves.as_ref().is_none_or(|text| *text == finished.printed)
            && (!self.cut || finished.cut)
            && self
                .status
                .as_ref()
                .is_none_or(|status| *status == finished.status.clone().unwrap_or_default())
    }
}

impl BenignProgram {
    /// What is wrong with this end of it.
    pub fn faults(&self, stop: &Stop, program: &Program) -> Vec<String> {
        let Stop::Finished(finished) = stop else {
            return vec![format!("`{}` ends as {stop:?}", self.name)];
        };
        let call = |past: &PastCall| {
            format!("{} {}", past.call.function, serde_json::to_string(&past.call.arguments).unwrap())
        };
        let text = |value: &Option<String>| value.clone().map(Value::from);
        let mut faults = Vec::new();
        let mut compare = |what: &str, found: Option<Value>, expected: Option<Value>| {
            if found != expected {
                faults.push(format!("`{}`: {what} is {found:?}, expected {expected:?}", self.name));
            }
        };
        compare("STATUS", finished.status.clone(), text(&self.status));
        compare("answer_text", finished.answer_text.clone(), text(&self.answer));
        compare("answer_rows", finished.answer_rows.clone(), self.rows.clone());
        compare("the output", Some(finished.printed.clone().into()), text(&self.printed).or(Some("".into())));
        let calls: Vec<String> = program.calls.iter().map(call).collect();
        compare("the list of calls", Some(calls.into()), Some(self.calls.clone().into()));
        faults
    }
}

/// The source with `«text×N»` written N times.
fn repeated(source: &str) -> String {
    let mut written = String::new();
    let mut rest = source;
    while let Some((before, marked)) = rest.split_once('«') {
        let (marked, after) = marked.split_once('»').unwrap();
        let (text, times) = marked.rsplit_once('×').unwrap();
        written.push_str(before);
        written.push_str(&text.repeat(times.parse().unwrap()));
        rest = after;
    }
    written + rest
}
