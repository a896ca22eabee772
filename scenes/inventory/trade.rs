//! Sales, returns, deliveries and changes of prices: each is one commit, once for its idempotency key.

use std::collections::BTreeMap;

use serde_json::{Number, Value, json};

use proscenium::staged::{CellValue, TableRow, WriteDiff};
use proscenium::tools::{TableSession, ToolContext, ToolError};

use super::list::{self, Pieces};
use super::money;
use super::names::{self, Item};
use super::words::Words;

/// The code of a session whose rows changed in between.
const CONFLICT: &str = "staged.conflict";

/// How often it is tried while others change the same rows.
const MOST_TRIES: usize = 3;

/// What is done with items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trade {
    /// They are sold.
    Sale,
    /// A customer brings them back.
    Return,
    /// They are delivered.
    Restock,
}

impl Trade {
    fn kind(self) -> &'static str {
        match self {
            Self::Sale => "sale",
            Self::Return => "return",
            Self::Restock => "restock",
        }
    }
}

/// Sells, takes back or adds the items that a text lists.
///
/// # Errors
/// Why nothing was done.
pub async fn items(context: ToolContext, text: String, trade: Trade) -> Result<Value, ToolError> {
    let words = Words::of(&context);
    let all = names::items(&mut context.tables()?).await?;
    let listed = list::read(&all, &text, trade == Trade::Return, words);
    for _ in 0..MOST_TRIES {
        let tables = context.tables()?;
        if let Some(done) = tables.committed().await? {
            return Ok(traded(&done, words));
        }
        // A session of its own: what was read to understand the names is not what the sale rests on.
        match made(tables, listed.clone()?, (trade, words)).await {
            Err(error) if error.code == CONFLICT => {}
            done => return done.map(|done| traded(&done, words)),
        }
    }
    Err(words.busy())
}

/// Stages all items and commits them. A conflict may be noticed by either.
async fn made(
    mut tables: TableSession,
    listed: BTreeMap<String, Pieces>,
    with: (Trade, Words),
) -> Result<WriteDiff, ToolError> {
    for (sku, pieces) in listed {
        stage(&mut tables, &sku, pieces, with).await?;
    }
    tables.commit().await
}

/// Stages one item and its transaction.
async fn stage(
    tables: &mut TableSession,
    sku: &str,
    pieces: Pieces,
    (trade, words): (Trade, Words),
) -> Result<(), ToolError> {
    let item = item(tables, sku, words).await?;
    let Pieces { number, price_cents } = pieces;
    // What was paid for a piece that comes back; without that, what it costs now.
    let price = price_cents.unwrap_or(item.price_cents);
    let change = if trade == Trade::Sale { -number } else { number };
    let stock = item.stock.checked_add(change).ok_or_else(|| words.too_much())?;
    if stock < 0 {
        return Err(words.too_few(&item, number));
    }
    let total = match trade {
        Trade::Restock => 0,
        _ => (-change).checked_mul(price).ok_or_else(|| words.too_much())?,
    };
    tables.update("items", json!(sku), json!({"stock": stock})).await?;
    let entry = json!({
        "kind": trade.kind(),
        "sku": sku,
        "stock_change": change,
        "unit_cents": price,
        "total_cents": total,
    });
    tables.insert("transactions", entry).await?;
    Ok(())
}

async fn item(tables: &mut TableSession, sku: &str, words: Words) -> Result<Item, ToolError> {
    let row = tables.get("items", json!(sku)).await?;
    serde_json::from_value(row).map_err(|_| words.busy())
}

/// What a commit did, from its diff: so a repeated call tells the same.
fn traded(done: &WriteDiff, words: Words) -> Value {
    let after = |table: &'static str| {
        done.changes
            .iter()
            .filter(move |change| change.place.table == table)
            .filter_map(|change| change.after.as_ref())
    };
    let (mut lines, mut undo, mut total) = (Vec::new(), Vec::new(), 0);
    for entry in after("transactions") {
        let sku = text(entry, "sku");
        let pieces = units(entry, "stock_change").abs();
        let item = after("items").find(|row| text(row, "sku") == sku);
        let amount = units(entry, "total_cents").abs();
        total += amount;
        undo.push(format!("{pieces} {sku} at {}", money::text(units(entry, "unit_cents"))));
        lines.push(json!({
            "sku": sku,
            "name": item.map_or(sku, |row| name(row, words)),
            "quantity": pieces,
            "price": money::text(units(entry, "unit_cents")),
            "total": money::text(amount),
            "total_cents": amount,
            "stock": item.map(|row| units(row, "stock")),
        }));
    }
    json!({"lines": lines, "total": money::text(total), "total_cents": total, "undo": undo.join(", ")})
}

fn text<'r>(row: &'r TableRow, column: &str) -> &'r str {
    row.get(column).and_then(CellValue::as_text).unwrap_or_default()
}

fn units(row: &TableRow, column: &str) -> i64 {
    row.get(column).and_then(CellValue::as_units).unwrap_or_default()
}

fn name(row: &TableRow, words: Words) -> &str {
    let italian = Some(text(row, "name_it")).filter(|name| words.is_italian && !name.is_empty());
    italian.unwrap_or_else(|| text(row, "name"))
}

/// Changes the price of the item that words name.
///
/// # Errors
/// Why nothing was done.
pub async fn price(context: ToolContext, said: String, price: Number) -> Result<Value, ToolError> {
    let words = Words::of(&context);
    for _ in 0..MOST_TRIES {
        let tables = context.tables()?;
        if let Some(done) = tables.committed().await? {
            return priced(&done, words);
        }
        let cents = money::cents(&price).ok_or_else(|| words.bad_price(&price.to_string()))?;
        let all = names::items(&mut context.tables()?).await?;
        let stems = names::stems(&said).into_iter().collect();
        let sku = match names::meant(&all, &stems) {
            names::Meant::One(sku, _) => sku,
            names::Meant::OneOf(places) => {
                return Err(words.which_of(&places.iter().filter_map(|at| all.get(*at)).collect::<Vec<_>>()));
            }
            names::Meant::Nothing => return Err(words.no_item(&said, &all)),
        };
        match repriced(tables, sku, cents, words).await {
            Err(error) if error.code == CONFLICT => {}
            done => return priced(&done?, words),
        }
    }
    Err(words.busy())
}

/// Stages another price of an item and commits it.
async fn repriced(
    mut tables: TableSession,
    sku: &str,
    cents: i64,
    words: Words,
) -> Result<WriteDiff, ToolError> {
    let item = item(&mut tables, sku, words).await?;
    if item.price_cents == cents {
        return Err(words.same_price(&item));
    }
    tables.update("items", json!(sku), json!({"price_cents": cents})).await?;
    let entry =
        json!({"kind": "price", "sku": sku, "stock_change": 0, "unit_cents": cents, "total_cents": 0});
    tables.insert("transactions", entry).await?;
    tables.commit().await
}

fn priced(done: &WriteDiff, words: Words) -> Result<Value, ToolError> {
    let change = done.changes.iter().find(|change| change.place.table == "items");
    let Some((before, after)) = change.and_then(|change| change.before.as_ref().zip(change.after.as_ref()))
    else {
        return Err(words.busy());
    };
    let (old, new) = (units(before, "price_cents"), units(after, "price_cents"));
    Ok(json!({
        "sku": text(after, "sku"),
        "name": name(after, words),
        "price": money::text(new),
        "price_cents": new,
        "old_price": money::text(old),
        "old_amount": money::number(old),
    }))
}
