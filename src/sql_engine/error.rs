//! Why a database could not be opened, or a statement not be executed.

use serde::{Deserialize, Serialize};

/// The kinds of failures. [`SqlErrorCode::as_str`] is stable: it is in journals and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, strum::Display, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(prefix = "sql.engine.", serialize_all = "snake_case")]
pub enum SqlErrorCode {
    /// The settings of the database are wrong.
    Settings,
    /// The database is the product's own.
    OwnDatabase,
    /// The file cannot be read, or is no database.
    Unreadable,
    /// The server cannot be reached, or the connection broke.
    Connection,
    /// The server refuses the user, the password or the certificate.
    Authentication,
    /// The role may do more than read.
    Role,
    /// No free connection in time, or the database is locked.
    Busy,
    /// The statement took too long.
    Timeout,
    /// The caller no longer waits for the statement.
    Cancelled,
    /// The statement would cost, or has cost, more than allowed; or one value is too large.
    TooExpensive,
    /// The engine's layer refuses the statement: it does more than read what is approved.
    Forbidden,
    /// The role has no permission.
    Permission,
    /// The engine cannot read the statement.
    Syntax,
    /// A table, column or function does not exist, or a name is ambiguous.
    UnknownName,
    /// Types do not fit: arguments of a function, operands, arms of a UNION.
    Type,
    /// The data does not allow it: division by zero, a cast that fails, a number out of range.
    Data,
    /// A table that was named is not in the schema.
    UnknownTable,
    /// Anything else.
    Internal,
}

impl SqlErrorCode {
    /// The code: `sql.engine.…`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether another statement may succeed where this one failed, so that it is worth writing one.
    #[must_use]
    pub fn is_repairable(self) -> bool {
        match self {
            Self::TooExpensive
            | Self::Timeout
            | Self::Forbidden
            | Self::Permission
            | Self::Syntax
            | Self::UnknownName
            | Self::Type
            | Self::Data => true,
            Self::Settings
            | Self::OwnDatabase
            | Self::Unreadable
            | Self::Connection
            | Self::Authentication
            | Self::Role
            | Self::Busy
            | Self::Cancelled
            | Self::UnknownTable
            | Self::Internal => false,
        }
    }
}

/// A database could not be opened, or a statement not be executed. No text of it holds a value of the data or of the
/// statement, a password or an address: it may be shown to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}; {remedy} [{code}]")]
pub struct SqlEngineError {
    /// The kind of failure.
    pub code: SqlErrorCode,
    /// What failed, in the engine's words where it has some; values are redacted.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl SqlEngineError {
    pub(super) fn new(code: SqlErrorCode, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: remedy.into() }
    }
}
