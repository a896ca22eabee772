//! Why a statement is refused: which layer refused it, where in the text, and what its writer can do.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, IntoStaticStr};

/// The layers of the guard, in the order in which they look at a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Display, EnumIter, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Layer {
    /// Length and characters of the text.
    Text,
    /// Exactly one statement, and nothing after it.
    Statements,
    /// The allow-list of the syntax tree.
    Grammar,
    /// Name resolution against the approved tables.
    Names,
    /// The statement that is handed on reads as the one that was checked.
    Rewrite,
}

/// The code of a refusal. Codes are stable: they are in journals and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumIter, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// No statement at all.
    Empty,
    /// More bytes than `max_bytes`.
    TooLong,
    /// A NUL, a control character or an invisible character that changes how text is read.
    Character,
    /// More than one statement, or text after the first one's semicolon.
    SeveralStatements,
    /// The parser cannot read the text.
    Syntax,
    /// Nested deeper than `max_depth`, or larger than `max_nodes`.
    TooComplex,
    /// Not a query.
    NotAQuery,
    /// A clause that is not on the allow-list.
    Clause,
    /// An expression that is not on the allow-list.
    Expression,
    /// A literal that is not on the allow-list.
    Literal,
    /// An operator that is not on the allow-list.
    Operator,
    /// A function that is not on the allow-list.
    Function,
    /// An argument that makes an allowed function expensive.
    Argument,
    /// A type that is not on the allow-list.
    DataType,
    /// A name with invisible or look-alike characters, or one that the engine would cut.
    Identifier,
    /// The engine's own tables and schemas.
    SystemCatalogue,
    /// A table outside the approved set.
    TableNotApproved,
    /// A view that reads a table outside the approved set.
    ViewNotApproved,
    /// A column that exists but is withheld.
    ColumnWithheld,
    /// A name that is no column of the tables in scope.
    UnknownColumn,
    /// A row of a table used as one value.
    WholeRow,
    /// A name that the two readings of a `WITH` clause resolve differently.
    CteOrder,
    /// The statement written from the syntax tree does not read as the same tree.
    RoundTrip,
    /// The guard itself failed; nothing is executed.
    Internal,
}

/// A place in the text that was checked; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TextPosition {
    /// Line.
    pub line: u64,
    /// Character in the line.
    pub column: u64,
}

/// A statement is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Refusal {
    /// The layer that refused it.
    pub layer: Layer,
    /// The kind of fault.
    pub code: Code,
    /// The fault in words.
    pub what: String,
    /// Where it is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<TextPosition>,
    /// The remedy: what to write instead.
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.what)?;
        if let Some(at) = self.at {
            write!(out, " (line {}, column {})", at.line, at.column)?;
        }
        write!(out, "; {} [{}/{}]", self.remedy, self.layer, self.code)
    }
}

impl Refusal {
    pub(super) fn new(layer: Layer, code: Code, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { layer, code, what: what.into(), at: None, remedy: remedy.into() }
    }

    pub(super) fn at(mut self, at: Option<TextPosition>) -> Self {
        self.at = at;
        self
    }
}

impl TextPosition {
    /// The start of `span`, where the parser kept it.
    pub(super) fn start(span: sqlparser::tokenizer::Span) -> Option<Self> {
        let sqlparser::tokenizer::Location { line, column } = span.start;
        (line > 0).then_some(Self { line, column })
    }
}
