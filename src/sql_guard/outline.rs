//! The outline of a query for name resolution: its scopes, the tables in them and the names that are used. The grammar layer
//! makes an outline of the syntax nodes on its allow-list only, so a name cannot hide in a node that nobody reads.

use super::Dialect;
use super::refusal::TextPosition;

/// A name as written, and as the engine compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Without quotes.
    pub written: String,
    /// Folded as the engine folds it. Two names are one exactly if their keys are equal.
    pub key: String,
    /// Where it is in the text.
    pub at: Option<TextPosition>,
}

impl Name {
    pub(super) fn of(ident: &sqlparser::ast::Ident, dialect: Dialect) -> Self {
        let key = dialect.folded(&ident.value, ident.quote_style.is_some());
        Self { written: ident.value.clone(), key, at: TextPosition::start(ident.span) }
    }
}

/// A query with its own `WITH` scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Whether `RECURSIVE` is written.
    pub recursive: bool,
    /// The common table expressions, in order.
    pub ctes: Vec<Cte>,
    /// What gives the rows.
    pub body: QueryBody,
    /// The names in `ORDER BY`, which also sees output columns.
    pub order_by: Vec<Leaf>,
    /// The names in `LIMIT` and `OFFSET`, which see no table.
    pub bounds: Vec<Leaf>,
}

/// A common table expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cte {
    /// Its name.
    pub name: Name,
    /// The names that it gives to its columns; empty if it gives none.
    pub columns: Vec<Name>,
    /// Its query.
    pub query: Query,
}

/// The source of a query's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryBody {
    /// `SELECT`.
    Select(Box<Select>),
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    Set(Box<QueryBody>, Box<QueryBody>),
    /// `VALUES`, with the width of its rows.
    Values(usize, Vec<Leaf>),
    /// A query in parentheses.
    Query(Box<Query>),
}

/// One `SELECT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// The output columns.
    pub items: Vec<Item>,
    /// The tables, joins flattened, in the order in which they are written.
    pub sources: Vec<Source>,
    /// The names in `ON`.
    pub on: Vec<Leaf>,
    /// The columns of `USING`.
    pub using: Vec<Name>,
    /// Whether a join is `NATURAL`.
    pub natural: bool,
    /// The names in the other clauses, where an output column's name may stand too.
    pub clauses: Vec<Leaf>,
}

/// An output column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An expression, with the name of its column where it has one.
    Expr(Vec<Leaf>, Option<Name>),
    /// `*` or `table.*`.
    Wildcard(Vec<Name>, Option<TextPosition>),
}

/// A table in `FROM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its kind.
    pub kind: SourceKind,
    /// Its alias.
    pub alias: Option<Name>,
    /// The names that the alias gives to its columns.
    pub columns: Vec<Name>,
}

/// The kind of a table in `FROM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A table, a view or a common table expression.
    Relation(Vec<Name>),
    /// A query, and whether it sees the tables beside it.
    Derived(Box<Query>, bool),
    /// A table function on the allow-list: its columns and the names in its arguments.
    Function(Name, Vec<String>, Vec<Leaf>),
}

/// A use of a name in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A column, perhaps with its table and schema.
    Column(Vec<Name>),
    /// A query in an expression.
    Query(Box<Query>),
}
