//! The labelled requests of `tests/eval`, executed with the offline model: how many are executed as labelled. CI prints
//! the report. `proscenium eval tests/eval/FILE.yaml --only ID` shows one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::config::ConfigFlags;
use proscenium::eval::{
    self, EvalOptions, EvalReport, EvalRequirement, EvalSet, Evaluation, LabelledRequest,
};
use proscenium::run::PrepareMode;
use proscenium::scene::Catalogue;
use proscenium::{Builder, Config, Engine, shipped};
use serde_json::{Value, json};

use crate::support::eval::{folders, sets};

/// The bars.
const BARS: [&str; 6] = [
    "wrong_writes=0", "invented<=5%", "dropped=0", "scenes_exact>=85%", "out_of_scope<=0.5%", "needless<=10%",
];
/// Most wrong requests that the report describes.
const FAILURES: usize = 60;

/// Classes of requests that ask for no write.
const WITHOUT_WRITE: [&str; 10] = [
    "negated", "question", "report", "condition", "reminder", "quoted", "third_person", "hypothetical",
    "background", "out_of_scope",
];

fn builder(config: Config) -> Builder {
    Engine::builder(config).native_tools(shipped::tools()).builtin_scenes(&shipped::FOLDERS)
}

/// Executes all labelled requests.
async fn executed(prepare: PrepareMode) -> EvalReport {
    let worker = env!("CARGO_BIN_EXE_proscenium").to_owned();
    let env = [
        ("PROSCENIUM__PLANNING__PREPARE", json!(prepare).as_str().unwrap().to_owned()),
        ("PROSCENIUM__SANDBOX__WORKER", worker),
    ];
    let env = env.into_iter().map(|(name, value)| (name.to_owned(), value));
    let config = Config::load(None, env, ConfigFlags::default()).unwrap().config;
    let evaluation = Evaluation::prepare(sets(), &config, EvalOptions::default(), builder).unwrap();
    assert_eq!(evaluation.real_http_tools(), []);
    evaluation.run(&|_| ()).await.unwrap()
}

/// What was executed may have cost money, so it is reported although the engine of the next repetition does not start.
#[tokio::test]
async fn report_keeps_what_was_executed_before_an_engine_failed_to_start() {
    let first = sets().into_iter().map(|mut set| {
        set.conversations.truncate(1);
        set
    });
    let config = Config::load(None, std::iter::empty(), ConfigFlags::default()).unwrap().config;
    let built = AtomicUsize::new(0);
    // For the scenes, for the first repetition, and for the second one, whose data directory is a file.
    let fails_at_last = |mut config: Config| {
        if built.fetch_add(1, Ordering::Relaxed) == 2 {
            config.store.data_dir = "/dev/null".into();
        }
        builder(config)
    };
    let options = EvalOptions { repeat: 2, ..EvalOptions::default() };
    let evaluation = Evaluation::prepare(first.take(1).collect(), &config, options, fails_at_last).unwrap();
    let report = evaluation.run(&|_| ()).await.unwrap();
    assert!(report.requests.iter().all(|request| request.repetitions.len() == 1), "{report:#?}");
    let why = report.ended_early.clone().unwrap();
    assert!(why.contains("/dev/null") && eval::report_text(&report, 0).contains(&why), "{why}");
    let junit = eval::junit(&report);
    let junit = roxmltree::Document::parse(&junit).unwrap();
    assert!(junit.descendants().any(|node| node.has_tag_name("error")), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labelled_requests_are_executed_as_labelled() {
    let modes = [PrepareMode::Approval, PrepareMode::Always];
    let [step_by_step, prepared] = modes.map(executed);
    let (step_by_step, prepared) = futures::join!(step_by_step, prepared);
    let mut text = String::new();
    let mut means = Vec::new();
    for (mode, report) in modes.iter().zip([&step_by_step, &prepared]) {
        text.push_str(&format!("planning.prepare = {}\n", json!(mode)));
        text.push_str(&eval::report_text(report, FAILURES));
        text.push('\n');
        means.push(report.counts.model_calls as f64 / report.count as f64);
    }
    println!("{text}");
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("eval.txt"), &text).unwrap();
    for report in [&step_by_step, &prepared] {
        let bars = BARS.iter().map(|bar| bar.parse::<EvalRequirement>().unwrap());
        let missed: Vec<String> = bars.filter_map(|bar| bar.missed(report)).collect();
        assert!(missed.is_empty(), "bars that are not met: {}\n{text}", missed.join("\n"));
        assert_eq!((report.left_out, report.unjudged), (0, 0));
    }
    assert!(means[1] < means[0], "{means:?}");
    // No request that was executed completely step by step is left undone when its calls are prepared.
    let left = |report: &EvalReport| -> BTreeMap<String, usize> {
        report.requests.iter().map(|one| (one.id.clone(), one.repetitions[0].left)).collect()
    };
    let before = left(&step_by_step);
    let worse: Vec<String> =
        left(&prepared).into_iter().filter(|(id, left)| *left > before[id]).map(|(id, _)| id).collect();
    assert!(worse.is_empty(), "worse when prepared: {}", worse.join(", "));
}

#[test]
fn labelled_set_is_balanced() {
    let all: Vec<LabelledRequest> = sets().iter().flat_map(EvalSet::requests).cloned().collect();
    let count = |test: &dyn Fn(&LabelledRequest) -> bool| all.iter().filter(|request| test(request)).count();
    let ids: BTreeSet<&String> = all.iter().map(|labelled| &labelled.id).collect();
    assert_eq!(ids.len(), all.len(), "ids are unique");
    assert!(all.len() >= 330, "{}", all.len());
    let languages: BTreeSet<&str> = all.iter().filter_map(|request| request.lang.as_deref()).collect();
    assert_eq!(languages, BTreeSet::from(["en", "it"]));
    let english = count(&|request| request.lang.as_deref() == Some("en"));
    assert!((all.len() * 4 / 10..=all.len() * 6 / 10).contains(&english), "{english} of {}", all.len());
    let none = count(&|request| WITHOUT_WRITE.contains(&request.class.as_deref().unwrap()));
    assert!((all.len() * 45 / 100..=all.len() * 55 / 100).contains(&none), "{none} of {}", all.len());
    let blind = count(&|request| request.blind);
    assert!(blind * 4 >= all.len() * 3, "{blind} of {}", all.len());
}

#[test]
fn labelled_calls_have_every_required_argument() {
    let loaded = builder(Config::default()).scene_folders(folders()).load_scenes();
    assert!(!loaded.has_errors(), "{:#?}", loaded.faults);
    let catalogue = Catalogue::new(loaded.scenes);
    for request in sets().iter().flat_map(EvalSet::requests) {
        for call in request.calls.as_ref().unwrap() {
            let tool = catalogue.all().find_map(|scene| scene.tool(&call.tool)).unwrap();
            let required = tool.parameters["required"].as_array().into_iter().flatten();
            let mut required = required.filter_map(Value::as_str);
            let missing = required.find(|name| !call.arguments.contains_key(*name));
            assert_eq!(missing, None, "{}: a required argument has no label", request.id);
        }
    }
}
