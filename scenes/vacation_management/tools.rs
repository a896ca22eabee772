//! The tools of VacationManagement: requests for vacation, the balance they leave, who approves them.
//!
//! They act for the person who asks and for nobody else, whatever name the conversation states.
//! Days are working days: Monday to Friday without public holidays. People who are not in the data get
//! the default allowance and approvers of the settings, so that the scene serves any company.

mod calendar;
mod desk;
mod people;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod words;
mod write;

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::Value;

use desk::Desk;
use proscenium::tools::{NativeTools, ToolContext, ToolError, native};

/// Adds the tools of this scene under the names that its `scene.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    tools
        .with("vacation.make_request", native(make_request))
        .with("vacation.cancel_request", native(cancel_request))
        .with("vacation.get_approvers", native(get_approvers))
        .with("vacation.get_balance", native(get_balance))
        .with("vacation.get_holidays", native(get_holidays))
        .with("vacation.list_requests", native(list_requests))
        .with_settings("VacationManagement", people::Company::check)
}

/// Days to book.
#[derive(Deserialize)]
struct Make {
    from: Date,
    to: Date,
    #[serde(default)]
    note: Option<String>,
    /// Whom the request names, if it names somebody.
    #[serde(default)]
    employee: Option<String>,
}

/// A request to cancel.
#[derive(Deserialize)]
struct Cancel {
    #[serde(default)]
    request_id: Option<i64>,
    #[serde(default)]
    from: Option<Date>,
    #[serde(default)]
    to: Option<Date>,
    #[serde(default)]
    employee: Option<String>,
}

/// For whom.
#[derive(Deserialize)]
struct Whose {
    #[serde(default)]
    employee: Option<String>,
}

/// A year, of somebody or of the calendar.
#[derive(Deserialize)]
struct Year {
    #[serde(default)]
    year: Option<i16>,
    #[serde(default)]
    employee: Option<String>,
}

/// Which requests.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    year: Option<i16>,
    #[serde(default)]
    include_cancelled: Option<bool>,
    #[serde(default)]
    employee: Option<String>,
}

async fn make_request(arguments: Make, context: ToolContext) -> Result<Value, ToolError> {
    let desk = Desk::open(context, arguments.employee.as_deref())?;
    write::make(&desk, arguments.from, arguments.to, arguments.note.as_deref()).await
}

async fn cancel_request(arguments: Cancel, context: ToolContext) -> Result<Value, ToolError> {
    let desk = Desk::open(context, arguments.employee.as_deref())?;
    let which = write::Which { request_id: arguments.request_id, from: arguments.from, to: arguments.to };
    write::cancel(&desk, which).await
}

async fn get_approvers(arguments: Whose, context: ToolContext) -> Result<Value, ToolError> {
    Ok(read::approvers(&Desk::open(context, arguments.employee.as_deref())?))
}

async fn get_balance(arguments: Year, context: ToolContext) -> Result<Value, ToolError> {
    let desk = Desk::open(context, arguments.employee.as_deref())?;
    read::balance(&desk, arguments.year).await
}

async fn get_holidays(arguments: Year, context: ToolContext) -> Result<Value, ToolError> {
    read::holidays(&Desk::open(context, None)?, arguments.year)
}

async fn list_requests(arguments: List, context: ToolContext) -> Result<Value, ToolError> {
    let desk = Desk::open(context, arguments.employee.as_deref())?;
    read::list(&desk, arguments.year, arguments.include_cancelled.unwrap_or(false)).await
}
