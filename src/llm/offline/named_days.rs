//! Days that were named before: "book vacation from 14 to 16 June, and tell me the weather in Paris on those days".

use jiff::civil::Date;
use jiff::{ToSpan as _, Zoned};
use serde_json::{Map, Value};

use super::dates::{DateSpan, RangeRole};
use super::entities::Entities;
use super::pattern::{self, Patterns, patterns};
use super::prompt::Conversation;
use super::text::{self, Token};

/// Words for days that were named before.
static THOSE_DAYS: &Patterns = patterns![
    "on/in/for/during? those days",
    "on/for these days",
    "on/for both days",
    "on/for? that day",
    "in/per? quei giorni",
    "in/per? quel giorno",
    "in quel periodo",
    "in? entrambi i giorni",
    "an/in diesen/beiden tagen",
    "an diesem/dem/jenem tag",
    "pendant? ces jours-la",
    "ce jour-la",
    "les deux jours",
    "en? esos/ambos dias",
    "ese dia",
];

/// The request with the days in the place of such words: the days or the only range that it names before them, or, where it names none,
/// that of the last call of the conversation which has one. `None` if there are no such words or no such day.
pub(super) fn with_named_days(request: &str, conversation: &Conversation, now: &Zoned) -> Option<String> {
    let tokens = text::tokens(request);
    let (first, last) = those_days(&tokens).or_else(|| then_at_the_end(&tokens))?;
    let named = Entities::in_tokens(&tokens[..first], now.date()).days;
    let words = |from: usize, to: usize| request.get(tokens[from].start..tokens[to].end).map(str::to_owned);
    let days = match named.as_slice() {
        [] if tokens[first].is(&["then"]) => return None,
        [] => match days_of_last_call(conversation, now.date())? {
            (from, to) if from == to => from.to_string(),
            (from, to) => format!("from {from} to {to}"),
        },
        [day] if day.role != RangeRole::To => words(day.first, day.last)?,
        [from, to] if (from.role, to.role) == (RangeRole::From, RangeRole::To) => {
            words(from.first.min(to.first), from.last.max(to.last))?
        }
        // "Next Monday and Tuesday".
        [one, next] if one.date.tomorrow().ok() == Some(next.date) && one.last < next.first => {
            words(one.first, next.last)?
        }
        several if several.iter().all(|day| day.role == RangeRole::Single) => {
            let days: Vec<String> = several.iter().map(|day| day.date.to_string()).collect();
            days.join(" and ")
        }
        _ => return None,
    };
    let is_led = |day: &DateSpan| tokens[day.first].is(&["on"]);
    let needs_lead = tokens[first].is(&["on", "for", "then"])
        && match named.as_slice() {
            [day] => !is_led(day),
            [day, _] => day.role != RangeRole::From && !is_led(day),
            _ => false,
        };
    let lead = if needs_lead { "on " } else { "" };
    let before = request.get(..tokens[first].start)?;
    Some(format!("{before}{lead}{days}{}", request.get(tokens[last].end..)?))
}

/// The place of the word at the end of "I need Friday off; what is the weather in Milan then?".
fn then_at_the_end(tokens: &[Token]) -> Option<(usize, usize)> {
    let last = tokens.iter().rposition(|token| token.word)?;
    let asks = tokens.last().is_some_and(|end| end.raw == "?");
    (asks && tokens[last].is(&["then"])).then_some((last, last))
}

/// The first and last token of words for days that were named before.
fn those_days(tokens: &[Token]) -> Option<(usize, usize)> {
    let (places, words): (Vec<usize>, Vec<&Token>) =
        tokens.iter().enumerate().filter(|(_, token)| token.word).unzip();
    // "Book those days off".
    let off = || {
        let object = patterns!["those/these days off", "that day off"];
        pattern::find(&words, words.len(), object).map(|(from, to)| (from, to - 1))
    };
    let (from, to) = pattern::find(&words, words.len(), THOSE_DAYS).or_else(off)?;
    Some((*places.get(from)?, *places.get(to.checked_sub(1)?)?))
}

/// The first and last day among the arguments of the last call that has days; of one day and a number of days, those from it on.
fn days_of_last_call(conversation: &Conversation, today: Date) -> Option<(Date, Date)> {
    let count_of = |arguments: &Map<String, Value>| arguments.get("days").and_then(Value::as_i64);
    let calls = conversation.turns.iter().rev().flat_map(|turn| turn.calls.iter().rev());
    calls.into_iter().find_map(|call| {
        let arguments = call.arguments.as_object()?;
        let values = arguments.values().filter_map(Value::as_str);
        let days: Vec<Date> =
            values.filter(|text| text.len() == 10).filter_map(|text| text.parse().ok()).collect();
        // "The weather in Rome for the next 3 days" begins today.
        let begins = || count_of(arguments).map(|_| &today);
        let first = *days.iter().min().or_else(begins)?;
        let last = *days.iter().max().or_else(begins)?;
        let count = count_of(arguments).filter(|_| first == last);
        let more = count.map_or(0, |count| count.clamp(1, 366) - 1);
        Some((first, last.checked_add(more.days()).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn days_take_the_place_of_words_for_them() {
        let now: Zoned = "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap();
        let none = Conversation::default();
        for (said, meant) in [
            (
                "Book vacation from 14 to 16 June and tell me the weather in Paris on those days",
                Some("Book vacation from 14 to 16 June and tell me the weather in Paris from 14 to 16 June"),
            ),
            (
                "Prenota ferie il 15 giugno e dimmi il meteo a Parigi in quel giorno",
                Some("Prenota ferie il 15 giugno e dimmi il meteo a Parigi il 15 giugno"),
            ),
            (
                "Book 15 June off and tell me the weather in Paris on that day",
                Some("Book 15 June off and tell me the weather in Paris on 15 June"),
            ),
            (
                "Book 15 and 16 June off, and tell me the weather in Turin on those days",
                Some("Book 15 and 16 June off, and tell me the weather in Turin on 15 and 16 June"),
            ),
            ("How is the weather in Paris these days?", None),
            ("The weather in Paris on those days", None),
            (
                "Book 3 June and 9 July off, and the weather in Rome on both days",
                Some("Book 3 June and 9 July off, and the weather in Rome on 2026-06-03 and 2026-07-09"),
            ),
            ("Book 3 June off and 4 to 6 July, and the weather in Rome on those days", None),
        ] {
            assert_eq!(with_named_days(said, &none, &now).as_deref(), meant, "{said}");
        }
        let turns = json!({"turns": [{"request": "x", "calls": [
            {"scene": "V", "tool": "MakeRequest", "arguments": {"from": "2026-06-14", "to": "2026-06-16"}}]}]});
        let before: Conversation = serde_json::from_value(turns).unwrap();
        assert_eq!(
            with_named_days("And how is the weather in Rome on those days?", &before, &now).as_deref(),
            Some("And how is the weather in Rome from 2026-06-14 to 2026-06-16?")
        );
        let turns = json!({"turns": [{"request": "x", "calls": [
            {"scene": "W", "tool": "Forecast", "arguments": {"city": "Rome", "date": "2026-06-14", "days": 3}}]}]});
        let before: Conversation = serde_json::from_value(turns).unwrap();
        assert_eq!(
            with_named_days("Request vacation on those days", &before, &now).as_deref(),
            Some("Request vacation from 2026-06-14 to 2026-06-16")
        );
    }
}
