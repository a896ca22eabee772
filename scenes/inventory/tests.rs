//! What Inventory promises. The clock stands at Wednesday, 6 May 2026, 9 o'clock in Rome.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use proscenium::run::{RunId, SessionId, TenantId};
use proscenium::scene::{Scene, SceneFolder, SceneLoader};
use proscenium::tools::{
    NativeTools, Principal, RunDocuments, SceneStore, ToolContext, ToolError, ToolErrorKind,
};

use super::super::testing::said;

const SCENE: &str = include_str!("shop/scene.toml");

/// A shop with the sample stock.
struct Shop {
    pool: sqlx::SqlitePool,
    http: reqwest::Client,
    scene: Scene,
    _directory: tempfile::TempDir,
}

impl Shop {
    async fn new() -> Self {
        let files = BTreeMap::from([("scene.toml".to_owned(), SCENE.as_bytes().to_vec())]);
        let folder = SceneFolder { label: "inventory".to_owned(), files };
        let natives = super::register(NativeTools::new());
        let loaded = SceneLoader::new(&natives).load(vec![vec![folder]], &BTreeMap::new());
        assert!(loaded.faults.is_empty(), "{:#?}", loaded.faults);
        let scene = loaded.scenes.into_iter().next().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let options =
            SqliteConnectOptions::new().filename(directory.path().join("t.db")).create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
        let schema = scene.schema_sql.clone().unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(schema)).execute(&pool).await.unwrap();
        Self { pool, http: reqwest::Client::new(), scene, _directory: directory }
    }

    fn context(&self, key: &str, now: &str, language: &str) -> ToolContext {
        ToolContext {
            principal: Principal { tenant: TenantId::new("acme").unwrap(), user: "ada".to_owned() },
            now: now.parse().unwrap(),
            language: Some(language.to_owned()),
            session: SessionId::new("s").unwrap(),
            run: RunId(uuid::Uuid::now_v7()),
            step: 1,
            idempotency_key: Some(key.to_owned()),
            store: SceneStore::new(self.pool.clone()).with_tables("Inventory", self.scene.tables.clone()),
            documents: RunDocuments::default(),
            http: self.http.clone(),
            interpreter: None,
            settings: json!({}),
            cancelled: tokio_util::sync::CancellationToken::new(),
            trace_parent: None,
        }
    }

    async fn with_key(&self, key: &str, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let context = self.context(key, "2026-05-06T09:00:00+02:00[Europe/Rome]", "en");
        self.call_as(context, tool, arguments).await
    }

    async fn call_as(&self, context: ToolContext, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let tools = super::register(NativeTools::new());
        tools.get(&format!("inventory.{tool}")).unwrap().call(context, arguments).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.with_key(&uuid::Uuid::now_v7().to_string(), tool, arguments).await
    }

    async fn trade(&self, tool: &str, items: &str) -> Result<Value, ToolError> {
        self.call(tool, json!({"items": items})).await
    }

    /// Pieces of each item, by its number.
    async fn stock(&self) -> BTreeMap<String, i64> {
        let all = self.call("list_stock", json!({})).await.unwrap();
        let items = all["items"].as_array().unwrap().iter();
        items
            .map(|item| (item["sku"].as_str().unwrap().to_owned(), item["stock"].as_i64().unwrap()))
            .collect()
    }

    async fn transactions(&self) -> Vec<Value> {
        let context = self.context("read", "2026-05-06T09:00:00+02:00[Europe/Rome]", "en");
        context.tables().unwrap().find("transactions", json!({})).await.unwrap()
    }

    /// The code of a call that must do nothing.
    async fn refused(&self, tool: &str, arguments: Value) -> String {
        let before = (self.stock().await, self.transactions().await.len());
        let error = self.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{error}");
        assert_eq!((self.stock().await, self.transactions().await.len()), before, "{error}");
        error.code
    }
}

#[tokio::test]
async fn sale_of_several_items_takes_all_of_them_and_records_each() {
    let shop = Shop::new().await;
    let sold = shop.trade("sell", "3 espresso cups and two teapots, thanks").await.unwrap();
    assert_eq!(
        said(SCENE, "en", "SellItems", &sold),
        "Sold: 3 × espresso cup at €4.50 (39 left), 2 × teapot at €22.90 (6 left). Total: €59.30."
    );
    let rows = shop.transactions().await;
    let mut lines: Vec<Value> = rows
        .iter()
        .map(|row| json!([row["kind"], row["sku"], row["stock_change"], row["total_cents"], row["by"]]))
        .collect();
    lines.sort_by_key(Value::to_string);
    assert_eq!(
        lines,
        [json!(["sale", "CUP-ESP", -3, 1350, "ada"]), json!(["sale", "POT-TEA", -2, 4580, "ada"])]
    );
    // One that cannot be sold keeps the others.
    assert_eq!(
        shop.refused("sell", json!({"items": "1 milk jug and 2 moka pots"})).await,
        "inventory.insufficient_stock"
    );
}

#[tokio::test]
async fn what_is_no_item_or_no_number_of_pieces_is_refused() {
    let shop = Shop::new().await;
    let cases = [
        ("sell", "teapots", "inventory.quantity"),
        ("sell", "-3 teapots", "inventory.quantity"),
        ("sell", "2.5 teapots", "inventory.quantity"),
        ("sell", "0 teapots", "inventory.quantity"),
        ("sell", "1e3 teapots", "inventory.quantity"),
        ("sell", "99999999999999999999 teapots", "inventory.quantity"),
        ("sell", "3 blue teapots", "inventory.words"),
        ("sell", "3 cups", "inventory.which_item"),
        ("sell", "3 violins", "inventory.no_item"),
        ("sell", "2 to 3 teapots", "inventory.words"),
        ("sell", "2, 3 teapots", "inventory.words"),
        ("sell", "3 teapots, 2", "inventory.words"),
        ("sell", "", "inventory.no_item"),
        ("restock", "20 boxes of milk jugs", "inventory.words"),
        ("take_back", "NaN teapots", "inventory.words"),
    ];
    for (tool, items, code) in cases {
        assert_eq!(shop.refused(tool, json!({"items": items})).await, code, "{items}");
    }
    for price in [json!(0), json!(-2), json!(1.005), json!(1e300)] {
        assert_eq!(
            shop.refused("change_price", json!({"item": "teapot", "price": price})).await,
            "inventory.price"
        );
    }
    assert_eq!(
        shop.refused("change_price", json!({"item": "teapot", "price": 22.9})).await,
        "inventory.same_price"
    );
}

#[tokio::test]
async fn italian_names_and_numbers_are_understood_and_answered() {
    let shop = Shop::new().await;
    let ask = async |tool: &str, arguments: Value| {
        let key = uuid::Uuid::now_v7().to_string();
        let context = shop.context(&key, "2026-05-06T09:00:00+02:00[Europe/Rome]", "it");
        shop.call_as(context, tool, arguments).await
    };
    let sold = ask("sell", json!({"items": "due tazzine da caffè e una lattiera"})).await.unwrap();
    assert_eq!(
        said(SCENE, "it", "SellItems", &sold),
        "Venduto: 2 × tazzina da caffè a 4,50 € (ne restano 40), 1 × lattiera a 12,50 € (ne restano 11). Totale: 21,50 €."
    );
    let stock = ask("get_stock", json!({"item": "tazzine da caffè abbiamo"})).await.unwrap();
    assert_eq!(said(SCENE, "it", "GetStock", &stock), "Tazzina da caffè: 40 in magazzino.");
    let back = ask("take_back", json!({"items": "il reso di una lattiera"})).await.unwrap();
    assert_eq!(back["total"], "12.50");
    let added = ask("restock", json!({"items": "magazzino 20 lattiere e 5 teiere"})).await.unwrap();
    assert_eq!(
        said(SCENE, "it", "RestockItems", &added),
        "Caricato in magazzino: 20 × lattiera (ora 32 in magazzino), 5 × teiera (ora 13 in magazzino)."
    );
    let error = ask("sell", json!({"items": "tre caffettiere"})).await.unwrap_err();
    assert_eq!(error.message, "moka: richiesti 3, in magazzino 1. Non è stato fatto nulla.");
}

#[tokio::test]
async fn same_key_sells_once_and_tells_the_same() {
    let shop = Shop::new().await;
    let items = json!({"items": "2 teapots"});
    let first = shop.with_key("k", "sell", items.clone()).await.unwrap();
    // In between somebody sold another one.
    shop.trade("sell", "1 teapot").await.unwrap();
    let again = shop.with_key("k", "sell", items).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(shop.stock().await["POT-TEA"], 5);
}

#[tokio::test]
async fn of_many_sales_of_the_last_piece_one_succeeds() {
    let shop = Shop::new().await;
    let sales = (0..6).map(|_| shop.trade("sell", "1 moka"));
    let ended: Vec<_> = futures::future::join_all(sales).await;
    assert_eq!(ended.iter().filter(|end| end.is_ok()).count(), 1, "{ended:#?}");
    for error in ended.into_iter().filter_map(Result::err) {
        assert_eq!(
            (error.kind, error.code.as_str()),
            (ToolErrorKind::Refused, "inventory.insufficient_stock")
        );
    }
    assert_eq!((shop.stock().await["MOKA-3"], shop.transactions().await.len()), (0, 1));
}

#[tokio::test]
async fn undoing_a_sale_or_a_price_restores_it() {
    let shop = Shop::new().await;
    let before = shop.stock().await;
    let sold = shop.trade("sell", "3 espresso cups and 1 moka").await.unwrap();
    shop.call("change_price", json!({"item": "espresso cup", "price": 5})).await.unwrap();
    let undone = shop.trade("take_back", sold["undo"].as_str().unwrap()).await.unwrap();
    assert_eq!((shop.stock().await, &undone["total"]), (before, &sold["total"]));
    assert_eq!(shop.refused("sell", json!({"items": "1 teapot at 1.00"})).await, "inventory.quantity");
    assert_eq!(shop.refused("take_back", json!({"items": "1 teapot at nothing"})).await, "inventory.price");
    let changed = shop.call("change_price", json!({"item": "the teapots", "price": 24.5})).await.unwrap();
    assert_eq!(said(SCENE, "en", "ChangePrice", &changed), "Teapot costs €24.50 now, instead of €22.90.");
    let back = json!({"item": changed["sku"], "price": changed["old_amount"]});
    assert_eq!(shop.call("change_price", back).await.unwrap()["price"], "22.90");
}

#[tokio::test]
async fn sales_are_summed_by_item_over_days_of_the_user() {
    let shop = Shop::new().await;
    let at = async |now: &str, tool: &str, items: &str| {
        let context = shop.context(&format!("{now}{tool}"), now, "en");
        shop.call_as(context, tool, json!({"items": items})).await.unwrap()
    };
    // Sunday half past midnight in Rome is Saturday in UTC.
    at("2026-05-03T00:30:00+02:00[Europe/Rome]", "sell", "1 moka").await;
    at("2026-05-04T10:00:00+02:00[Europe/Rome]", "sell", "3 teapots and 2 milk jugs").await;
    at("2026-05-05T10:00:00+02:00[Europe/Rome]", "take_back", "1 teapot").await;
    at("2026-05-05T11:00:00+02:00[Europe/Rome]", "restock", "9 teapots").await;
    let told = async |arguments: Value| {
        let sales = shop.call("list_sales", arguments).await.unwrap();
        said(SCENE, "en", "ListSales", &sales)
    };
    assert_eq!(
        told(json!({})).await,
        "Sold from 2026-05-04 to 2026-05-06: 2 × milk jug (€25.00), 2 × teapot (€45.80). Total: €70.80."
    );
    assert_eq!(
        told(json!({"day": "2026-05-03"})).await,
        "Sold from 2026-05-03 to 2026-05-03: 1 × moka pot (€24.90). Total: €24.90."
    );
    assert_eq!(told(json!({"day": "2026-05-02"})).await, "Nothing was sold from 2026-05-02 to 2026-05-02.");
    // Days without a year that were read as the next ones.
    assert!(told(json!({"from": "2027-05-03", "to": "2027-05-04"})).await.ends_with("Total: €118.60."));
    assert_eq!(
        shop.refused("list_sales", json!({"from": "2026-05-05", "to": "2026-05-04"})).await,
        "inventory.period"
    );
}

#[tokio::test]
async fn question_in_part_of_a_name_lists_what_fits() {
    let shop = Shop::new().await;
    let ask = async |item: &str| {
        let found = shop.call("get_stock", json!({"item": item})).await.map_err(|error| error.code);
        found.map(|found| {
            found["items"].as_array().unwrap().iter().map(|item| item["sku"].clone()).collect::<Vec<_>>()
        })
    };
    assert_eq!(ask("espresso cups do we have").await.unwrap(), ["CUP-ESP"]);
    assert_eq!(ask("cups").await.unwrap(), ["CUP-CAP", "CUP-ESP"]);
    assert_eq!(ask("teapots and milk jugs").await.unwrap(), ["JUG-MILK", "POT-TEA"]);
    assert_eq!(ask("MOKA-3").await.unwrap(), ["MOKA-3"]);
    assert_eq!(ask("violins").await, Err("inventory.no_item".to_owned()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn stock_is_what_the_transactions_say_and_never_below_zero(
        trades in prop::collection::vec((0..3_usize, prop::collection::vec((0..4_usize, 1..12_i64), 1..3)), 1..8),
    ) {
        const NAMES: [&str; 4] = ["espresso cups", "teapots", "milk jugs", "MOKA-3"];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let shop = Shop::new().await;
            let mut expected = shop.stock().await;
            for (tool, lines) in trades {
                let tool = ["sell", "take_back", "restock"][tool];
                let text: Vec<String> = lines.iter().map(|(item, pieces)| format!("{pieces} {}", NAMES[*item])).collect();
                // What is refused changes nothing, so the transactions below cover all of it.
                let _ = shop.trade(tool, &text.join(" and ")).await;
            }
            let rows = shop.transactions().await;
            for row in &rows {
                *expected.get_mut(row["sku"].as_str().unwrap()).unwrap() += row["stock_change"].as_i64().unwrap();
            }
            let stock = shop.stock().await;
            assert_eq!(stock, expected);
            assert!(stock.values().all(|pieces| *pieces >= 0));
        });
    }
}
