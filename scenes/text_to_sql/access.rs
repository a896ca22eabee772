//! Which tables and columns a statement may read: pure rules.

use std::collections::BTreeSet;

use proscenium::sql_engine::{DatabaseSchema, SqlEngineError};
use proscenium::sql_guard::{ApprovedSet, TableName};

use super::rules::description::{DatabaseDescription, TableDescription};
use super::settings::AskPolicy;
use super::values::NodeInput;

/// What a statement may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAccess {
    /// The tables, by the names of the description.
    tables: BTreeSet<String>,
    /// Those that a person has approved, so that their sensitive columns may be read, too.
    approved: BTreeSet<String>,
}

impl ReadAccess {
    /// What may be read with the values of a flow.
    ///
    /// A person approves the whole list of tables that is shown: where one was asked (`to_approve`), the list as it came
    /// back is approved, and nothing else is. Before, the list holds only what needs no yes, also if a model wrote it.
    pub fn of(description: &DatabaseDescription, ask: AskPolicy, input: &NodeInput) -> Self {
        let was_asked = !input.to_approve.is_empty();
        let listed = known(description, &input.tables);
        let mut approved = known(description, &input.approved_tables);
        if was_asked {
            approved.extend(listed.iter().cloned());
        }
        let is_readable = |name: &&String| {
            let needs_yes = description
                .table(name)
                .is_none_or(|at| description.tables.get(at).is_none_or(|table| needs_yes(table, ask)));
            !needs_yes || approved.contains(*name)
        };
        let tables = listed.iter().filter(is_readable).cloned().collect();
        Self { tables, approved }
    }

    /// Everything: for statements that are checked and not executed.
    pub fn everything(description: &DatabaseDescription) -> Self {
        let all: BTreeSet<String> = description.tables.iter().map(|table| table.name.clone()).collect();
        Self { tables: all.clone(), approved: all }
    }

    /// Whether a table may be read.
    pub fn reads(&self, table: &str) -> bool {
        self.tables.contains(table)
    }

    /// Whether a column of a table that may be read is left out, because it is sensitive and nobody approved the table.
    pub fn withholds(&self, table: &TableDescription, column: &str) -> bool {
        !self.approved.contains(&table.name)
            && table.columns.iter().any(|own| own.sensitive && own.name == column)
    }

    /// The description of what may be read.
    pub fn of_description(&self, description: &DatabaseDescription) -> DatabaseDescription {
        let mut readable = description.clone();
        readable.tables.retain(|table| self.reads(&table.name));
        for table in &mut readable.tables {
            let whole = table.clone();
            table.columns.retain(|column| !self.withholds(&whole, &column.name));
        }
        readable
    }

    /// The set that the guard and the engine hold a statement to.
    ///
    /// # Errors
    /// `sql.engine.unknown_table`, if the database has changed in between.
    pub fn approved_set(
        &self,
        schema: &DatabaseSchema,
        description: &DatabaseDescription,
    ) -> Result<ApprovedSet, SqlEngineError> {
        let names: Vec<TableName> = self
            .tables
            .iter()
            .filter_map(|table| schema.find(table))
            .map(|table| table.name.clone())
            .collect();
        let mut set = schema.approved_set(&schema.with_reads(&names))?;
        for table in &mut set.tables {
            let short = schema.short_name(&table.name);
            let described = description.tables.iter().find(|described| described.name == short);
            let (withheld, columns): (Vec<_>, Vec<_>) =
                std::mem::take(&mut table.columns).into_iter().partition(|column| {
                    // A table that only a view reads is not read by itself.
                    !self.reads(&short) || described.is_none_or(|described| self.withholds(described, column))
                });
            table.columns = columns;
            table.withheld.extend(withheld);
        }
        Ok(set)
    }
}

/// Whether a person is asked before a table is read.
pub fn needs_yes(table: &TableDescription, ask: AskPolicy) -> bool {
    ask == AskPolicy::Always || table.sensitive
}

/// The names of a list that are tables, as the description writes them.
pub fn known(description: &DatabaseDescription, names: &[String]) -> BTreeSet<String> {
    let find = |name: &String| {
        let trimmed = name.trim();
        let own = |table: &&TableDescription| table.name.eq_ignore_ascii_case(trimmed);
        description.tables.iter().find(own).map(|table| table.name.clone())
    };
    names.iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped::text_to_sql::rules::description::ColumnDescription;

    fn description() -> DatabaseDescription {
        let column = |name: &str, sensitive| ColumnDescription {
            name: name.to_owned(),
            sensitive,
            ..ColumnDescription::default()
        };
        let table = |name: &str, sensitive| TableDescription {
            name: name.to_owned(),
            sensitive,
            columns: vec![column("id", false), column("email", true)],
            ..TableDescription::default()
        };
        DatabaseDescription {
            tables: vec![table("orders", false), table("employees", true)],
            ..DatabaseDescription::default()
        }
    }

    fn access(tables: &[&str], to_approve: &[&str], approved: &[&str], ask: AskPolicy) -> ReadAccess {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let input = NodeInput {
            tables: owned(tables),
            to_approve: owned(to_approve),
            approved_tables: owned(approved),
            ..NodeInput::default()
        };
        ReadAccess::of(&description(), ask, &input)
    }

    #[test]
    fn sensitive_table_is_read_only_with_a_yes_also_if_a_model_listed_it() {
        let sensitive = AskPolicy::Sensitive;
        let listed = access(&["orders", "employees"], &[], &[], sensitive);
        assert!(listed.reads("orders") && !listed.reads("employees"));
        assert!(access(&["orders", "employees"], &["employees"], &[], sensitive).reads("employees"));
        assert!(access(&["employees"], &[], &["Employees"], sensitive).reads("employees"));
        let removed = access(&["orders"], &["employees"], &[], sensitive);
        assert!(!removed.reads("employees"), "the person took it from the list");
        assert!(!access(&["orders"], &[], &["employees"], sensitive).reads("employees"), "it is not listed");
        assert!(!access(&["orders"], &[], &[], AskPolicy::Always).reads("orders"));
        assert!(!access(&["sqlite_master"], &["x"], &["sqlite_master"], sensitive).reads("sqlite_master"));
    }

    #[test]
    fn sensitive_column_is_withheld_until_its_table_is_approved() {
        let all = description();
        let orders = &all.tables[0];
        let unasked = access(&["orders"], &[], &[], AskPolicy::Sensitive);
        assert!(unasked.withholds(orders, "email") && !unasked.withholds(orders, "id"));
        assert!(!access(&["orders"], &["orders"], &[], AskPolicy::Sensitive).withholds(orders, "email"));
        let shown = unasked.of_description(&all);
        assert_eq!((shown.tables.len(), shown.tables[0].columns.len()), (1, 1));
    }
}
