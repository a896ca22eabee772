//! The tools of Inventory: a shop's stock, prices and sales, on the tables that its `scene.toml` declares. The scene is in a folder
//! of its own below this one, so that it is served only where it is asked for (`--scenes shipped:inventory`): not every company
//! has a shop, and its words ("how much is …") are those of many requests.
//!
//! A sale, return or delivery is one commit: all of its items or none, with one transaction for each. Money is counted in
//! cents.

mod list;
mod money;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod trade;
mod words;

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Number, Value};

use proscenium::tools::{NativeTools, ToolContext, ToolError, native};
use trade::Trade;

/// Adds the tools of this scene under the names that its `scene.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    tools
        .with("inventory.get_stock", native(get_stock))
        .with("inventory.get_price", native(get_stock))
        .with("inventory.list_stock", native(list_stock))
        .with("inventory.list_sales", native(list_sales))
        .with("inventory.sell", native(|of: Items, context| trade::items(context, of.items, Trade::Sale)))
        .with(
            "inventory.take_back",
            native(|of: Items, context| trade::items(context, of.items, Trade::Return)),
        )
        .with(
            "inventory.restock",
            native(|of: Items, context| trade::items(context, of.items, Trade::Restock)),
        )
        .with("inventory.change_price", native(change_price))
}

/// Words that name an item.
#[derive(Deserialize)]
struct Named {
    item: String,
}

/// Words that list items with their numbers.
#[derive(Deserialize)]
struct Items {
    items: String,
}

/// A new price.
#[derive(Deserialize)]
struct Price {
    item: String,
    price: Number,
}

/// A period.
#[derive(Deserialize)]
struct Period {
    #[serde(default)]
    day: Option<Date>,
    #[serde(default)]
    from: Option<Date>,
    #[serde(default)]
    to: Option<Date>,
}

/// Nothing.
#[derive(Deserialize)]
struct Nothing {}

async fn get_stock(of: Named, context: ToolContext) -> Result<Value, ToolError> {
    read::stock(&context, &of.item).await
}

async fn list_stock(_: Nothing, context: ToolContext) -> Result<Value, ToolError> {
    read::all(&context).await
}

async fn list_sales(of: Period, context: ToolContext) -> Result<Value, ToolError> {
    // A period says more than a day that was read out of it.
    let day = of.day.filter(|_| of.from.is_none() || of.to.is_none());
    read::sales(&context, day.or(of.from), day.or(of.to)).await
}

async fn change_price(of: Price, context: ToolContext) -> Result<Value, ToolError> {
    trade::price(context, of.item, of.price).await
}
