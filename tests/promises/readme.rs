//! README.md is correct: its scene works as printed, and its links resolve.

use std::path::Path;

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
fn every_linked_file_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut links = README.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    assert!(links.all(|link| link.starts_with("http") || link.starts_with('#') || root.join(link).exists()));
    assert!(README.contains(&format!("cargo run -- chat \"{MAIN}\"")));
}

#[test]
fn every_configuration_section_is_in_the_table() {
    let config: serde_json::Value = serde_json::to_value(proscenium::Config::default()).unwrap();
    for section in config.as_object().unwrap().keys() {
        assert!(README.contains(&format!("| `{section}` |")), "{section}");
    }
}
