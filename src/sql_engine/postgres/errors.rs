//! The meaning of errors of PostgreSQL and of the connection.

use sqlx::Error;
use sqlx::postgres::PgDatabaseError;

use super::super::redact::redact;
use super::super::{SqlEngineError, SqlErrorCode};

/// `error` as an error of this module, without values and addresses.
pub(super) fn engine_error(error: &Error) -> SqlEngineError {
    let (code, message) = match error {
        Error::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => return of_server(error.code(), error.message(), error.hint()),
            None => (SqlErrorCode::Internal, "the database reports an error".to_owned()),
        },
        Error::Io(error) => (SqlErrorCode::Connection, format!("the connection failed: {}", error.kind())),
        Error::Tls(_) => {
            (SqlErrorCode::Authentication, "the server's certificate is not accepted".to_owned())
        }
        Error::Configuration(_) => {
            (SqlErrorCode::Settings, "the connection's settings are not accepted".to_owned())
        }
        Error::Protocol(_) | Error::WorkerCrashed | Error::PoolClosed => {
            (SqlErrorCode::Connection, "the connection broke".to_owned())
        }
        Error::PoolTimedOut => (SqlErrorCode::Busy, "all connections are in use".to_owned()),
        _ => (SqlErrorCode::Internal, "the database's reply cannot be read".to_owned()),
    };
    SqlEngineError::new(code, message, remedy(code))
}

/// An error of the server, by its SQLSTATE.
pub(super) fn of_server(state: &str, message: &str, hint: Option<&str>) -> SqlEngineError {
    let code = code(state);
    // Messages about data quote values, those about the statement quote names.
    let about_data = matches!(state.get(..2), Some("22" | "23"));
    let message = match code {
        SqlErrorCode::Authentication => "the server refuses the user, the password or the host".to_owned(),
        SqlErrorCode::Settings => "the server does not know the database".to_owned(),
        _ => redact(message, about_data),
    };
    let hint = hint.filter(|_| matches!(code, SqlErrorCode::UnknownName | SqlErrorCode::Type));
    let remedy = hint.map_or_else(|| remedy(code).to_owned(), |hint| redact(hint, false));
    SqlEngineError::new(code, message, remedy)
}

fn code(state: &str) -> SqlErrorCode {
    match state {
        "57014" => SqlErrorCode::Timeout,
        "55P03" | "53300" | "57P03" | "55006" => SqlErrorCode::Busy,
        "42501" => SqlErrorCode::Permission,
        "25006" => SqlErrorCode::Forbidden,
        // A parameter without a value.
        "08P01" => SqlErrorCode::Syntax,
        "3D000" => SqlErrorCode::Settings,
        "42P01" | "42703" | "42883" | "42P02" | "42702" | "42725" | "42704" | "42712" | "42P09" | "3F000" => {
            SqlErrorCode::UnknownName
        }
        "42804" | "42P18" | "42846" | "42P08" | "42P21" | "42P22" | "42809" => SqlErrorCode::Type,
        "21000" => SqlErrorCode::Data,
        _ => match state.get(..2) {
            Some("08" | "57" | "25") => SqlErrorCode::Connection,
            Some("28") => SqlErrorCode::Authentication,
            Some("40") => SqlErrorCode::Busy,
            Some("42" | "0A" | "26" | "34") => SqlErrorCode::Syntax,
            Some("22" | "23") => SqlErrorCode::Data,
            Some("53" | "54") => SqlErrorCode::TooExpensive,
            _ => SqlErrorCode::Internal,
        },
    }
}

fn remedy(code: SqlErrorCode) -> &'static str {
    match code {
        SqlErrorCode::Timeout | SqlErrorCode::TooExpensive => "ask for less: fewer tables, rows or days",
        SqlErrorCode::Busy => "try again later",
        SqlErrorCode::Connection => "check that the server runs and can be reached, then try again",
        SqlErrorCode::Authentication => {
            "check the user, the password, `sslmode` and the server's certificate"
        }
        SqlErrorCode::Settings => "check the database's name in the URL",
        SqlErrorCode::Permission => "read tables and columns that the role may read, or grant SELECT on them",
        SqlErrorCode::UnknownName => {
            "use tables, columns and functions that exist, each with its table's name"
        }
        SqlErrorCode::Syntax => "write one SELECT in the SQL of PostgreSQL",
        SqlErrorCode::Type => "make the arguments and types fit, with a cast where one is needed",
        SqlErrorCode::Data => "leave out or convert the values that do not fit",
        SqlErrorCode::Forbidden => "write one SELECT that only reads approved tables",
        _ => "nothing was changed; report this",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_different_codes_and_no_values() {
        for (state, message, code, kept) in [
            (
                "57014",
                "canceling statement due to statement timeout",
                SqlErrorCode::Timeout,
                "statement timeout",
            ),
            ("42501", "permission denied for table secrets", SqlErrorCode::Permission, "secrets"),
            ("42601", "syntax error at or near \"FORM\"", SqlErrorCode::Syntax, "FORM"),
            ("42703", "column \"nome\" does not exist", SqlErrorCode::UnknownName, "nome"),
            (
                "22P02",
                "invalid input syntax for type integer: \"Rossi\"",
                SqlErrorCode::Data,
                "integer: \"…\"",
            ),
            ("22012", "division by zero", SqlErrorCode::Data, "zero"),
            ("08006", "connection failure", SqlErrorCode::Connection, "connection"),
            (
                "28P01",
                "password authentication failed for user \"anna\"",
                SqlErrorCode::Authentication,
                "refuses",
            ),
            ("53200", "out of memory", SqlErrorCode::TooExpensive, "memory"),
            ("25006", "cannot execute INSERT in a read-only transaction", SqlErrorCode::Forbidden, "INSERT"),
        ] {
            let error = of_server(state, message, None);
            assert_eq!(error.code, code, "{state}");
            assert!(error.message.contains(kept), "{error}");
            assert!(!error.message.contains("Rossi") && !error.message.contains("anna"), "{error}");
        }
    }

    #[test]
    fn an_address_of_a_connection_is_not_shown() {
        let error = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "10.1.2.3:5432 refused");
        let error = engine_error(&Error::Io(error));
        assert_eq!(error.code, SqlErrorCode::Connection);
        assert!(!error.to_string().contains("10.1.2.3"), "{error}");
    }
}
