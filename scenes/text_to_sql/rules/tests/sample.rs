//! The sample databases as the rules see them: a description file, with types, keys and values from the SQL file.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::description::{ColumnReference, ColumnType, DatabaseDescription};

/// The sample shop, the sample university, or the clinic.
pub fn sample(name: &str) -> DatabaseDescription {
    let text = |file: &str| {
        let places =
            ["scenes/text_to_sql/data", "tests/fixtures/text_to_sql", "scenes/text_to_sql/rules/tests"];
        let path = places.map(|place| Path::new(env!("CARGO_MANIFEST_DIR")).join(place).join(file));
        let path = path.into_iter().find(|path| path.exists()).unwrap();
        std::fs::read_to_string(path).unwrap()
    };
    described(&text(&format!("{name}.toml")), &text(&format!("{name}.sql")))
}

/// A description with what the SQL text says of the structure and the values.
pub fn described(description: &str, sql: &str) -> DatabaseDescription {
    let mut database: DatabaseDescription = toml::from_str(description).unwrap();
    for create in sql.split("CREATE TABLE ").skip(1) {
        let (name, rest) = create.split_once(" (\n").unwrap();
        let table = database.table(name).unwrap();
        for line in rest.split("\n);").next().unwrap().lines() {
            column(&mut database, table, line.trim().trim_end_matches(','));
        }
    }
    read_values(&mut database, sql);
    database
}

fn column(database: &mut DatabaseDescription, table: usize, line: &str) {
    let table = &mut database.tables[table];
    if let Some(keys) = line.strip_prefix("PRIMARY KEY (") {
        table.primary_key = keys.trim_end_matches(')').split(", ").map(str::to_owned).collect();
        return;
    }
    let (name, declared) = line.split_once(' ').unwrap();
    let at = table.column(name).unwrap();
    let is_key = declared.contains("PRIMARY KEY");
    if is_key {
        table.primary_key = vec![name.to_owned()];
    }
    let column = &mut table.columns[at];
    let bare = declared.split(" CHECK").next().unwrap().split(" REFERENCES").next().unwrap();
    column.kind = ColumnType::of_declared(bare);
    column.nullable = !declared.contains("NOT NULL") && !is_key;
    column.unique = declared.contains("UNIQUE") || is_key;
    if let Some((_, target)) = declared.split_once("REFERENCES ") {
        let (table, rest) = target.split_once(" (").unwrap();
        let to = rest.split(')').next().unwrap();
        column.references = Some(ColumnReference { table: table.to_owned(), column: to.to_owned() });
    }
}

/// The values of texts that are not sensitive, where they are few and short.
fn read_values(database: &mut DatabaseDescription, sql: &str) {
    let mut values: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for insert in sql.split("INSERT INTO ").skip(1) {
        let (name, rest) = insert.split_once(" (").unwrap();
        let (columns, rest) = rest.split_once(") VALUES\n").unwrap();
        let table = database.table(name).unwrap();
        for row in rest.lines().take_while(|line| line.trim_start().starts_with('(')) {
            for (column, cell) in columns.split(", ").zip(texts(row.trim())) {
                let at = database.tables[table].column(column).unwrap();
                values.entry((table, at)).or_default().extend(cell);
            }
        }
    }
    for (at, table) in database.tables.iter_mut().enumerate() {
        for (column_at, column) in table.columns.iter_mut().enumerate() {
            let mut list = values.remove(&(at, column_at)).unwrap_or_default();
            list.sort();
            list.dedup();
            let open = column.kind == ColumnType::Text && !column.sensitive && !table.sensitive;
            if open && list.len() <= 500 && list.iter().all(|value| value.chars().count() <= 80) {
                column.known = Some(list);
            }
        }
    }
}

/// The cells of a row: the quoted ones as text, none for the others.
fn texts(row: &str) -> Vec<Option<String>> {
    let row = row.trim_end_matches([',', ';']);
    let mut cells = vec![None];
    let mut inside: Option<String> = None;
    let mut chars = row[1..row.len() - 1].chars().peekable();
    while let Some(c) = chars.next() {
        match (&mut inside, c) {
            (Some(text), '\'') if chars.peek() == Some(&'\'') => {
                chars.next();
                text.push('\'');
            }
            (Some(_), '\'') => *cells.last_mut().unwrap() = inside.take(),
            (Some(text), c) => text.push(c),
            (None, '\'') => inside = Some(String::new()),
            (None, ',') => cells.push(None),
            (None, _) => {}
        }
    }
    cells
}
