//! The SQL of a request, for SQLite and PostgreSQL.

use super::description::{ColumnDescription, ColumnType, DatabaseDescription, TableDescription};
use super::draft::column_of;
use super::lexicon::{Comparison, Direction, Function, Period};
use super::request::{Answer, Condition, Group, Literal, Related, Request, Test};
use super::vocabulary::ColumnAt;
use super::{Engine, numbers_of};

/// Texts longer than this are not shown unless asked for.
const LONG_TEXT: usize = 80;

/// One SELECT.
pub fn statement(request: &Request, database: &DatabaseDescription, engine: Engine) -> String {
    Writer { request, database, engine }.statement()
}

struct Writer<'a> {
    request: &'a Request,
    database: &'a DatabaseDescription,
    engine: Engine,
}

impl Writer<'_> {
    fn statement(&self) -> String {
        match &self.request.answer {
            Answer::Rows { columns, distinct } => self.rows(columns, *distinct),
            Answer::Count => self.counted(),
            Answer::CountDistinct(column) => {
                let column = self.column(*column);
                self.body(&[format!("COUNT(DISTINCT {column}) AS {}", name("count"))], None)
            }
            Answer::Aggregates(list, count) => self.aggregates(list, *count),
            Answer::Extreme(column, direction, columns) => self.extreme(*column, *direction, columns),
            Answer::Most => self.most(),
            Answer::BusiestPeriod(column, period) => {
                let sql = self.period(*column, *period);
                let shown = format!("{sql} AS {}", name(period_word(*period)));
                self.most_counted(&[shown], &[sql], "COUNT(*)")
            }
            Answer::MostCommon(column) => {
                let column = self.column(*column);
                match self.request.limit {
                    Some(limit) => {
                        self.top_counted(std::slice::from_ref(&column), std::slice::from_ref(&column), limit)
                    }
                    None => self.most_counted(
                        std::slice::from_ref(&column),
                        std::slice::from_ref(&column),
                        "COUNT(*)",
                    ),
                }
            }
        }
    }

    fn rows(&self, columns: &[ColumnAt], distinct: bool) -> String {
        let fans_out = self.request.join.is_some_and(|join| !join.to_parent);
        let listed = if columns.is_empty() { self.shown() } else { self.listed(columns) };
        let distinct = if distinct || fans_out { "DISTINCT " } else { "" };
        let mut first = listed;
        if let Some(column) = first.first_mut() {
            *column = format!("{distinct}{column}");
        }
        let mut order: Vec<String> = Vec::new();
        for (column, direction) in &self.request.order {
            order.push(format!("{}{}", self.column(*column), down(*direction)));
        }
        // Rows that tie stand in one order on every engine; only with all rows of one table, where it is no output.
        let key = self.main().primary_key.iter().filter_map(|key| self.main().column(key));
        if !order.is_empty() && distinct.is_empty() {
            order.extend(key.map(|key| self.column((self.request.main, key))));
        }
        let mut sql = self.body(&first, (!order.is_empty()).then(|| order.join(", ")).as_deref());
        if let Some(limit) = self.request.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
        sql
    }

    /// The columns of a row that says what it is: no foreign keys, nothing sensitive, no long texts.
    fn shown(&self) -> Vec<String> {
        let table = self.main();
        let label = table.label_columns();
        let is_shown = |(at, column): &(usize, &ColumnDescription)| {
            let long = column.known.is_none() && column.values.is_empty() && column.kind == ColumnType::Text;
            let long = long || column.known.iter().flatten().any(|value| value.chars().count() > LONG_TEXT);
            let named = label.contains(at);
            let mentioned = self.request.conditions.iter().any(|c| c.column == (self.request.main, *at));
            let mentioned =
                mentioned || self.request.order.iter().any(|(c, _)| *c == (self.request.main, *at));
            named || mentioned || !(column.sensitive || column.references.is_some() || long && !column.unique)
        };
        let columns =
            table.columns.iter().enumerate().filter(is_shown).map(|(at, _)| (self.request.main, at));
        self.listed(&columns.collect::<Vec<_>>())
    }

    /// Columns with a name each; equal names of two tables are told apart.
    fn listed(&self, columns: &[ColumnAt]) -> Vec<String> {
        let own = |at: &ColumnAt| column_of(self.database, *at).map_or("", |column| column.name.as_str());
        let twice = |at: &ColumnAt| columns.iter().filter(|other| own(other) == own(at)).count() > 1;
        let listed = columns.iter().map(|at| {
            let table = self.database.tables.get(at.0).map_or("", |table| table.name.as_str());
            let column = self.column(*at);
            if twice(at) { format!("{column} AS {}", name(&format!("{table}_{}", own(at)))) } else { column }
        });
        listed.collect()
    }

    fn counted(&self) -> String {
        let fans_out = self.request.join.is_some_and(|join| !join.to_parent);
        let key = self.main().primary_key.first().and_then(|key| self.main().column(key));
        let count = match key.filter(|_| fans_out) {
            Some(key) => format!("COUNT(DISTINCT {})", self.column((self.request.main, key))),
            None => "COUNT(*)".to_owned(),
        };
        self.grouped(vec![format!("{count} AS {}", name("count"))])
    }

    fn aggregates(&self, list: &[(Function, ColumnAt)], count: bool) -> String {
        let one = |(function, column): &(Function, ColumnAt)| {
            let own = column_of(self.database, *column).map_or("", |column| column.name.as_str());
            let (sql, word) = match function {
                Function::Average => ("AVG", "average"),
                Function::Sum => ("SUM", "total"),
                Function::Max => ("MAX", "highest"),
                Function::Min => ("MIN", "lowest"),
            };
            format!("{sql}({}) AS {}", self.column(*column), name(&format!("{word}_{own}")))
        };
        let mut computed: Vec<String> = list.iter().map(one).collect();
        if count {
            computed.insert(0, format!("COUNT(*) AS {}", name("count")));
        }
        self.grouped(computed)
    }

    /// What is computed, by the groups.
    fn grouped(&self, computed: Vec<String>) -> String {
        let (mut shown, mut by) = (Vec::new(), Vec::new());
        for group in &self.request.groups {
            match group {
                Group::Column(column) => {
                    shown.push(self.column(*column));
                    by.push(self.column(*column));
                }
                Group::Parent(_, table) => {
                    let columns = self.label_of(*table);
                    by.extend(self.key_of(*table).into_iter().filter(|key| !columns.contains(key)));
                    by.extend(columns.clone());
                    shown.extend(columns);
                }
                Group::Period(column, period) => {
                    let sql = self.period(*column, *period);
                    shown.push(format!("{sql} AS {}", name(period_word(*period))));
                    by.push(sql);
                }
            }
        }
        if by.is_empty() {
            return self.body(&computed, None);
        }
        let by = by.join(", ");
        let order = match (self.request.ranked, computed.first()) {
            (Some(direction), Some(first)) => format!("{}, {by}", self.rank(first, direction)),
            _ => by.clone(),
        };
        shown.extend(computed);
        format!("{} GROUP BY {by} ORDER BY {order}", self.body(&shown, None))
    }

    /// The order by what is computed. Groups without a value come last on both engines.
    fn rank(&self, computed: &str, direction: Direction) -> String {
        let value = computed.rsplit_once(" AS ").map_or(computed, |(value, _)| value);
        let is_nullable = match &self.request.answer {
            Answer::Aggregates(list, _) => list
                .iter()
                .any(|(_, column)| column_of(self.database, *column).is_some_and(|column| column.nullable)),
            _ => false,
        };
        let present = if is_nullable { format!("{value} IS NULL, ") } else { String::new() };
        format!("{present}{value}{}", down(direction))
    }

    fn label_of(&self, table: usize) -> Vec<String> {
        let label = self.database.tables.get(table).map(TableDescription::label_columns).unwrap_or_default();
        label.into_iter().map(|column| self.column((table, column))).collect()
    }

    fn key_of(&self, table: usize) -> Vec<String> {
        let Some(described) = self.database.tables.get(table) else { return Vec::new() };
        let key = described.primary_key.iter().filter_map(|key| described.column(key));
        key.map(|column| self.column((table, column))).collect()
    }

    fn period(&self, column: ColumnAt, period: Period) -> String {
        let column = self.column(column);
        let (sqlite, postgres) = match period {
            Period::Day => ("%Y-%m-%d", "YYYY-MM-DD"),
            Period::Month => ("%Y-%m", "YYYY-MM"),
            Period::Year => ("%Y", "YYYY"),
        };
        match self.engine {
            Engine::Sqlite => format!("strftime('{sqlite}', {column})"),
            Engine::Postgres => format!("to_char({column}, '{postgres}')"),
        }
    }

    /// All rows with the greatest or least value, however many tie.
    fn extreme(&self, column: ColumnAt, direction: Direction, columns: &[ColumnAt]) -> String {
        let listed = if columns.is_empty() { self.shown() } else { self.listed(columns) };
        let function = if direction == Direction::Down { "MAX" } else { "MIN" };
        let inner = self.body(&[format!("{function}({})", self.column(column))], None);
        let rest = self.conditions();
        let joint = if rest.is_empty() { "WHERE" } else { "AND" };
        format!("{} {joint} {} = ({inner})", self.body(&listed, None), self.column(column))
    }

    /// The rows of the main table with the most rows of the other.
    fn most(&self) -> String {
        let shown = self.label_of(self.request.main);
        let key = self.key_of(self.request.main);
        let mut by: Vec<String> = key.into_iter().filter(|key| !shown.contains(key)).collect();
        by.extend(shown.clone());
        match self.request.limit {
            Some(limit) => self.top_counted(&shown, &by, limit),
            None => self.most_counted(&shown, &by, "COUNT(*)"),
        }
    }

    /// So many groups, the greatest first.
    fn top_counted(&self, shown: &[String], by: &[String], limit: u32) -> String {
        let mut shown = shown.to_vec();
        shown.push(format!("COUNT(*) AS {}", name("count")));
        let by = by.join(", ");
        format!("{} GROUP BY {by} ORDER BY COUNT(*) DESC, {by} LIMIT {limit}", self.body(&shown, None))
    }

    /// The groups with the greatest number, however many tie.
    fn most_counted(&self, shown: &[String], by: &[String], count: &str) -> String {
        let mut shown = shown.to_vec();
        shown.push(format!("{count} AS {}", name("count")));
        let by = by.join(", ");
        let inner = format!("{} GROUP BY {by}", self.body(&[format!("{count} AS {}", name("count"))], None));
        let outer = format!("{} GROUP BY {by}", self.body(&shown, None));
        let count_name = name("count");
        format!("{outer} HAVING {count} = (SELECT MAX({count_name}) FROM ({inner}) AS counts)")
    }

    fn main(&self) -> &TableDescription {
        static NONE: std::sync::LazyLock<TableDescription> =
            std::sync::LazyLock::new(TableDescription::default);
        self.database.tables.get(self.request.main).unwrap_or(&NONE)
    }

    fn body(&self, columns: &[String], order: Option<&str>) -> String {
        let mut sql = format!("SELECT {} FROM {}", columns.join(", "), name(&self.main().name));
        if let Some(join) = self.request.join {
            let table = self.database.tables.get(join.table).map_or("", |table| table.name.as_str());
            let (key, target) = (self.column(join.key), self.column(join.target));
            let (inner, outer) = if join.to_parent { (target, key) } else { (key, target) };
            let kind = if self.keeps_all_rows() { "LEFT JOIN" } else { "JOIN" };
            sql.push_str(&format!(" {kind} {} ON {inner} = {outer}", name(table)));
        }
        for join in self.request.far.iter().flatten() {
            let table = self.database.tables.get(join.table).map_or("", |table| table.name.as_str());
            let (key, target) = (self.column(join.key), self.column(join.target));
            sql.push_str(&format!(" JOIN {} ON {target} = {key}", name(table)));
        }
        sql.push_str(&self.conditions());
        if let Some(order) = order {
            sql.push_str(&format!(" ORDER BY {order}"));
        }
        sql
    }

    /// "Products with their supplier" are all products, also those that have none.
    fn keeps_all_rows(&self) -> bool {
        let Some(join) = self.request.join else { return false };
        let other = |column: ColumnAt| column.0 == join.table;
        let needed = self.request.conditions.iter().any(|condition| other(condition.column))
            || self.request.order.iter().any(|(column, _)| other(*column));
        let rows = matches!(self.request.answer, Answer::Rows { distinct: false, .. });
        rows && join.to_parent
            && !needed
            && column_of(self.database, join.key).is_some_and(|key| key.nullable)
    }

    fn conditions(&self) -> String {
        let mut all: Vec<String> =
            self.request.conditions.iter().map(|condition| self.condition(condition)).collect();
        all.extend(self.request.related.iter().map(|related| self.related(related)));
        // Without this, rows with no value come first on one engine and last on the other, and no period is a group.
        let mut present: Vec<ColumnAt> = Vec::new();
        if self.request.limit.is_some() {
            present.extend(self.request.order.iter().map(|(column, _)| *column));
        }
        for group in &self.request.groups {
            if let Group::Period(column, _) = group {
                present.push(*column);
            }
        }
        match &self.request.answer {
            Answer::MostCommon(column) | Answer::BusiestPeriod(column, _) | Answer::CountDistinct(column) => {
                present.push(*column)
            }
            Answer::Rows { columns, distinct: true } => present.extend(columns),
            _ => {}
        }
        for column in present {
            let nullable = column_of(self.database, column).is_some_and(|column| column.nullable);
            let said = self.request.conditions.iter().any(|condition| condition.column == column);
            if nullable && !said {
                all.push(format!("{} IS NOT NULL", self.column(column)));
            }
        }
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
    }

    /// The number of rows of another table, by a statement within the statement.
    fn related(&self, related: &Related) -> String {
        let table = self.database.tables.get(related.join.table).map_or("", |table| table.name.as_str());
        let (key, target) = (self.full_column(related.join.key), self.full_column(related.join.target));
        let tested =
            |condition: &Condition| self.tested(&self.full_column(condition.column), &condition.test);
        let conditions =
            std::iter::once(format!("{key} = {target}")).chain(related.conditions.iter().map(tested));
        let from = format!("FROM {} WHERE {}", name(table), conditions.collect::<Vec<_>>().join(" AND "));
        match (related.comparison, related.number) {
            (Comparison::Equal, 0) => format!("NOT EXISTS (SELECT 1 {from})"),
            (comparison, number) => format!("(SELECT COUNT(*) {from}) {} {number}", sign(comparison)),
        }
    }

    fn condition(&self, condition: &Condition) -> String {
        self.within(condition).unwrap_or_else(|| self.tested(&self.column(condition.column), &condition.test))
    }

    fn tested(&self, column: &str, test: &Test) -> String {
        match test {
            Test::OneOf(values) => one_of(column, values, ("=", "IN")),
            Test::NoneOf(values) => one_of(column, values, ("<>", "NOT IN")),
            Test::Compare(comparison, number) => format!("{column} {} {number}", sign(*comparison)),
            Test::Between(low, high) => format!("{column} BETWEEN {low} AND {high}"),
            Test::Is(value) => format!("{column} = {}", if *value { "TRUE" } else { "FALSE" }),
            Test::Null => format!("{column} IS NULL"),
            Test::NotNull => format!("{column} IS NOT NULL"),
            Test::Days(from, to) => {
                let from = from.map(|day| format!("{column} >= '{day}'"));
                let to = to.map(|day| format!("{column} < '{day}'"));
                from.into_iter().chain(to).collect::<Vec<_>>().join(" AND ")
            }
            Test::Year(year) => {
                let test = numbers_of(*year).unwrap_or(Test::NotNull);
                self.tested(column, &test)
            }
            Test::Like(open, text, close) => {
                let like = if self.engine == Engine::Postgres { "ILIKE" } else { "LIKE" };
                let (open, close) = (if *open { "%" } else { "" }, if *close { "%" } else { "" });
                format!("{column} {like} {}", quoted(&format!("{open}{text}{close}")))
            }
        }
    }

    /// A thing in a tree, by its name, means what is below it too: products of "Kitchen" are those of its subcategories.
    fn within(&self, condition: &Condition) -> Option<String> {
        let Test::OneOf(values) = &condition.test else { return None };
        let (at, column) = condition.column;
        let table = self.database.tables.get(at)?;
        let key = self.database.keys(at, at);
        let [(parent, target)] = key.as_slice() else { return None };
        let parent_name = table.columns.get(*parent).map_or("", |column| column.name.as_str());
        if at == self.request.main
            || !parent_name.contains("parent")
            || !table.label_columns().contains(&column)
        {
            return None;
        }
        let own = |at: usize| table.columns.get(at).map_or_else(String::new, |column| name(&column.name));
        let named = one_of(&own(column), values, ("=", "IN"));
        let roots = format!("SELECT {} FROM {} WHERE {named}", own(*target), name(&table.name));
        let direct = one_of(&self.column(condition.column), values, ("=", "IN"));
        Some(format!("({direct} OR {} IN ({roots}))", self.column((at, *parent))))
    }

    /// A column, with its table where there are two.
    fn column(&self, at: ColumnAt) -> String {
        if self.request.join.is_some() || self.request.far.is_some() {
            return self.full_column(at);
        }
        name(column_of(self.database, at).map_or("", |column| column.name.as_str()))
    }

    fn full_column(&self, at: ColumnAt) -> String {
        let own = column_of(self.database, at).map_or("", |column| column.name.as_str());
        let table = self.database.tables.get(at.0).map_or("", |table| table.name.as_str());
        format!("{}.{}", name(table), name(own))
    }
}

fn period_word(period: Period) -> &'static str {
    match period {
        Period::Day => "day",
        Period::Month => "month",
        Period::Year => "year",
    }
}

fn down(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => " DESC",
        Direction::Up => "",
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::More => ">",
        Comparison::AtLeast => ">=",
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
    }
}

fn one_of(column: &str, values: &[Literal], (one, many): (&str, &str)) -> String {
    let literal = |value: &Literal| match value {
        Literal::Text(text) => quoted(text),
        Literal::Number(number) => number.clone(),
    };
    match values {
        [value] => format!("{column} {one} {}", literal(value)),
        _ => format!("{column} {many} ({})", values.iter().map(literal).collect::<Vec<_>>().join(", ")),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Words that are no names without quotes on either engine.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "and", "any", "array", "as", "asc", "between", "both", "by", "case", "cast", "check", "collate", "column",
    "constraint", "create", "cross", "current_date", "current_time", "current_user", "default", "delete", "desc",
    "distinct", "do", "else", "end", "except", "exists", "false", "for", "foreign", "from", "full", "grant", "group",
    "having", "in", "index", "inner", "insert", "intersect", "into", "is", "isnull", "join", "left", "like", "limit",
    "natural", "not", "notnull", "null", "offset", "on", "only", "or", "order", "outer", "primary", "references",
    "right", "select", "session_user", "set", "some", "table", "then", "to", "transaction", "true", "union", "unique",
    "update", "user", "using", "values", "when", "where", "window", "with",
];

/// A name, quoted where it must be.
fn name(own: &str) -> String {
    let plain = own.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let plain = plain && own.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if plain && !RESERVED.contains(&own) {
        own.to_owned()
    } else {
        format!("\"{}\"", own.replace('"', "\"\""))
    }
}
