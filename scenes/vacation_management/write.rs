//! Making and cancelling requests. Each in one transaction, each once for its idempotency key.

use jiff::civil::Date;
use serde_json::{Value, json};

use proscenium::tools::ToolError;

use super::desk::Desk;
use super::rows::{self, New, Request};

/// Most calendar days in one request.
const MOST_DAYS: i32 = 366;

/// Books the days from `from` to `to`, unless there is a reason not to.
pub async fn make(desk: &Desk, from: Date, to: Date, note: Option<&str>) -> Result<Value, ToolError> {
    let key = desk.key()?;
    let note = note.map(str::trim).filter(|note| !note.is_empty());
    let mut transaction = rows::begin(desk).await?;
    if let Some(made) = rows::made_by(&mut transaction, desk, key).await? {
        return repeated(desk, &made, from, to);
    }
    let days = checked(desk, from, to)?;
    if let Some(other) = rows::overlapping(&mut transaction, desk, from, to).await? {
        let (period, number) = (desk.words.period(from, to), other.id.to_string());
        let fields = [
            ("name", desk.person.name.as_str()),
            ("period", &period),
            ("request_id", &number),
            ("other", &desk.words.period(other.from, other.to)),
        ];
        return Err(desk.words.refused("overlap", &fields));
    }
    let mut years = Vec::new();
    for (year, needed) in &days {
        let remaining = desk.left(rows::used(&mut transaction, desk, *year).await?);
        if *needed > remaining {
            let fields = [
                ("name", desk.person.name.as_str()),
                ("needed", &needed.to_string()),
                ("year", &year.to_string()),
                ("remaining", &remaining.to_string()),
            ];
            return Err(desk.words.refused("balance", &fields));
        }
        years.push(json!({"year": year, "working_days": needed, "remaining_days": remaining - needed}));
    }
    let mut answer = json!({
        "for": desk.whom(),
        "from": from,
        "to": to,
        "working_days": days.iter().map(|(_, days)| days).sum::<i64>(),
        "remaining_days": years.first().map(|year| year["remaining_days"].clone()),
        "years": years,
        "status": "pending approval",
        "approvers": desk.approvers(),
    });
    if let Some(note) = note {
        answer["note"] = json!(note);
    }
    let new = New { from, to, note, key, answer: answer.to_string(), days: &days };
    let id = rows::insert(&mut transaction, desk, new).await?;
    rows::commit(transaction).await?;
    answer["request_id"] = json!(id);
    Ok(answer)
}

/// What does not depend on other requests; the working days by year.
fn checked(desk: &Desk, from: Date, to: Date) -> Result<Vec<(i16, i64)>, ToolError> {
    let (words, name) = (desk.words, desk.person.name.as_str());
    if to < from {
        let fields = [("name", name), ("from", &words.day(from)), ("to", &words.day(to))];
        return Err(words.refused("order", &fields));
    }
    if from < desk.today() {
        let fields = [("name", name), ("from", &words.day(from)), ("today", &words.day(desk.today()))];
        return Err(words.refused("past", &fields));
    }
    let period = words.period(from, to);
    // Both are days of the calendar and in order: the difference is that of whole days.
    let calendar_days = from.until(to).map_or(i32::MAX, |span| span.get_days().saturating_add(1));
    if calendar_days > MOST_DAYS {
        let fields = [
            ("name", name),
            ("period", &period),
            ("days", &calendar_days.to_string()),
            ("most", &MOST_DAYS.to_string()),
        ];
        return Err(words.refused("too_long", &fields));
    }
    let days: Vec<_> = desk.working_days(from, to).into_iter().collect();
    if days.is_empty() {
        return Err(words.refused("no_working_day", &[("name", name), ("period", &period)]));
    }
    Ok(days)
}

/// The same call again: what it answered the first time.
fn repeated(desk: &Desk, made: &Request, from: Date, to: Date) -> Result<Value, ToolError> {
    if (made.from, made.to) != (from, to) {
        let (number, other) = (made.id.to_string(), desk.words.period(made.from, made.to));
        return Err(desk.words.refused("key_reused", &[("request_id", &number), ("other", &other)]));
    }
    let mut answer: Value = serde_json::from_str(&made.answer).map_err(|e| {
        ToolError::failed(
            "store.error",
            format!("the answer stored with request {} is not JSON: {e}", made.id),
        )
    })?;
    answer["request_id"] = json!(made.id);
    Ok(answer)
}

/// Which request to cancel: by number, or by its first day.
pub struct Which {
    /// Its number.
    pub request_id: Option<i64>,
    /// Its first day.
    pub from: Option<Date>,
    /// Its last day, where the user said so: a part of a request cannot be cancelled.
    pub to: Option<Date>,
}

/// Cancels one request of the principal and gives its days back.
pub async fn cancel(desk: &Desk, which: Which) -> Result<Value, ToolError> {
    let key = desk.key()?;
    let mut transaction = rows::begin(desk).await?;
    if let Some(done) = rows::cancelled_by(&mut transaction, desk, key).await? {
        return cancelled(&mut transaction, desk, &done, false).await;
    }
    let request = wanted(&mut transaction, desk, &which).await?;
    if request.cancelled {
        return cancelled(&mut transaction, desk, &request, true).await;
    }
    if request.from < desk.today() {
        let fields = [
            ("request_id", request.id.to_string()),
            ("other", desk.words.period(request.from, request.to)),
            ("approvers", desk.approvers_named()),
        ];
        return Err(desk.words.refused("begun", &borrowed(&fields)));
    }
    rows::cancel(&mut transaction, desk, request.id, key).await?;
    let answer = cancelled(&mut transaction, desk, &request, false).await?;
    rows::commit(transaction).await?;
    Ok(answer)
}

/// The one request that is meant, or the reason why none is. Requests of others are as if they did
/// not exist.
async fn wanted(db: &mut sqlx::SqliteConnection, desk: &Desk, which: &Which) -> Result<Request, ToolError> {
    let words = desk.words;
    let name = desk.person.name.clone();
    let request = match (which.request_id, which.from) {
        (Some(id), _) => match rows::numbered(db, desk, id).await? {
            Some(request) => request,
            None => {
                let fields =
                    [("name", name), ("request_id", id.to_string()), ("requests", standing(db, desk).await?)];
                return Err(words.refused("no_such_number", &borrowed(&fields)));
            }
        },
        (None, Some(from)) => match rows::beginning(db, desk, from).await? {
            Some(request) => request,
            None => {
                if let Some(request) = rows::overlapping(db, desk, from, from).await? {
                    return Err(whole_only(desk, &request));
                }
                let fields =
                    [("name", name), ("from", words.day(from)), ("requests", standing(db, desk).await?)];
                return Err(words.refused("no_such_day", &borrowed(&fields)));
            }
        },
        (None, None) => {
            let fields = [("name", name), ("requests", standing(db, desk).await?)];
            return Err(words.refused("which", &borrowed(&fields)));
        }
    };
    let differs = |said: Option<Date>, stored: Date| said.is_some_and(|said| said != stored);
    if differs(which.from, request.from) || differs(which.to, request.to) {
        return Err(whole_only(desk, &request));
    }
    Ok(request)
}

fn whole_only(desk: &Desk, request: &Request) -> ToolError {
    let fields = [
        ("request_id", request.id.to_string()),
        ("name", desk.person.name.clone()),
        ("other", desk.words.period(request.from, request.to)),
    ];
    desk.words.refused("whole_only", &borrowed(&fields))
}

/// The requests that may still be cancelled, in a sentence: "3 (15–17 giugno 2026), …".
async fn standing(db: &mut sqlx::SqliteConnection, desk: &Desk) -> Result<String, ToolError> {
    let requests = rows::between(db, desk, desk.today(), Date::MAX, false).await?;
    let named: Vec<String> = requests
        .iter()
        .take(10)
        .map(|request| format!("{} ({})", request.id, desk.words.period(request.from, request.to)))
        .collect();
    Ok(if named.is_empty() { desk.words.none().to_owned() } else { named.join(", ") })
}

/// The result of a cancellation, with what is left now.
async fn cancelled(
    db: &mut sqlx::SqliteConnection,
    desk: &Desk,
    request: &Request,
    already: bool,
) -> Result<Value, ToolError> {
    let mut years = Vec::new();
    for (year, days) in rows::days_of(db, request.id).await? {
        let remaining = desk.left(rows::used(db, desk, year).await?);
        years.push(json!({"year": year, "returned_days": days, "remaining_days": remaining}));
    }
    Ok(json!({
        "request_id": request.id,
        "for": desk.whom(),
        "from": request.from,
        "to": request.to,
        "returned_days": request.working_days,
        "remaining_days": years.first().map(|year| year["remaining_days"].clone()),
        "years": years,
        "status": "cancelled",
        "already_cancelled": already,
    }))
}

fn borrowed<'a>(fields: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    fields.iter().map(|(name, value)| (*name, value.as_str())).collect()
}
