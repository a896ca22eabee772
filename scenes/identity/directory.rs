//! The people there are, and how they are found.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use proscenium::tools::{ToolContext, ToolError, parse_settings};

/// Somebody in the directory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Unique, whatever the case.
    pub username: String,
    /// Full name: public.
    pub name: String,
    /// Public.
    pub department: String,
    /// Private.
    pub email: Option<String>,
    /// User name of the manager: private.
    pub manager: Option<String>,
}

#[derive(Deserialize)]
struct People {
    people: Vec<Person>,
}

/// `[settings]` of the scene.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// People of one's own instead of the bundled ones.
    people: Option<Vec<Person>>,
}

static BUNDLED: LazyLock<Result<Vec<Person>, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("people.toml"))
        .map(|people: People| people.people)
        .map_err(|e| format!("scenes/identity/people.toml cannot be read: {e}"))
});

/// All people of the company.
pub struct Directory {
    people: Cow<'static, [Person]>,
}

impl Directory {
    /// The people that the scene's settings give, else the bundled ones.
    ///
    /// Fails with `identity.settings` when the settings do not fit.
    pub fn of(context: &ToolContext) -> Result<Self, ToolError> {
        let settings: Settings = context.settings_as("Identity", "identity.settings")?;
        let people = match settings.people {
            Some(people) => Cow::Owned(people),
            None => {
                let bundled = BUNDLED.as_ref();
                Cow::Borrowed(
                    bundled.map_err(|e| ToolError::failed("identity.directory", e.as_str()))?.as_slice(),
                )
            }
        };
        Ok(Self { people })
    }

    /// What is wrong with the scene's settings.
    pub fn check(settings: &Value) -> Result<(), ToolError> {
        parse_settings::<Settings>(settings, "Identity", "identity.settings").map(drop)
    }

    /// The one person with this user name or else, where only one has it, this full name, first name
    /// or family name. Case, accents and a leading `@` do not matter.
    pub fn person(&self, asked: &str) -> Option<&Person> {
        let wanted = folded(asked.trim().trim_start_matches('@'));
        if let Some(person) = self.people.iter().find(|p| folded(&p.username) == wanted) {
            return Some(person);
        }
        let only = |is_named: &dyn Fn(&str) -> bool| {
            let mut named = self.people.iter().filter(|p| is_named(&folded(&p.name)));
            let first = named.next()?;
            named.next().is_none().then_some(first)
        };
        only(&|name| name == wanted).or_else(|| only(&|name| name.split(' ').any(|part| part == wanted)))
    }

    /// Everybody whose name or user name contains each word of `part`, by name. No word: nobody.
    pub fn matching(&self, part: &str) -> Vec<&Person> {
        let part = folded(part);
        let between = |c: char| c.is_whitespace() || matches!(c, ',' | '@' | '"');
        let words: Vec<&str> = part.split(between).filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<&Person> = self
            .people
            .iter()
            .filter(|person| {
                let (name, username) = (folded(&person.name), folded(&person.username));
                words.iter().all(|word| name.contains(word) || username.contains(word))
            })
            .collect();
        found.sort_by(|a, b| (&a.name, &a.username).cmp(&(&b.name, &b.username)));
        found
    }
}

/// For comparison: without accents, in lower case, single spaces.
fn folded(text: &str) -> String {
    let plain = deunicode::deunicode(text).to_lowercase();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
