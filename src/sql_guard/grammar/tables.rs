//! `FROM`: tables, derived tables, table functions and joins.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias,
    TableFactor, TableFunctionArgs, TableWithJoins,
};

use super::super::functions;
use super::super::outline::{Leaf, Select, Source, SourceKind};
use super::super::refusal::{Code, Refusal, TextPosition};
use super::{Dialect, Reader, clause, refuse, without};

impl Reader<'_> {
    /// The tables and joins of a `FROM` clause, as a `SELECT` that has nothing else yet.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> Result<Select, Refusal> {
        let mut select = Select {
            items: Vec::new(),
            sources: Vec::new(),
            on: Vec::new(),
            using: Vec::new(),
            natural: false,
            clauses: Vec::new(),
        };
        for tables in from {
            self.joined(tables, &mut select)?;
        }
        Ok(select)
    }

    fn joined(&mut self, tables: &TableWithJoins, select: &mut Select) -> Result<(), Refusal> {
        let TableWithJoins { relation, joins } = tables;
        self.nested(|reader| {
            reader.table(relation, select)?;
            for join in joins {
                let Join { relation, global, join_operator } = join;
                without(*global, "GLOBAL JOIN", join)?;
                reader.table(relation, select)?;
                let constraint = match join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::Left(constraint)
                    | JoinOperator::LeftOuter(constraint)
                    | JoinOperator::Right(constraint)
                    | JoinOperator::RightOuter(constraint)
                    | JoinOperator::FullOuter(constraint)
                    | JoinOperator::CrossJoin(constraint) => constraint,
                    _ => return Err(clause("this kind of join", join)),
                };
                match constraint {
                    JoinConstraint::On(expr) => select.on.extend(reader.expression(expr)?),
                    JoinConstraint::Using(columns) => {
                        for column in columns {
                            let mut path = reader.path(column)?;
                            without(path.len() != 1, "a dotted name in USING", join)?;
                            select.using.append(&mut path);
                        }
                    }
                    JoinConstraint::Natural => select.natural = true,
                    JoinConstraint::None => {}
                }
            }
            Ok(())
        })
    }

    fn table(&mut self, factor: &TableFactor, select: &mut Select) -> Result<(), Refusal> {
        self.tables += 1;
        if self.tables > self.limits.max_tables {
            let what = format!("the statement has more than {} tables in FROM", self.limits.max_tables);
            return Err(refuse(Code::TooComplex, what, "ask for fewer tables at once"));
        }
        let (kind, alias) = match factor {
            TableFactor::Table { alias, .. } => (self.named_table(factor)?, alias),
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                without(sample.is_some(), "TABLESAMPLE", factor)?;
                without(*lateral && self.dialect == Dialect::Sqlite, "LATERAL", factor)?;
                (SourceKind::Derived(Box::new(self.query(subquery)?), *lateral), alias)
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                (self.table_function(name, args, *with_ordinality, alias.as_ref())?, alias)
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset, with_offset_alias, with_ordinality } => {
                without(self.dialect != Dialect::Postgres || array_exprs.len() != 1, "this UNNEST", factor)?;
                without(*with_offset || with_offset_alias.is_some(), "WITH OFFSET", factor)?;
                let leaves = self.expressions(array_exprs)?;
                (self.function_source("unnest", &[], leaves, *with_ordinality, alias.as_ref())?, alias)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                without(alias.is_some(), "an alias of a join", factor)?;
                self.tables -= 1;
                return self.joined(table_with_joins, select);
            }
            _ => return Err(clause("this kind of table", factor)),
        };
        let (alias, columns) = match alias {
            None => (None, Vec::new()),
            Some(alias) => self.alias(alias).map(|(name, columns)| (Some(name), columns))?,
        };
        select.sources.push(Source { kind, alias, columns });
        Ok(())
    }

    /// A table or view, or a call of a function that is written like one.
    fn named_table(&mut self, factor: &TableFactor) -> Result<SourceKind, Refusal> {
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = factor
        else {
            return Err(clause("this kind of table", factor));
        };
        without(!with_hints.is_empty() || !index_hints.is_empty(), "a table hint", factor)?;
        without(version.is_some(), "a table version", factor)?;
        without(!partitions.is_empty(), "PARTITION", factor)?;
        without(json_path.is_some(), "a JSON path after a table", factor)?;
        without(sample.is_some(), "TABLESAMPLE", factor)?;
        match args {
            None => {
                without(*with_ordinality, "WITH ORDINALITY after a table", factor)?;
                Ok(SourceKind::Relation(self.path(name)?))
            }
            Some(TableFunctionArgs { args, settings }) => {
                without(settings.is_some(), "SETTINGS", factor)?;
                self.table_function(name, args, *with_ordinality, alias.as_ref())
            }
        }
    }

    fn table_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<SourceKind, Refusal> {
        let path = self.path(name)?;
        let known = match path.as_slice() {
            [name] => functions::table_function(self.dialect, &name.key).map(|columns| (name, columns)),
            _ => None,
        };
        let Some((name, columns)) = known else {
            let what = format!("the table function {name} is not allowed");
            return Err(refuse(Code::Function, what, "read tables and views of the approved set")
                .at(path.first().and_then(|name| name.at)));
        };
        let mut leaves = Vec::new();
        for arg in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else {
                return Err(clause("this argument of a table function", arg));
            };
            leaves.extend(self.expression(expr)?);
        }
        self.function_source(&name.key, columns, leaves, ordinality, alias)
    }

    fn function_source(
        &self,
        function: &str,
        columns: &[&str],
        leaves: Vec<Leaf>,
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<SourceKind, Refusal> {
        let name = super::Name { written: function.to_owned(), key: function.to_owned(), at: None };
        let alias = alias.map(|alias| self.name(&alias.name)).transpose()?;
        let mut columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        // PostgreSQL names the only column of such a function after the alias, or else after the function.
        if columns.is_empty() {
            columns.push(alias.map_or_else(|| function.to_owned(), |alias| alias.key));
        }
        if ordinality {
            columns.push("ordinality".to_owned());
        }
        Ok(SourceKind::Function(name, columns, leaves))
    }
}

/// Where `expr` is.
pub(super) fn place(expr: &Expr) -> Option<TextPosition> {
    TextPosition::start(sqlparser::ast::Spanned::span(expr))
}
