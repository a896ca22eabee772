//! Queries, set operations, `SELECT`, `VALUES`, ordering and bounds.

use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, LimitClause, NamedWindowDefinition, NamedWindowExpr, Offset, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias, Values,
    WildcardAdditionalOptions, With,
};

use super::super::outline::{self, Item, Leaf, Name, QueryBody};
use super::super::refusal::{Refusal, TextPosition};
use super::{Dialect, Reader, clause, without};

impl Reader<'_> {
    pub(super) fn query(&mut self, query: &Query) -> Result<outline::Query, Refusal> {
        self.nested(|reader| {
            let Query {
                with,
                body,
                order_by,
                limit_clause,
                fetch,
                locks,
                for_clause,
                settings,
                format_clause,
                pipe_operators,
            } = query;
            without(!locks.is_empty(), "FOR UPDATE or FOR SHARE", query)?;
            without(for_clause.is_some(), "FOR", query)?;
            without(settings.is_some(), "SETTINGS", query)?;
            without(format_clause.is_some(), "FORMAT", query)?;
            without(!pipe_operators.is_empty(), "|>", query)?;
            let (recursive, ctes) =
                with.as_ref().map_or(Ok((false, Vec::new())), |with| reader.with(with))?;
            let body = reader.body(body)?;
            let order_by = order_by.as_ref().map_or(Ok(Vec::new()), |order_by| reader.order_by(order_by))?;
            let mut bounds = limit_clause.as_ref().map_or(Ok(Vec::new()), |limit| reader.limit(limit))?;
            if let Some(sqlparser::ast::Fetch { with_ties, percent, quantity }) = fetch {
                without(*with_ties || *percent, "FETCH … WITH TIES or PERCENT", query)?;
                bounds.extend(reader.expressions(quantity)?);
            }
            Ok(outline::Query { recursive, ctes, body, order_by, bounds })
        })
    }

    fn with(&mut self, with: &With) -> Result<(bool, Vec<outline::Cte>), Refusal> {
        let With { with_token: _, recursive, cte_tables } = with;
        let mut ctes = Vec::new();
        for cte in cte_tables {
            let Cte { alias, query, from, materialized: _, closing_paren_token: _ } = cte;
            without(from.is_some(), "FROM in WITH", cte)?;
            let (name, columns) = self.alias(alias)?;
            ctes.push(outline::Cte { name, columns, query: self.query(query)? });
        }
        Ok((*recursive, ctes))
    }

    /// The name that an alias gives, and the names that it gives to columns.
    pub(super) fn alias(&self, alias: &TableAlias) -> Result<(Name, Vec<Name>), Refusal> {
        let TableAlias { explicit: _, name, columns, at } = alias;
        without(at.is_some(), "AT", alias)?;
        let columns = columns.iter().map(|column| {
            without(column.data_type.is_some(), "a column definition list", alias)?;
            self.name(&column.name)
        });
        Ok((self.name(name)?, columns.collect::<Result<_, _>>()?))
    }

    fn body(&mut self, body: &SetExpr) -> Result<QueryBody, Refusal> {
        self.nested(|reader| match body {
            SetExpr::Select(select) => Ok(QueryBody::Select(Box::new(reader.select(select)?))),
            SetExpr::Query(query) => Ok(QueryBody::Query(Box::new(reader.query(query)?))),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                match op {
                    SetOperator::Union | SetOperator::Except | SetOperator::Intersect => {}
                    SetOperator::Minus => return Err(clause("MINUS", body)),
                }
                match set_quantifier {
                    SetQuantifier::None | SetQuantifier::All | SetQuantifier::Distinct => {}
                    SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                        return Err(clause("BY NAME", body));
                    }
                }
                Ok(QueryBody::Set(Box::new(reader.body(left)?), Box::new(reader.body(right)?)))
            }
            SetExpr::Values(Values { explicit_row, value_keyword, rows }) => {
                without(*explicit_row || *value_keyword, "VALUES ROW", body)?;
                let width = rows.first().map_or(0, |row| row.content.len());
                let leaves = reader.expressions(rows.iter().flat_map(|row| &row.content))?;
                Ok(QueryBody::Values(width, leaves))
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(clause("INSERT, UPDATE, DELETE or MERGE", body))
            }
            SetExpr::Table(_) => Err(clause("TABLE", body)),
        })
    }

    fn select(&mut self, select: &Select) -> Result<outline::Select, Refusal> {
        let Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        without(!optimizer_hints.is_empty(), "an optimizer hint", select)?;
        without(select_modifiers.is_some(), "a MySQL modifier", select)?;
        without(top.is_some(), "TOP", select)?;
        without(exclude.is_some(), "EXCLUDE", select)?;
        without(into.is_some(), "SELECT … INTO", select)?;
        without(!lateral_views.is_empty(), "LATERAL VIEW", select)?;
        without(prewhere.is_some(), "PREWHERE", select)?;
        without(!connect_by.is_empty(), "CONNECT BY", select)?;
        without(!cluster_by.is_empty(), "CLUSTER BY", select)?;
        without(!distribute_by.is_empty(), "DISTRIBUTE BY", select)?;
        without(!sort_by.is_empty(), "SORT BY", select)?;
        without(qualify.is_some(), "QUALIFY", select)?;
        without(value_table_mode.is_some(), "SELECT AS", select)?;
        without(*flavor != SelectFlavor::Standard, "FROM before SELECT", select)?;

        let mut outline = self.from(from)?;
        outline.items = projection.iter().map(|item| self.item(item)).collect::<Result<_, _>>()?;
        let mut clauses = match distinct {
            None | Some(Distinct::All | Distinct::Distinct) => Vec::new(),
            Some(Distinct::On(expressions)) => self.expressions(expressions)?,
        };
        clauses.extend(self.expressions(selection)?);
        clauses.extend(self.group_by(group_by, select)?);
        clauses.extend(self.expressions(having)?);
        clauses.extend(self.named_windows(named_window)?);
        outline.clauses = clauses;
        Ok(outline)
    }

    /// The expressions of a WINDOW clause.
    fn named_windows(&mut self, windows: &[NamedWindowDefinition]) -> Result<Vec<Leaf>, Refusal> {
        let mut leaves = Vec::new();
        for NamedWindowDefinition(name, window) in windows {
            self.name(name)?;
            match window {
                NamedWindowExpr::NamedWindow(name) => drop(self.name(name)?),
                NamedWindowExpr::WindowSpec(window) => leaves.extend(self.window(window)?),
            }
        }
        Ok(leaves)
    }

    fn item(&mut self, item: &SelectItem) -> Result<Item, Refusal> {
        self.count()?;
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = self.implied_name(expr)?;
                Ok(Item::Expr(self.expression(expr)?, name))
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                Ok(Item::Expr(self.expression(expr)?, Some(self.name(alias)?)))
            }
            SelectItem::ExprWithAliases { .. } => Err(clause("a list of aliases", item)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                self.plain_wildcard(options)?;
                Ok(Item::Wildcard(self.path(name)?, TextPosition::start(sqlparser::ast::Spanned::span(name))))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
                Err(clause("(expression).*", item))
            }
            SelectItem::Wildcard(options) => {
                self.plain_wildcard(options)?;
                Ok(Item::Wildcard(Vec::new(), TextPosition::start(options.wildcard_token.0.span)))
            }
        }
    }

    pub(super) fn plain_wildcard(&self, options: &WildcardAdditionalOptions) -> Result<(), Refusal> {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let plain = opt_ilike.is_none()
            && opt_exclude.is_none()
            && opt_except.is_none()
            && opt_replace.is_none()
            && opt_rename.is_none()
            && opt_alias.is_none();
        without(!plain, "an option after *", options)
    }

    /// The name that the engine gives to the column of an expression without an alias, where it is one that a query can
    /// refer to.
    fn implied_name(&self, expr: &Expr) -> Result<Option<Name>, Refusal> {
        match (expr, self.dialect) {
            (Expr::Identifier(ident), _) => self.name(ident).map(Some),
            (Expr::CompoundIdentifier(parts), _) => parts.last().map(|ident| self.name(ident)).transpose(),
            (Expr::Function(function), Dialect::Postgres) => Ok(self.path(&function.name)?.pop()),
            (Expr::Cast { expr, .. } | Expr::Nested(expr), Dialect::Postgres) => self.implied_name(expr),
            _ => Ok(None),
        }
    }

    fn group_by(&mut self, group_by: &GroupByExpr, select: &Select) -> Result<Vec<Leaf>, Refusal> {
        match group_by {
            GroupByExpr::All(_) => Err(clause("GROUP BY ALL", select)),
            GroupByExpr::Expressions(expressions, modifiers) => {
                without(!modifiers.is_empty(), "a modifier of GROUP BY", select)?;
                let mut leaves = Vec::new();
                for expr in expressions {
                    match (expr, self.dialect) {
                        (
                            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets),
                            Dialect::Postgres,
                        ) => {
                            without(
                                matches!(expr, Expr::Cube(sets) if sets.len() > 4),
                                "CUBE over many columns",
                                expr,
                            )?;
                            leaves.extend(self.expressions(sets.iter().flatten())?);
                        }
                        _ => leaves.extend(self.expression(expr)?),
                    }
                }
                Ok(leaves)
            }
        }
    }

    fn order_by(&mut self, order_by: &OrderBy) -> Result<Vec<Leaf>, Refusal> {
        let OrderBy { kind, interpolate } = order_by;
        without(interpolate.is_some(), "INTERPOLATE", order_by)?;
        match kind {
            OrderByKind::All(_) => Err(clause("ORDER BY ALL", order_by)),
            OrderByKind::Expressions(expressions) => self.sorted(expressions),
        }
    }

    /// The names in a list of expressions with directions.
    pub(super) fn sorted(&mut self, expressions: &[OrderByExpr]) -> Result<Vec<Leaf>, Refusal> {
        let mut leaves = Vec::new();
        for sorted in expressions {
            let OrderByExpr { expr, options: OrderByOptions { sort, nulls_first: _ }, with_fill } = sorted;
            without(with_fill.is_some(), "WITH FILL", sorted)?;
            without(matches!(sort, Some(OrderBySort::Using(_))), "ORDER BY … USING", sorted)?;
            leaves.extend(self.expression(expr)?);
        }
        Ok(leaves)
    }

    fn limit(&mut self, limit: &LimitClause) -> Result<Vec<Leaf>, Refusal> {
        match limit {
            LimitClause::LimitOffset { limit: rows, offset, limit_by } => {
                without(!limit_by.is_empty(), "LIMIT … BY", limit)?;
                let mut leaves = self.expressions(rows)?;
                if let Some(Offset { value, rows: _ }) = offset {
                    leaves.extend(self.expression(value)?);
                }
                Ok(leaves)
            }
            LimitClause::OffsetCommaLimit { offset, limit } => self.expressions([offset, limit]),
        }
    }
}
