//! How the values of arguments are read, and what is said of those that cannot be.

use proscenium::adapt::{ExecutionLevel, ExecutionMode};
use proscenium::run::PlanConstraints;
use strum::VariantArray;

/// A value as JSON.
pub fn json_value(text: &str) -> Result<serde_json::Value, String> {
    proscenium::long_integers::parse(text.as_bytes())
        .map_err(|error| format!("this is not valid JSON: {error}"))
}

/// A JSON object.
pub fn json_object(text: &str) -> Result<serde_json::Value, String> {
    let value = json_value(text)?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("write a JSON object, such as '{\"number\": 7}'".to_owned())
    }
}

/// The constraints of a request, as JSON.
pub fn constraints(text: &str) -> Result<PlanConstraints, String> {
    serde_path_to_error::deserialize(json_value(text)?).map_err(|error| error.to_string())
}

/// A level by its name.
pub fn level(word: &str) -> Result<ExecutionLevel, String> {
    let names: Vec<&str> = ExecutionLevel::VARIANTS.iter().map(|level| level.name()).collect();
    word.parse().map_err(|_| format!("use one of: {}", names.join(", ")))
}

/// A mode by its name.
pub fn mode(word: &str) -> Result<ExecutionMode, String> {
    let names: Vec<&str> = ExecutionMode::VARIANTS.iter().map(|mode| mode.name()).collect();
    word.parse().map_err(|_| format!("use one of: {}", names.join(", ")))
}

/// A role by its name.
pub fn role(given: &str) -> Result<proscenium::access::Role, String> {
    proscenium::access::Role::from_name(given)
        .ok_or_else(|| "the roles are user, approver, auditor, admin and service".to_owned())
}

/// An address to listen on.
pub fn listen_address(given: &str) -> Result<String, String> {
    if proscenium::config::is_listen_address(given) {
        Ok(given.to_owned())
    } else {
        Err("write HOST:PORT, such as 127.0.0.1:8090".to_owned())
    }
}

/// When a key expires: a day (its start in UTC), a time, or a duration from now.
pub fn expiry(given: &str) -> Result<jiff::Timestamp, String> {
    let bad = || "write a day (2027-01-31), a time (2027-01-31T12:00:00Z), or how long (90d, 12h)".to_owned();
    let now = jiff::Timestamp::now();
    let at = if let Ok(at) = given.parse::<jiff::Timestamp>() {
        at
    } else if let Ok(day) = given.parse::<jiff::civil::Date>() {
        day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| bad())?.timestamp()
    } else {
        let (number, hours) = match (given.strip_suffix('d'), given.strip_suffix('h')) {
            (Some(days), _) => (days, 24),
            (_, Some(hours)) => (hours, 1),
            _ => return Err(bad()),
        };
        let number: i64 = number.parse::<u32>().map_err(|_| bad())?.into();
        now.checked_add(jiff::SignedDuration::from_hours(number * hours)).map_err(|_| bad())?
    };
    if at > now { Ok(at) } else { Err("that is not in the future".to_owned()) }
}

/// The head of an audit log.
pub fn hash(given: &str) -> Result<String, String> {
    match given.len() == 64 && given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(given.to_ascii_lowercase()),
        false => Err("a head has 64 characters from 0-9 and a-f, as `audit verify` prints it".to_owned()),
    }
}

/// The id of a tenant.
pub fn tenant(given: &str) -> Result<proscenium::run::TenantId, proscenium::run::InvalidId> {
    proscenium::run::TenantId::new(given)
}

/// A user's name.
pub fn user(given: &str) -> Result<String, String> {
    match given.trim() {
        "" => Err("a user name cannot be empty".to_owned()),
        _ => label(given),
    }
}

/// A description, or another text of one line.
pub fn label(given: &str) -> Result<String, String> {
    match given.chars().count() > 128 || given.chars().any(char::is_control) {
        true => Err("use at most 128 printable characters".to_owned()),
        false => Ok(given.to_owned()),
    }
}

/// A kind of fact by its name.
pub fn fact_kind(given: &str) -> Result<proscenium::run::FactKind, String> {
    given.parse().map_err(|_| "a kind is given, verified, quoted, derived or guess".to_owned())
}

/// A message, without the space around it.
pub fn message(given: &str) -> Result<String, String> {
    match given.trim() {
        "" => Err("a message needs at least one word".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// The id of a conversation.
pub fn session(given: &str) -> Result<proscenium::run::SessionId, proscenium::run::InvalidId> {
    proscenium::run::SessionId::new(given)
}
