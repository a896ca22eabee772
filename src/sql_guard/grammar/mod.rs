//! Third layer: the allow-list of the syntax tree. It reads every field of every node that it accepts, refuses every
//! node that it does not know, and gives the [`Query`] outline that names are resolved in.

mod expressions;
mod queries;
mod tables;
mod types;

#[cfg(test)]
mod tests;

use sqlparser::ast::{Spanned, Statement};

use super::outline::{Name, Query};
use super::refusal::{Code, Layer, Refusal, TextPosition};
use super::{Dialect, Limits};

/// The outline of `statement`, if it is a query in which everything is on the allow-list.
///
/// # Errors
/// The first node, in reading order, that is not.
pub fn outline(statement: &Statement, dialect: Dialect, limits: &Limits) -> Result<Query, Refusal> {
    let Statement::Query(query) = statement else {
        let text = statement.to_string();
        let verb = text.split_whitespace().next().unwrap_or("this").to_ascii_uppercase();
        let remedy = "only SELECT, WITH … SELECT, VALUES and their unions are executed";
        return Err(Refusal::new(Layer::Grammar, Code::NotAQuery, format!("{verb} is not a query"), remedy));
    };
    Reader { dialect, limits, depth: 0, nodes: 0, tables: 0 }.query(query)
}

/// Reads a syntax tree within its bounds.
struct Reader<'a> {
    dialect: Dialect,
    limits: &'a Limits,
    depth: usize,
    nodes: usize,
    tables: usize,
}

impl Reader<'_> {
    fn name(&self, ident: &sqlparser::ast::Ident) -> Result<Name, Refusal> {
        // SQLite reads a string where it expects a name as that name; no query needs this.
        if ident.quote_style.is_some_and(|quote| !matches!(quote, '"' | '`' | '[')) {
            let what = format!("the string '{}' stands where a name is expected", ident.value);
            return Err(refuse(Code::Identifier, what, "write names without quotes, or in double quotes")
                .at(TextPosition::start(ident.span)));
        }
        Ok(Name::of(ident, self.dialect))
    }

    /// The names of a dotted name, of which each part must be a plain identifier.
    fn path(&self, name: &sqlparser::ast::ObjectName) -> Result<Vec<Name>, Refusal> {
        name.0
            .iter()
            .map(|part| match part.as_ident() {
                Some(ident) => self.name(ident),
                None => Err(clause(format!("the name {name}"), name)),
            })
            .collect()
    }

    /// Counts a node, and runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.count()?;
        if self.depth >= self.limits.max_depth {
            let what = format!("the statement is nested deeper than {} levels", self.limits.max_depth);
            return Err(refuse(Code::TooComplex, what, "write a query that is less nested"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn count(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        if self.nodes > self.limits.max_nodes {
            let what = format!("the statement has more than {} parts", self.limits.max_nodes);
            return Err(refuse(Code::TooComplex, what, "write a smaller query"));
        }
        Ok(())
    }
}

fn refuse(code: Code, what: impl Into<String>, remedy: &str) -> Refusal {
    Refusal::new(Layer::Grammar, code, what, remedy)
}

/// The refusal of `what`, a clause that stands at `node`.
fn clause(what: impl std::fmt::Display, node: &impl Spanned) -> Refusal {
    refuse(Code::Clause, format!("{what} is not allowed in queries here"), "write the query without it")
        .at(TextPosition::start(node.span()))
}

/// Refuses `node` if it has `what`.
fn without(has: bool, what: &str, node: &impl Spanned) -> Result<(), Refusal> {
    if has { Err(clause(what, node)) } else { Ok(()) }
}
