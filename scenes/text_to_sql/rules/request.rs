//! A question as understood: what is shown or computed, of which rows, in which order.

use jiff::civil::Date;

use super::dates::YearTest;
use super::lexicon::{Comparison, Direction, Function, Period};
use super::vocabulary::ColumnAt;

/// A value in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// A text.
    Text(String),
    /// A number, as SQL writes it.
    Number(String),
}

impl Literal {
    /// Whether it is this text.
    pub fn is_text(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }
}

/// What a condition demands of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// One of these values.
    OneOf(Vec<Literal>),
    /// None of these values.
    NoneOf(Vec<Literal>),
    /// A comparison with a number.
    Compare(Comparison, String),
    /// From one number to another, both included.
    Between(String, String),
    /// A truth value.
    Is(bool),
    /// No value.
    Null,
    /// A value.
    NotNull,
    /// From a day up to, not including, another.
    Days(Option<Date>, Option<Date>),
    /// A year as a number.
    Year(YearTest),
    /// A part of a text: whether anything may stand before and after.
    Like(bool, String, bool),
}

/// A condition on a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column.
    pub column: ColumnAt,
    /// What is demanded.
    pub test: Test,
}

/// What rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A column.
    Column(ColumnAt),
    /// The row of another table that a foreign key points to: the key's column, and the table.
    Parent(ColumnAt, usize),
    /// A period of a time column.
    Period(ColumnAt, Period),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows: these columns, or those that name a row if there are none.
    Rows {
        /// The columns.
        columns: Vec<ColumnAt>,
        /// Whether equal rows are shown once.
        distinct: bool,
    },
    /// How many rows.
    Count,
    /// How many different values.
    CountDistinct(ColumnAt),
    /// Aggregates, perhaps with a count.
    Aggregates(Vec<(Function, ColumnAt)>, bool),
    /// The rows with the greatest or least value.
    Extreme(ColumnAt, Direction, Vec<ColumnAt>),
    /// The rows of the main table with the most rows of the other.
    Most,
    /// The most common value of a column.
    MostCommon(ColumnAt),
    /// The period of a time column with the most rows.
    BusiestPeriod(ColumnAt, Period),
}

/// How the second table is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The other table.
    pub table: usize,
    /// The foreign key's column.
    pub key: ColumnAt,
    /// The column it references.
    pub target: ColumnAt,
    /// Whether the main table has the key, so that each of its rows meets at most one of the other.
    pub to_parent: bool,
}

/// A condition on how many rows of another table refer to a row of the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// How the other table refers to the main one.
    pub join: Join,
    /// How the number is compared.
    pub comparison: Comparison,
    /// With what; equal to 0 if there is none.
    pub number: u32,
    /// Which rows of the other table count.
    pub conditions: Vec<Condition>,
}

/// A question as understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table that it is about.
    pub main: usize,
    /// The second table, if any.
    pub join: Option<Join>,
    /// The table between the main one and a table further away by which rows are grouped, and that table: each row refers
    /// to one of each. There is no second table then.
    pub far: Option<[Join; 2]>,
    /// What is asked.
    pub answer: Answer,
    /// Of which rows.
    pub conditions: Vec<Condition>,
    /// How many rows of another table each of them has.
    pub related: Vec<Related>,
    /// By what they are grouped.
    pub groups: Vec<Group>,
    /// The order of groups by what is computed of them; else by their names.
    pub ranked: Option<Direction>,
    /// In which order.
    pub order: Vec<(ColumnAt, Direction)>,
    /// How many at most.
    pub limit: Option<u32>,
}
