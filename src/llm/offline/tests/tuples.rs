//! Lists of values that belong together, reversing verbs, recent days, and ranges for one day.

use serde_json::{Value, json};

use super::support::{RequestOutcome, World};

const CLUB: &str = r#"
name = "Club"
description = "The sports club: lessons are booked, lockers are locked and unlocked, prices and past lessons are told."
examples = [
    { say = "Book a tennis lesson on 3 July at 10:00", tool = "BookLesson" },
    { say = "Prenota una lezione di nuoto il 3 luglio alle 10:00", tool = "BookLesson" },
    { say = "How much does a golf lesson cost?", tool = "LessonPrice" },
    { say = "Quanto costa una lezione di golf?", tool = "LessonPrice" },
    { say = "Block my blue badge", tool = "BlockBadge" },
    { say = "Blocca la tessera blu", tool = "BlockBadge" },
    { say = "Unblock my blue badge", tool = "UnblockBadge" },
    { say = "Which lessons did I take last month?", tool = "PastLessons" },
    { say = "Is the pool open on 3 July?", tool = "PoolHours_Get" },
]
[[tools]]
name = "BookLesson"
description = "Books a lesson for the member."
effect = "write"
parameters.required = ["sport", "date", "time"]
parameters.properties = { sport = { type = "string", enum = ["tennis", "swimming", "golf"], description = "tennis, swimming (nuoto) or golf" }, date = { type = "string", format = "date" }, time = { type = "string", pattern = "^[0-2][0-9]:[0-5][0-9]$", description = "Time, HH:MM" } }
[[tools]]
name = "LessonPrice"
description = "What a lesson costs."
effect = "read"
parameters.required = ["sport"]
parameters.properties = { sport = { type = "string", enum = ["tennis", "swimming", "golf"], description = "tennis, swimming (nuoto) or golf" } }
[[tools]]
name = "BlockBadge"
description = "Blocks a badge of the member."
effect = "write"
parameters.required = ["badge"]
parameters.properties = { badge = { type = "string", enum = ["blue", "red"], description = "blue (blu) or red (rossa)" } }
[[tools]]
name = "UnblockBadge"
description = "Makes a blocked badge work again."
effect = "write"
parameters.required = ["badge"]
parameters.properties = { badge = { type = "string", enum = ["blue", "red"], description = "blue (blu) or red (rossa)" } }
[[tools]]
name = "PastLessons"
description = "The lessons that the member took in the past."
effect = "read"
parameters.properties = { from = { type = "string", format = "date" }, to = { type = "string", format = "date" } }
[[tools]]
name = "PoolHours_Get"
description = "The opening hours of the pool on a day."
effect = "read"
parameters.required = ["date"]
parameters.properties = { date = { type = "string", format = "date" } }
"#;

fn run(words: &str) -> RequestOutcome {
    World::of(&[CLUB]).run(words)
}

fn calls(words: &str) -> Vec<Value> {
    let outcome = run(words);
    assert!(outcome.questions.is_empty(), "{words}: {:?}", outcome.questions);
    outcome.calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect()
}

fn lesson(sport: &str, date: &str, time: &str) -> Value {
    json!(["BookLesson", {"sport": sport, "date": date, "time": time}])
}

#[test]
fn each_part_of_a_list_gets_its_own_values() {
    let (tennis, golf) = (lesson("tennis", "2026-06-09", "09:00"), lesson("golf", "2026-06-10", "15:00"));
    for (words, want) in [
        (
            "Book a tennis lesson on 9 June at 9:00 and a golf lesson on 10 June at 15:00",
            vec![tennis.clone(), golf.clone()],
        ),
        ("Book tennis on 9 June at 9:00 and golf on 10 June at 15:00", vec![tennis.clone(), golf.clone()]),
        (
            "Prenota una lezione di tennis il 9 giugno alle 9:00 e una di golf il 10 giugno alle 15:00",
            vec![tennis.clone(), golf.clone()],
        ),
        (
            "Book tennis on 9 June at 9:00, golf on 10 June at 15:00 and swimming on 11 June at 8:00",
            vec![tennis.clone(), golf, lesson("swimming", "2026-06-11", "08:00")],
        ),
        (
            "Book tennis on 9 June at 9:00 and on 10 June at 15:00",
            vec![tennis, lesson("tennis", "2026-06-10", "15:00")],
        ),
    ] {
        assert_eq!(calls(words), want, "{words}");
    }
}

#[test]
fn missing_value_of_a_part_is_asked() {
    for words in [
        "Book tennis on 9 June at 9:00 and golf on 10 June",
        "Prenota tennis il 9 giugno alle 9:00 e golf il 10 giugno",
    ] {
        let outcome = run(words);
        assert!(outcome.calls.is_empty(), "{words}: {:?}", outcome.calls);
        assert_eq!(outcome.questions.len(), 2, "{words}: {:?}", outcome.questions);
        assert_eq!(outcome.questions[0]["missing"], json!([]), "{words}");
        assert_eq!(outcome.questions[1]["missing"], json!(["time"]), "{words}");
        assert_eq!(outcome.questions[1]["known"], json!({"sport": "golf", "date": "2026-06-10"}), "{words}");
    }
}

#[test]
fn second_object_of_an_order_is_ordered_too() {
    let both = vec![json!(["BlockBadge", {"badge": "blue"}]), json!(["BlockBadge", {"badge": "red"}])];
    assert_eq!(calls("Block my blue badge and my red badge"), both);
    assert_eq!(calls("Blocca la tessera blu e la tessera rossa"), both);
}

#[test]
fn reversing_verb_leads_to_another_tool() {
    for words in ["Sblocca la tessera blu", "Unblock the blue badge", "Per favore sblocca la tessera blu"] {
        assert_eq!(calls(words), [json!(["UnblockBadge", {"badge": "blue"}])], "{words}");
    }
    assert_eq!(calls("Blocca la tessera rossa"), [json!(["BlockBadge", {"badge": "red"}])]);
}

#[test]
fn recent_day_is_doubtful_for_a_write() {
    let doubtful = run("Book tennis on 20 April at 9:00");
    assert!(doubtful.calls.is_empty(), "{:?}", doubtful.calls);
    assert_eq!(doubtful.questions.len(), 1, "{:?}", doubtful.questions);
    for words in ["Book tennis on 20 April 2027 at 9:00", "Book tennis on 20 February at 9:00"] {
        assert_eq!(calls(words).len(), 1, "{words}");
    }
}

#[test]
fn tool_about_the_past_takes_the_past_day() {
    for words in
        ["Which lessons did I take from 1 to 20 April?", "Which lessons did I take from 1 to 20 April 2026?"]
    {
        assert_eq!(
            calls(words),
            [json!(["PastLessons", {"from": "2026-04-01", "to": "2026-04-20"}])],
            "{words}"
        );
    }
}

#[test]
fn range_for_one_day_is_spread_for_reads_and_asked_for_writes() {
    let each: Vec<Value> = ["2026-06-09", "2026-06-10", "2026-06-11"]
        .iter()
        .map(|d| json!(["PoolHours_Get", {"date": d}]))
        .collect();
    assert_eq!(calls("Is the pool open from 9 to 11 June?"), each);
    let asked = run("Book tennis from 9 to 11 June at 10:00");
    assert!(asked.calls.is_empty(), "{:?}", asked.calls);
    assert_eq!(asked.questions[0]["missing"], json!(["date"]), "{:?}", asked.questions);
}
