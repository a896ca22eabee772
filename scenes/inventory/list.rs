//! Lists of items with their numbers, in words: "3 espresso cups and two teapots", "una teiera e due lattiere".

use std::collections::{BTreeMap, BTreeSet};

use proscenium::number_word;
use serde_json::Number;

use proscenium::tools::ToolError;

use super::money;
use super::names::{Item, Meant, meant, stems};
use super::words::Words;

/// The most pieces of one item.
const MOST_PIECES: i64 = 100_000;

/// Words beside the items that change nothing about them.
const FILLERS: &str = "and e ed plus the of di da del della dei delle degli il lo la i gli le to in into al allo \
    alla nel con with our stock magazzino inventory shop negozio please per favore thanks \
    thank you grazie sale vendita reso return returned resi delivery consegna piece pieces \
    pezzo pezzi unit units now immediately asap ora adesso subito pls kindly cortesia more altre altri items articoli x also";

fn is_filler(word: &str) -> bool {
    FILLERS.split(' ').any(|filler| filler == word)
}

/// Pieces of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pieces {
    /// How many.
    pub number: i64,
    /// What one was sold for, where the text says so: "at 4.50".
    pub price_cents: Option<i64>,
}

/// The pieces of each item, by its number in the shop. A text may say at which price only where `is_priced`.
///
/// # Errors
/// What of the text is no item with a number, in the user's words.
pub fn read(
    items: &[Item],
    text: &str,
    is_priced: bool,
    words: Words,
) -> Result<BTreeMap<String, Pieces>, ToolError> {
    let mut pieces: BTreeMap<String, Pieces> = BTreeMap::new();
    for Part { number, named, price, .. } in parts(text, is_priced, words)? {
        let Some((sku, other)) = item(items, &named, words)? else {
            // "2 to 3 teapots": a number of nothing.
            match number {
                Some(number) => return Err(words.unknown_words(&number.to_string())),
                None => continue,
            }
        };
        if let Some(other) = other {
            return Err(words.unknown_words(&other));
        }
        let number = number.ok_or_else(|| words.how_many(&named.join(" ")))?;
        let known = pieces.contains_key(sku);
        let sum = pieces.entry(sku.to_owned()).or_default();
        if known && sum.price_cents != price {
            return Err(words.unknown_words(&named.join(" ")));
        }
        sum.number += number;
        sum.price_cents = price;
        if sum.number > MOST_PIECES {
            return Err(words.bad_number(&sum.number.to_string()));
        }
    }
    if pieces.is_empty() { Err(words.no_item(text, items)) } else { Ok(pieces) }
}

/// The item that the words of a part name, and the first word that is neither its nor a filler. `None` if there are only
/// fillers.
fn item<'a>(
    items: &'a [Item],
    named: &[String],
    words: Words,
) -> Result<Option<(&'a str, Option<String>)>, ToolError> {
    let said: Vec<&String> = named.iter().filter(|word| !is_filler(&plain(word))).collect();
    if said.is_empty() {
        return Ok(None);
    }
    let all: BTreeSet<String> = said.iter().flat_map(|word| stems(word)).collect();
    match meant(items, &all) {
        Meant::One(sku, used) => {
            let other = said.into_iter().find(|word| stems(word).iter().any(|stem| !used.contains(stem)));
            Ok(Some((sku, other.cloned())))
        }
        Meant::OneOf(places) => Err(words.which_of(&places.iter().map(|at| &items[*at]).collect::<Vec<_>>())),
        Meant::Nothing => Err(words.no_item(&named.join(" "), items)),
    }
}

/// A number of pieces, if one was said, and the words after it, with a price.
#[derive(Default)]
struct Part {
    number: Option<i64>,
    named: Vec<String>,
    price: Option<i64>,
    /// Whether an article counts it: "a teapot", "a dozen teapots".
    has_article: bool,
}

/// The parts of a list: each begins with a number.
fn parts(text: &str, is_priced: bool, words: Words) -> Result<Vec<Part>, ToolError> {
    let mut parts = vec![Part::default()];
    let mut tokens = text.split_whitespace();
    while let Some(raw) = tokens.next() {
        let token = trimmed(raw);
        if token.is_empty() {
            continue;
        }
        let is_price = is_priced && token == "at";
        let (raw, token) = if is_price {
            tokens.next().map_or((raw, token), |raw| (raw, trimmed(raw)))
        } else {
            (raw, token)
        };
        let part = match number(token, words) {
            _ if is_price => {
                let price = token.parse().ok().and_then(|amount: Number| money::cents(&amount));
                let price = price.ok_or_else(|| words.bad_price(token))?;
                if let Some(part) = parts.last_mut() {
                    part.price = Some(price);
                }
                None
            }
            Some(Ok(number)) => {
                parts.pop_if(|part| part.has_article && part.named.is_empty());
                let has_article = words.articles().contains(&plain(token).as_str());
                Some(Part { number: Some(number), has_article, ..Part::default() })
            }
            Some(Err(())) => return Err(words.bad_number(token)),
            None => {
                if let Some(part) = parts.last_mut() {
                    part.named.push(token.to_owned());
                }
                None
            }
        };
        parts.extend(part);
        // "2 teapots, milk jugs": a comma ends a part.
        if raw.ends_with([',', ';']) {
            parts.push(Part::default());
        }
    }
    Ok(parts)
}

/// A token without the punctuation around it.
fn trimmed(raw: &str) -> &str {
    raw.trim_matches(|c: char| ",;:!?.\"'()«»“”€".contains(c))
}

/// The number that a token is: an error if it is one that counts no pieces. `None` if it is a word.
fn number(token: &str, words: Words) -> Option<Result<i64, ()>> {
    let digits = token.trim_end_matches(['x', '×']);
    let begins = token.trim_start_matches(['-', '−', '+']).starts_with(|c: char| c.is_ascii_digit());
    // "3D" and the like are no numbers; "2.5", "-3" and "1e3" are numbers that count nothing.
    if begins && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(digits.parse().ok().filter(|number| (1..=MOST_PIECES).contains(number)).ok_or(()));
    }
    if begins && token.chars().all(|c| c.is_ascii_digit() || "-−+.,eE".contains(c)) {
        return Some(Err(()));
    }
    let word = plain(token);
    if words.articles().contains(&word.as_str()) {
        return Some(Ok(1));
    }
    let spoken = number_word(&word, words.language())?;
    Some(if spoken == 0 { Err(()) } else { Ok(i64::from(spoken)) })
}

fn plain(word: &str) -> String {
    deunicode::deunicode(word).to_lowercase()
}
