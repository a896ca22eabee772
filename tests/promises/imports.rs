//! The table of modules in ARCHITECTURE.md says what each module uses of the crate: exactly what its code imports, and
//! only modules above it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A row of the table. Its modules may use each other.
#[derive(Debug)]
struct Row {
    modules: Vec<String>,
    uses: BTreeSet<String>,
}

fn text(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The names in backticks of a cell such as `` `llm/`, `access.rs` ``, without their endings.
fn names(cell: &str) -> Vec<String> {
    let name = |entry: &str| {
        let path = entry.trim().strip_prefix('`')?.strip_suffix('`')?;
        let bare = path.strip_suffix(".rs").or_else(|| path.strip_suffix('/')).unwrap_or(path);
        Some(bare.to_owned())
    };
    cell.split(',').filter_map(name).collect()
}

fn table() -> Vec<Row> {
    let text = text("ARCHITECTURE.md");
    let rows = text.split("| module | what it is | uses | invariant |").nth(1).unwrap();
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        Row { modules: names(cells[1]), uses: names(cells[3]).into_iter().collect() }
    };
    rows.map(row).collect()
}

/// What the crate's root exports, by the module that it comes from.
fn root_exports() -> BTreeMap<String, String> {
    let text = text("src/lib.rs");
    let mut found = BTreeMap::new();
    for export in text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let (module, _) = export.split_once("::").unwrap();
        for name in export.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            if name.starts_with(char::is_uppercase) || name == "fold" {
                found.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    found
}

/// The names that a text uses as `crate::name` or `crate::{name, …}`, outside comments and tests.
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

/// Adds what the production code below `dir` imports, by module; returns the number of files read.
fn read(dir: &Path, module: Option<&str>, found: &mut BTreeMap<String, BTreeSet<String>>) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" {
                files += read(&path, Some(module.unwrap_or(&name)), found);
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
        found.entry(of.to_owned()).or_default().extend(imports(&std::fs::read_to_string(&path).unwrap()));
    }
    files
}

/// The cell that says what a row uses.
fn cell(uses: &BTreeSet<String>) -> String {
    uses.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn table_of_modules_lists_exactly_what_each_module_imports_and_only_modules_above_it() {
    let (table, exports) = (table(), root_exports());
    let row_of = |module: &str| table.iter().position(|row| row.modules.iter().any(|name| name == module));
    assert!(row_of("llm").is_some() && row_of("http").is_some(), "{table:?}");
    let mut code = BTreeMap::new();
    let files = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut code);
    assert!(files > 200, "{files} files were read");
    let mut faults = Vec::new();
    let mut used = vec![BTreeSet::new(); table.len()];
    for (module, imports) in &code {
        let Some(at) = row_of(module) else {
            faults.push(format!("`{module}` is not in the table"));
            continue;
        };
        for name in imports {
            let name = exports.get(name).unwrap_or(name);
            let Some(imported) = row_of(name) else { continue };
            if imported > at {
                faults.push(format!("`{module}` uses `{name}`, which is below it"));
            }
            if imported != at {
                used[at].insert(name.clone());
            }
        }
    }
    for (row, used) in table.iter().zip(&used) {
        let first = row.modules.first().unwrap();
        // The command line is a crate of its own.
        if first != "main" && row.uses != *used {
            faults.push(format!("the row of `{first}` must list as used: {}", cell(used)));
        }
        for module in row.modules.iter().filter(|module| *module != "main" && *module != "cli") {
            if !code.contains_key(module) {
                faults.push(format!("`{module}` is in the table and not in the code"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
