//! The check of a statement's text and plan: it must read approved tables and call listed functions.
//! Views and row policies are expanded in the plan, so what they do is seen, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::{DatabaseSchema, SqlEngineError, SqlErrorCode};
use super::calls::{Call, named};
use crate::sql_guard::{ApprovedSet, Dialect, TableName, functions};

const MAX_DEPTH: usize = 200;

/// Nodes of a plan that read, join, sort or compute. `ModifyTable`, `LockRows`, foreign tables, and nodes of extensions
/// or later versions are not among them.
const NODES: &[&str] = &[
    "Aggregate", "Append", "Bitmap Heap Scan", "Bitmap Index Scan", "BitmapAnd", "BitmapOr", "CTE Scan",
    "Function Scan", "Gather", "Gather Merge", "Group", "Hash", "Hash Join", "Incremental Sort",
    "Index Only Scan", "Index Scan", "Limit", "Materialize", "Memoize", "Merge Append", "Merge Join",
    "Nested Loop", "ProjectSet", "Recursive Union", "Result", "Sample Scan", "Seq Scan", "SetOp", "Sort",
    "Subquery Scan", "Tid Range Scan", "Tid Scan", "Unique", "Values Scan", "WindowAgg", "WorkTable Scan",
];

/// Keys of a plan whose texts are names or words of EXPLAIN; all others may hold expressions.
const NAMES: &[&str] = &[
    "Alias", "CTE Name", "Command", "Function Name", "Index Name", "Join Type", "Node Type", "Operation",
    "Parent Relationship", "Partial Mode", "Relation Name", "Scan Direction", "Schema", "Strategy",
    "Subplan Name",
];

/// What stands before parentheses beside the guard's functions and may have the name of a function: types, and what
/// EXPLAIN writes for syntax.
const SYNTAX: &[&str] = &[
    "array", "bit", "bool", "bpchar", "char", "coalesce", "cube", "date", "decimal", "exists", "float4",
    "float8", "grouping", "int2", "int4", "int8", "interval", "like", "like_escape", "nullif", "numeric",
    "overlaps", "overlay", "row", "similar_escape", "similar_to_escape", "text", "time", "timestamp",
    "timestamptz", "timetz", "timezone", "varbit", "varchar",
];

/// Words that tell about the database or the session without a call.
const TELLING: &[&str] = &[
    "current_catalog", "current_role", "current_schema", "current_user", "regclass", "regcollation",
    "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc", "regprocedure",
    "regrole", "regtype", "session_user", "system_user",
];

/// The permission of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanPermission<'a> {
    /// What it may read.
    pub set: &'a ApprovedSet,
    /// The tables that are offered.
    pub schema: &'a DatabaseSchema,
    /// The names of the server's own functions. No other function is called without its schema.
    pub functions: &'a BTreeSet<String>,
    /// The tables of which others are partitions or children.
    pub parents: &'a BTreeMap<TableName, Vec<TableName>>,
    /// Functions that views and row policies may call beside those of the guard's list.
    pub view_functions: &'a [String],
}

impl PlanPermission<'_> {
    /// Refuses a statement that calls a function that is not on the guard's list, wherever it stands.
    pub(super) fn check_text(&self, sql: &str) -> Result<(), SqlEngineError> {
        let named = named(sql).map_err(|what| forbidden(format!("the statement contains {what}")))?;
        if let Some(word) = named.words.iter().find(|word| self.tells(word)) {
            return Err(forbidden(format!("{word} is not allowed")));
        }
        named.calls.iter().try_for_each(|call| self.check_call(call, &[]))
    }

    /// Whether `word` tells about the database, unless a column has that name.
    fn tells(&self, word: &str) -> bool {
        let is_column = |name: &str| {
            self.set.tables.iter().any(|table| table.columns.iter().any(|column| column == name))
        };
        TELLING.contains(&word) && !is_column(word)
    }

    fn check_call(&self, call: &Call, beside: &[String]) -> Result<(), SqlEngineError> {
        if is_allowed(call, self.functions, beside) {
            return Ok(());
        }
        Err(forbidden(format!("the function {} is not allowed", call.name)))
    }

    /// Refuses a plan that does more than read approved tables, or costs more than `max_cost`.
    pub(super) fn check_plan(&self, plan: &Value, max_cost: f64) -> Result<(), SqlEngineError> {
        let top = plan.get(0).and_then(|first| first.get("Plan")).and_then(Value::as_object);
        let Some(top) = top else {
            let what = "the statement's plan cannot be read";
            return Err(SqlEngineError::new(
                SqlErrorCode::Internal,
                what,
                "nothing was executed; report this",
            ));
        };
        self.node(top, 0)?;
        let cost = top.get("Total Cost").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
        if cost > max_cost {
            let what =
                format!("the statement would cost about {cost:.0}, and at most {max_cost:.0} is allowed");
            let remedy = "join on keys, filter more, or read fewer tables";
            return Err(SqlEngineError::new(SqlErrorCode::TooExpensive, what, remedy));
        }
        Ok(())
    }

    fn node(&self, node: &Map<String, Value>, depth: usize) -> Result<(), SqlEngineError> {
        if depth > MAX_DEPTH {
            let what = "the statement's plan is nested too deeply";
            return Err(SqlEngineError::new(SqlErrorCode::TooExpensive, what, "write a simpler statement"));
        }
        let text = |key: &str| node.get(key).and_then(Value::as_str);
        let kind = text("Node Type").unwrap_or_default();
        if !NODES.contains(&kind) {
            return Err(forbidden(format!(
                "the statement's plan has a step that does more than read: {kind}"
            )));
        }
        if let Some(relation) = text("Relation Name") {
            self.relation(&TableName::new(text("Schema").unwrap_or_default(), relation))?;
        }
        if let Some(function) = text("Function Name") {
            let schema = text("Schema").map(str::to_owned);
            self.check_call(&Call { schema, name: function.to_owned() }, self.view_functions)?;
        }
        for (key, value) in node {
            match (key.as_str(), value) {
                ("Plans", Value::Array(plans)) => {
                    let mut plans = plans.iter().filter_map(Value::as_object);
                    plans.try_for_each(|plan| self.node(plan, depth + 1))?;
                }
                (key, _) if NAMES.contains(&key) => {}
                (_, value) => self.expressions(value, depth + 1)?,
            }
        }
        Ok(())
    }

    /// All texts in `value`, which may be expressions.
    fn expressions(&self, value: &Value, depth: usize) -> Result<(), SqlEngineError> {
        match value {
            Value::String(text) => {
                // Strings with backslashes are shown with escapes; nothing in them is a call.
                let plain = without_escapes(text);
                let named = named(&plain)
                    .map_err(|what| forbidden(format!("the statement's plan contains {what}")))?;
                named.calls.iter().try_for_each(|call| self.check_call(call, self.view_functions))
            }
            Value::Array(values) if depth <= MAX_DEPTH => {
                values.iter().try_for_each(|value| self.expressions(value, depth + 1))
            }
            Value::Object(values) if depth <= MAX_DEPTH => {
                values.values().try_for_each(|value| self.expressions(value, depth + 1))
            }
            Value::Array(_) | Value::Object(_) => {
                Err(forbidden("the statement's plan is nested too deeply".into()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// Refuses a relation that neither is approved nor belongs to an approved table.
    fn relation(&self, relation: &TableName) -> Result<(), SqlEngineError> {
        let mut pending = vec![relation];
        let mut seen = BTreeSet::new();
        while let Some(name) = pending.pop() {
            if self.set.tables.iter().any(|table| table.name == *name) {
                return Ok(());
            }
            if seen.insert(name) {
                pending.extend(self.parents.get(name).into_iter().flatten());
            }
        }
        Err(forbidden(format!("the table {} is not approved", self.schema.short_name(relation))))
    }
}

/// Whether `call` is one of a listed function, or none: then it stands before a list of columns, or is a keyword.
fn is_allowed(call: &Call, own: &BTreeSet<String>, beside: &[String]) -> bool {
    let name = call.name.as_str();
    let built_in = call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    let listed = functions::is_allowed(Dialect::Postgres, name)
        || functions::table_function(Dialect::Postgres, name).is_some()
        || SYNTAX.contains(&name);
    let no_function = call.schema.is_none() && !own.contains(name);
    (built_in && listed) || no_function || beside.iter().any(|allowed| allowed == name)
}

/// Returns what a view does that it must not, in words: `definition` is its query as the server writes it.
pub(super) fn fault_of_view(definition: &str, own: &BTreeSet<String>, beside: &[String]) -> Option<String> {
    match named(&without_escapes(definition)) {
        Err(what) => Some(format!("it contains {what}")),
        Ok(named) => {
            let call = named.calls.iter().find(|call| !is_allowed(call, own, beside));
            let call = call
                .map(|call| format!("it calls the function {}, which is not in `view_functions`", call.name));
            // The server does not record that views depend on its own tables.
            let catalogue = named.words.iter().any(|word| word.starts_with("pg_") && word != "pg_catalog");
            call.or_else(|| catalogue.then(|| "it reads the system's catalogue".to_owned()))
        }
    }
}

/// `text` with its strings of the form `E'…'` replaced by empty ones. In those, and only in those, a backslash stands
/// before a character that it takes with it.
fn without_escapes(text: &str) -> String {
    let mut kept = String::new();
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(character) = characters.next() {
        kept.push(character);
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if character == 'E' && characters.peek() == Some(&'\'') && !ends_a_word(&kept) => {
                kept.pop();
                kept.push_str("''");
                characters.next();
                while let Some(inner) = characters.next() {
                    if inner == '\\' || (inner == '\'' && characters.peek() == Some(&'\'')) {
                        characters.next();
                    } else if inner == '\'' {
                        break;
                    }
                }
            }
            None => {}
        }
    }
    kept
}

/// Whether the last character of `kept` continues a word.
fn ends_a_word(kept: &str) -> bool {
    kept.chars().rev().nth(1).is_some_and(|before| before.is_alphanumeric() || before == '_')
}

fn forbidden(what: String) -> SqlEngineError {
    let remedy = "write one SELECT over approved tables, with functions of the allow-list";
    SqlEngineError::new(SqlErrorCode::Forbidden, what, remedy)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::{DatabaseSchema, SqlErrorCode};
    use super::*;
    use crate::sql_guard::ApprovedTable;

    /// The outcome of a plan in a database of `orders` (approved, with the partition `orders_2026`) and `secrets`.
    fn outcome(node: Value) -> Result<(), SqlEngineError> {
        let orders = TableName::new("public", "orders");
        let set = ApprovedSet {
            default_schema: "public".into(),
            tables: vec![ApprovedTable {
                name: orders.clone(),
                columns: vec!["id".into()],
                withheld: Vec::new(),
                reads: Vec::new(),
            }],
        };
        let schema = DatabaseSchema {
            dialect: Dialect::Postgres,
            default_schema: "public".into(),
            tables: Vec::new(),
            omitted: Vec::new(),
        };
        let names = ["lower", "pg_sleep", "set_config", "sum", "numeric", "tenant"];
        let permission = PlanPermission {
            set: &set,
            schema: &schema,
            functions: &names.map(str::to_owned).into(),
            parents: &[(TableName::new("parts", "orders_2026"), vec![orders])].into(),
            view_functions: &["tenant".to_owned()],
        };
        permission.check_plan(&json!([{"Plan": node}]), 100.0)
    }

    fn code(node: Value) -> Option<SqlErrorCode> {
        outcome(node).err().map(|error| error.code)
    }

    #[test]
    fn a_plan_that_reads_approved_tables_and_their_partitions_passes() {
        for (schema, relation) in [("public", "orders"), ("parts", "orders_2026")] {
            let scan = json!({"Node Type": "Seq Scan", "Schema": schema, "Relation Name": relation, "Alias": "pg_sleep",
                "Filter": "((lower(o.name) = E'a\\\\\\'pg_sleep(') AND (o.x)::numeric(10,2) > '1'::numeric AND tenant(o.id))",
                "Output": ["sum(o.id)", "v(a)"]});
            let plan = json!({"Node Type": "Aggregate", "Total Cost": 99.5, "Plans": [scan]});
            assert_eq!(outcome(plan), Ok(()));
        }
    }

    #[test]
    fn tables_functions_and_steps_that_are_not_approved_are_refused_wherever_they_are() {
        for node in [
            json!({"Node Type": "Seq Scan", "Schema": "public", "Relation Name": "secrets"}),
            json!({"Node Type": "Seq Scan", "Schema": "other", "Relation Name": "orders"}),
            json!({"Node Type": "Result", "Output": ["pg_sleep('1'::double precision)"]}),
            json!({"Node Type": "Result", "Output": ["public.lower('a')"]}),
            json!({"Node Type": "Seq Scan", "Schema": "public", "Relation Name": "orders", "Later Key": [{"x": "set_config('a')"}]}),
            json!({"Node Type": "Function Scan", "Function Name": "pg_sleep", "Schema": "pg_catalog"}),
            json!({"Node Type": "ModifyTable", "Operation": "Delete"}),
            json!({"Node Type": "Foreign Scan", "Schema": "public", "Relation Name": "orders"}),
            json!({"Node Type": "A node of the future"}),
        ] {
            let mut top = json!({"Node Type": "Limit", "Total Cost": 1.0});
            top["Plans"] = json!([node]);
            assert_eq!(code(top.clone()), Some(SqlErrorCode::Forbidden), "{top}");
        }
    }

    #[test]
    fn an_expensive_plan_or_none_is_refused() {
        assert_eq!(
            code(json!({"Node Type": "Result", "Total Cost": 100.1})),
            Some(SqlErrorCode::TooExpensive)
        );
        assert_eq!(code(json!({"Node Type": "Result"})), Some(SqlErrorCode::TooExpensive));
        assert_eq!(code(json!(null)), Some(SqlErrorCode::Internal));
    }
}
