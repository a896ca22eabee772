//! The meaning of SQLite's errors.

use rusqlite::ErrorCode;

use super::super::redact::redact;
use super::super::{SqlEngineError, SqlErrorCode};
use super::authorizer::Seen;
use super::connection::{EndReason, Watch};

/// `error` as an error of this module. `seen` is what the authorizer saw, while a statement is compiled.
pub(super) fn engine_error(error: &rusqlite::Error, watch: &Watch, seen: Option<&Seen>) -> SqlEngineError {
    if let Some(what) = seen.and_then(Seen::denied) {
        let remedy = "write one SELECT over approved columns, with functions of the allow-list";
        return SqlEngineError::new(SqlErrorCode::Forbidden, redact(&what, false), remedy);
    }
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            let message = message.clone().unwrap_or_else(|| failure.to_string());
            (failed(failure.code, &message, watch), message)
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (failed(error.code, msg, watch), msg.clone()),
        rusqlite::Error::MultipleStatement => (SqlErrorCode::Forbidden, "more than one statement".into()),
        rusqlite::Error::InvalidQuery => (SqlErrorCode::Forbidden, "the statement is not a query".into()),
        other => (SqlErrorCode::Internal, other.to_string()),
    };
    let message = match watch.reason() {
        Some(EndReason::Deadline) => "the statement took too long".to_owned(),
        Some(EndReason::Instructions) => "the statement needs too many steps".to_owned(),
        Some(EndReason::Cancelled) => "the statement was cancelled".to_owned(),
        None => redact(&message, false),
    };
    SqlEngineError::new(code, message, remedy(code))
}

fn failed(code: ErrorCode, message: &str, watch: &Watch) -> SqlErrorCode {
    match code {
        ErrorCode::OperationInterrupted => match watch.reason() {
            Some(EndReason::Deadline) => SqlErrorCode::Timeout,
            Some(EndReason::Instructions) => SqlErrorCode::TooExpensive,
            Some(EndReason::Cancelled) | None => SqlErrorCode::Cancelled,
        },
        ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly => SqlErrorCode::Forbidden,
        ErrorCode::TooBig | ErrorCode::OutOfMemory | ErrorCode::DiskFull => SqlErrorCode::TooExpensive,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            SqlErrorCode::Busy
        }
        ErrorCode::CannotOpen
        | ErrorCode::NotADatabase
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::PermissionDenied
        | ErrorCode::SystemIoFailure
        | ErrorCode::NoLargeFileSupport => SqlErrorCode::Unreadable,
        ErrorCode::TypeMismatch => SqlErrorCode::Type,
        ErrorCode::Unknown => of_message(message),
        _ => SqlErrorCode::Internal,
    }
}

/// SQLite has one code for most faults of a statement; the text tells them apart.
fn of_message(message: &str) -> SqlErrorCode {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["no such ", "ambiguous column"]) {
        SqlErrorCode::UnknownName
    } else if says(&[
        "too large", "too many", "stack overflow", "too complex", "too big", "too long", "too deep",
    ]) {
        SqlErrorCode::TooExpensive
    } else if says(&[
        "wrong number of arguments",
        "do not have the same number of result columns",
        "row value misused",
    ]) {
        SqlErrorCode::Type
    } else if says(&["overflow", "malformed JSON", "JSON path", "JSON cannot hold"]) {
        SqlErrorCode::Data
    } else {
        SqlErrorCode::Syntax
    }
}

fn remedy(code: SqlErrorCode) -> &'static str {
    match code {
        SqlErrorCode::Timeout | SqlErrorCode::TooExpensive => "ask for less: fewer tables, rows or columns",
        SqlErrorCode::Busy => "try again later",
        SqlErrorCode::Unreadable => {
            "check that the file is an SQLite database that this process may read, with its -wal file"
        }
        SqlErrorCode::UnknownName => {
            "use tables, columns and functions that exist, each with its table's name"
        }
        SqlErrorCode::Syntax => "write one SELECT in the SQL of SQLite",
        SqlErrorCode::Type => "make the arguments and types fit",
        SqlErrorCode::Data => "leave out or convert the values that do not fit",
        SqlErrorCode::Forbidden => "write one SELECT over approved tables",
        SqlErrorCode::Cancelled => "nothing is to be done",
        _ => "nothing was changed; report this",
    }
}
