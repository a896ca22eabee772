//! Which functions a text of SQL calls, read without a grammar: names before an opening parenthesis. A second look at
//! what the guard's parser has read, and the only one at the expressions of a plan.

/// A name before an opening parenthesis: the call of a function, or a list of columns, the size of a type, a keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Its schema, if it is written with one.
    pub schema: Option<String>,
    /// Its name, folded unless it is quoted.
    pub name: String,
}

/// The names in a text of SQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// What may be calls, in order.
    pub calls: Vec<Call>,
    /// All names, quoted or not, and keywords.
    pub words: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SqlToken {
    Word(String),
    Dot,
    Open,
    Other,
}

/// Returns what `sql` names.
///
/// # Errors
/// The kind of text that is not read here, in words: strings in dollars, names and strings with escapes, and what does
/// not end.
pub(super) fn named(sql: &str) -> Result<Named, &'static str> {
    let tokens = tokens(sql)?;
    let mut found = Named::default();
    for (position, token) in tokens.iter().enumerate() {
        let SqlToken::Word(name) = token else { continue };
        found.words.push(name.clone());
        if tokens.get(position + 1) != Some(&SqlToken::Open) {
            continue;
        }
        let before = |back: usize| position.checked_sub(back).and_then(|at| tokens.get(at));
        let schema = match (before(1), before(2)) {
            (Some(SqlToken::Dot), Some(SqlToken::Word(schema))) => Some(schema.clone()),
            (Some(SqlToken::Dot), _) => Some(String::new()),
            _ => None,
        };
        found.calls.push(Call { schema, name: name.clone() });
    }
    Ok(found)
}

fn tokens(sql: &str) -> Result<Vec<SqlToken>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (token, length) = if let Some(comment) = rest.strip_prefix("--") {
            (None, 2 + comment.find(['\n', '\r']).unwrap_or(comment.len()))
        } else if rest.starts_with("/*") {
            (None, comment(rest)?)
        } else if first == '\'' {
            (Some(SqlToken::Other), quoted(rest, '\'')?)
        } else if first == '"' {
            let length = quoted(rest, '"')?;
            let name = rest[1..length - 1].replace("\"\"", "\"");
            (Some(SqlToken::Word(name)), length)
        } else if first.is_alphabetic() || first == '_' {
            let in_word = |character: char| character.is_alphanumeric() || matches!(character, '_' | '$');
            let length = rest.find(|character| !in_word(character)).unwrap_or(rest.len());
            // E'…' has escapes, U&'…' and U&"…" write letters as numbers, B'…' and X'…' are plain.
            if length == 1 && matches!(first, 'e' | 'E') && rest[1..].starts_with('\'') {
                return Err("a string with escapes");
            }
            if matches!(first, 'u' | 'U') && (rest[1..].starts_with("&'") || rest[1..].starts_with("&\"")) {
                return Err("a name or string with letters as numbers");
            }
            (Some(SqlToken::Word(rest[..length].to_lowercase())), length)
        } else if first.is_ascii_digit() {
            let in_number =
                |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_');
            (Some(SqlToken::Other), rest.find(|character| !in_number(character)).unwrap_or(rest.len()))
        } else if first == '$' && !rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
            return Err("a string in dollars");
        } else {
            let token = match first {
                '.' => Some(SqlToken::Dot),
                '(' => Some(SqlToken::Open),
                _ if first.is_whitespace() => None,
                _ => Some(SqlToken::Other),
            };
            (token, first.len_utf8())
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// The length of the quoted text at the start of `rest`, in which a doubled quote is one of its characters.
fn quoted(rest: &str, quote: char) -> Result<usize, &'static str> {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => drop(characters.next()),
                _ => return Ok(at + 1),
            }
        }
    }
    Err("a string or name that does not end")
}

/// The length of the comment at the start of `rest`; comments nest.
fn comment(rest: &str) -> Result<usize, &'static str> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(next) = rest.get(at..) {
        if next.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if next.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return Ok(at);
            }
        } else {
            let Some(character) = next.chars().next() else { break };
            at += character.len_utf8();
        }
    }
    Err("a comment that does not end")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn calls(sql: &str) -> Vec<String> {
        let written = |call: Call| match call.schema {
            Some(schema) => format!("{schema}.{}", call.name),
            None => call.name,
        };
        named(sql).unwrap().calls.into_iter().map(written).collect()
    }

    #[test]
    fn calls_are_found_whatever_stands_between_name_and_parenthesis() {
        for (sql, found) in [
            ("SELECT pg_sleep(1)", vec!["pg_sleep"]),
            ("SELECT PG_Sleep /* a /* b */ */ -- c\n (1)", vec!["pg_sleep"]),
            ("SELECT \"pg_sleep\"(1), \"A\"\"b\"(2)", vec!["pg_sleep", "A\"b"]),
            ("SELECT public . f (1), pg_catalog.\"lower\"('a(b)')", vec!["public.f", "pg_catalog.lower"]),
            ("SELECT 'pg_sleep(1)', \"pg_sleep\", 1(2)", vec![]),
            ("LIMIT set_config('a', 'b', false)::int", vec!["set_config"]),
            ("VALUES (pg_read_file('a')), (2)", vec!["values", "pg_read_file"]),
        ] {
            assert_eq!(calls(sql), found, "{sql}");
        }
    }

    #[test]
    fn text_that_another_reader_may_read_differently_is_refused() {
        for sql in [
            "SELECT $$a$$",
            "SELECT $a$b$a$",
            "SELECT E'a\\'(b'",
            "SELECT U&\"\\0070g_sleep\"(1)",
            "'a",
            "/* a",
            "\"a",
        ] {
            assert!(named(sql).is_err(), "{sql}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(sql in "[a-zA-Z'\"/*$ .(\\n\u{e9}0-9-]{0,60}") {
            let _ = named(&sql);
        }

        #[test]
        fn a_call_is_found_between_strings(before in "[a-z(]{0,8}", name in "[a-z_]{1,12}", space in "[ \\n\\t]{0,3}") {
            let sql = format!("'{before}' {name}{space}('{before}')");
            prop_assert!(calls(&sql).contains(&name));
        }
    }
}
