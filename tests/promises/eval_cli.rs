//! `proscenium eval`: labelled requests executed by the real program, with the offline model.

use std::path::Path;

use serde_json::Value;

use super::process::{ProcessOutput, Workspace};

const LABELS: &str = r#"clock: "2026-05-04T09:00:00+02:00"
time_zone: Europe/Rome
scenes: [library]
settings: {Weather: {source: bundled}}
requests:
  - id: weather
    class: request
    plain: true
    say: "What is the weather in Milan?"
    scenes: [Weather]
    calls: [{tool: WeatherForecast_Get, arguments: {city: Milan|Milano}}]
  - id: book
    class: request
    say: 'Reserve the book "Emma" from 3 July for 21 days at the station branch'
    calls: [{tool: ReserveBook, arguments: {title: Emma, from: "2026-07-03", days: 21, branch: station}}]
    answer_mentions: [R-7]
  - id: mislabelled
    class: question
    say: "What is the weather in Rome?"
    scenes: [VacationManagement]
    nothing_written: true
"#;

/// A directory with labelled requests, and a scene whose back end is scripted.
fn workspace() -> Workspace {
    let workspace = Workspace::bare();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/library");
    for file in ["scene.toml", "replies.json"] {
        workspace.write(&format!("library/{file}"), &std::fs::read_to_string(library.join(file)).unwrap());
    }
    workspace.write("labels.yaml", LABELS);
    workspace
}

fn eval(workspace: &Workspace, more: &[&str]) -> ProcessOutput {
    let arguments: Vec<&str> = ["eval", "labels.yaml"].into_iter().chain(more.iter().copied()).collect();
    workspace.run(&arguments)
}

#[test]
fn labelled_requests_are_executed_reported_and_compared() {
    let workspace = workspace();
    let reports = ["--repeat", "2", "--json", "run.json", "--junit", "run.xml"];
    let first = eval(&workspace, &reports);
    assert_eq!(first.status, 1, "{first:#?}");
    assert!(first.err.contains("3 requests, each 2 times, with the offline model"), "{first:#?}");
    assert!(first.out.contains("- mislabelled (labels.yaml:17), right in 0 of 2 executions"), "{first:#?}");
    assert!(first.out.contains("FAULT wrong_scenes: expected: VacationManagement takes part"), "{first:#?}");
    assert!(
        first.out.contains("3 requests x 2 with the offline model, $0.0000\nright: 66.7% ("),
        "{first:#?}"
    );
    let read = |file: &str| std::fs::read_to_string(workspace.path().join(file)).unwrap();
    let report: Value = serde_json::from_str(&read("run.json")).unwrap();
    assert_eq!(report["counts"]["right"], serde_json::json!({"part": 4, "whole": 6}), "{report:#}");
    assert_eq!(report["requests"][1]["repetitions"].as_array().unwrap().len(), 2);
    let junit = read("run.xml");
    let junit = roxmltree::Document::parse(&junit).unwrap();
    let failed = junit.descendants().filter(|node| node.has_tag_name("failure"));
    let failed: Vec<&str> = failed.map(|node| node.parent().unwrap().attribute("name").unwrap()).collect();
    assert_eq!(failed, ["mislabelled"]);

    // Nothing is left of the data; the configured data directory was not used.
    assert!(!workspace.data().exists());

    // What was wrong before is no regression; a back end that replies otherwise is.
    let against = ["--against", "run.json", "--require", "wrong_writes=0"];
    let replies = read("library/replies.json").replace("R-7", "R-8");
    workspace.write("library/replies.json", &replies);
    let worse = eval(&workspace, &against);
    assert_eq!(worse.status, 1, "{worse:#?}");
    let named = "1 request, right before, wrong now:\n- book (0 of 1, was 2 of 2): not_mentioned: \"R-7\"";
    assert!(worse.out.contains(named) && !worse.out.contains("NOT MET"), "{worse:#?}");
    let right = eval(&workspace, &["--only", "weather", "--require", "right>=95%", "--against", "run.json"]);
    assert_eq!(right.status, 0, "{right:#?}");
    assert!(right.out.contains("Nothing that was right is wrong now."), "{right:#?}");
}

#[test]
fn nothing_is_executed_if_labels_are_wrong_or_it_could_write_or_cost() {
    let workspace =
        workspace().with("OPENAI_API_KEY", "sk-none").with("OPENAI_BASE_URL", "https://m.invalid/v1");
    let refused = |more: &[&str], code: &str| {
        let ran = eval(&workspace, more);
        assert!(ran.status == 2 && ran.err.contains(&format!("error[{code}]")), "{code}: {ran:#?}");
        assert_eq!(ran.out, "");
        ran.err
    };
    refused(&[], "eval.unbounded_cost");
    refused(&["--rules", "--only", "wether"], "eval.unknown_request");
    refused(&["--rules", "--against", "labels.yaml"], "eval.against");
    refused(&["--rules", "--json", "absent/run.json"], "eval.output");
    let of = |scenes: &str, tool: &str| {
        let request =
            format!("{{id: a, say: How many espresso cups do we have?, calls: [{{tool: {tool}}}]}}");
        workspace.write("labels.yaml", &format!("scenes: ['shipped:{scenes}']\nrequests:\n  - {request}\n"));
    };
    of("invntory", "GetStock");
    assert!(refused(&["--rules"], "scene.unreadable").contains("one of: inventory, lending"));
    of("inventory", "GetStock");
    let ran = eval(&workspace, &["--rules"]);
    assert!(ran.status == 0 && ran.out.contains("right: 100.0%"), "{ran:#?}");
    // The folder may be the configured one instead.
    workspace.write("labels.yaml", &LABELS.replace("scenes: [library]\n", ""));
    let configured = eval(&workspace, &["--rules", "--scenes", "library"]);
    assert!(!configured.out.contains("called for real"), "{configured:#?}");
    assert!(configured.out.contains("right: 66.7%"), "{configured:#?}");
    workspace.write("labels.yaml", LABELS);
    std::fs::remove_file(workspace.path().join("library/replies.json")).unwrap();
    let real = refused(&["--rules"], "eval.http_writes");
    assert!(real.contains("called for real: Library.FindBooks (reads, http://library.invalid)"), "{real}");
    workspace.write("labels.yaml", &LABELS.replace("ReserveBook,", "ReserveBok,").replace("city:", "town:"));
    let unknown = refused(&["--rules"], "eval.unknown_tool");
    let lines: Vec<&str> = unknown.lines().collect();
    assert_eq!(
        lines,
        [
            "labels.yaml:6: error[eval.unknown_argument]: weather: there is no argument of WeatherForecast_Get \"town\"",
            "  help: one of: city, date, days",
            "labels.yaml:12: error[eval.unknown_tool]: book: there is no tool \"ReserveBok\"",
            "  help: did you mean \"ReserveBook\"?",
        ]
    );
}
