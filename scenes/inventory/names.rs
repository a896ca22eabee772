//! Items, and which of them words name: by their number, their names or their further words, in singular and plural.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use proscenium::tools::{TableSession, ToolError};

/// An item of the shop.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    /// Its number.
    pub sku: String,
    name: String,
    name_it: Option<String>,
    words: Option<String>,
    /// Its price.
    pub price_cents: i64,
    /// How many pieces there are.
    pub stock: i64,
}

impl Item {
    /// Its name in a language.
    pub fn name(&self, is_italian: bool) -> &str {
        self.name_it.as_deref().filter(|_| is_italian).unwrap_or(&self.name)
    }

    /// Its fields in the result of a tool.
    pub fn told(&self, is_italian: bool) -> Value {
        json!({
            "sku": self.sku,
            "name": self.name(is_italian),
            "stock": self.stock,
            "price": super::money::text(self.price_cents),
            "price_cents": self.price_cents,
        })
    }

    /// Each of its names, as stems.
    fn names(&self) -> Vec<BTreeSet<String>> {
        let further = self.words.iter().flat_map(|words| words.split(','));
        let all = [self.sku.as_str(), &self.name].into_iter().chain(self.name_it.as_deref()).chain(further);
        let names = all.map(|name| stems(name).into_iter().collect::<BTreeSet<String>>());
        names.filter(|name| !name.is_empty()).collect()
    }
}

/// All items of the shop.
pub async fn items(tables: &mut TableSession) -> Result<Vec<Item>, ToolError> {
    let rows = Value::Array(tables.find("items", json!({})).await?);
    serde_json::from_value(rows)
        .map_err(|error| ToolError::failed("inventory.items", format!("the items cannot be read: {error}")))
}

/// Words that no name consists of.
const SMALL: &str = "the of a an and di da del della dei delle il lo la i gli le un una e per";

/// The stems of the words of a text, without small words.
pub fn stems(text: &str) -> Vec<String> {
    let plain = deunicode::deunicode(text).to_lowercase();
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty() && !SMALL.split(' ').any(|small| small == *word)).map(stem).collect()
}

/// What singular and plural of a word have in common, in English and Italian.
fn stem(word: &str) -> String {
    let mut stem = word;
    if stem.len() > 3 {
        stem = stem.strip_suffix('s').filter(|rest| !rest.ends_with('s')).unwrap_or(stem);
    }
    while stem.len() > 3 && stem.ends_with(['a', 'e', 'i', 'o']) {
        stem = &stem[..stem.len() - 1];
    }
    stem.to_owned()
}

/// What words name.
#[derive(Debug, PartialEq)]
pub enum Meant<'a> {
    /// One item, and the stems that name it.
    One(&'a str, BTreeSet<String>),
    /// One of several, by their places in the list.
    OneOf(Vec<usize>),
    /// Nothing that the shop has.
    Nothing,
}

/// How well words name an item: whether they have all words of one of its names, and how many.
fn fit(item: &Item, words: &BTreeSet<String>) -> Option<((bool, usize), BTreeSet<String>)> {
    let fits = item.names().into_iter().filter_map(|name| {
        let common: BTreeSet<String> = name.intersection(words).cloned().collect();
        (!common.is_empty()).then_some(((common.len() == name.len(), common.len()), common))
    });
    fits.max_by_key(|(fit, _)| *fit)
}

/// The one item that words name best.
pub fn meant<'a>(items: &'a [Item], words: &BTreeSet<String>) -> Meant<'a> {
    let fits: Vec<_> =
        items.iter().enumerate().filter_map(|(at, item)| Some((at, fit(item, words)?))).collect();
    let Some(best) = fits.iter().map(|(_, (fit, _))| *fit).max() else { return Meant::Nothing };
    let best: Vec<_> = fits.into_iter().filter(|(_, (fit, _))| *fit == best).collect();
    match best.as_slice() {
        [(at, (_, stems))] => Meant::One(&items[*at].sku, stems.clone()),
        several => Meant::OneOf(several.iter().map(|(at, _)| *at).collect()),
    }
}

/// All items that words name completely; else those that they name in part equally well.
pub fn mentioned<'a>(items: &'a [Item], words: &BTreeSet<String>) -> Vec<&'a Item> {
    let complete: Vec<&Item> =
        items.iter().filter(|item| fit(item, words).is_some_and(|((whole, _), _)| whole)).collect();
    if !complete.is_empty() {
        return complete;
    }
    match meant(items, words) {
        Meant::One(sku, _) => items.iter().filter(|item| item.sku == sku).collect(),
        Meant::OneOf(places) => places.into_iter().filter_map(|at| items.get(at)).collect(),
        Meant::Nothing => Vec::new(),
    }
}
