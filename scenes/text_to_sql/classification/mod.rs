//! What a request needs, by its words, in English and Italian: data, a statement, its explanation, or no data. Pure.

use super::folded_text::folded;
use super::values::PromptKind;

mod change;
mod earlier;
mod intent;
mod no_data;
mod statement;

pub use change::is_about_change;

/// Whether a request goes on with the one before it: "and in April?".
pub fn goes_on(request: &str) -> bool {
    earlier::goes_on(&folded(request))
}

/// What a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedPrompt {
    /// Data, a statement, or neither.
    pub kind: PromptKind,
    /// Whether data is to be read.
    pub run: bool,
    /// Whether its statement is to be corrected.
    pub fix: bool,
    /// Its statement; empty if it has none.
    pub sql: String,
}

/// What a request needs, by its words. `has_rows` says whether rows of an earlier answer are there.
pub fn classify(request: &str, has_rows: bool) -> ClassifiedPrompt {
    let (around, sql) = statement::split_statement(request);
    let said = folded(&around);
    if sql.is_empty() {
        return without_statement(&said, has_rows);
    }
    let runs = intent::asks_to_run(&said);
    let fixes = intent::asks_to_fix(&said);
    let checks = fixes || intent::asks_to_check(&said);
    if intent::asks_to_explain(&said) && !fixes && !runs {
        return ClassifiedPrompt { kind: PromptKind::Explain, run: false, fix: false, sql };
    }
    if !checks && statement::changes_data(&sql) {
        return ClassifiedPrompt { kind: PromptKind::General, run: false, fix: false, sql: String::new() };
    }
    let run = runs || (!checks && !intent::forbids_running(&said));
    ClassifiedPrompt { kind: PromptKind::Sql, run, fix: checks, sql }
}

fn without_statement(said: &str, has_rows: bool) -> ClassifiedPrompt {
    let of = |kind, run| ClassifiedPrompt { kind, run, fix: false, sql: String::new() };
    if has_rows && earlier::shows_earlier_rows(said) {
        return of(PromptKind::Rows, false);
    }
    if intent::asks_for_query(said) && !no_data::is_about_concepts(said) {
        return of(PromptKind::Question, intent::asks_to_run(said));
    }
    let needs_no_data = change::is_wish_to_change(said)
        || no_data::is_talk(said)
        || no_data::is_about_concepts(said)
        || no_data::is_about_schema(said);
    if needs_no_data {
        return of(PromptKind::General, false);
    }
    of(PromptKind::Question, !intent::forbids_running(said))
}

/// What a question needs for which the rules write no statement. `names_data` says whether it names anything of the
/// database: what does not, and does not go on with an earlier question, is not about its data; neither is what asks
/// for meanings.
pub fn without_answer(
    found: ClassifiedPrompt,
    request: &str,
    has_rows: bool,
    names_data: bool,
) -> ClassifiedPrompt {
    let said = folded(request);
    let of = |kind| ClassifiedPrompt { kind, run: false, fix: false, sql: String::new() };
    // A caller who gives rows and asks for nothing that can be looked up wants them shown.
    if has_rows {
        return of(PromptKind::Rows);
    }
    match no_data::is_about_meanings(&said) || !(names_data || earlier::goes_on(&said)) {
        true => of(PromptKind::General),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected of a request, as kind, run, fix.
    fn classified(request: &str) -> (PromptKind, bool, bool) {
        let found = classify(request, false);
        (found.kind, found.run, found.fix)
    }

    #[test]
    fn questions_read_data_unless_only_the_query_is_wanted() {
        for question in [
            "How many orders were placed in March?",
            "Quanti ordini sono stati fatti a marzo?",
            "Which orders were cancelled last month?",
            "Select the customers from Milan",
            "Show me the products that were added this year as a table",
            "Elenca i clienti con il totale degli ordini",
            "How many rows are in the table orders?",
            "Show me the latest updates of the prices",
        ] {
            assert_eq!(classified(question), (PromptKind::Question, true, false), "{question}");
        }
        for query in [
            "Write a query for the cheapest products, don't run it",
            "Scrivi la query per i clienti di Milano senza eseguirla",
            "Give me the SQL for the orders of March",
        ] {
            assert_eq!(classified(query), (PromptKind::Question, false, false), "{query}");
        }
        assert!(classified("Write a query for the orders of May and run it").1);
    }

    #[test]
    fn statements_are_found_and_what_is_to_be_done_with_them() {
        let cases = [
            ("Fix this SQL: SELEC name FORM products", false, true, "SELEC name FORM products"),
            ("Correggi questa query: SELECT nme FROM products", false, true, "SELECT nme FROM products"),
            ("Is this valid? SELECT count(*) FROM orders", false, true, "SELECT count(*) FROM orders"),
            ("SELECT name FROM categories", true, false, "SELECT name FROM categories"),
            ("select name from categories;", true, false, "select name from categories;"),
            ("Run this SQL: ```sql\nSELECT 1\n``` please", true, false, "SELECT 1"),
            ("Fix this query and run it: SELECT nme FROM products", true, true, "SELECT nme FROM products"),
            ("Esegui `SELECT 1 FROM orders` per favore", true, false, "SELECT 1 FROM orders"),
            ("Run this SQL: SELECT 1 FROM `orders`", true, false, "SELECT 1 FROM `orders`"),
            ("Run this SQL: SELECT 1 FROM orders`", true, false, "SELECT 1 FROM orders"),
        ];
        for (request, run, fix, sql) in cases {
            let found = classify(request, false);
            assert_eq!((found.kind, found.run, found.fix), (PromptKind::Sql, run, fix), "{request}");
            assert_eq!(found.sql, sql, "{request}");
        }
        for explained in
            ["Explain this SQL: DELETE FROM orders", "Che cosa fa questa query? SELECT 1 FROM orders"]
        {
            assert_eq!(classified(explained), (PromptKind::Explain, false, false), "{explained}");
        }
    }

    #[test]
    fn what_needs_no_data_is_general() {
        for general in [
            "Hello!",
            "Ciao, cosa sai fare?",
            "Which tables are in the database?",
            "Quali colonne ha la tabella ordini?",
            "What is a left join?",
            "Delete all the orders of 2024",
            "Puoi cancellare gli ordini vecchi?",
            "DELETE FROM orders WHERE id = 3",
            "Please add a customer called Rossi",
        ] {
            assert_eq!(classified(general), (PromptKind::General, false, false), "{general}");
        }
    }

    #[test]
    fn question_that_names_nothing_of_the_database_is_general() {
        let kind = |request: &str, has_rows: bool, names_data: bool| {
            without_answer(classify(request, has_rows), request, has_rows, names_data).kind
        };
        assert_eq!(kind("Who won the cup in 1982?", false, false), PromptKind::General);
        assert_eq!(kind("What does the status of orders mean?", false, true), PromptKind::General);
        assert_eq!(kind("Which orders are odd?", false, true), PromptKind::Question);
        assert_eq!(kind("And in April?", false, false), PromptKind::Question);
        assert_eq!(kind("E solo quelli di Milano?", false, false), PromptKind::Question);
        assert_eq!(kind("Put the rows into a list", true, false), PromptKind::Rows);
    }

    #[test]
    fn rows_that_are_there_are_only_shown() {
        assert_eq!(classify("Show these rows as a table", true).kind, PromptKind::Rows);
        assert_eq!(classify("Mostrali in una tabella", true).kind, PromptKind::Rows);
        assert_eq!(classify("Show these rows as a table", false).kind, PromptKind::Question);
    }
}
