use std::borrow::Cow;

use jiff::Zoned;
use jiff::civil::date;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DayNames, GroundingSources, as_written, untraced};

/// Sunday.
fn now() -> Zoned {
    date(2026, 11, 22).at(9, 30, 0, 0).in_tz("Europe/Rome").unwrap()
}

fn doubts(said: &[&str], found: &[Value], parameters: &Value, arguments: &Value) -> Vec<String> {
    let now = now();
    let sources = GroundingSources {
        said: said.iter().map(|s| Cow::Borrowed(*s)).collect(),
        found: found.iter().map(Cow::Borrowed).collect(),
        strict: true,
        lists: true,
        exact: true,
        lookalikes: true,
        names: DayNames::ALL,
        user: "keysersoze",
        now: &now,
        language: None,
    };
    untraced(parameters, arguments, &sources)
}

fn text(format: &str) -> Value {
    json!({"type": "string", "format": format})
}

/// Whether a value of one property is traced to one sentence.
fn traces(said: &str, name: &str, schema: &Value, value: &Value) -> bool {
    let parameters = json!({"type": "object", "properties": {name: schema}, "required": [name]});
    doubts(&[said], &[], &parameters, &json!({name: value})).is_empty()
}

fn check(name: &str, schema: &Value, good: &[(&str, Value)], bad: &[(&str, Value)]) {
    let wrong = |cases: &[(&str, Value)], want: bool| -> Vec<String> {
        let off = cases.iter().filter(|(said, value)| traces(said, name, schema, value) != want);
        off.map(|(said, value)| format!("{said} -> {value} should {}trace", if want { "" } else { "not " }))
            .collect()
    };
    let all = [wrong(good, true), wrong(bad, false)].concat();
    assert!(all.is_empty(), "{name}: {all:#?}");
}

fn strings<'a>(cases: &[(&'a str, &str)]) -> Vec<(&'a str, Value)> {
    cases.iter().map(|(said, value)| (*said, json!(value))).collect()
}

#[test]
fn days_are_traced_to_text_and_calendar() {
    let good = strings(&[
        ("vacation from 15 to 17 June", "2027-06-15"),
        ("vacation from 15 to 17 June", "2027-06-17"),
        ("vacation from 15 to 17 June", "2027-06-16"),
        ("ferie dal 15 al 17 giugno", "2027-06-15"),
        ("ferie dal 15 al 17 giugno", "2027-06-17"),
        ("ferie dall'8 all'11 luglio", "2027-07-11"),
        ("15, 16 and 18 June", "2027-06-16"),
        ("June 15, 16 and 18", "2027-06-18"),
        ("il 15, il 16 e il 18 giugno", "2027-06-15"),
        ("on 12 July and on 19 July", "2027-07-19"),
        ("the 15th of the year 2026's eleventh month", "2026-11-15"),
        ("Thursday 09/10, 2026", "2026-09-10"),
        ("Thursday 09/10, 2026", "2026-10-09"),
        ("book it for 11-15", "2027-11-15"),
        ("on 15/06/2027", "2027-06-15"),
        ("on 06/15/2027", "2027-06-15"),
        ("on 2027-06-15", "2027-06-15"),
        ("am 15. Juni", "2027-06-15"),
        ("le 15 juin", "2027-06-15"),
        ("el 15 de junio", "2027-06-15"),
        ("the fifteenth of June", "2027-06-15"),
        ("il quindici giugno", "2027-06-15"),
        ("June the twenty-first", "2027-06-21"),
        ("il primo luglio", "2027-07-01"),
        ("tomorrow", "2026-11-23"),
        ("domani sera", "2026-11-23"),
        ("the day after tomorrow", "2026-11-24"),
        ("dopodomani", "2026-11-24"),
        ("next Friday", "2026-11-27"),
        ("next Friday", "2026-12-04"),
        ("venerdì prossimo", "2026-11-27"),
        ("from Monday to Wednesday", "2026-11-25"),
        ("da lunedì a mercoledì", "2026-11-24"),
        ("from Sunday to Wednesday", "2026-12-02"),
        ("the week after 15 June", "2027-06-16"),
        ("the week after 15 June", "2027-06-22"),
        ("the week after 15 June", "2027-06-21"),
        ("la settimana dopo il 15 giugno", "2027-06-22"),
        ("next week", "2026-11-23"),
        ("la prossima settimana", "2026-11-29"),
        ("in two weeks", "2026-12-06"),
        ("fra tre giorni", "2026-11-25"),
        ("3 days from 15 June", "2027-06-18"),
        ("3 days from 15 June", "2027-06-17"),
        ("a week from 15 June", "2027-06-22"),
        ("the 20th", "2026-12-20"),
        ("il 25", "2026-11-25"),
        ("the first Monday of March", "2027-03-01"),
        ("il primo lunedì di marzo", "2027-03-01"),
        ("the Monday after 15 June", "2027-06-21"),
        ("the 15th of next month", "2026-12-15"),
        ("il 15 del mese prossimo", "2026-12-15"),
        ("at Christmas", "2026-12-25"),
        ("a Ferragosto", "2027-08-15"),
        ("all of June", "2027-06-01"),
        ("all of June", "2027-06-30"),
        ("in June, let's say the 15th", "2027-06-15"),
        ("I spent it on 3 October", "2026-10-03"),
        ("last year on 10 August I paid", "2026-08-10"),
        ("from 28 December to 3 January", "2027-01-03"),
        ("every Monday", "2026-12-07"),
        ("two months from 15 June", "2027-08-15"),
        ("5 working days from Thursday 10 June 2027", "2027-06-16"),
        ("not the 15th of June but the 16th", "2027-06-16"),
    ]);
    let bad = strings(&[
        ("vacation from 15 to 17 June", "2027-06-18"),
        ("vacation from 15 to 17 June", "2027-07-15"),
        ("vacation from 15 to 17 June", "2028-06-15"),
        ("15 June, not 16", "2027-06-16"),
        ("il 15 giugno, non il 16", "2027-06-16"),
        ("from 15 to 17 June except the 16th", "2027-06-16"),
        ("12 July and 19 August", "2027-08-12"),
        ("from 15 June, 10 days", "2027-06-10"),
        ("12 July and 19 August", "2027-07-19"),
        ("15 June 2028", "2027-06-15"),
        ("a table for 3 people", "2026-12-03"),
        ("un tavolo per 4 persone", "2026-12-04"),
        ("3 days of vacation", "2026-12-03"),
        ("book a visit", "2026-11-22"),
        ("tomorrow", "2026-11-24"),
        ("next Friday", "2026-11-26"),
        ("in June", "2027-06-10"),
        ("it may rain at 5", "2027-05-05"),
        ("alle 12:06", "2026-12-06"),
        ("room 12, floor 6", "2027-06-12"),
        ("", "2027-06-12"),
        ("next week", "2026-12-02"),
        ("non voglio mai 5 cose", "2027-05-05"),
    ]);
    check("date", &text("date"), &good, &bad);
}

#[test]
fn moments_and_times_are_traced() {
    let good = strings(&[
        ("tomorrow at 10", "2026-11-23T10:00:00+01:00"),
        ("tomorrow at 10", "2026-11-23T09:00:00Z"),
        ("domani alle 18:30", "2026-11-23T18:30"),
        ("il 15 giugno", "2027-06-15T00:00:00"),
        ("in 2 hours", "2026-11-22T11:30:00+01:00"),
        ("tomorrow from 3pm for 2 hours", "2026-11-23T17:00"),
        ("tomorrow at half past 1 in the afternoon", "2026-11-23T13:30"),
    ]);
    let bad = strings(&[
        ("tomorrow at 10", "2026-11-23T11:00:00+01:00"),
        ("tomorrow at 10", "2026-11-24T10:00:00+01:00"),
        ("tomorrow morning", "2026-11-23T09:00"),
        ("in 2 hours", "2026-11-22T12:30:00+01:00"),
    ]);
    check("start", &text("date-time"), &good, &bad);
    let good = strings(&[
        ("half past 1 in the afternoon", "13:30"),
        ("quarter to 9", "08:45"),
        ("quarter to nine", "20:45"),
        ("a quarter past five", "17:15"),
        ("10 to 5", "16:50"),
        ("le due e mezza", "14:30"),
        ("alle nove meno un quarto", "08:45"),
        ("mezzogiorno e mezzo", "12:30"),
        ("alle 8 di sera", "20:00"),
        ("stasera alle 8", "20:00"),
        ("at nine thirty", "09:30"),
        ("at 8.30", "08:30"),
        ("um 18 Uhr", "18:00"),
        ("à 18h30", "18:30"),
        ("at noon", "12:00"),
        ("6pm", "18:00"),
        ("6:15 pm", "18:15"),
        ("at 1830", "18:30"),
        ("from 14 to 16", "16:00"),
        ("at 10 for an hour and a half", "11:30"),
        ("alle venti e quindici", "20:15"),
        ("halb neun", "08:30"),
        ("8 o'clock", "08:00"),
        ("8 o'clock", "08:00:00"),
    ]);
    let bad = strings(&[
        ("half past 1 in the afternoon", "13:00"),
        ("at 8 in the evening", "08:00"),
        ("quarter to 9", "09:15"),
        ("a table for 4 people on 15 June", "15:00"),
        ("at 18:30", "18:00"),
        ("in the morning", "09:00"),
        ("6pm", "06:00"),
    ]);
    check("time", &text("time"), &good, &bad);
}

#[test]
fn numbers_are_traced() {
    let good = [
        ("for three people", json!(3)),
        ("per tre persone", json!(3)),
        ("ventitré pezzi", json!(23)),
        ("duecentocinquanta euro", json!(250)),
        ("one hundred and twenty five boxes", json!(125)),
        ("twenty-five", json!(25)),
        ("a dozen eggs", json!(12)),
        ("half", json!(0.5)),
        ("1.5k", json!(1500)),
        ("2,500 euros", json!(2500)),
        ("2.500 euro", json!(2500)),
        ("3,5 kg", json!(3.5)),
        ("set the price to 9.50", json!(9.5)),
        ("set the price to 24.50 for all", json!(24.5)),
        ("20%", json!(20)),
        ("20%", json!(0.2)),
        ("90 minutes", json!(1.5)),
        ("an hour and a half", json!(90)),
        ("two hours", json!(120)),
        ("a week", json!(7)),
        ("for me and Anna", json!(2)),
        ("per Anna, Luca e Marco", json!(3)),
        ("€ 12.50", json!(1250)),
        ("2 million", json!(2_000_000)),
        ("fünfundzwanzig Stück", json!(25)),
        ("book a ticket", json!(1)),
        ("un biglietto", json!(1)),
        ("no sugar", json!(0)),
        ("from 15 June, 10 days", json!(10)),
    ];
    let bad = [
        ("for three people", json!(4)),
        ("5 apples and 3 pears", json!(8)),
        ("on 15 June", json!(15)),
        ("send money", json!(50)),
        ("book it", json!(0)),
        ("at 18:30", json!(30)),
        ("2,500 euros", json!(25)),
        ("cancel it", json!(1)),
    ];
    check("amount", &json!({"type": "number"}), &good, &bad);
    let good =
        [("appointment 41", json!(41)), ("loan number one", json!(1)), ("il prestito numero 2", json!(2))];
    let bad = [
        ("cancel the one with the dentist", json!(1)),
        ("cancel my appointment with a dentist", json!(1)),
        ("cancel appointment 41", json!(4)),
    ];
    check("number", &json!({"type": "integer"}), &good, &bad);
    let good = [("a table for me", json!(1)), ("table for 4", json!(4))];
    check(
        "guests",
        &json!({"type": "integer", "minimum": 1}),
        &good,
        &[("book a table", json!(1)), ("book a table", json!(2))],
    );
}

#[test]
fn person_names_are_traced() {
    let good = strings(&[
        ("send 50 euros to Mario Rossi", "Mario Rossi"),
        ("Anna's appointment", "Anna"),
        ("a nome di José Álvarez", "Jose Alvarez"),
        ("for Micheal Jordan", "Michael Jordan"),
        ("for Dr Bianchi", "Dr. Bianchi"),
        ("for doctor Bianchi", "Mr Bianchi"),
        ("for me", "keysersoze"),
        ("do it", "me"),
        ("Mario, the son of Rossi", "mario.rossi"),
    ]);
    let bad = strings(&[
        ("send 50 euros to Mario", "Mario Rossi"),
        ("send 50 euros to Mario", "Maria"),
        ("half a day off", "half"),
        ("book it", "John Doe"),
        ("for Paolo", "Paola"),
    ]);
    check("recipient", &json!({"type": "string"}), &good, &bad);
    for (name, description) in
        [("guest_name", ""), ("name", "Name of the guest"), ("to", "Who gets it"), ("employee", "")]
    {
        let schema = json!({"type": "string", "description": description});
        check(
            name,
            &schema,
            &strings(&[("for Anna Verdi", "Anna Verdi")]),
            &strings(&[("for Anna", "Luca")]),
        );
    }
    let room = json!({"type": "string", "description": "Name of the meeting room"});
    assert!(traces("a quiet room", "name", &room, &json!("Sala Blu")), "it is no person");
}

#[test]
fn identifiers_are_traced_with_any_punctuation() {
    let good = strings(&[
        ("car AB123CD", "AB 123 CD"),
        ("car ab 123 cd", "AB123CD"),
        ("ticket INV-42", "inv42"),
        ("ticket PT000M", "PT000M"),
        ("call 333 123 4567", "+393331234567"),
        ("order 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        ("mario@acme.it please", "mario@acme.it"),
        ("mario dot rossi at acme dot it", "mario.rossi@acme.it"),
        ("room twelve", "12"),
        ("open notes/2026/plan.txt", "notes/2026/plan.txt"),
        ("open plan.txt in notes", "notes/plan.txt"),
    ]);
    let bad = strings(&[
        ("car AB123CD", "AB124CD"),
        ("ticket INV-421", "INV-42"),
        ("ticket 42", "INV-43"),
        ("write to Mario", "mario@acme.it"),
        ("an order", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        ("call Mario", "+393331234567"),
        ("open the plan", "notes/2026/plan.txt"),
    ]);
    check("code", &json!({"type": "string"}), &good, &bad);
    let shown = json!({"type": "string", "description": "such as APT41", "examples": ["APT-1"]});
    check("id", &shown, &strings(&[("appointment 41", "APT-41")]), &strings(&[("appointment 41", "APT-42")]));
}

#[test]
fn places_need_one_word() {
    let good = strings(&[
        ("in Milano", "Milan"),
        ("a Firenze", "Florence"),
        ("to Paris", "Paris, France"),
        ("from Las Vegas", "Las Vegas"),
        ("Rome", "Roma"),
        ("in Via Roma 12", "Via Roma 12"),
        ("to Milan", "MXP"),
    ]);
    check(
        "city",
        &json!({"type": "string"}),
        &good,
        &strings(&[("find me a movie", "Boston"), ("in Milano", "Torino")]),
    );
}

#[test]
fn free_text_is_not_checked() {
    for (name, schema, value) in [
        ("message", json!({"type": "string"}), json!("Hello, we meet at 10")),
        ("kind", json!({"enum": ["paid", "sick"]}), json!("sick")),
        ("level", json!({"anyOf": [{"const": 3, "title": "high"}, {"const": 1}]}), json!(3)),
        ("limit", json!({"type": "integer", "default": 20}), json!(20)),
        ("urgent", json!({"type": "boolean"}), json!(true)),
        ("what", json!({"type": "string"}), json!("a long text of some words")),
        ("label", json!({"type": "string"}), json!("Weekly")),
        ("note", json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), Value::Null),
        ("title", json!({"type": "string"}), json!("Q3")),
    ] {
        assert!(traces("do it", name, &schema, &value), "{name}");
    }
    // A number in a long text is a value all the same.
    assert!(!traces("do it", "what", &json!({"type": "string"}), &json!("a long text of 5 words")));
    let optional =
        json!({"properties": {"page": {"type": "integer"}, "count": {"type": "integer", "minimum": 5}}});
    assert!(doubts(&["list"], &[], &optional, &json!({"page": 1, "count": 5})).is_empty());
    assert_eq!(doubts(&["list"], &[], &optional, &json!({"page": 2})), ["page"]);
}

#[test]
fn results_and_earlier_turns_are_sources() {
    let parameters = json!({"type": "object", "required": ["number", "date"], "properties": {
        "number": {"type": "integer"}, "date": {"type": "string", "format": "date"}, "doctor": {"type": "string"},
        "start": {"type": "string", "format": "date-time"}}});
    let found = [json!([{"number": 41, "when": "2026-12-03T10:00:00+01:00", "with": "Dr. Bianchi"}])];
    let arguments =
        json!({"number": 41, "date": "2026-12-03", "doctor": "Bianchi", "start": "2026-12-03T09:00:00Z"});
    assert_eq!(doubts(&["cancel the one with the dentist"], &found, &parameters, &arguments), [""; 0]);
    assert_eq!(doubts(&["cancel it"], &[], &parameters, &arguments), ["date", "doctor", "number", "start"]);
    let later = json!({"date": "2026-12-04", "start": "2026-12-03T11:00:00+01:00"});
    assert_eq!(doubts(&["move it a day later", "or one hour"], &found, &parameters, &later), [""; 0]);
    let turns = ["I want to go to the dentist on 3 December", "yes, number 41"];
    assert_eq!(doubts(&turns, &[], &parameters, &json!({"number": 41, "date": "2026-12-03"})), [""; 0]);
}

#[test]
fn lengths_follow_from_the_days_of_the_call() {
    let parameters = json!({"properties": {"from": text("date"), "to": text("date"), "days": {"type": "integer"}, "nights": {"type": "integer"}},
        "required": ["from", "to", "days", "nights"]});
    let said = ["from 15 to 17 June"];
    let call = |days: i64, nights: i64| json!({"from": "2027-06-15", "to": "2027-06-17", "days": days, "nights": nights});
    assert_eq!(doubts(&said, &[], &parameters, &call(3, 2)), [""; 0]);
    assert_eq!(doubts(&said, &[], &parameters, &call(4, 2)), ["days"]);
}

#[test]
fn nested_values_are_named_by_pointer() {
    let parameters = json!({"type": "object", "$defs": {"guest": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}},
        "properties": {"guests": {"type": "array", "items": {"$ref": "#/$defs/guest"}}, "days": {"type": "array", "items": {"type": "string", "format": "date"}}}});
    let arguments = json!({"guests": [{"name": "Anna", "age": 30}, {"name": "Luca", "age": 31}], "days": ["2027-06-15", "2027-06-16"]});
    assert_eq!(
        doubts(&["Anna, who is 30, on 15 June"], &[], &parameters, &arguments),
        ["/days/1", "/guests/1/age", "/guests/1/name"]
    );
    // Without a schema, values are checked by their format.
    assert_eq!(
        doubts(&["on 15 June"], &[], &Value::Null, &json!({"x": "2027-06-16", "n": 7, "t": "hi"})),
        ["n", "x"]
    );
}

#[test]
fn huge_arguments_and_sources_are_bounded() {
    let list: Vec<i64> = (0..10_000).collect();
    let long = "15 June and 3 days ".repeat(50_000);
    let doubted = doubts(&[&long], &[json!(list)], &Value::Null, &json!({"all": list, "more": {"x": list}}));
    assert!(doubted.len() < 600, "{}", doubted.len());
    assert!(!doubted.is_empty(), "what is not looked at is not passed");
}

proptest! {
    #[test]
    fn any_text_and_arguments_never_panic(said in "\\PC{0,200}", name in "[a-z_]{0,12}", value in "\\PC{0,40}", n in any::<f64>()) {
        doubts(&[&said], &[json!({"x": said})], &json!({"properties": {&name: {"type": "string"}}}), &json!({&name: value, "n": n}));
        doubts(&[&value], &[], &json!(said), &json!([value, {"date": said}]));
    }

    #[test]
    fn any_calendar_words_never_panic(parts in prop::collection::vec(prop::sample::select(vec![
        "15", "June", "from", "to", "the", "week", "after", "not", "31", "february", "2026", "/", "-", "next", "Monday", "mese", "fra", "tre", "giorni",
        "half", "past", "quarter", "9", ":", "30", ".", ",", "first", "of", "e", "meno", "un", "quarto", "month", "99999999", "ago", "every"
    ]), 0..30), glue in prop::bool::ANY) {
        let said = parts.join(if glue { "" } else { " " });
        doubts(&[&said], &[json!(said)], &json!({"properties": {"d": {"format": "date"}}}), &json!({"d": "2027-06-15", "t": "10:00", "n": 3}));
    }

    #[test]
    fn copied_value_is_traced(day in 0..700_i64, n in 0..1_000_000_i64, name in "[A-Z][a-z]{2,9} [A-Z][a-z]{2,9}", id in "[A-Z]{2}[0-9]{3,6}[A-Z]{1,2}") {
        // After a date, such a number is read as a year, and the user is asked.
        prop_assume!(!(1900..2200).contains(&n));
        let date = date(2026, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap();
        let parameters = json!({"properties": {"date": {"format": "date"}, "number": {"type": "integer"}, "recipient": {"type": "string"}, "id": {"type": "string"}},
            "required": ["date", "number", "recipient", "id"]});
        let arguments = json!({"date": date.to_string(), "number": n, "recipient": name, "id": id});
        prop_assert_eq!(doubts(&[&format!("{name}, {id}, {date}, {n}")], &[], &parameters, &arguments), [""; 0]);
        prop_assert_eq!(doubts(&["ok"], std::slice::from_ref(&arguments), &parameters, &arguments), [""; 0]);
    }

    #[test]
    fn further_sources_never_make_a_value_doubtful(said in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![
        "15", "June", "from", "to", "the", "week", "after", "not", "31", "February", "2026", "next", "Monday", "3", "giorni", "half", "past", "9:30", "2 hours",
        "Milan", "Rossi", "no", "first", "except", "every", "in", "10 days", "ago", "AB-12", "me", "a", "-5", "2027-06-15"
    ]), 0..8), 1..5), date in prop::sample::select(vec!["2027-06-15", "2026-11-30", "2027-02-28"]), n in prop::sample::select(vec![3.0, 15.0, -5.0, 0.0, 1.0, 10.0]),
        name in prop::sample::select(vec!["Rossi", "Milan", "Anna", "AB-12"])) {
        let said: Vec<String> = said.iter().map(|words| words.join(" ")).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let parameters = json!({"properties": {"date": {"format": "date"}, "n": {"type": "number"}, "city": {"type": "string"}, "code": {"type": "string"}},
            "required": ["date", "n", "city", "code"]});
        let arguments = json!({"date": date, "n": n, "city": name, "code": name, "time": "09:30"});
        let first = doubts(&said[..1], &[], &parameters, &arguments);
        let found = json!({"at": "2026-11-30T09:30", "list": [n, "not 15 June", said]});
        for doubtful in doubts(&said, &[found], &parameters, &arguments) {
            prop_assert!(first.contains(&doubtful), "{} is traced to {:?} alone", doubtful, said[0]);
        }
    }

    #[test]
    fn unsaid_day_is_not_traced(day in 1..=28_i8, month in 1..=12_i8, year in 2027..=2029_i16, other_day in 1..=28_i8, other_month in 1..=12_i8) {
        let said = date(year, month, day);
        let other = date(year, other_month, other_day);
        let swapped = (day, month) == (other_month, other_day);
        prop_assume!(said != other && !swapped);
        for words in [said.to_string(), said.strftime("%d %B %Y").to_string(), said.strftime("%d/%m/%Y").to_string()] {
            prop_assert!(traces(&words, "date", &text("date"), &json!(said.to_string())), "{}", words);
            prop_assert!(!traces(&words, "date", &text("date"), &json!(other.to_string())), "{}: {}", words, other);
        }
    }
}

#[test]
fn each_word_of_a_list_with_numbers_has_a_source() {
    let schema = json!({"type": "object", "required": ["items"], "properties": {"items": {
        "type": "string", "description": "Text that lists what is sold, with a number for each item"}}});
    let doubtful =
        |said: &str, items: &str| !doubts(&[said], &[], &schema, &json!({"items": items})).is_empty();
    for items in ["3 teapots", "three teapots", "3 teapot and a teapot"] {
        assert!(!doubtful("Sell 3 teapots", items), "{items}");
    }
    for items in ["30 teapots", "thirty teapots", "3 moka pots", "three teapots and two teapots"] {
        assert!(doubtful("Sell 3 teapots", items), "{items}");
    }
}

#[test]
fn figure_too_large_for_a_day_is_none_before_an_ordinal_either() {
    for said in ["471120260615 first", "on 4711202606-third June", "il 99999999999999999999 primo giugno"] {
        assert!(!traces(said, "from", &text("date"), &json!("2027-06-02")), "{said}");
    }
}

#[test]
fn addresses_are_traced_only_as_they_were_said_or_found() {
    let said = "Write to Mario at mario@acme.com, please";
    for name in ["to", "email", "recipient"] {
        let good = ["mario@acme.com", "Mario@ACME.com", "<mario@acme.com>", "mario@acme.com."];
        let good: Vec<(&str, Value)> = good.iter().map(|value| (said, json!(value))).collect();
        let bad = [
            "acme@mario.com",
            "mario@ac.me.com",
            "m.ario@acme.com",
            "mario.acme@com",
            "mario@acme-com",
            "mario@acme.com, acme@mario.com",
            "mario@\u{430}cme.com",
            "mario@\u{e0}cme.com",
            "mario\u{ff20}acme.com",
        ];
        let bad: Vec<(&str, Value)> = bad.iter().map(|value| (said, json!(value))).collect();
        check(name, &json!({"type": "string"}), &good, &bad);
    }
    let mail = text("email");
    let good = strings(&[
        ("mario dot rossi at acme dot com", "mario.rossi@acme.com"),
        ("per\u{f2}@acme.com", "per\u{f2}@acme.com"),
    ]);
    let bad = strings(&[
        ("x.mario@acme.com", "mario@acme.com"),
        ("mario@acme.com.evil.org", "mario@acme.com"),
        ("mario@acme.co.uk", "mario@acme.co"),
    ]);
    check("email", &mail, &good, &bad);
    let parameters =
        json!({"type": "object", "properties": {"to": mail, "body": {"type": "string"}}, "required": ["to"]});
    let found = [json!({"people": [{"name": "Mario", "email": "mario@acme.com"}]})];
    assert!(doubts(&["write to Mario"], &found, &parameters, &json!({"to": "mario@acme.com"})).is_empty());
    assert_eq!(doubts(&["write to Mario"], &found, &parameters, &json!({"to": "acme@mario.com"})), ["to"]);
}

#[test]
fn invisible_characters_need_a_source_of_their_own() {
    let parameters = json!({"type": "object", "required": ["code"], "properties": {
        "code": {"type": "string"}, "city": {"type": "string"}, "note": {"type": "string", "description": "A note"}}});
    let is_traced = |said: &str, found: &[Value], arguments: &Value| {
        doubts(&[said], found, &parameters, arguments).is_empty()
    };
    for (name, value) in [("code", "K7\u{200b}"), ("code", "\u{202e}K7"), ("city", "Mi\u{ad}lan")] {
        let arguments = json!({name: value});
        assert!(!is_traced("K7 in Milan", &[], &arguments), "{value:?}");
        assert!(is_traced(&format!("{value}, please"), &[], &arguments), "{value:?}");
        assert!(is_traced("do it", &[json!({"list": [value]})], &arguments), "{value:?}");
    }
    assert!(is_traced("K7", &[], &json!({"code": "K7", "note": "a\u{200b}b"})), "free text needs no source");
}

#[test]
fn names_of_days_are_sources_since_their_revision() {
    let now = now();
    let parameters = json!({"type": "object", "properties": {"day": text("date")}, "required": ["day"]});
    let before_16 = DayNames { short_months: false, several_words: false };
    let before_17 = DayNames { several_words: false, ..DayNames::ALL };
    for (said, day, earlier) in [
        ("Richiedi ferie il 15 gen", "2027-01-15", before_16),
        ("Richiedi ferie il 15 mar", "2027-03-15", before_16),
        ("Demande des congés le 15 janv.", "2027-01-15", before_16),
        ("Pide vacaciones el 15 ene.", "2027-01-15", before_16),
        ("Pide vacaciones pasado mañana", "2026-11-24", before_17),
        ("Demande un congé après-demain", "2026-11-24", before_17),
        ("Nimm mir Heiligabend frei", "2026-12-24", before_17),
        ("Pide libre el día de Año Nuevo", "2027-01-01", before_17),
        ("Nimm mir Ostermontag frei", "2027-03-29", before_17),
        ("Chiedi ferie per San Silvestro", "2026-12-31", before_17),
    ] {
        let is_traced = |names| {
            let sources = GroundingSources {
                said: vec![Cow::Borrowed(said)],
                found: Vec::new(),
                strict: true,
                lists: true,
                exact: true,
                lookalikes: true,
                names,
                user: "u",
                now: &now,
                language: None,
            };
            untraced(&parameters, &json!({"day": day}), &sources).is_empty()
        };
        assert!(is_traced(DayNames::ALL), "{said}");
        assert!(!is_traced(earlier), "{said}");
    }
}

#[test]
fn words_are_written_as_their_sources_have_them() {
    let now = now();
    let found = json!({"title": "Q\u{200b}4", "by": "Ada"});
    let sources = GroundingSources {
        said: vec![Cow::Borrowed("Pay K7, to Bob Miller")],
        found: vec![Cow::Borrowed(&found)],
        strict: true,
        lists: true,
        exact: true,
        lookalikes: true,
        names: DayNames::ALL,
        user: "u",
        now: &now,
        language: None,
    };
    for (given, written) in [
        ("K7\u{200b}", "K7"),
        ("\u{feff}Bob\u{2060} Mill\u{ad}er\u{200b}.\n", "Bob Miller.\n"),
        ("b\u{200b}ob", "bob"),
        ("A\u{200b}da", "Ada"),
        // As it was found, not said at all, or a part of a longer word.
        ("Q\u{200b}4", "Q\u{200b}4"),
        ("pay\u{200b}pal", "pay\u{200b}pal"),
        ("K\u{200b}", "K\u{200b}"),
        ("\u{200b}", "\u{200b}"),
    ] {
        let arguments = as_written(json!({"to": [given], "n": 1}), &sources);
        assert_eq!(arguments, json!({"to": [written], "n": 1}), "{given:?}");
    }
}

#[test]
fn letters_and_digits_that_look_like_others_need_a_source_as_they_are() {
    let said = "Send hello to Mario for project AC-12, please";
    let bad = |value: &str| [(said, json!(value))];
    for code in [
        "\u{391}C-12", "\u{410}C-12", "AC-\u{ff11}\u{ff12}", "\u{ff21}\u{ff23}-12", "AC-\u{661}\u{662}",
        "\u{1d400}C-12",
    ] {
        check("code", &json!({"type": "string"}), &[(said, json!("ac-12"))], &bad(code));
    }
    let good = [
        (said, json!("Mario")),
        ("Invia a Mari\u{f2}", json!("Mari\u{f2}")),
        ("Invia a Mari\u{f2}", json!("Mario")),
    ];
    check("recipient", &json!({"type": "string"}), &good, &bad("M\u{430}ri\u{43e}"));
    // A word that was said as it is has a source, and so has a word of one script.
    let good = strings(&[
        ("Send hello to M\u{430}ri\u{43e}", "m\u{430}ri\u{43e}"),
        ("Send hello to \u{41c}\u{430}\u{440}\u{438}\u{43e}", "Mario"),
        ("Send hello to \u{41c}\u{430}\u{440}\u{438}\u{43e}", "\u{41c}\u{430}\u{440}\u{438}\u{43e}"),
        ("Send hello to \u{ff2d}ario", "Mario"),
    ]);
    check("recipient", &json!({"type": "string"}), &good, &[]);
}
