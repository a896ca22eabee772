//! Questions with the SQL that answers them (`tests/fixtures/text_to_sql`), and whether rows are those of the reference.
//! The rules of comparison are those of its README. The tests of the rules include this file, too.

use std::path::{Path, PathBuf};

use proscenium::sql_engine::{QueryLimits, SqlDatabase, SqlValue};
use proscenium::sql_guard::{self, Limits, TableName};
use serde::Deserialize;
use serde_json::Value;

/// A mean that is rounded to cents is as good as the whole number of digits.
const TOLERANCE: f64 = 0.0051;

/// A database of the fixtures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleDatabase {
    Shop,
    University,
}

impl SampleDatabase {
    pub const ALL: [Self; 2] = [Self::Shop, Self::University];

    pub fn name(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::University => "university",
        }
    }

    /// Its script.
    pub fn script(self) -> String {
        let path = match self {
            Self::Shop => "scenes/text_to_sql/data/shop.sql",
            Self::University => "tests/fixtures/text_to_sql/university.sql",
        };
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    }

    /// What its tables are called.
    pub fn descriptions(self) -> PathBuf {
        let path = match self {
            Self::Shop => "scenes/text_to_sql/data/shop.toml",
            Self::University => "tests/fixtures/text_to_sql/university.toml",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    }

    /// Its questions.
    pub fn pairs(self) -> Vec<SqlPair> {
        read(&format!("pairs_{}.yaml", self.name()))
    }

    /// Its questions of the second set, which was written later.
    pub fn second_pairs(self) -> Vec<SqlPair> {
        let all: Vec<SqlPair> = read("pairs_second.yaml");
        all.into_iter().filter(|pair| pair.id.starts_with(&format!("{}-", self.name()))).collect()
    }

    /// Writes it into a file of SQLite.
    pub async fn write_sqlite(self, path: &Path) {
        use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(self.script()))).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// What a statement finds, with everything approved.
pub async fn found(database: &SqlDatabase, sql: &str) -> Vec<Vec<Value>> {
    let schema = database.schema();
    let all: Vec<TableName> = schema.tables.iter().map(|table| table.name.clone()).collect();
    let set = schema.approved_set(&all).unwrap();
    let limits = Limits { max_rows: 5000, ..Limits::default() };
    let approved = sql_guard::check(sql, schema.dialect, &set, &limits)
        .unwrap_or_else(|refusal| panic!("{refusal}: {sql}"));
    let limits = QueryLimits { max_rows: 5000, max_cells: 100_000, ..QueryLimits::default() };
    let rows = database.query(&approved, &set, &limits, &Default::default()).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}: {sql}"));
    rows.rows.iter().map(|row| row.iter().map(SqlValue::to_json).collect()).collect()
}

/// A question with the SQL that answers it.
#[derive(Debug, Clone, Deserialize)]
pub struct SqlPair {
    pub id: String,
    pub kind: String,
    pub question: String,
    pub today: Option<String>,
    pub sql: Option<String>,
    pub sqlite: Option<String>,
    pub postgres: Option<String>,
    #[serde(default)]
    pub also: Vec<AlsoRight>,
    pub order_matters: bool,
    pub columns: String,
    /// Whether it is not looked at while rules are improved.
    pub held_out: bool,
}

/// Another right answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum AlsoRight {
    Both(String),
    Each { sqlite: String, postgres: String },
}

/// A question that must not be answered with rows.
#[derive(Debug, Clone, Deserialize)]
pub struct Declined {
    pub id: String,
    pub database: String,
    pub question: String,
    pub why: String,
}

/// A request with the nodes that it needs.
#[derive(Debug, Clone, Deserialize)]
pub struct PathRequest {
    pub id: String,
    pub kind: String,
    pub database: String,
    pub message: String,
    pub path: Vec<String>,
    pub asks_approval: bool,
    #[serde(default)]
    pub tables: Vec<String>,
    #[serde(default)]
    pub given: Value,
    pub after: Option<String>,
}

#[derive(Debug, Deserialize)]
struct PathFile {
    requests: Vec<PathRequest>,
}

fn read<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/text_to_sql").join(file);
    serde_norway::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The questions that must not be answered with rows.
pub fn declined() -> Vec<Declined> {
    read("declines.yaml")
}

/// The requests with the nodes that they need.
pub fn path_requests() -> Vec<PathRequest> {
    read::<PathFile>("paths.yaml").requests
}

impl SqlPair {
    /// The reference, and other right answers, for SQLite or PostgreSQL.
    pub fn right(&self, postgres: bool) -> Vec<String> {
        let own = if postgres { &self.postgres } else { &self.sqlite };
        let reference = own.as_ref().or(self.sql.as_ref()).unwrap().clone();
        let also = self.also.iter().map(|also| match also {
            AlsoRight::Both(sql) => sql.clone(),
            AlsoRight::Each { sqlite, postgres: other } => if postgres { other } else { sqlite }.clone(),
        });
        std::iter::once(reference).chain(also).collect()
    }

    /// Whether rows answer as a reference's do. Columns may come in any order; with `free`, there may be more.
    pub fn matches(&self, expected: &[Vec<Value>], got: &[Vec<Value>]) -> bool {
        let width = expected.first().map_or(0, Vec::len);
        let other = got.first().map_or(0, Vec::len);
        if expected.len() != got.len() || other < width || (self.columns == "must" && other != width) {
            return false;
        }
        let column = |rows: &[Vec<Value>], at: usize| -> Vec<Vec<Value>> {
            rows.iter().map(|row| vec![row[at].clone()]).collect()
        };
        let choices: Vec<Vec<usize>> = (0..width)
            .map(|at| {
                let own = column(expected, at);
                (0..other).filter(|to| same_rows(&own, &column(got, *to), self.order_matters)).collect()
            })
            .collect();
        self.assign(expected, got, &choices, &mut Vec::new())
    }

    fn assign(
        &self,
        expected: &[Vec<Value>],
        got: &[Vec<Value>],
        choices: &[Vec<usize>],
        chosen: &mut Vec<usize>,
    ) -> bool {
        let Some(next) = choices.get(chosen.len()) else {
            let picked: Vec<Vec<Value>> =
                got.iter().map(|row| chosen.iter().map(|at| row[*at].clone()).collect()).collect();
            return same_rows(expected, &picked, self.order_matters);
        };
        for at in next {
            if !chosen.contains(at) {
                chosen.push(*at);
                if self.assign(expected, got, choices, chosen) {
                    return true;
                }
                chosen.pop();
            }
        }
        false
    }
}

fn same_rows(a: &[Vec<Value>], b: &[Vec<Value>], ordered: bool) -> bool {
    let same_row =
        |a: &Vec<Value>, b: &Vec<Value>| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    if a.len() != b.len() {
        return false;
    }
    if ordered {
        return a.iter().zip(b).all(|(a, b)| same_row(a, b));
    }
    let mut left: Vec<&Vec<Value>> = b.iter().collect();
    a.iter().all(|row| match left.iter().position(|other| same_row(row, other)) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    })
}

fn same(a: &Value, b: &Value) -> bool {
    match (plain(a), plain(b)) {
        (Plain::Null, Plain::Null) => true,
        (Plain::Number(a), Plain::Number(b)) => (a - b).abs() <= TOLERANCE,
        (Plain::Text(a), Plain::Text(b)) => a == b || period(&a) == period(&b),
        (Plain::Text(text), Plain::Number(number)) | (Plain::Number(number), Plain::Text(text)) => {
            (1..=4).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && text.parse::<f64>().is_ok_and(|value| value == number)
        }
        _ => false,
    }
}

enum Plain {
    Null,
    Number(f64),
    Text(String),
}

fn plain(value: &Value) -> Plain {
    match value {
        Value::Null => Plain::Null,
        Value::Bool(truth) => Plain::Number(f64::from(u8::from(*truth))),
        Value::Number(number) => Plain::Number(number.as_f64().unwrap()),
        // Exact numbers of PostgreSQL are texts with a point.
        Value::String(text) if text.contains('.') => match text.parse::<f64>() {
            Ok(number) => Plain::Number(number),
            Err(_) => Plain::Text(text.clone()),
        },
        Value::String(text) => Plain::Text(text.clone()),
        other => Plain::Text(other.to_string()),
    }
}

/// A point in time without what is only the start of its day or month.
fn period(text: &str) -> String {
    let day = match text.get(10..) {
        Some(rest) if rest.starts_with(" 00:00:00") || rest.starts_with("T00:00:00") => &text[..10],
        _ => text,
    };
    let is_date = day.len() == 10 && day.as_bytes()[4] == b'-' && day.as_bytes()[7] == b'-';
    match day.strip_suffix("-01").filter(|_| is_date) {
        Some(month) => month.to_owned(),
        None => day.to_owned(),
    }
}
