//! README.md and the guides in `docs/` are correct: the printed scene works, and every link resolves.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::process::{MAIN, Workspace};
use super::support::Backend;

const README: &str = include_str!("../../README.md");

#[test]
fn ten_line_scene_works_as_printed() {
    let scene = README.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(scene.lines().count(), 10);
    let backend = Backend::start(|_| json!({"number": 12, "place": "Bologna"}));
    let host = backend.address().strip_prefix("http://").unwrap();
    let workspace = Workspace::new().with("PROSCENIUM__SCENES__ALLOW_HOSTS", &format!("[\"{host}\"]"));
    assert!(scene.contains("127.0.0.1:8000"));
    workspace.write("my-scenes/orders/scene.toml", &scene.replace("127.0.0.1:8000", host));
    let checked = workspace.run(&["--scenes", "my-scenes", "check"]);
    assert!(checked.status == 0 && checked.out.contains("Orders: GetOrder"), "{checked:?}");
    let answer =
        workspace.ask("Where is order 12, and what is the weather in Milan?", &["--scenes", "my-scenes"]);
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["Orders", "Weather"]), "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("Bologna"), "{answer:#}");
    assert_eq!(backend.take_requests()[0].place, "GET /12.json");
}

#[test]
fn labels_of_the_guide_are_executed_as_printed() {
    let guide = include_str!("../../docs/testing.md");
    let labels = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let workspace = Workspace::new();
    workspace.write("labels.yaml", labels);
    let judged = workspace.run(&["eval", "labels.yaml", "--rules", "--require", "right>=100%"]);
    assert!(judged.status == 0 && judged.out.contains("2 of      2    100.0%"), "{judged:?}");
}

#[test]
fn readme_begins_with_the_command_of_the_main_scenario() {
    assert!(README.contains(&format!("cargo run -- chat \"{MAIN}\"")));
}

/// The README, its guides, and the other documents of the repository.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "docs/internals", "config", "dashboards", "scenes", "benches", "tests/eval"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("\n```").step_by(2).collect()
}

/// The names by which GitHub links to the headings of a text.
fn anchors(text: &str) -> Vec<String> {
    let headings =
        prose(text).lines().filter(|line| line.starts_with('#')).map(str::to_lowercase).collect::<Vec<_>>();
    let name = |heading: &String| {
        let words = heading.trim_start_matches('#').trim().replace(' ', "-");
        words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
    };
    headings.iter().map(name).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in prose(&text).split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { document.clone() } else { document.with_file_name("").join(file) };
            let found = target.exists()
                && (anchor.is_empty()
                    || anchors(&std::fs::read_to_string(&target).unwrap()).contains(&anchor.to_owned()));
            if !found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn readme_lists_every_guide() {
    for guide in
        documents().iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("docs")))
    {
        let name = format!("](docs/{})", guide.file_name().unwrap().to_str().unwrap());
        assert!(README.contains(&name), "{name}");
    }
}

#[test]
fn every_configuration_section_is_in_the_table() {
    let config: serde_json::Value = serde_json::to_value(proscenium::Config::default()).unwrap();
    for section in config.as_object().unwrap().keys() {
        assert!(README.contains(&format!("| `{section}` |")), "{section}");
    }
}
