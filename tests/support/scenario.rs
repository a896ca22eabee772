//! Parser of `tests/scenarios/multi-scene.yaml`: unknown fields are errors.

use std::collections::BTreeMap;

use jiff::Zoned;
use jiff::civil::Date;
use serde::Deserialize;

use super::test_engine::{CLOCK, ZONE};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenarios {
    pub clock: String,
    pub time_zone: String,
    pub scenarios: Vec<Scenario>,
}

/// One entry: turns of one conversation, or a request in each of several concurrent ones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub id: String,
    #[serde(default)]
    pub turns: Vec<Turn>,
    #[serde(default)]
    pub concurrent_sessions: Vec<String>,
    pub repeat: Option<Repeat>,
    #[serde(default)]
    pub then: Vec<Turn>,
    pub with: Option<String>,
    pub check: Option<String>,
}

/// A request of a conversation, and what a user would check afterwards.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub say: String,
    pub scenes: Option<Vec<String>>,
    #[serde(default)]
    pub before: Vec<[String; 2]>,
    #[serde(default)]
    pub tools: Vec<ToolCheck>,
    #[serde(default)]
    pub answer_mentions: Vec<String>,
    #[serde(default)]
    pub never: Vec<String>,
    pub check: Option<String>,
}

/// A successful tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCheck {
    pub name: String,
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

/// The same request for each day of the month, counted from 1.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    pub times: i8,
    pub say: String,
}

/// All scenarios. They use the clock of every [`super::TestEngine`].
pub fn all() -> Vec<Scenario> {
    let read: Scenarios = serde_norway::from_str(include_str!("../scenarios/multi-scene.yaml")).unwrap();
    assert_eq!((read.clock.as_str(), read.time_zone.as_str()), (CLOCK, ZONE));
    read.scenarios
}

/// The date of "today".
pub fn today() -> Date {
    let now: Zoned = format!("{CLOCK}[{ZONE}]").parse().unwrap();
    now.date()
}

/// The next day of the month numbered `day`, today included, as `YYYY-MM-DD`.
pub fn next_day(day: i8) -> String {
    today().series(jiff::Span::new().days(1)).find(|date| date.day() == day).unwrap().to_string()
}

impl ToolCheck {
    /// Whether the arguments of a call match: each equals one of the alternatives, or is the next date that
    /// ends with it.
    pub fn fits(&self, arguments: &serde_json::Value) -> bool {
        self.args.iter().all(|(name, meant)| {
            let given = arguments[name].as_str().unwrap_or_default();
            meant.split('|').any(|meant| given == meant || next_date(meant).is_some_and(|date| date == given))
        })
    }
}

/// `06-15` as the next such date.
fn next_date(suffix: &str) -> Option<String> {
    let (month, day) = suffix.split_once('-')?;
    if month.len() != 2 || day.len() != 2 {
        return None;
    }
    let dates = today().series(jiff::Span::new().days(1)).take(366).map(|date| date.to_string());
    dates.into_iter().find(|date| date.ends_with(suffix))
}
