//! Tables of dates, times and numbers in natural language.

use jiff::civil::date;

use crate::llm::offline::dates::{self, RangeRole};
use crate::llm::offline::entities::Entities;
use crate::llm::offline::{numbers, text};

fn days(words: &str) -> Vec<(RangeRole, String)> {
    let tokens = text::tokens(words);
    Entities::in_tokens(&tokens, date(2026, 5, 4))
        .days
        .into_iter()
        .map(|d| (d.role, d.date.to_string()))
        .collect()
}

#[test]
fn ranges_of_days_are_read_in_italian_and_english() {
    for (words, from, to) in [
        ("dal 15 al 17 giugno", "2026-06-15", "2026-06-17"),
        ("from 15 to 17 June", "2026-06-15", "2026-06-17"),
        ("dal 15 giugno al 19 giugno", "2026-06-15", "2026-06-19"),
        ("15-17 June", "2026-06-15", "2026-06-17"),
        ("June 15-17", "2026-06-15", "2026-06-17"),
        ("June 15th to 17th", "2026-06-15", "2026-06-17"),
        ("from June 30 until July 2", "2026-06-30", "2026-07-02"),
        ("tra il 15 e il 17 giugno", "2026-06-15", "2026-06-17"),
        ("between 15 and 17 June", "2026-06-15", "2026-06-17"),
        ("dal 28 dicembre al 3 gennaio", "2026-12-28", "2027-01-03"),
        ("dal 15/06 al 17/06", "2026-06-15", "2026-06-17"),
        ("dall'8 all'11 luglio", "2026-07-08", "2026-07-11"),
        ("from 2026-06-15 to 2026-06-17", "2026-06-15", "2026-06-17"),
        ("da lunedì a mercoledì", "2026-05-11", "2026-05-13"),
        ("from Monday to Wednesday", "2026-05-11", "2026-05-13"),
        ("dal 1° al 3 marzo", "2027-03-01", "2027-03-03"),
        ("dal 10 al 12", "2026-05-10", "2026-05-12"),
        ("3 giorni di ferie dal 15 al 17 giugno", "2026-06-15", "2026-06-17"),
        ("15 giugno - 17 giugno", "2026-06-15", "2026-06-17"),
        ("from the 3rd to the 5th of July", "2026-07-03", "2026-07-05"),
    ] {
        assert_eq!(
            days(words),
            [(RangeRole::From, from.to_owned()), (RangeRole::To, to.to_owned())],
            "{words}"
        );
    }
}

#[test]
fn weekdays_and_dates_mean_the_next_such_day() {
    for (words, day) in [
        ("il giorno 5", "2026-05-05"),
        ("il giorno 3", "2026-06-03"),
        ("oggi", "2026-05-04"),
        ("domani sera", "2026-05-05"),
        ("dopodomani", "2026-05-06"),
        ("tomorrow", "2026-05-05"),
        ("the day after tomorrow", "2026-05-06"),
        ("venerdì prossimo", "2026-05-08"),
        ("next Friday", "2026-05-08"),
        ("on Monday", "2026-05-11"),
        ("il 15 giugno", "2026-06-15"),
        ("June 15th, 2027", "2027-06-15"),
        ("15/06/2026", "2026-06-15"),
        ("3 aprile", "2027-04-03"),
        ("il primo luglio", "2026-07-01"),
        ("venerdì 12 giugno", "2026-06-12"),
        ("tra 3 giorni", "2026-05-07"),
        ("in two weeks", "2026-05-18"),
        ("on the 20th", "2026-05-20"),
        ("am Freitag", "2026-05-08"),
        ("il 29 febbraio", "2028-02-29"),
    ] {
        let found = days(words);
        assert_eq!(found.iter().map(|d| d.1.as_str()).collect::<Vec<_>>(), [day], "{words}");
    }
}

#[test]
fn similar_words_are_not_read_as_dates() {
    for words in [
        "3 giorni di ferie", "per 4 persone", "room 12", "sala 3", "three days off", "it may rain", "5 euro",
        "ticket 15", "la radice di 144", "4 giorni", "marzo", "i 5 libri", "il 5% di sconto",
    ] {
        assert_eq!(days(words), [], "{words}");
    }
}

#[test]
fn times_are_read_with_their_part_of_the_day() {
    for (words, want) in [
        ("alle 20", "20:00"),
        ("alle 20:30", "20:30"),
        ("alle 20.30", "20:30"),
        ("at 8pm", "20:00"),
        ("at 8 pm", "20:00"),
        ("alle 8 di sera", "20:00"),
        ("stasera alle 8", "20:00"),
        ("domani alle 9", "09:00"),
        ("alle nove e mezza", "09:30"),
        ("ore 15", "15:00"),
        ("at noon", "12:00"),
        ("at 7 in the evening", "19:00"),
        ("a mezzogiorno", "12:00"),
        ("at half past", ""),
        ("alle 3 del pomeriggio", "15:00"),
        ("tonight at 9", "21:00"),
        ("per 4 persone", ""),
        ("at 10 o'clock", "10:00"),
        ("half past 1 in the afternoon", "13:30"),
        ("at half past one", "01:30"),
        ("at half past seven for dinner", "19:30"),
        ("quarter to 9", "08:45"),
        ("at a quarter to nine in the evening", "20:45"),
        ("stasera alle nove meno un quarto", "20:45"),
        ("a quarter past five", "05:15"),
        ("at 10 to 5", "04:50"),
        ("20 past 8", "08:20"),
        ("10 minutes to 5 pm", "16:50"),
        ("le due e mezza", "02:30"),
        ("alle due e mezza del pomeriggio", "14:30"),
        ("le nove meno un quarto", "08:45"),
        ("alle nove meno dieci", "08:50"),
        ("alle otto e tre quarti", "08:45"),
        ("a mezzogiorno e mezzo", "12:30"),
        ("un quarto alle nove", "08:45"),
        ("at nine thirty", "09:30"),
        ("at five forty five pm", "17:45"),
        ("at 8 p.m.", "20:00"),
        ("at 8 a.m. sharp", "08:00"),
        ("alle 8 di mattina", "08:00"),
        ("alle 2 di notte", "02:00"),
        ("at 11 at night", "23:00"),
        ("half a day", ""),
        ("half of the 5 books", ""),
        ("le due mele", ""),
    ] {
        let tokens = text::tokens(words);
        let found = Entities::in_tokens(&tokens, date(2026, 5, 4)).times;
        let all: Vec<String> = found.iter().map(|h| h.time.strftime("%H:%M").to_string()).collect();
        assert_eq!(all.join(" "), want, "{words}");
    }
    let tokens = text::tokens("domani dalle 10 alle 12:30");
    let found = Entities::in_tokens(&tokens, date(2026, 5, 4));
    assert_eq!(
        found.times.iter().map(|h| (h.role, h.time.hour())).collect::<Vec<_>>(),
        [(RangeRole::From, 10), (RangeRole::To, 12)]
    );
    assert_eq!(found.days.len(), 1);
}

#[test]
fn numbers_are_read_in_digits_and_words() {
    for (words, want) in [
        ("per 4 persone", vec![4.0]),
        ("per due persone", vec![2.0]),
        ("twenty five boxes", vec![25.0]),
        ("ventuno sedie", vec![21.0]),
        ("trentotto pezzi", vec![38.0]),
        ("1.000 euro", vec![1000.0]),
        ("3,5 kg", vec![3.5]),
        ("12.50 euro", vec![12.5]),
        ("un'ora", vec![1.0]),
        ("half an hour", vec![0.5]),
        ("two hundred copies", vec![200.0]),
        ("sei libero?", vec![6.0]),
        ("chi sei?", vec![]),
        ("cancel the one with the dentist", vec![]),
        ("another one please", vec![]),
        ("one for me", vec![]),
        ("uno con il dentista", vec![]),
        ("loan number one", vec![1.0]),
        ("one ticket", vec![1.0]),
        ("set the temperature to -5", vec![-5.0]),
        ("imposta la temperatura a -5,5 gradi", vec![-5.5]),
        ("tra -10 e 3 gradi", vec![-10.0, 3.0]),
        ("between −10 and -3 degrees", vec![-10.0, -3.0]),
        ("-5", vec![-5.0]),
        ("the limit (-7) and x=-8", vec![-7.0, -8.0]),
        ("rooms 3-5", vec![]),
        ("sale 3 - 5", vec![3.0, 5.0]),
        ("2020 -2021", vec![2020.0, 2021.0]),
        ("2026-11-26", vec![]),
        ("- 5 apples", vec![5.0]),
        ("-5 apples\n-3 pears", vec![5.0, 3.0]),
        ("compra:\n-5 mele", vec![5.0]),
    ] {
        let found: Vec<f64> = numbers::find(&text::tokens(words)).iter().map(|n| n.value).collect();
        assert_eq!(found, want, "{words}");
    }
    assert_eq!(dates::month("giugno"), Some(6));
}
