use jiff::civil::{Date, date};

use super::description::DatabaseDescription;
use super::{CannotSay, Engine, Reason, RuleSql, Tongue, Vocabularies, WordedQuestion, write_sql};

mod sample;

const TODAY: Date = date(2026, 11, 20);

/// A question of `questions.tsv`: its language, its database, its words, and the SQL, or `-` where it is declined.
fn questions() -> Vec<(Tongue, &'static str, &'static str, &'static str)> {
    let lines = include_str!("questions.tsv").lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    parts.map(|part| (Tongue::of(part[0]).unwrap(), part[1], part[2], part[3])).collect()
}

/// A sample database with its names.
struct Asked {
    description: DatabaseDescription,
    names: Vocabularies,
}

impl Asked {
    fn of(name: &str) -> Self {
        let description = sample::sample(name);
        Self { names: Vocabularies::of(&description), description }
    }

    fn on(&self, words: &str, tongue: Tongue, engine: Engine) -> Result<RuleSql, CannotSay> {
        let question = WordedQuestion { words, tongue, today: TODAY, engine };
        write_sql(question, &self.description, &self.names)
    }
}

fn ask(question: &str, tongue: Tongue, database: &str) -> Result<RuleSql, Reason> {
    Asked::of(database).on(question, tongue, Engine::Sqlite).map_err(|cannot| cannot.reason)
}

#[test]
fn questions_have_the_sql_or_are_declined() {
    let databases = ["shop", "university", "clinic"].map(|name| (name, Asked::of(name)));
    let mut faults = Vec::new();
    for (tongue, name, question, expected) in questions() {
        let (_, database) = databases.iter().find(|(other, _)| *other == name).unwrap();
        let got = database.on(question, tongue, Engine::Sqlite);
        let got = got.map_or_else(|_| "-".to_owned(), |rule| rule.sql);
        if got != expected {
            faults.push(format!("{question}\n  expected {expected}\n  got      {got}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn questions_are_many_and_in_both_languages() {
    let questions = questions();
    let of = |tongue: Tongue| questions.iter().filter(|(other, ..)| *other == tongue).count();
    let declined = questions.iter().filter(|(.., sql)| *sql == "-").count();
    assert!(questions.len() >= 300 && of(Tongue::Italian) >= 100 && declined >= 60, "{}", questions.len());
}

#[test]
fn postgres_has_its_own_months_and_searches() {
    let database = Asked::of("shop");
    let sql = |question| database.on(question, Tongue::English, Engine::Postgres).unwrap().sql;
    assert_eq!(
        sql("Orders per month in 2025"),
        "SELECT to_char(order_date, 'YYYY-MM') AS month, COUNT(*) AS count FROM orders WHERE order_date >= '2025-01-01' \
         AND order_date < '2026-01-01' GROUP BY to_char(order_date, 'YYYY-MM') ORDER BY to_char(order_date, 'YYYY-MM')"
    );
    assert!(sql("Products whose name contains \"knife\"").contains("name ILIKE '%knife%'"));
}

#[test]
fn reason_names_the_word_that_is_not_known() {
    let reason = ask("How many unicorns are there?", Tongue::English, "shop").unwrap_err();
    assert_eq!(reason, Reason::UnknownWord("unicorns".to_owned()));
    let cannot =
        Asked::of("shop").on("Quanti unicorni ci sono?", Tongue::Italian, Engine::Sqlite).unwrap_err();
    assert!(
        cannot.text.starts_with("Non so che cosa significhi «unicorni» qui. So contare"),
        "{}",
        cannot.text
    );
}

#[test]
fn reason_says_what_is_ambiguous() {
    let shop = Asked::of("shop");
    let cases = [
        ("How many in Milan?", Tongue::English, "“Milan” may be about `customers` or `orders`"),
        ("Quante aziende ci sono?", Tongue::Italian, "«aziende» può riguardare `suppliers` o `customers`"),
        ("How many of them are Italian?", Tongue::English, "“them” stands for something"),
        ("Who cancelled orders?", Tongue::English, "It is not clear who is meant."),
        ("What is the biggest order?", Tongue::English, "Please say by which value"),
        ("When was the last order delivered?", Tongue::English, "please say which one is meant"),
        ("Products over 10 dollars", Tongue::English, "The values are not in USD."),
        ("How much have we received by card?", Tongue::English, "It is not clear which amount is meant."),
    ];
    for (question, tongue, said) in cases {
        let text = shop.on(question, tongue, Engine::Sqlite).unwrap_err().text;
        assert!(text.contains(said), "{question}: {text}");
    }
}

#[test]
fn explanation_says_what_was_understood() {
    let rule = ask("Quanti ordini annullati ci sono per mese nel 2025?", Tongue::Italian, "shop").unwrap();
    assert_eq!(
        rule.explanation,
        "Numero di righe di `orders`, `status` è 'cancelled', `order_date` dal 2025-01-01 fino al 2025-12-31, per mese di \
         `order_date`."
    );
    assert_eq!(rule.tables, ["orders"]);
    let rule = ask("Customers without orders in 2026", Tongue::English, "shop").unwrap();
    assert_eq!(
        rule.explanation,
        "Rows of `customers`, with no rows of `orders` (`orders.order_date` from 2026-01-01 up to 2026-12-31)."
    );
    assert_eq!(rule.tables, ["customers", "orders"], "both need approval");
    let rule = ask("Clienti con più di 3 ordini annullati", Tongue::Italian, "shop").unwrap();
    assert_eq!(
        rule.explanation,
        "Righe di `customers`, con più di 3 righe di `orders` (`orders.status` è 'cancelled')."
    );
}

#[test]
fn text_in_quotes_is_a_value_and_never_sql() {
    let question = "Customers named \"x'; DROP TABLE customers; --\"";
    let reason = ask(question, Tongue::English, "shop").unwrap_err();
    assert_eq!(reason, Reason::NoSuchValue("x'; DROP TABLE customers; --".to_owned()));
    let found = ask("Products whose name contains \"o'clock; --\"", Tongue::English, "shop").unwrap();
    assert!(found.sql.ends_with("WHERE name LIKE '%o''clock; --%'"), "{}", found.sql);
}

#[test]
fn any_text_is_answered_or_declined_without_fault() {
    let database = Asked::of("shop");
    let words: Vec<&str> = include_str!("questions.tsv").split(['\t', ' ', '\n']).collect();
    let mut state = 7_u64;
    for _ in 0..300 {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            words[usize::try_from(state >> 33).unwrap() % words.len()]
        };
        let question = [next(), next(), next(), next(), next(), next()].join(" ");
        if let Ok(rule) = database.on(&question, Tongue::Italian, Engine::Postgres) {
            assert!(rule.sql.starts_with("SELECT ") && !rule.tables.is_empty(), "{question}: {}", rule.sql);
        }
    }
}
