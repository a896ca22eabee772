//! Who is served, with what rules and in which language: what every tool here begins with.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_json::{Value, json};

use proscenium::tools::{ToolContext, ToolError};

use super::calendar::Calendar;
use super::people::{Company, Person};
use super::words::Words;

/// A tool's view of one call. It serves the principal and nobody else.
pub struct Desk {
    /// What the tool was given.
    pub context: ToolContext,
    /// The person who asks.
    pub person: Person,
    /// The user's language.
    pub words: Words,
    company: Company,
}

impl Desk {
    /// For the principal of `context`; `employee` is whom the request names, if it names somebody.
    ///
    /// Refused with `vacation.not_for_others` when that is not the principal.
    pub fn open(context: ToolContext, employee: Option<&str>) -> Result<Self, ToolError> {
        let company = Company::of(&context)?;
        let person = company.person(&context.principal.user);
        let words = Words::of(context.language.as_deref());
        let named = employee.map(str::trim).filter(|named| !named.is_empty());
        if let Some(named) = named.filter(|named| !company.means(named, &person)) {
            let named: String = named.chars().take(64).collect();
            let fields = [
                ("username", person.username.as_str()),
                ("name", person.name.as_str()),
                ("employee", named.as_str()),
            ];
            return Err(words.refused("not_for_others", &fields));
        }
        Ok(Self { context, person, words, company })
    }

    /// Today where the user is.
    pub fn today(&self) -> Date {
        self.context.now.date()
    }

    /// Which days are holidays.
    pub fn calendar(&self) -> Calendar {
        self.company.calendar
    }

    /// The tenant's name, as rows have it.
    pub fn tenant(&self) -> &str {
        self.context.principal.tenant.as_str()
    }

    /// The user's name, as rows have it.
    pub fn user(&self) -> &str {
        &self.person.username
    }

    /// The key of this write.
    ///
    /// Fails with `vacation.no_key` without one: a write that cannot be recognised again would not be
    /// safe to repeat.
    pub fn key(&self) -> Result<&str, ToolError> {
        self.context.idempotency_key.as_deref().ok_or_else(|| {
            ToolError::failed(
                "vacation.no_key",
                "a write was called without an idempotency key: nothing was done",
            )
        })
    }

    /// For whom, in a result.
    pub fn whom(&self) -> Value {
        json!({"username": self.person.username, "name": self.person.name})
    }

    /// Who approves, in a result.
    pub fn approvers(&self) -> Value {
        let approvers = self.person.approvers.iter();
        approvers.map(|username| json!({"username": username, "name": self.company.name(username)})).collect()
    }

    /// Who approves, in a sentence.
    pub fn approvers_named(&self) -> String {
        let names: Vec<&str> =
            self.person.approvers.iter().map(|username| self.company.name(username)).collect();
        if names.is_empty() { "—".to_owned() } else { names.join(", ") }
    }

    /// Days left of the allowance when `used` are taken: never below zero.
    pub fn left(&self, used: i64) -> i64 {
        (i64::from(self.person.days) - used).max(0)
    }

    /// The working days from `from` to `to` by year.
    pub fn working_days(&self, from: Date, to: Date) -> BTreeMap<i16, i64> {
        let days = self.calendar().working_days(from, to);
        days.into_iter().map(|(year, days)| (year, i64::from(days))).collect()
    }
}
