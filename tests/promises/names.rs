//! Each type name says what the type is wherever it is read, so no two types of the crate share one.

use std::collections::BTreeMap;
use std::path::Path;

/// Names that several components use for the same role.
const COMPONENT_NAMES: [&str; 4] = ["Options", "Error", "Handle", "Builder"];

/// The types that a file declares outside its tests.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let production = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    production.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let rest = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end)
    })
}

fn collect(dir: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" {
                collect(&path, found);
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && name != "testing.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            for declared in declared(&text) {
                found.entry(declared.to_owned()).or_default().push(path.display().to_string());
            }
        }
    }
}

#[test]
fn no_two_production_types_share_a_name() {
    let mut found = BTreeMap::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 500 && found.contains_key("RunState"), "only {} types were found", found.len());
    found.retain(|name, places| places.len() > 1 && !COMPONENT_NAMES.contains(&name.as_str()));
    assert!(found.is_empty(), "rename one of each: {found:#?}");
}
