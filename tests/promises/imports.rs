//! Imports between the modules of the crate run one way: along the table in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crate's module of a table entry such as `` `llm/` `` or `` `access.rs` ``.
fn module(entry: &str) -> Option<&str> {
    let path = entry.trim().strip_prefix('`')?.strip_suffix('`')?;
    path.strip_suffix(".rs").or_else(|| path.strip_suffix('/'))
}

/// Each module of the table with its row; the entries of one row may know each other.
fn table() -> BTreeMap<String, usize> {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let rows = text.split("| module | what it is | invariant |").nth(1).unwrap();
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let modules = rows.enumerate().flat_map(|(row, line)| {
        let entries = line.split('|').nth(1).unwrap_or_default();
        entries.split(',').filter_map(module).map(|module| (module.to_owned(), row)).collect::<Vec<_>>()
    });
    modules.collect()
}

/// The modules that a text names as `crate::module` or `crate::{module, …}`, outside comments and tests.
fn imports(text: &str) -> BTreeSet<String> {
    let production = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: String = production.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default(),
        };
        for name in names.split(',') {
            let name = name.trim().split("::").next().unwrap_or_default();
            found.insert(name.to_owned());
        }
    }
    found
}

fn check(
    dir: &Path,
    module: Option<&str>,
    table: &BTreeMap<String, usize>,
    faults: &mut Vec<String>,
) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" {
                files += check(&path, Some(module.unwrap_or(&name)), table, faults);
            }
            continue;
        }
        let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "tests" && *stem != "testing")
        else {
            continue;
        };
        let of = module.unwrap_or(stem);
        if ["lib", "main", "cli", "bin"].contains(&of) {
            continue;
        }
        files += 1;
        let Some(row) = table.get(of) else {
            faults.push(format!("{}: `{of}` is not in the table", path.display()));
            continue;
        };
        for import in imports(&std::fs::read_to_string(&path).unwrap()) {
            // Types that the crate's root exports are not in it.
            let Some(imported) = table.get(&import) else { continue };
            if imported > row {
                faults.push(format!("{}: `{of}` uses `{import}`, which is below it", path.display()));
            }
        }
    }
    files
}

#[test]
fn modules_import_only_those_above_them_in_the_table() {
    let table = table();
    assert!(table.len() > 20 && table.contains_key("llm") && table.contains_key("http"), "{table:?}");
    let mut faults = Vec::new();
    let files = check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &table, &mut faults);
    assert!(files > 200, "{files} files were read");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
