//! What can be asked: balance, requests, approvers, public holidays.

use jiff::civil::Date;
use serde_json::{Value, json};

use proscenium::tools::ToolError;

use super::calendar::{YEARS, is_weekend};
use super::desk::Desk;
use super::rows::{self, MOST_ROWS};

/// The vacation days that the principal has left in a year, by default the present one.
pub async fn balance(desk: &Desk, year: Option<i16>) -> Result<Value, ToolError> {
    let year = known(desk, year)?;
    let mut db = desk.context.store.pool().acquire().await?;
    let used = rows::used(&mut db, desk, year).await?;
    Ok(json!({
        "for": desk.whom(),
        "year": year,
        "allowance_days": desk.person.days,
        "requested_days": used,
        "remaining_days": desk.left(used),
    }))
}

/// The principal's requests in a year, or from the beginning of the present year on.
pub async fn list(desk: &Desk, year: Option<i16>, cancelled_too: bool) -> Result<Value, ToolError> {
    let first = known(desk, year)?;
    let from = start(first)?;
    let to = if year.is_some() { from.last_of_year() } else { Date::MAX };
    let mut db = desk.context.store.pool().acquire().await?;
    let found = rows::between(&mut db, desk, from, to, cancelled_too).await?;
    let requests: Vec<Value> = found
        .iter()
        .take(MOST_ROWS)
        .map(|request| {
            json!({
                "request_id": request.id,
                "from": request.from,
                "to": request.to,
                "working_days": request.working_days,
                "status": if request.cancelled { "cancelled" } else { "pending approval" },
                "note": request.note,
            })
        })
        .collect();
    Ok(json!({
        "for": desk.whom(),
        "since": from,
        "count": requests.len(),
        "requests": requests,
        "more": found.len() > MOST_ROWS,
    }))
}

/// Who approves the principal's requests.
pub fn approvers(desk: &Desk) -> Value {
    json!({"for": desk.whom(), "approvers": desk.approvers()})
}

/// The public holidays of a year, by default the present one.
pub fn holidays(desk: &Desk, year: Option<i16>) -> Result<Value, ToolError> {
    let year = known(desk, year)?;
    let holidays: Vec<Value> = desk
        .calendar()
        .holidays(year)
        .iter()
        .map(|holiday| {
            json!({
                "date": holiday.date,
                "name": desk.words.holiday(holiday.key),
                "weekend": is_weekend(holiday.date),
            })
        })
        .collect();
    Ok(json!({"country": "IT", "year": year, "holidays": holidays}))
}

/// The year asked for, or the present one, if its calendar is known.
fn known(desk: &Desk, year: Option<i16>) -> Result<i16, ToolError> {
    let year = year.unwrap_or_else(|| desk.today().year());
    if YEARS.contains(&year) {
        return Ok(year);
    }
    let fields =
        [("year", year.to_string()), ("first", YEARS.start().to_string()), ("last", YEARS.end().to_string())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    Err(desk.words.refused("year", &fields))
}

fn start(year: i16) -> Result<Date, ToolError> {
    Date::new(year, 1, 1).map_err(|e| ToolError::refused("vacation.year", e.to_string()))
}
