//! Fourth layer: what every name in a query stands for. Each table must be in the approved set, and no withheld column
//! may be what the engine could take a name for.
//!
//! The rules are stricter than the engines' where engines differ: a common table expression is visible to those after
//! it, and to itself if `RECURSIVE` is written; any other use of its name in the same `WITH` is refused, since SQLite
//! and PostgreSQL resolve it differently.

use std::collections::{BTreeMap, BTreeSet};

use super::outline::{Cte, Item, Leaf, Name, Query, QueryBody, Select, Source, SourceKind};
use super::refusal::{Code, Layer, Refusal, TextPosition};
use super::{ApprovedSet, ApprovedTable, Dialect, TableName};

/// The tables and columns that a query reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The tables.
    pub tables: BTreeSet<TableName>,
    /// The columns.
    pub columns: BTreeSet<(TableName, String)>,
    /// Where each table's name stands in the text.
    pub places: BTreeMap<TextPosition, TableName>,
}

/// Resolves every name of `query`.
///
/// # Errors
/// The first name that is not approved, or that two readers could take for different things.
pub fn resolve(query: &Query, dialect: Dialect, set: &ApprovedSet) -> Result<Uses, Refusal> {
    let mut resolver = Resolver { dialect, set, index: set.index(dialect), uses: Uses::default() };
    resolver.query(query, &Scope::default())?;
    Ok(resolver.uses)
}

struct Resolver<'a> {
    dialect: Dialect,
    set: &'a ApprovedSet,
    index: BTreeMap<(String, String), &'a ApprovedTable>,
    uses: Uses,
}

/// What a query sees of the queries around it.
#[derive(Clone, Default)]
struct Scope<'a> {
    /// Visible common table expressions by key, innermost last; `None` if the name must not be used here.
    ctes: Vec<(String, Option<Vec<Option<String>>>)>,
    /// The tables in scope, one list a `SELECT`, innermost last.
    frames: Vec<Vec<Table<'a>>>,
}

/// A table in scope.
#[derive(Clone)]
struct Table<'a> {
    /// The key by which columns name it; a derived table may have none.
    key: Option<String>,
    /// The schema's key, if columns may name it with its schema.
    schema: Option<String>,
    /// Keys of its columns, and the stored column if it is one of a table.
    columns: Vec<(Option<String>, Option<&'a str>)>,
    /// Keys of the columns that it has beside those.
    withheld: Vec<String>,
    /// The approved table, unless it is derived.
    of: Option<&'a ApprovedTable>,
}

impl<'a> Resolver<'a> {
    /// Resolves `query`, and gives the keys of its columns.
    fn query(&mut self, query: &Query, outer: &Scope<'a>) -> Result<Vec<Option<String>>, Refusal> {
        let mut scope = outer.clone();
        let base = scope.ctes.len();
        // Until its turn comes, a name of this WITH must not be used.
        scope.ctes.extend(query.ctes.iter().map(|cte| (cte.name.key.clone(), None)));
        for (position, cte) in query.ctes.iter().enumerate() {
            if query.ctes[..position].iter().any(|other| other.name.key == cte.name.key) {
                let what = format!("WITH defines {} twice", cte.name.written);
                return Err(refuse(Code::CteOrder, what, "give each its own name").at(cte.name.at));
            }
            self.declared(&cte.name)?;
            let columns = self.cte(cte, query.recursive, base + position, &mut scope)?;
            scope.ctes[base + position].1 = Some(columns);
        }
        let (columns, frame) = self.body(&query.body, &scope)?;
        let mut ordered = scope.clone();
        ordered.frames.push(frame);
        self.leaves(&query.order_by, &ordered, &columns)?;
        self.leaves(&query.bounds, &scope, &[])?;
        Ok(columns)
    }

    fn cte(
        &mut self,
        cte: &Cte,
        recursive: bool,
        position: usize,
        scope: &mut Scope<'a>,
    ) -> Result<Vec<Option<String>>, Refusal> {
        for name in &cte.columns {
            self.declared(name)?;
        }
        let given: Vec<_> = cte.columns.iter().map(|name| Some(name.key.clone())).collect();
        if !recursive {
            let columns = self.query(&cte.query, scope)?;
            return Ok(renamed(columns, given));
        }
        // A recursive query has the columns of its first arm, which must not use the name yet.
        let columns = match &cte.query.body {
            QueryBody::Set(first, _) if cte.query.ctes.is_empty() => match self.body(first, scope) {
                Ok((columns, _)) => renamed(columns, given),
                Err(_) if !given.is_empty() => given,
                Err(refusal) => return Err(refusal),
            },
            _ => return self.query(&cte.query, scope).map(|columns| renamed(columns, given)),
        };
        scope.ctes[position].1 = Some(columns.clone());
        self.query(&cte.query, scope)?;
        Ok(columns)
    }

    /// Resolves `body`, and gives the keys of its columns and the tables that `ORDER BY` sees.
    fn body(
        &mut self,
        body: &QueryBody,
        scope: &Scope<'a>,
    ) -> Result<(Vec<Option<String>>, Vec<Table<'a>>), Refusal> {
        match body {
            QueryBody::Select(select) => self.select(select, scope),
            QueryBody::Query(query) => Ok((self.query(query, scope)?, Vec::new())),
            QueryBody::Set(left, right) => {
                let (columns, _) = self.body(left, scope)?;
                self.body(right, scope)?;
                Ok((columns, Vec::new()))
            }
            QueryBody::Values(width, leaves) => {
                self.leaves(leaves, scope, &[])?;
                let columns = (1..=*width).map(|number| Some(format!("column{number}"))).collect();
                Ok((columns, Vec::new()))
            }
        }
    }

    fn select(
        &mut self,
        select: &Select,
        scope: &Scope<'a>,
    ) -> Result<(Vec<Option<String>>, Vec<Table<'a>>), Refusal> {
        let mut inner = scope.clone();
        inner.frames.push(Vec::new());
        for source in &select.sources {
            let table = self.source(source, scope, &inner)?;
            if let Some(frame) = inner.frames.last_mut() {
                frame.push(table);
            }
        }
        let frame = inner.frames.last().cloned().unwrap_or_default();
        if select.natural && frame.iter().any(|table| !table.withheld.is_empty()) {
            let what = "NATURAL JOIN may join on withheld columns";
            return Err(refuse(Code::ColumnWithheld, what, "write the columns with ON"));
        }
        for name in &select.using {
            self.column(std::slice::from_ref(name), &inner, &[])?;
        }
        self.leaves(&select.on, &inner, &[])?;
        let mut columns = Vec::new();
        for item in &select.items {
            match item {
                Item::Expr(leaves, name) => {
                    if let Some(name) = name.as_ref().filter(|name| !name.written.is_empty()) {
                        self.declared(name)?;
                    }
                    self.leaves(leaves, &inner, &[])?;
                    columns.push(name.as_ref().map(|name| name.key.clone()));
                }
                Item::Wildcard(path, at) => columns.extend(self.wildcard(path, *at, &frame)?),
            }
        }
        self.leaves(&select.clauses, &inner, &columns)?;
        Ok((columns, frame))
    }

    fn source(
        &mut self,
        source: &Source,
        outer: &Scope<'a>,
        beside: &Scope<'a>,
    ) -> Result<Table<'a>, Refusal> {
        let Source { kind, alias, columns: given } = source;
        for name in alias.iter().chain(given) {
            self.declared(name)?;
        }
        let given: Vec<_> = given.iter().map(|name| Some(name.key.clone())).collect();
        let key = alias.as_ref().map(|alias| alias.key.clone());
        let derived = |key, columns| Table {
            key,
            schema: None,
            columns: renamed(columns, given.clone()).into_iter().map(|column| (column, None)).collect(),
            withheld: Vec::new(),
            of: None,
        };
        match kind {
            SourceKind::Relation(path) => {
                if let [name] = path.as_slice()
                    && let Some((_, columns)) = outer.ctes.iter().rev().find(|(cte, _)| *cte == name.key)
                {
                    let Some(columns) = columns else {
                        let what = format!("{} is used before WITH has defined it", name.written);
                        let remedy = "define it earlier, write RECURSIVE, or name it differently from tables";
                        return Err(refuse(Code::CteOrder, what, remedy).at(name.at));
                    };
                    return Ok(derived(key.or(Some(name.key.clone())), columns.clone()));
                }
                self.table(path, alias.as_ref(), given)
            }
            SourceKind::Derived(query, lateral) => {
                let columns = self.query(query, if *lateral { beside } else { outer })?;
                Ok(derived(key, columns))
            }
            SourceKind::Function(name, columns, leaves) => {
                self.leaves(leaves, beside, &[])?;
                let columns = columns.iter().map(|column| Some(column.clone())).collect();
                Ok(derived(key.or(Some(name.key.clone())), columns))
            }
        }
    }

    fn table(
        &mut self,
        path: &[Name],
        alias: Option<&Name>,
        given: Vec<Option<String>>,
    ) -> Result<Table<'a>, Refusal> {
        let (schema, name) = match path {
            [name] => (self.dialect.stored(&self.set.default_schema), name),
            [schema, name] => (schema.key.clone(), name),
            _ => {
                let what = "a table is named with more than its schema";
                let at = path.first().and_then(|name| name.at);
                return Err(refuse(Code::TableNotApproved, what, "write schema.table").at(at));
            }
        };
        let at = path.first().and_then(|name| name.at);
        if is_system(&schema) || is_system(&name.key) {
            let what = format!("{} belongs to the database system", name.written);
            return Err(refuse(Code::SystemCatalogue, what, "read tables of the approved set").at(at));
        }
        path.iter().try_for_each(|name| self.declared(name))?;
        let Some(&table) = self.index.get(&(schema.clone(), name.key.clone())) else {
            let what = format!("the table {} is not in the approved set", name.written);
            let remedy = "read the approved tables, or have this one approved";
            return Err(refuse(Code::TableNotApproved, what, remedy).at(at));
        };
        if let Some(hidden) = table.reads.iter().find(|read| !self.is_approved(read)) {
            let what = format!("the view {} reads {hidden}, which is not in the approved set", table.name);
            return Err(refuse(Code::ViewNotApproved, what, "have that table approved too").at(at));
        }
        self.uses.tables.insert(table.name.clone());
        if let Some(at) = at {
            self.uses.places.insert(at, table.name.clone());
        }
        let stored: Vec<_> = table.columns.iter().map(|column| Some(self.dialect.stored(column))).collect();
        if !given.is_empty() && !table.withheld.is_empty() {
            let what = format!("columns of {} are renamed, some of which are withheld", table.name);
            return Err(refuse(Code::ColumnWithheld, what, "name the columns as the table does").at(at));
        }
        let columns =
            renamed(stored, given).into_iter().zip(table.columns.iter().map(|column| Some(column.as_str())));
        let withheld = table.withheld.iter().map(|column| self.dialect.stored(column));
        let declared =
            |name: &&&str| !table.columns.iter().any(|column| self.dialect.stored(column) == ***name);
        let implicit = self.implicit_columns().iter().filter(declared).map(|&name| name.to_owned());
        Ok(Table {
            key: Some(alias.map_or_else(|| name.key.clone(), |alias| alias.key.clone())),
            schema: alias.is_none().then_some(schema),
            columns: columns.collect(),
            withheld: withheld.chain(implicit).collect(),
            of: Some(table),
        })
    }

    fn is_approved(&self, table: &TableName) -> bool {
        self.index.contains_key(&(self.dialect.stored(&table.schema), self.dialect.stored(&table.name)))
    }

    /// Columns that every table has without declaring them.
    fn implicit_columns(&self) -> &'static [&'static str] {
        match self.dialect {
            Dialect::Sqlite => &["rowid", "oid", "_rowid_"],
            Dialect::Postgres => &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"],
        }
    }

    fn wildcard(
        &mut self,
        path: &[Name],
        at: Option<TextPosition>,
        frame: &[Table<'a>],
    ) -> Result<Vec<Option<String>>, Refusal> {
        let tables: Vec<_> = frame.iter().filter(|table| path.is_empty() || table.is_named(path)).collect();
        if tables.is_empty() {
            let what = "* names no table of this SELECT";
            return Err(refuse(Code::UnknownColumn, what, "name a table that is in FROM").at(at));
        }
        let mut columns = Vec::new();
        for table in tables {
            if let Some(of) = table.of {
                if !of.withheld.is_empty() {
                    let what = format!("* would read columns of {} that are withheld", of.name);
                    let remedy = format!("name the columns: {}", of.columns.join(", "));
                    return Err(refuse(Code::ColumnWithheld, what, &remedy).at(at));
                }
                self.uses.columns.extend(of.columns.iter().map(|column| (of.name.clone(), column.clone())));
            }
            columns.extend(table.columns.iter().map(|(key, _)| key.clone()));
        }
        Ok(columns)
    }

    fn leaves(
        &mut self,
        leaves: &[Leaf],
        scope: &Scope<'a>,
        outputs: &[Option<String>],
    ) -> Result<(), Refusal> {
        for leaf in leaves {
            match leaf {
                Leaf::Column(path) => self.column(path, scope, outputs)?,
                Leaf::Query(query) => drop(self.query(query, scope)?),
            }
        }
        Ok(())
    }

    fn column(
        &mut self,
        path: &[Name],
        scope: &Scope<'a>,
        outputs: &[Option<String>],
    ) -> Result<(), Refusal> {
        let Some((column, qualifier)) = path.split_last() else {
            return Ok(());
        };
        for name in path {
            self.declared(name)?;
        }
        // Engines differ in which clauses see aliases and the tables of later joins, and look further out when a name is
        // not visible. So a name is refused if it could mean a withheld column of any table in scope.
        let could_name = |table: &&Table<'_>| qualifier.is_empty() || table.is_named(qualifier);
        let mut all = scope.frames.iter().flatten().filter(could_name);
        if let Some(table) = all.find(|table| table.withheld.contains(&column.key)) {
            let of = table.of.map(|of| format!(" of {}", of.name)).unwrap_or_default();
            let what = format!("the column {}{of} is withheld", column.written);
            return Err(refuse(
                Code::ColumnWithheld,
                what,
                "read approved columns, each with its table's name",
            )
            .at(column.at));
        }
        for (depth, frame) in scope.frames.iter().rev().enumerate() {
            let candidates = frame.iter().filter(could_name);
            let mut found = false;
            for table in candidates {
                for (_, stored) in table.columns.iter().filter(|(key, _)| key.as_ref() == Some(&column.key)) {
                    found = true;
                    if let (Some(of), Some(stored)) = (table.of, stored) {
                        self.uses.columns.insert((of.name.clone(), (*stored).to_owned()));
                    }
                }
            }
            let output =
                depth == 0 && qualifier.is_empty() && outputs.iter().flatten().any(|key| *key == column.key);
            if found || output {
                return Ok(());
            }
        }
        let row = qualifier.is_empty() && scope.frames.iter().flatten().any(|table| table.is_named(path));
        let (code, what) = if row {
            (Code::WholeRow, format!("{} is a table, and its whole row would be read", column.written))
        } else {
            let written: Vec<_> = path.iter().map(|name| name.written.as_str()).collect();
            (Code::UnknownColumn, format!("{} is no column of the tables in FROM", written.join(".")))
        };
        Err(refuse(code, what, "use columns of the approved tables that are in FROM").at(column.at))
    }

    /// Refuses a name that reads like another one, or that the engine would cut.
    fn declared(&self, name: &Name) -> Result<(), Refusal> {
        let fault = if self.dialect == Dialect::Postgres && name.written.len() > 63 {
            Some("is longer than 63 bytes, and would be cut")
        } else if name.written.is_empty() {
            Some("is empty")
        } else if !name.written.chars().all(is_plain) && !self.set.names(&name.written) {
            Some("has characters that look like others or like nothing")
        } else {
            None
        };
        match fault {
            None => Ok(()),
            Some(fault) => {
                let what = format!("the name {:?} {fault}", name.written);
                Err(refuse(Code::Identifier, what, "write names in Latin letters").at(name.at))
            }
        }
    }
}

impl Table<'_> {
    fn is_named(&self, path: &[Name]) -> bool {
        match path {
            [name] => self.key.as_ref() == Some(&name.key),
            [schema, name] => {
                self.schema.as_ref() == Some(&schema.key) && self.key.as_ref() == Some(&name.key)
            }
            _ => false,
        }
    }
}

/// `columns`, the first of which get the `given` names.
fn renamed(mut columns: Vec<Option<String>>, given: Vec<Option<String>>) -> Vec<Option<String>> {
    let count = given.len().min(columns.len());
    columns.splice(..count, given);
    columns
}

/// Printable ASCII, and Latin letters with marks.
fn is_plain(character: char) -> bool {
    character == ' '
        || character.is_ascii_graphic()
        || matches!(character, '\u{c0}'..='\u{24f}' if character != '\u{d7}' && character != '\u{f7}')
}

/// Whether the key of a schema or table is the engine's own.
fn is_system(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.starts_with("sqlite_")
        || key.starts_with("pragma_")
        || key.starts_with("pg_")
        || matches!(key.as_str(), "information_schema" | "temp" | "dbstat" | "bytecode" | "tables_used")
}

fn refuse(code: Code, what: impl Into<String>, remedy: &str) -> Refusal {
    Refusal::new(Layer::Names, code, what, remedy)
}

#[cfg(test)]
mod tests;
