//! Slips in a statement that can be corrected without a model: misspelt names and words, and a few marks.

use std::collections::BTreeSet;

use super::rules::description::DatabaseDescription;

/// Words of SQL that a misspelt word may stand for.
const WORDS: &str = "select from where group by order having limit offset join left right inner outer full cross on \
using as and or not in is null like between exists distinct count sum avg min max round coalesce case when then else \
end asc desc union all with cast lower upper length abs current_date true false values over partition";
/// Fewest characters of a word that is taken for a misspelt one.
const MIN_CHARS: usize = 3;
/// Longest statement that is looked at, in bytes.
const MAX_BYTES: usize = 8_192;

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece<'a> {
    /// A bare word.
    Word(&'a str),
    /// A text in double quotes, with the quotes.
    Quoted(&'a str),
    /// Anything else: spaces, marks, numbers, texts in single quotes, comments.
    Other(&'a str),
}

/// The statement with its slips corrected, or `None` if there is nothing that the rules know how to correct.
pub fn repaired(sql: &str, description: &DatabaseDescription) -> Option<String> {
    if sql.len() > MAX_BYTES {
        return None;
    }
    let names: BTreeSet<String> = description
        .tables
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| &column.name).chain([&table.name]))
        .map(|name| name.to_lowercase())
        .collect();
    let words: BTreeSet<String> = WORDS.split(' ').map(str::to_owned).collect();
    let pieces = pieces(sql);
    let aliases = aliases(&pieces);
    let mut out = String::new();
    for piece in &pieces {
        match piece {
            Piece::Word(word) => {
                let lower = word.to_lowercase();
                let is_known = names.contains(&lower) || words.contains(&lower) || aliases.contains(&lower);
                let better = if is_known { None } else { nearest(&lower, &words, &names) };
                out.push_str(better.as_deref().unwrap_or(word));
            }
            Piece::Quoted(text) => {
                let inner = text.trim_matches('"');
                match names.contains(&inner.to_lowercase()) || aliases.contains(&inner.to_lowercase()) {
                    true => out.push_str(text),
                    // A text in double quotes is a name; what is no name was meant as a value.
                    false => out.push_str(&format!("'{}'", inner.replace('\'', "''"))),
                }
            }
            Piece::Other(text) => out.push_str(text),
        }
    }
    let out = marks_mended(&out);
    (out != sql).then_some(out)
}

/// The name or word that a misspelt word stands for, if there is exactly one that is near.
fn nearest(word: &str, words: &BTreeSet<String>, names: &BTreeSet<String>) -> Option<String> {
    let length = word.chars().count();
    if length < MIN_CHARS {
        return None;
    }
    let most = if length <= 4 { 1 } else { 2 };
    let near = |known: &BTreeSet<String>| -> Vec<(usize, String)> {
        let distance = |other: &String| (strsim::damerau_levenshtein(word, other), other.clone());
        known.iter().map(distance).filter(|(distance, _)| *distance <= most).collect()
    };
    let mut found = near(names);
    found.extend(near(words).into_iter().map(|(distance, word)| (distance, word.to_uppercase())));
    let best = found.iter().map(|(distance, _)| *distance).min()?;
    let mut nearest = found.into_iter().filter(|(distance, _)| *distance == best).map(|(_, name)| name);
    let first = nearest.next()?;
    nearest.next().is_none().then_some(first)
}

/// Names that the statement itself gives: after `AS`, and before `.`.
fn aliases(pieces: &[Piece<'_>]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut after_as = false;
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Word(word) => {
                let before_point =
                    matches!(pieces.get(at + 1), Some(Piece::Other(mark)) if mark.starts_with('.'));
                if after_as || before_point {
                    found.insert(word.to_lowercase());
                }
                after_as = word.eq_ignore_ascii_case("as");
            }
            Piece::Quoted(text) => {
                if after_as {
                    found.insert(text.trim_matches('"').to_lowercase());
                }
                after_as = false;
            }
            Piece::Other(text) if text.trim().is_empty() => {}
            Piece::Other(_) => after_as = false,
        }
    }
    found
}

/// Marks of other languages, a comma too many, and parentheses that are not closed.
fn marks_mended(sql: &str) -> String {
    let mut out = String::new();
    let mut open = 0_usize;
    let parts = pieces(sql);
    for (at, part) in parts.iter().enumerate() {
        match part {
            Piece::Word(word) | Piece::Quoted(word) => out.push_str(word),
            Piece::Other(text) => {
                let next_word = parts.get(at + 1).and_then(|next| match next {
                    Piece::Word(word) => Some(*word),
                    _ => None,
                });
                let ends_list = next_word.is_none_or(|word| {
                    ["from", "where", "group", "order", "limit", "having"]
                        .iter()
                        .any(|clause| word.eq_ignore_ascii_case(clause))
                });
                let text = match text.trim() {
                    "==" => text.replace("==", "="),
                    "," if ends_list && at + 1 < parts.len() && next_word.is_some() => text.replace(',', ""),
                    _ => (*text).to_owned(),
                };
                if !text.starts_with('\'') && !text.starts_with("--") {
                    open += text.matches('(').count();
                    open = open.saturating_sub(text.matches(')').count());
                }
                out.push_str(&text);
            }
        }
    }
    if open > 0 && open <= 3 {
        let end = out.trim_end_matches([';', ' ', '\n']).len();
        out.insert_str(end, &")".repeat(open));
    }
    out
}

/// Splits a statement; nothing is lost.
fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut pieces = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => quoted_length(rest, first),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => {
                let stops = |c: char| is_word(c) || c == '\'' || c == '"';
                let end = rest.find(stops).unwrap_or(rest.len());
                // A comment begins a piece of its own.
                ["--", "/*"]
                    .iter()
                    .filter_map(|mark| rest.find(mark))
                    .fold(end, usize::min)
                    .max(first.len_utf8())
            }
        };
        let Some((piece, after)) = rest.split_at_checked(length) else { break };
        pieces.push(match first {
            '"' => Piece::Quoted(piece),
            c if is_word(c) && !c.is_ascii_digit() => Piece::Word(piece),
            _ => Piece::Other(piece),
        });
        rest = after;
    }
    pieces
}

/// The bytes of a quoted text at the beginning of `rest`, doubled quotes included.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = rest.get(at..).and_then(|rest| rest.find(quote)) {
        at += end + 1;
        if !rest.get(at..).is_some_and(|rest| rest.starts_with(quote)) {
            return at;
        }
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shipped::text_to_sql::rules::description::{ColumnDescription, TableDescription};

    fn shop() -> DatabaseDescription {
        let table = |name: &str, columns: &[&str]| TableDescription {
            name: name.to_owned(),
            columns: columns
                .iter()
                .map(|name| ColumnDescription { name: (*name).to_owned(), ..ColumnDescription::default() })
                .collect(),
            ..TableDescription::default()
        };
        DatabaseDescription {
            tables: vec![table("products", &["id", "name", "price"]), table("orders", &["id", "status"])],
            ..DatabaseDescription::default()
        }
    }

    #[test]
    fn slips_are_corrected() {
        let cases = [
            ("SELEC nme FROM product", "SELECT name FROM products"),
            ("SELECT name, FROM products WHERE price == 3", "SELECT name FROM products WHERE price = 3"),
            ("SELECT count(* FROM orders", "SELECT count(* FROM orders)"),
            ("SELECT id FROM orders WHERE status = \"new\"", "SELECT id FROM orders WHERE status = 'new'"),
            ("SELECT p.pric AS cost FROM products p", "SELECT p.price AS cost FROM products p"),
        ];
        for (wrong, right) in cases {
            assert_eq!(repaired(wrong, &shop()).as_deref(), Some(right));
        }
    }

    #[test]
    fn what_is_right_and_what_is_a_value_stays_as_it_is() {
        for sql in [
            "SELECT name AS nme FROM products",
            "SELECT 'SELEC nme' FROM products -- SELEC nme",
            "SELECT xyz FROM products",
        ] {
            assert_eq!(repaired(sql, &shop()), None, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn pieces_lose_nothing(sql in "[a-z\"'(),;=*/. -]{0,60}") {
            let all: String = pieces(&sql)
                .iter()
                .map(|piece| match piece {
                    Piece::Word(text) | Piece::Quoted(text) | Piece::Other(text) => *text,
                })
                .collect();
            prop_assert_eq!(all, sql);
        }
    }
}
