//! Last layer: writes the statement that is executed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, LimitClause, ObjectName, ObjectNamePart, Query, SetExpr, Statement, Value, ValueWithSpan,
    visit_relations_mut,
};

use super::names::Uses;
use super::refusal::{Code, Layer, Refusal, TextPosition};
use super::{Approved, Dialect, Limits, TableName, one_statement};

/// Writes `statement` with the full name of every table in `uses` and at most `limits.max_rows` rows, and proves that
/// the text reads as that tree again.
///
/// # Errors
/// [`Code::RoundTrip`] if it does not; [`Code::Internal`] if a table that was resolved is not in the tree.
pub fn rewrite(
    mut statement: Statement,
    uses: Uses,
    dialect: Dialect,
    limits: &Limits,
) -> Result<Approved, Refusal> {
    qualify(&mut statement, &uses.places)?;
    let limited_to = match &mut statement {
        // SQLite has no LIMIT after VALUES, whose rows are bounded by the text.
        Statement::Query(query) if dialect == Dialect::Sqlite && ends_in_values(&query.body) => None,
        Statement::Query(query) => limit(query, limits.max_rows),
        _ => None,
    };
    let sql = statement.to_string();
    // Full names and the bound make the text somewhat longer than the one that was allowed.
    let roomy = Limits { max_depth: limits.max_depth.saturating_add(2), ..limits.clone() };
    match one_statement::parse(&sql, dialect, &roomy) {
        Ok(again) if again == statement => {}
        Ok(_) | Err(_) => {
            let what = "the statement cannot be written so that it reads the same again";
            return Err(Refusal::new(
                Layer::Rewrite,
                Code::RoundTrip,
                what,
                "write the query in a plainer way",
            ));
        }
    }
    Ok(Approved {
        sql,
        tables: uses.tables.into_iter().collect(),
        columns: uses.columns.into_iter().collect(),
        limited_to,
    })
}

/// Gives each table that was resolved its schema and stored name. The place in the text tells a table from a common
/// table expression of the same name.
fn qualify(statement: &mut Statement, places: &BTreeMap<TextPosition, TableName>) -> Result<(), Refusal> {
    let mut missing = places.clone();
    let _: ControlFlow<()> = visit_relations_mut(statement, |relation: &mut ObjectName| {
        let at = relation
            .0
            .first()
            .and_then(ObjectNamePart::as_ident)
            .and_then(|ident| TextPosition::start(ident.span));
        if let Some(table) = at.and_then(|at| missing.remove(&at)) {
            let part = |name| ObjectNamePart::Identifier(Ident::with_quote('"', name));
            relation.0 = vec![part(table.schema), part(table.name)];
        }
        ControlFlow::Continue(())
    });
    match missing.into_values().next() {
        None => Ok(()),
        Some(table) => {
            let what = format!("the place of the table {table} was lost");
            Err(Refusal::new(Layer::Rewrite, Code::Internal, what, "nothing was executed; report this"))
        }
    }
}

/// Whether the last arm of `body` is VALUES.
fn ends_in_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { right, .. } => ends_in_values(right),
        _ => false,
    }
}

/// Bounds the rows of the outermost query, and says to how many if that changed it. A `LIMIT` that is no literal is left:
/// the engine stops reading at its own bound.
fn limit(query: &mut Query, max_rows: u64) -> Option<u64> {
    let literal = || {
        let value = Value::Number(max_rows.to_string(), false);
        Expr::Value(ValueWithSpan { value, span: sqlparser::tokenizer::Span::empty() })
    };
    if query.fetch.is_some() {
        return None;
    }
    match &mut query.limit_clause {
        None => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: Some(literal()), offset: None, limit_by: Vec::new() });
            Some(max_rows)
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => {
            *limit = Some(literal());
            Some(max_rows)
        }
        Some(
            LimitClause::LimitOffset { limit: Some(limit), .. } | LimitClause::OffsetCommaLimit { limit, .. },
        ) => {
            let larger = matches!(limit, Expr::Value(ValueWithSpan { value: Value::Number(rows, _), .. })
                if rows.parse::<u64>().map_or(true, |rows| rows > max_rows));
            larger.then(|| {
                *limit = literal();
                max_rows
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ApprovedSet, ApprovedTable, check};
    use super::*;

    fn rewritten(sql: &str, dialect: Dialect) -> String {
        let table = |name: &str| ApprovedTable {
            name: TableName::new("main", name),
            columns: vec!["id".into(), "name".into()],
            withheld: Vec::new(),
            reads: Vec::new(),
        };
        let set = ApprovedSet { default_schema: "main".into(), tables: vec![table("Pets"), table("owners")] };
        check(sql, dialect, &set, &Limits { max_rows: 10, ..Limits::default() }).unwrap().sql
    }

    #[test]
    fn tables_get_their_full_stored_names_and_common_table_expressions_do_not() {
        let sql = "WITH pets AS (SELECT id FROM owners o) -- a comment\nSELECT pets.id FROM pets LIMIT 3;";
        assert_eq!(
            rewritten(sql, Dialect::Sqlite),
            "WITH pets AS (SELECT id FROM \"main\".\"owners\" o) SELECT pets.id FROM pets LIMIT 3"
        );
        assert_eq!(
            rewritten("SELECT id FROM [PETS]", Dialect::Sqlite),
            "SELECT id FROM \"main\".\"Pets\" LIMIT 10"
        );
    }

    #[test]
    fn rows_are_bounded() {
        for (sql, end) in [
            ("SELECT id FROM owners", "LIMIT 10"),
            ("SELECT id FROM owners LIMIT 4", "LIMIT 4"),
            ("SELECT id FROM owners LIMIT 4000", "LIMIT 10"),
            ("SELECT id FROM owners LIMIT 99999999999999999999999", "LIMIT 10"),
            ("SELECT id FROM owners UNION SELECT 1", "SELECT 1 LIMIT 10"),
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                let sql = rewritten(sql, dialect);
                assert!(sql.ends_with(end), "{sql}");
            }
        }
    }

    #[test]
    fn values_get_no_bound_where_the_engine_has_none_for_them() {
        for sql in ["VALUES (1), (2)", "SELECT id FROM owners UNION VALUES (2)"] {
            assert!(!rewritten(sql, Dialect::Sqlite).contains("LIMIT"), "{sql}");
            assert!(rewritten(sql, Dialect::Postgres).ends_with("LIMIT 10"), "{sql}");
        }
    }

    #[test]
    fn rewritten_statement_is_unchanged_when_checked_again() {
        for sql in [
            "SELECT 'it''s; \\ \"x\"' AS \"a \"\"b\", -(-1), NOT (id = 1 AND name IS NOT NULL) FROM owners",
            "SELECT (SELECT max(id) FROM owners) - 1, name || 'x' FROM owners o WHERE o.id IN (1, 2) OR o.id BETWEEN 3 AND 4",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                let once = rewritten(sql, dialect);
                assert_eq!(rewritten(&once, dialect), once);
            }
        }
    }
}
