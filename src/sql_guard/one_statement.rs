//! Second layer: exactly one statement, and nothing after it.

use sqlparser::ast::Statement;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::refusal::{Code, Layer, Refusal, TextPosition};
use super::{Dialect, Limits};

/// The statement in `sql`. One semicolon may end it, and only white space may follow that. Comments before the end are
/// skipped; what is executed later is written from the syntax tree, which has none.
///
/// # Errors
/// [`Code::SeveralStatements`], [`Code::Syntax`], [`Code::TooComplex`], [`Code::Empty`].
pub fn parse(sql: &str, dialect: Dialect, limits: &Limits) -> Result<Statement, Refusal> {
    let parser_dialect = dialect.parser_dialect();
    let tokens = Tokenizer::new(parser_dialect.as_ref(), sql).tokenize_with_location().map_err(|error| {
        let at = TextPosition { line: error.location.line, column: error.location.column };
        syntax(format!("the text cannot be read: {}", error.message)).at(Some(at))
    })?;
    no_tail(&tokens)?;
    let (depth, remedy) = (limits.max_depth, "write a query that is less nested");
    let statements = Parser::new(parser_dialect.as_ref())
        .with_recursion_limit(depth)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| match error {
            ParserError::RecursionLimitExceeded => {
                let what = format!("the statement is nested deeper than {depth} levels");
                Refusal::new(Layer::Statements, Code::TooComplex, what, remedy)
            }
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                syntax(format!("the parser cannot read the statement: {message}"))
            }
        })?;
    let count = statements.len();
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(statement), None) => Ok(statement),
        (None, _) => {
            Err(Refusal::new(Layer::Statements, Code::Empty, "there is no statement", "write one SELECT"))
        }
        (Some(_), Some(_)) => Err(several(format!("the text has {count} statements"))),
    }
}

/// Nothing but white space after the first semicolon. Semicolons inside strings, quoted names and comments are part of
/// their tokens.
fn no_tail(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    let mut tokens = tokens.iter().skip_while(|token| token.token != Token::SemiColon).skip(1);
    let tail = tokens.find(|token| match &token.token {
        Token::Whitespace(space) => matches!(
            space,
            sqlparser::tokenizer::Whitespace::SingleLineComment { .. }
                | sqlparser::tokenizer::Whitespace::MultiLineComment(_)
        ),
        token => *token != Token::EOF,
    });
    match tail {
        None => Ok(()),
        Some(token) => {
            Err(several("the text goes on after the semicolon".into()).at(TextPosition::start(token.span)))
        }
    }
}

fn several(what: String) -> Refusal {
    Refusal::new(
        Layer::Statements,
        Code::SeveralStatements,
        what,
        "send one statement at a time, and end it with it",
    )
}

fn syntax(what: String) -> Refusal {
    Refusal::new(Layer::Statements, Code::Syntax, what, "write one SELECT in the dialect of this database")
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    fn code(sql: &str, dialect: Dialect) -> Option<Code> {
        parse(sql, dialect, &Limits::default()).err().map(|refusal| refusal.code)
    }

    #[test]
    fn one_statement_passes_with_semicolons_in_strings_names_and_comments() {
        for dialect in Dialect::iter() {
            for sql in [
                "SELECT 1",
                "SELECT 1;",
                "SELECT 1 ; \n ",
                "SELECT 'a;b'",
                "SELECT 1 AS \"a;b\"",
                "SELECT /* a;b */ 1 -- c;d\n",
                "-- first; second\nSELECT 'it''s; fine'",
            ] {
                assert_eq!(code(sql, dialect), None, "{dialect}: {sql}");
            }
        }
    }

    #[test]
    fn a_second_statement_or_a_tail_is_refused() {
        for dialect in Dialect::iter() {
            for sql in [
                "SELECT 1; SELECT 2",
                "SELECT 1; DROP TABLE customers",
                "SELECT 1;;",
                "SELECT 1; -- tail",
                "SELECT 1; /* tail */",
                "SELECT 1 /*;*/; DELETE FROM customers",
                "; SELECT 1",
            ] {
                assert_eq!(code(sql, dialect), Some(Code::SeveralStatements), "{dialect}: {sql}");
            }
        }
    }

    #[test]
    fn an_unfinished_string_or_comment_is_refused() {
        for dialect in Dialect::iter() {
            for sql in ["SELECT 'a", "SELECT /* a", "SELECT \"a", "SELECT 1 FROM", "SELEC 1"] {
                assert_eq!(code(sql, dialect), Some(Code::Syntax), "{dialect}: {sql}");
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        for dialect in Dialect::iter() {
            let sql = format!("SELECT {}1{}", "(".repeat(3000), ")".repeat(3000));
            assert_eq!(code(&sql, dialect), Some(Code::TooComplex), "{dialect}");
        }
    }

    #[test]
    fn a_text_of_comments_alone_has_no_statement() {
        for dialect in Dialect::iter() {
            assert_eq!(code("-- nothing", dialect), Some(Code::Empty));
        }
    }
}
