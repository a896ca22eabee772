//! What can be asked: stock, prices, sales.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Value, json};

use proscenium::tools::{ToolContext, ToolError};

use super::money;
use super::names::{self, Item};
use super::words::Words;

/// The most items that a list shows.
const MOST_LISTED: usize = 100;

/// The most days of a period.
const MOST_DAYS: i32 = 366;

/// The items that words name, with stock and price.
pub async fn stock(context: &ToolContext, said: &str) -> Result<Value, ToolError> {
    let words = Words::of(context);
    let items = names::items(&mut context.tables()?).await?;
    let found = names::mentioned(&items, &names::stems(said).into_iter().collect());
    if found.is_empty() {
        return Err(words.no_item(said, &items));
    }
    Ok(told(&found, words))
}

/// All items.
pub async fn all(context: &ToolContext) -> Result<Value, ToolError> {
    let items = names::items(&mut context.tables()?).await?;
    Ok(told(&items.iter().collect::<Vec<_>>(), Words::of(context)))
}

fn told(items: &[&Item], words: Words) -> Value {
    let shown: Vec<Value> = items.iter().take(MOST_LISTED).map(|item| item.told(words.is_italian)).collect();
    json!({"count": items.len(), "items": shown, "more": items.len() > MOST_LISTED})
}

/// A transaction of a sale or return.
#[derive(Deserialize)]
struct Sold {
    sku: String,
    stock_change: i64,
    total_cents: i64,
}

/// What was sold on the days from `from` to `to`, less what was returned. Without days, since Monday of this week.
pub async fn sales(context: &ToolContext, from: Option<Date>, to: Option<Date>) -> Result<Value, ToolError> {
    let words = Words::of(context);
    let (from, to) = period(context.now.date(), from, to).ok_or_else(|| words.bad_period())?;
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    // Day by day, since what a session reads is bounded.
    for day in from.series(1.day()).take_while(|day| *day <= to) {
        for row in sold_on(context, day, words).await? {
            let sum = sums.entry(row.sku).or_default();
            sum.0 = sum.0.saturating_sub(row.stock_change);
            sum.1 = sum.1.saturating_add(row.total_cents);
        }
    }
    let items = names::items(&mut context.tables()?).await?;
    let line = |(sku, (pieces, cents)): (&String, &(i64, i64))| {
        let name = items
            .iter()
            .find(|item| item.sku == *sku)
            .map_or(sku.as_str(), |item| item.name(words.is_italian));
        json!({"sku": sku, "name": name, "quantity": pieces, "total": money::text(*cents), "total_cents": cents})
    };
    let total = sums.values().fold(0_i64, |sum, (_, cents)| sum.saturating_add(*cents));
    let lines: Vec<Value> = sums.iter().map(line).collect();
    Ok(json!({"from": from, "to": to, "items": lines, "total": money::text(total), "total_cents": total}))
}

/// The sales and returns of a day where the user is.
async fn sold_on(context: &ToolContext, day: Date, words: Words) -> Result<Vec<Sold>, ToolError> {
    let start = |day: Date| {
        let start = day.to_zoned(context.now.time_zone().clone()).map_err(|_| words.bad_period())?;
        Ok::<_, ToolError>(start.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let end = day.tomorrow().map_err(|_| words.bad_period())?;
    let filter = json!({"at": {"gte": start(day)?, "lt": start(end)?}, "kind": ["sale", "return"]});
    let rows = Value::Array(context.tables()?.find("transactions", filter).await?);
    serde_json::from_value(rows)
        .map_err(|error| ToolError::failed("inventory.sales", format!("the sales cannot be read: {error}")))
}

/// The days that are asked about; `None` if they are in no order, or too many.
fn period(today: Date, from: Option<Date>, to: Option<Date>) -> Option<(Date, Date)> {
    // What was sold lies behind: days without a year that are read as the next ones are the last ones.
    let is_ahead = from.or(to).is_some_and(|day| day > today);
    let past = |day: Date| if is_ahead { day.checked_sub(1.year()).unwrap_or(day) } else { day };
    let monday = today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?;
    let (from, to) = match (from.map(past), to.map(past)) {
        (None, None) => (monday, today),
        (from, to) => (from.or(to)?, to.unwrap_or(today)),
    };
    let days = from.until(to).ok()?.get_days();
    (from <= to && days < MOST_DAYS).then_some((from, to))
}
