//! The types that a cast may name, and the literals that may be written.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, Expr, Value};

use super::super::functions::MAX_WIDTH;
use super::super::refusal::{Code, Refusal};
use super::tables::place;
use super::{Dialect, Reader, refuse};

impl Reader<'_> {
    /// Types of plain data. PostgreSQL's `regclass` and its relatives look names up in the catalogue; types that are
    /// named only may be anyone's.
    pub(super) fn data_type(&self, data_type: &DataType, expr: &Expr) -> Result<(), Refusal> {
        let allowed = match data_type {
            DataType::Char(length)
            | DataType::Character(length)
            | DataType::Varchar(length)
            | DataType::CharVarying(length)
            | DataType::CharacterVarying(length) => match length {
                None => true,
                Some(CharacterLength::IntegerLength { length, unit: _ }) => *length <= MAX_WIDTH,
                Some(CharacterLength::Max) => false,
            },
            DataType::Text
            | DataType::Uuid
            | DataType::Blob(None)
            | DataType::Bytea
            | DataType::Numeric(_)
            | DataType::Decimal(_)
            | DataType::Dec(_)
            | DataType::Float(_)
            | DataType::Float4
            | DataType::Float8
            | DataType::Real
            | DataType::Double(_)
            | DataType::DoublePrecision
            | DataType::SmallInt(_)
            | DataType::Int(_)
            | DataType::Int2(_)
            | DataType::Int4(_)
            | DataType::Int8(_)
            | DataType::Integer(_)
            | DataType::BigInt(_)
            | DataType::Bool
            | DataType::Boolean
            | DataType::Date
            | DataType::Time(..)
            | DataType::Timestamp(..)
            | DataType::Datetime(None)
            | DataType::Interval { .. }
            | DataType::JSON
            | DataType::JSONB => true,
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)) => {
                return self.data_type(element, expr);
            }
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        let what = format!("the type {data_type} is not allowed");
        Err(refuse(Code::DataType, what, "cast to numbers, text, dates or JSON").at(place(expr)))
    }

    pub(super) fn literal(&self, value: &Value, expr: &Expr) -> Result<(), Refusal> {
        let allowed = match value {
            Value::Number(..) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => true,
            Value::HexStringLiteral(_) => self.dialect == Dialect::Sqlite,
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        let what = format!("the literal {value} is not allowed");
        Err(refuse(Code::Literal, what, "write numbers and 'single-quoted' strings, and no parameters")
            .at(place(expr)))
    }
}
