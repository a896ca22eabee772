//! The tables that a scene declares for programs and for its own tools: `[[tables]]`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::SceneTool;
use super::check::{CheckContext, check_flow_tool};
use super::document::{Located, LocatedTexts, PointerLines, Presence, TableReader};
use super::fault::FaultReport;
use crate::nearest::{did_you_mean, name_list};
use crate::run::{Effect, Repeat};
use crate::staged::{
    COMMIT, ColumnDefinition, ColumnKind, EntryRule, FilledBy, SceneTables, TableCall, TableDefinition,
    check_entry_expression, check_expression,
};
use crate::tools::tables::{TableCommit, TableFunction};

/// How much a read of a program may return, in bytes of JSON.
const MAX_READ_BYTES: u64 = 64 * 1024;

const MAX_TABLES: usize = 16;

const MAX_COLUMNS: usize = 40;

const MAX_ROWS: usize = 500;

/// Columns that the host keeps by itself.
const HOST_COLUMNS: [&str; 2] = ["tenant", "row_version"];

/// The host's own table of each scene.
const COMMITS: &str = "commits";

pub(super) struct TableDraft {
    line: Option<u32>,
    name: Option<Located<String>>,
    description: Option<Located<String>>,
    columns: Vec<ColumnDraft>,
    key: Vec<Located<String>>,
    checks: Vec<Located<String>>,
    append_only: Option<Located<bool>>,
    records: Option<RecordsDraft>,
    rows: Option<(Located<Value>, PointerLines)>,
}

struct ColumnDraft {
    line: Option<u32>,
    name: Option<Located<String>>,
    kind: Option<Located<ColumnKind>>,
    scale: Option<Located<u64>>,
    optional: Option<Located<bool>>,
    values: Vec<Located<String>>,
    filled: Option<Located<FilledBy>>,
}

struct RecordsDraft {
    line: Option<u32>,
    table: Option<Located<String>>,
    by: LocatedTexts,
    amounts: LocatedTexts,
    checks: Vec<Located<String>>,
}

/// The types of columns. The scale of a decimal has a key of its own.
const KINDS: [(&str, ColumnKind); 6] = [
    ("text", ColumnKind::Text),
    ("integer", ColumnKind::Integer),
    ("decimal", ColumnKind::Decimal { scale: 0 }),
    ("boolean", ColumnKind::Boolean),
    ("day", ColumnKind::Day),
    ("time", ColumnKind::Time),
];

const FILLED: [(&str, FilledBy); 3] =
    [("id", FilledBy::Id), ("now", FilledBy::Now), ("user", FilledBy::User)];

pub(super) fn parse_table(mut fields: TableReader<'_>) -> TableDraft {
    let draft = TableDraft {
        line: fields.line(),
        name: fields.string("name", Presence::Required),
        description: fields.string("description", Presence::Required),
        columns: fields.tables("columns").into_iter().map(parse_column).collect(),
        key: fields.strings("key"),
        checks: fields.strings("checks"),
        append_only: fields.flag("append_only"),
        records: fields.table("records").map(parse_records),
        rows: fields.json("rows"),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_column(mut fields: TableReader<'_>) -> ColumnDraft {
    let draft = ColumnDraft {
        line: fields.line(),
        name: fields.string("name", Presence::Required),
        kind: fields.keyword("type", Presence::Required, &KINDS),
        scale: fields.number("scale"),
        optional: fields.flag("optional"),
        values: fields.strings("values"),
        filled: fields.keyword("filled", Presence::Optional, &FILLED),
    };
    fields.reject_unknown_keys();
    draft
}

fn parse_records(mut fields: TableReader<'_>) -> RecordsDraft {
    let draft = RecordsDraft {
        line: fields.line(),
        table: fields.string("table", Presence::Required),
        by: fields.texts("by"),
        amounts: fields.texts("amounts"),
        checks: fields.strings("checks"),
    };
    fields.reject_unknown_keys();
    draft
}

/// Reports faults of the tables.
struct TableChecker<'a> {
    report: &'a FaultReport,
}

/// The checked tables. Faults are reported.
pub(super) fn check(drafts: Vec<TableDraft>, report: &FaultReport) -> SceneTables {
    let checker = TableChecker { report };
    if drafts.len() > MAX_TABLES {
        let message = format!("the scene declares {} tables", drafts.len());
        report.error(None, "table_bound", message, format!("declare at most {}", MAX_TABLES));
    }
    let (mut tables, mut records, mut rows) = (SceneTables::default(), Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for mut draft in drafts {
        let (ruled, begun) = (draft.records.take(), draft.rows.take());
        let Some(table) = checker.table(draft, &mut names) else { continue };
        records.push(ruled);
        rows.push(begun);
        tables.0.push(table);
    }
    for (at, draft) in records.into_iter().enumerate() {
        let rule = draft.and_then(|draft| checker.records(draft, &tables, &tables.0[at]));
        tables.0[at].records = rule;
    }
    for (table, begun) in tables.0.iter_mut().zip(rows) {
        if let Some((rows, lines)) = begun {
            checker.rows(table, &rows, &lines);
        }
    }
    tables
}

impl TableChecker<'_> {
    fn error(&self, line: Option<u32>, code: &str, message: String, remedy: impl Into<String>) {
        self.report.error(line, code, message, remedy);
    }

    /// Whether a name can be one of a table or column, and no other has it.
    fn name(&self, what: &str, name: &Located<String>, known: &mut BTreeSet<String>) {
        let text = &name.value;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let fits = text.len() <= 40
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(plain)
            && text != COMMITS
            && !HOST_COLUMNS.contains(&text.as_str());
        if !fits {
            let remedy = format!(
                "use up to 40 characters from a-z 0-9 _, beginning with a letter; {COMMITS}, {} are the server's",
                HOST_COLUMNS.join(", ")
            );
            self.error(name.line, "table_name", format!("{text:?} is not a valid name of a {what}"), remedy);
        }
        if !known.insert(text.clone()) {
            let message = format!("{text:?} is the name of two {what}s");
            self.error(name.line, "table_name", message, format!("give each {what} its own name"));
        }
    }

    fn column_of<'t>(
        &self,
        table: &'t TableDefinition,
        name: &str,
        line: Option<u32>,
    ) -> Option<&'t ColumnDefinition> {
        let found = table.columns.iter().find(|column| column.name == name);
        if found.is_none() {
            let names = || table.columns.iter().map(|column| column.name.as_str());
            let hint = did_you_mean(name, names());
            let remedy =
                if hint.is_empty() { format!("its columns are: {}", name_list(names())) } else { hint };
            self.error(line, "table_column", format!("{} has no column {name:?}", table.name), remedy);
        }
        found
    }

    fn table(&self, draft: TableDraft, names: &mut BTreeSet<String>) -> Option<TableDefinition> {
        let name = draft.name?;
        self.name("table", &name, names);
        if draft.columns.len() > MAX_COLUMNS {
            let message = format!("{} has {} columns", name.value, draft.columns.len());
            self.error(draft.line, "table_bound", message, format!("declare at most {}", MAX_COLUMNS));
        }
        let mut known = BTreeSet::new();
        let columns = draft.columns.into_iter().filter_map(|column| self.column(column, &mut known));
        let table = TableDefinition {
            name: name.value,
            description: draft.description?.value.trim().to_owned(),
            columns: columns.collect(),
            key: draft.key.iter().map(|name| name.value.clone()).collect(),
            checks: draft.checks.iter().map(|check| check.value.trim().to_owned()).collect(),
            append_only: draft.append_only.is_some_and(|flag| flag.value),
            records: None,
            initial: Vec::new(),
        };
        self.check_key(&table, &draft.key, draft.line);
        self.check_checks(&table, &draft.checks);
        Some(table)
    }

    /// Checks the key of a table, which begins at `line`.
    fn check_key(&self, table: &TableDefinition, key: &[Located<String>], line: Option<u32>) {
        if key.is_empty() {
            let message = format!("{} has no key", table.name);
            self.error(line, "table_key", message, "add key = [\"…\"] with the columns that find a row");
        }
        for name in key {
            let Some(column) = self.column_of(table, &name.value, name.line) else { continue };
            if column.optional || matches!(column.kind, ColumnKind::Boolean | ColumnKind::Decimal { .. }) {
                let message = format!("{}.{} cannot be part of a key", table.name, name.value);
                let remedy = "use texts, integers, days and times that are never null";
                self.error(name.line, "table_key", message, remedy);
            }
        }
    }

    /// Checks the conditions that each row of a table has to meet.
    fn check_checks(&self, table: &TableDefinition, checks: &[Located<String>]) {
        let names = |only_optional: bool| -> Vec<&str> {
            let columns = table.columns.iter().filter(|column| column.optional || !only_optional);
            columns.map(|column| column.name.as_str()).collect()
        };
        let (all, optional) = (names(false), names(true));
        for check in checks {
            let text = check.value.trim();
            if let Err(why) = check_expression(text, &all) {
                let message = format!("the check {text:?} of {} is invalid: {why}", table.name);
                let remedy = "compare columns and numbers, such as stock >= 0";
                self.error(check.line, "table_check", message, remedy);
            } else if check_expression(text, &optional).is_ok() {
                let message =
                    format!("the check {text:?} of {} is not made where a column is null", table.name);
                let remedy = "remove `optional` from a column that it uses";
                self.error(check.line, "table_check", message, remedy);
            }
        }
    }

    fn column(&self, draft: ColumnDraft, known: &mut BTreeSet<String>) -> Option<ColumnDefinition> {
        let (name, kind) = (draft.name?, draft.kind?.value);
        self.name("column", &name, known);
        let name = name.value;
        let kind = match (kind, &draft.scale) {
            (ColumnKind::Decimal { .. }, Some(scale)) if (1..=9).contains(&scale.value) => {
                ColumnKind::Decimal { scale: u8::try_from(scale.value).unwrap_or(1) }
            }
            (ColumnKind::Decimal { .. }, scale) => {
                let line = scale.as_ref().map_or(draft.line, |scale| scale.line);
                self.error(line, "table_scale", format!("{name} has no scale"), "add scale = 2, from 1 to 9");
                return None;
            }
            (kind, Some(scale)) => {
                let message = format!("{name} has a scale and is not a decimal");
                self.error(scale.line, "table_scale", message, "remove `scale`, or use type = \"decimal\"");
                kind
            }
            (kind, None) => kind,
        };
        let fits = match draft.filled.as_ref().map(|filled| filled.value) {
            Some(FilledBy::Now) => kind == ColumnKind::Time,
            Some(FilledBy::Id | FilledBy::User) => kind == ColumnKind::Text,
            None => true,
        };
        if !fits {
            let line = draft.filled.as_ref().and_then(|filled| filled.line);
            let remedy = "\"now\" fills columns of type \"time\", \"id\" and \"user\" those of type \"text\"";
            self.error(line, "table_filled", format!("{name} cannot be filled with this"), remedy);
        }
        if kind != ColumnKind::Text && !draft.values.is_empty() {
            let message = format!("{name} has values and is not a text");
            self.error(draft.line, "table_values", message, "remove `values`, or use type = \"text\"");
        }
        Some(ColumnDefinition {
            name,
            kind,
            optional: draft.optional.is_some_and(|flag| flag.value),
            values: draft.values.into_iter().map(|value| value.value).collect(),
            filled: draft.filled.map(|filled| filled.value),
        })
    }

    /// Pairs of columns of `own` and of the other table, which hold the same kind of value.
    fn pairs(
        &self,
        texts: LocatedTexts,
        own: &TableDefinition,
        other: &TableDefinition,
    ) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        for (name, of) in texts {
            let here = self.column_of(own, &name, of.line).map(|column| column.kind);
            let there = self.column_of(other, &of.value, of.line).map(|column| column.kind);
            if here.is_some() && there.is_some() && here != there {
                let message = format!("{}.{name} and {}.{} differ in type", own.name, other.name, of.value);
                self.error(of.line, "table_records", message, "give both the same type");
            }
            pairs.insert(name, of.value);
        }
        pairs
    }

    fn records(&self, draft: RecordsDraft, tables: &SceneTables, own: &TableDefinition) -> Option<EntryRule> {
        let named = draft.table?;
        let Some(other) = tables.0.iter().find(|table| table.name == named.value && table.name != own.name)
        else {
            let names = tables.0.iter().map(|table| table.name.as_str()).filter(|name| *name != own.name);
            let message = format!("{} records {:?}, which is not another table", own.name, named.value);
            self.error(named.line, "table_records", message, format!("the others are: {}", name_list(names)));
            return None;
        };
        let by = self.pairs(draft.by, own, other);
        let amounts = self.pairs(draft.amounts, own, other);
        let mut keys: Vec<&String> = by.values().collect();
        keys.sort();
        let mut key: Vec<&String> = other.key.iter().collect();
        key.sort();
        let counted = |name: &String| {
            let kind = other.column(name).map(|column| column.kind);
            matches!(kind, Ok(ColumnKind::Integer | ColumnKind::Decimal { .. }))
        };
        if keys != key || amounts.is_empty() || !amounts.values().all(counted) {
            let message = format!("`records` of {} does not say which row changes by how much", own.name);
            let remedy = format!(
                "by names a column for each of {}; amounts at least one for a number of {}",
                other.key.join(", "),
                other.name
            );
            self.error(draft.line, "table_records", message, remedy);
            return None;
        }
        let checks = self.entry_checks(&draft.checks, own, other);
        Some(EntryRule { table: other.name.clone(), by, amounts, checks })
    }

    /// Checks the tables of entries beside the rows whose changes they record.
    fn entry_checks(
        &self,
        drafts: &[Located<String>],
        own: &TableDefinition,
        other: &TableDefinition,
    ) -> Vec<String> {
        let names = |table: &'_ TableDefinition| -> Vec<String> {
            table.columns.iter().map(|column| column.name.clone()).collect()
        };
        let (own_names, other_names) = (names(own), names(other));
        let own_names: Vec<&str> = own_names.iter().map(String::as_str).collect();
        let other_names: Vec<&str> = other_names.iter().map(String::as_str).collect();
        let mut checks = Vec::new();
        for check in drafts {
            let text = check.value.trim();
            match check_entry_expression(text, &own_names, (&other.name, &other_names)) {
                Ok(()) => checks.push(text.to_owned()),
                Err(why) => {
                    let message =
                        format!("the check {text:?} of `records` of {} is invalid: {why}", own.name);
                    let remedy = format!("compare columns, such as price == {}.price", other.name);
                    self.error(check.line, "table_check", message, remedy);
                }
            }
        }
        checks
    }

    fn rows(&self, table: &mut TableDefinition, rows: &Located<Value>, lines: &PointerLines) {
        let given = rows.value.as_array().filter(|rows| rows.len() <= MAX_ROWS);
        let Some(given) = given else {
            let message = format!("the rows of {} are not a list of at most {}", table.name, MAX_ROWS);
            self.error(rows.line, "table_rows", message, "write rows = [{ … }, { … }]");
            return;
        };
        // Without a key, rows cannot be told apart.
        if table.key.is_empty() || table.key.iter().any(|name| table.column(name).is_err()) {
            return;
        }
        let mut places = BTreeSet::new();
        for (at, row) in given.iter().enumerate() {
            let line = lines.line(&format!("/{at}"));
            let Some(fields) = row.as_object() else {
                self.error(line, "table_rows", format!("{row} is not a row"), "write { column = value, … }");
                continue;
            };
            let read = table.row(fields).and_then(|row| table.check_row(&row).map(|()| row));
            match read {
                Ok(row) if places.insert(table.place(&row)) => table.initial.push(row),
                Ok(row) => {
                    let message = format!("there are two rows {}", table.place(&row));
                    self.error(line, "table_rows", message, "remove one");
                }
                Err(error) => {
                    self.error(line, "table_rows", error.message, "correct the row");
                }
            }
        }
    }
}

/// The functions of programs for the scene's tables, and the commit. Their names must differ from those of other tools.
pub(super) fn functions(
    tables: &SceneTables,
    tools: &[Located<String>],
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Vec<SceneTool> {
    let reserved = || TableCall::FUNCTIONS.into_iter().chain([COMMIT]);
    for name in tools {
        if reserved().any(|reserved| reserved.eq_ignore_ascii_case(&name.value)) {
            let message = format!("{:?} is a function of the scene's tables", name.value);
            report.error(name.line, "reserved_name", message, "choose another name for the tool");
        }
    }
    let open = || json!({"type": "object"});
    let read = |name: &'static str| {
        SceneTool::dynamic(name, "Reads a table.", Effect::Read, open(), TableFunction(name))
    };
    // An approval covers the commit with these definitions of tables.
    let about = format!("Commits what was staged. {}", serde_json::to_string(tables).unwrap_or_default());
    let commit = SceneTool::dynamic(COMMIT, &about, Effect::Write, open(), TableCommit)
        .say("en", "Changed: {{ rows | join(\"; \") }}.")
        .say("it", "Modificato: {{ rows | join(\"; \") }}.");
    let all = TableCall::FUNCTIONS.map(|name| read(name).volatile()).into_iter();
    let all = all.chain([commit.repeat(Repeat::Key)]);
    all.filter_map(|tool| check_flow_tool(tool.max_result_bytes(MAX_READ_BYTES).into_draft(), around, report))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::scene::load::{SceneFolder, SceneLoader};
    use crate::tools::NativeTools;

    const GOOD: &str = r#"
name = "shop"
description = "A shop."
instructions = "Sell."

[[tables]]
name = "items"
description = "What is sold."
key = ["sku"]
checks = ["stock >= 0"]
columns = [
    { name = "sku", type = "text" },
    { name = "stock", type = "integer" },
    { name = "weight", type = "decimal", scale = 3, optional = true },
]
rows = [
    { sku = "cup", stock = 3 },
    { sku = "pot", stock = 1, weight = "0.250" },
]

[[tables]]
name = "sales"
description = "What was sold."
key = ["id"]
append_only = true
records = { table = "items", by = { sku = "sku" }, amounts = { change = "stock" } }
columns = [
    { name = "id", type = "text", filled = "id" },
    { name = "at", type = "time", filled = "now" },
    { name = "kind", type = "text", values = ["sale", "return"] },
    { name = "sku", type = "text" },
    { name = "change", type = "integer" },
]
"#;

    fn load(text: &str) -> (Vec<crate::scene::Scene>, String) {
        let files = [("scene.toml".to_owned(), text.as_bytes().to_vec())].into();
        let folder = SceneFolder { label: "shop".to_owned(), files };
        let loaded = SceneLoader::new(&NativeTools::new()).load(vec![vec![folder]], &Default::default());
        let faults: Vec<String> = loaded
            .faults
            .iter()
            .filter(|fault| fault.severity == crate::scene::Severity::Error)
            .map(ToString::to_string)
            .collect();
        (loaded.scenes, faults.join("\n"))
    }

    #[test]
    fn declared_tables_are_part_of_the_scene_with_their_statements() {
        let (scenes, faults) = load(GOOD);
        assert_eq!(faults, "");
        let [scene] = scenes.as_slice() else { panic!("one scene") };
        let items = scene.tables.table("items").unwrap();
        assert_eq!((items.columns.len(), items.initial.len()), (3, 2));
        assert_eq!(items.initial[1]["weight"].to_json(), serde_json::json!("0.250"));
        // The definition must be written as before rules had checks, because waiting programs compare it.
        let records = serde_json::to_value(&scene.tables.table("sales").unwrap().records).unwrap();
        let same =
            serde_json::json!({"table": "items", "by": {"sku": "sku"}, "amounts": {"change": "stock"}});
        assert_eq!(records, same);
        let sql = scene.schema_sql.as_deref().unwrap();
        assert!(sql.contains("CREATE TABLE IF NOT EXISTS \"shop:items\" (tenant TEXT NOT NULL"), "{sql}");
    }

    #[test]
    fn each_fault_of_a_table_is_reported_with_its_line_and_a_remedy() {
        let faulty = |right: &str, wrong: &str| {
            let text = GOOD.replacen(right, wrong, 1);
            assert_ne!(text, GOOD, "{right}");
            load(&text).1
        };
        let faults = [
            faulty("name = \"items\"", "name = \"Items\""),
            faulty("key = [\"sku\"]", "key = [\"skus\"]"),
            faulty("key = [\"sku\"]", "key = []"),
            faulty("stock >= 0", "stok >= 0"),
            faulty("stock >= 0", "weight > 0"),
            faulty("scale = 3", "scale = 30"),
            faulty("{ name = \"stock\", type = \"integer\" }", "{ name = \"tenant\", type = \"integer\" }"),
            faulty("stock = 3", "stock = -3"),
            faulty("stock = 3", "stock = 3.5"),
            faulty("sku = \"pot\"", "sku = \"cup\""),
            faulty("type = \"time\", filled", "type = \"text\", filled"),
            faulty("records = { table = \"items\"", "records = { table = \"item\""),
            faulty("amounts = { change = \"stock\" }", "amounts = { change = \"sku\" }"),
            faulty(
                "amounts = { change = \"stock\" }",
                "amounts = { change = \"stock\" }, checks = [\"change < items.price\"]",
            ),
            faulty("type = \"text\", values", "type = \"integer\", values"),
        ];
        insta::assert_snapshot!(faults.join("\n\n"));
    }
}
