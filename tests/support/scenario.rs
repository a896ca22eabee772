//! The scenarios of `tests/scenarios/multi-scene.yaml`.

use std::path::Path;

use jiff::Zoned;
use jiff::civil::Date;
use proscenium::eval::{self, Scenario};

use super::test_engine::{CLOCK, ZONE};

/// All scenarios. They use the clock of every [`super::TestEngine`].
pub fn all() -> Vec<Scenario> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/multi-scene.yaml");
    let sets = eval::read_files(std::slice::from_ref(&file)).unwrap();
    assert_eq!(sets[0].surroundings.clock, Some(CLOCK.parse().unwrap()));
    assert_eq!(sets[0].surroundings.time_zone.as_deref(), Some(ZONE));
    eval::read_scenarios(&file).unwrap()
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
