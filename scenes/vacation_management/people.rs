//! Who has how many days and whose approval they need: the scene's settings and `people.toml`.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use proscenium::tools::{ToolContext, ToolError, parse_settings};

use super::calendar::Calendar;

/// Somebody with an allowance of their own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Unique, whatever the case.
    pub username: String,
    /// Full name.
    pub name: String,
    /// Vacation days a calendar year.
    pub days: u32,
    /// User names of those who approve their requests.
    pub approvers: Vec<String>,
}

#[derive(Deserialize)]
struct People {
    people: Vec<Person>,
}

/// `[settings]` of the scene.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Whose public holidays count: `IT`.
    holidays: String,
    /// Days a year of people who are not in the table.
    default_days: u32,
    /// User names of those who approve the requests of people who are not in the table.
    default_approvers: Vec<String>,
    /// People of one's own instead of the bundled ones.
    people: Option<Vec<Person>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { holidays: "IT".to_owned(), default_days: 26, default_approvers: Vec::new(), people: None }
    }
}

static BUNDLED: LazyLock<Result<Vec<Person>, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("people.toml"))
        .map(|people: People| people.people)
        .map_err(|e| format!("scenes/vacation_management/people.toml cannot be read: {e}"))
});

/// What models write for the user who asks.
const ONESELF: [&str; 5] = ["me", "myself", "self", "io", "user"];

/// What holds for the company: its people, defaults and calendar.
pub struct Company {
    people: Cow<'static, [Person]>,
    default_days: u32,
    default_approvers: Vec<String>,
    /// Which days are holidays.
    pub calendar: Calendar,
}

impl Company {
    /// As the scene's settings have it.
    ///
    /// Fails with `vacation.settings` when they do not fit.
    pub fn of(context: &ToolContext) -> Result<Self, ToolError> {
        Self::with(context.settings_as("VacationManagement", "vacation.settings")?)
    }

    /// What is wrong with the scene's settings.
    pub fn check(settings: &Value) -> Result<(), ToolError> {
        Self::with(parse_settings(settings, "VacationManagement", "vacation.settings")?).map(drop)
    }

    fn with(settings: Settings) -> Result<Self, ToolError> {
        let people = match settings.people {
            Some(people) => Cow::Owned(people),
            None => {
                let bundled = BUNDLED.as_ref();
                Cow::Borrowed(
                    bundled.map_err(|e| ToolError::failed("vacation.people", e.as_str()))?.as_slice(),
                )
            }
        };
        Ok(Self {
            people,
            default_days: settings.default_days,
            default_approvers: settings.default_approvers,
            calendar: Calendar::named(&settings.holidays)?,
        })
    }

    /// The person with this user name. A person who is not known has the defaults, and the user name as
    /// full name.
    pub fn person(&self, username: &str) -> Person {
        self.known(username).cloned().unwrap_or_else(|| Person {
            username: username.to_owned(),
            name: username.to_owned(),
            days: self.default_days,
            approvers: self.default_approvers.clone(),
        })
    }

    /// The full name behind a user name, or the user name where there is none.
    pub fn name<'a>(&'a self, username: &'a str) -> &'a str {
        self.known(username).map_or(username, |person| person.name.as_str())
    }

    /// Whether `named` means `person`: the user name or full name, a part of the full name that nobody
    /// else here has, or a word such as "me". Case, accents and a leading `@` do not matter.
    pub fn means(&self, named: &str, person: &Person) -> bool {
        let named = words(named.trim().trim_start_matches('@'));
        let is = |person: &Person| words(&person.username) == named;
        let has = |person: &Person| {
            let name = words(&person.name);
            named.iter().all(|word| name.contains(word))
        };
        if is(person) {
            return true;
        }
        if named.is_empty() || self.people.iter().any(is) {
            return false;
        }
        if named == words(&person.name) || named.len() == 1 && ONESELF.contains(&named[0].as_str()) {
            return true;
        }
        let another = |other: &&Person| !other.username.eq_ignore_ascii_case(&person.username);
        has(person) && !self.people.iter().filter(another).any(has)
    }

    fn known(&self, username: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.username.eq_ignore_ascii_case(username))
    }
}

/// The words of a name, without accents and in lower case.
fn words(name: &str) -> Vec<String> {
    deunicode::deunicode(name).to_lowercase().split_whitespace().map(str::to_owned).collect()
}
