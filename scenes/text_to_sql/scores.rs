//! How many questions the rules answer, of those that were written without looking at the rules: all of them, on SQLite,
//! without the flow. `tests/promises/text_to_sql_scores.rs` asks some of them through the flow.

use std::path::Path;

use jiff::civil::{Date, date};
use serde_json::{Value, json};

use super::databases::KnownDatabase;
use super::phrases::Speech;
use super::settings::TextToSqlSettings;
use super::without_model::{AskedDatabase, write_sql};
use sql_pair::{SampleDatabase, SqlPair, declined, found};

#[path = "../../tests/support/sql_pair.rs"]
#[expect(dead_code, reason = "the tests of the flow use the rest")]
mod sql_pair;

/// The day of questions that name none.
const TODAY: Date = date(2026, 11, 20);
/// The share of questions that the rules have to answer, in percent.
const MIN_RIGHT: usize = 60;
/// The same of the second set, which was written without looking at the rules.
const MIN_SECOND_RIGHT: usize = 60;

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
    let written = write_sql(question, Speech::of(None), TODAY, AskedDatabase::of(known)).ok()?;
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

/// How questions were answered.
#[derive(Debug, Default)]
struct Count {
    all: usize,
    right: usize,
    wrong: Vec<String>,
}

impl Count {
    fn print(&self, title: &str) {
        println!("offline model, {title}: {} of {} right, {} wrong", self.right, self.all, self.wrong.len());
    }

    fn has_share(&self, percent: usize) -> bool {
        self.right * 100 >= self.all * percent
    }
}

/// Counts how the rules answer the questions of a set: all, and those that are held out.
async fn counted(pairs: fn(SampleDatabase) -> Vec<SqlPair>) -> [Count; 2] {
    let dir = tempfile::tempdir().unwrap();
    let mut counts = [Count::default(), Count::default()];
    for sample in SampleDatabase::ALL {
        let known = opened(sample, dir.path()).await;
        for pair in pairs(sample) {
            let asked_today = pair.today.as_deref().is_none_or(|day| day.starts_with(&TODAY.to_string()));
            assert!(asked_today, "{}", pair.id);
            let is_right = match asked(&pair.question, &known).await {
                Some(got) => Some(is_right(&pair, &got, &known).await),
                None => None,
            };
            for count in counts.iter_mut().take(1 + usize::from(pair.held_out)) {
                count.all += 1;
                count.right += usize::from(is_right == Some(true));
                count.wrong.extend((is_right == Some(false)).then(|| pair.id.clone()));
            }
        }
    }
    counts
}

#[tokio::test]
async fn rules_answer_most_questions_and_none_wrongly() {
    let [all, held_out] = counted(SampleDatabase::pairs).await;
    all.print("first set");
    held_out.print("first set, held out");
    assert!(all.wrong.is_empty(), "wrong but confident: {:?}", all.wrong);
    assert!(all.all >= 150 && all.has_share(MIN_RIGHT), "{} of {} right", all.right, all.all);
}

#[tokio::test]
async fn rules_answer_most_of_the_second_set_and_none_wrongly() {
    let [_, second] = counted(SampleDatabase::second_pairs).await;
    second.print("second set, held out");
    assert!(second.wrong.is_empty(), "wrong but confident: {:?}", second.wrong);
    assert!(
        second.all >= 40 && second.has_share(MIN_SECOND_RIGHT),
        "{} of {} right",
        second.right,
        second.all
    );
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
        for pair in sample.pairs().into_iter().chain(sample.second_pairs()) {
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
        let asked = AskedDatabase::of(&known);
        let sql = |question| write_sql(question, Speech::of(Some(language)), TODAY, asked).map(|sql| sql.sql);
        let average = sql("average price per category").unwrap();
        assert!(average.contains("AVG(products.price)"), "{average}");
        assert!(sql("Average rating").is_err(), "read as {language}, it is about suppliers or reviews");
        assert!(sql("Quanti clienti abitano a Milano?").is_ok(), "read as {language}");
    }
}
