//! How many questions the rules answer, of those that were written without looking at the rules: all of them, on SQLite,
//! without the flow. `tests/promises/text_to_sql_scores.rs` asks some of them through the flow.

use std::path::Path;

use jiff::civil::{Date, date};
use serde_json::{Value, json};

use super::databases::KnownDatabase;
use super::phrases::Speech;
use super::settings::TextToSqlSettings;
use super::without_model::write_sql;
use sql_pair::{SampleDatabase, SqlPair, declined, found};

#[path = "../../tests/support/sql_pair.rs"]
#[expect(dead_code, reason = "the tests of the flow use the rest")]
mod sql_pair;

/// The day of questions that name none.
const TODAY: Date = date(2026, 11, 20);
/// The share of questions that the rules have to answer, in percent.
const MIN_RIGHT: usize = 60;

/// A sample database, opened as the flow opens it.
async fn opened(sample: SampleDatabase, dir: &Path) -> KnownDatabase {
    let path = dir.join(sample.name());
    sample.write_sqlite(&path).await;
    let entry = json!({"sqlite": path, "descriptions": sample.descriptions()});
    let settings = json!({"default": [sample.name()], "databases": {(sample.name()): entry}});
    KnownDatabase::open(sample.name(), &TextToSqlSettings::parse(&settings).unwrap()).await
}

/// The rows that the rules find for a question; `None` if they decline it.
async fn asked(question: &str, known: &KnownDatabase) -> Option<Vec<Vec<Value>>> {
    let written = write_sql(question, Speech::of(None), TODAY, known).ok()?;
    Some(found(&known.database, &written.sql).await)
}

/// Whether rows are those of a right answer.
async fn is_right(pair: &SqlPair, got: &[Vec<Value>], known: &KnownDatabase) -> bool {
    for sql in pair.right(false) {
        if pair.matches(&found(&known.database, &sql).await, got) {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn rules_answer_most_questions_and_none_wrongly() {
    let dir = tempfile::tempdir().unwrap();
    let (mut all, mut right, mut wrong) = (0, 0, Vec::new());
    for sample in SampleDatabase::ALL {
        let known = opened(sample, dir.path()).await;
        for pair in sample.pairs() {
            all += 1;
            let asked_today = pair.today.as_deref().is_none_or(|day| day.starts_with(&TODAY.to_string()));
            assert!(asked_today, "{}", pair.id);
            let Some(got) = asked(&pair.question, &known).await else { continue };
            match is_right(&pair, &got, &known).await {
                true => right += 1,
                false => wrong.push(pair.id),
            }
        }
    }
    println!("embedded rules: {right} of {all} right, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "wrong but confident: {wrong:?}");
    assert!(all >= 150 && right * 100 >= all * MIN_RIGHT, "{right} of {all} right");
}

#[tokio::test]
async fn questions_that_the_data_does_not_answer_get_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut answered = Vec::new();
    for sample in SampleDatabase::ALL {
        let known = opened(sample, dir.path()).await;
        for question in declined().into_iter().filter(|question| question.database == sample.name()) {
            if asked(&question.question, &known).await.is_some_and(|rows| !rows.is_empty()) {
                answered.push((question.id, question.why));
            }
        }
    }
    assert!(answered.is_empty(), "{answered:?}");
}

#[tokio::test]
async fn every_reference_is_allowed_and_answers_its_question() {
    let dir = tempfile::tempdir().unwrap();
    for sample in SampleDatabase::ALL {
        let known = opened(sample, dir.path()).await;
        for pair in sample.pairs() {
            for (at, sql) in pair.right(false).into_iter().enumerate() {
                let rows = found(&known.database, &sql).await;
                assert!(at > 0 || pair.matches(&rows, &rows), "{}: {sql}", pair.id);
            }
        }
    }
}

#[tokio::test]
async fn question_is_read_in_the_language_that_has_more_of_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let known = opened(SampleDatabase::Shop, dir.path()).await;
    // A review is called "Average", so an Italian question may have these words.
    for language in ["en", "it", "fr"] {
        let sql =
            |question| write_sql(question, Speech::of(Some(language)), TODAY, &known).map(|sql| sql.sql);
        let average = sql("average price per category").unwrap();
        assert!(average.contains("AVG(products.price)"), "{average}");
        assert!(sql("Average rating").is_err(), "read as {language}, it is about suppliers or reviews");
        assert!(sql("Quanti clienti abitano a Milano?").is_ok(), "read as {language}");
    }
}
