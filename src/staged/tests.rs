use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// A store: rows with their versions, and the version of the next change.
#[derive(Debug, Clone, Default)]
struct Shelf {
    rows: BTreeMap<RowPlace, StoredRow>,
    next: i64,
}

fn column(name: &str, kind: ColumnKind) -> ColumnDefinition {
    ColumnDefinition { name: name.to_owned(), kind, optional: false, values: Vec::new(), filled: None }
}

fn table(name: &str, columns: Vec<ColumnDefinition>, key: &str, checks: &[&str]) -> TableDefinition {
    TableDefinition {
        name: name.to_owned(),
        description: String::new(),
        columns,
        key: vec![key.to_owned()],
        checks: checks.iter().map(|check| (*check).to_owned()).collect(),
        append_only: false,
        records: None,
        initial: Vec::new(),
    }
}

/// A shop: items, and entries of what was sold.
fn shop() -> Arc<SceneTables> {
    let items = table(
        "items",
        vec![
            column("sku", ColumnKind::Text),
            column("stock", ColumnKind::Integer),
            column("price_cents", ColumnKind::Integer),
        ],
        "sku",
        &["stock >= 0", "price_cents >= 0"],
    );
    let filled = |name, by| ColumnDefinition { filled: Some(by), ..column(name, ColumnKind::Text) };
    let mut sales = table(
        "sales",
        vec![
            filled("id", FilledBy::Id),
            filled("by", FilledBy::User),
            column("sku", ColumnKind::Text),
            column("change", ColumnKind::Integer),
            column("total_cents", ColumnKind::Integer),
            column("unit_cents", ColumnKind::Integer),
        ],
        "id",
        &["total_cents == -change * unit_cents"],
    );
    sales.append_only = true;
    sales.records = Some(EntryRule {
        table: "items".to_owned(),
        by: BTreeMap::from([("sku".to_owned(), "sku".to_owned())]),
        amounts: BTreeMap::from([("change".to_owned(), "stock".to_owned())]),
        checks: vec!["unit_cents == items.price_cents or unit_cents in stated".to_owned()],
    });
    Arc::new(SceneTables(vec![items, sales]))
}

/// The same without entries, so that random changes are complete.
fn items_alone() -> Arc<SceneTables> {
    Arc::new(SceneTables(vec![shop().0[0].clone()]))
}

fn set(tables: &Arc<SceneTables>) -> WriteSet {
    let host =
        HostValues { id: "r1".to_owned(), now: "2026-05-01T10:00:00Z".to_owned(), user: "ada".to_owned() };
    WriteSet::new(tables.clone(), host, StagedLimits::default())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn item(sku: &str) -> RowPlace {
    RowPlace { table: "items".to_owned(), key: vec![CellValue::Text(sku.to_owned())] }
}

impl Shelf {
    fn put(&mut self, tables: &SceneTables, table: &str, values: Value) {
        self.next += 1;
        let table = tables.table(table).unwrap();
        let values = table.row(&object(values)).unwrap();
        self.rows.insert(table.place(&values), StoredRow { version: self.next, values });
    }

    fn range(&self, table: &str, filter: &RowFilter) -> Vec<StoredRow> {
        let rows =
            self.rows.iter().filter(|(place, row)| place.table == table && filter.matches(&row.values));
        rows.map(|(_, row)| row.clone()).collect()
    }

    fn read(&self, tables: &SceneTables, call: &TableCall) -> Vec<StoredRow> {
        match call.reading(tables) {
            Ok(TableReading::Range(table, filter)) => self.range(&table, &filter),
            Ok(TableReading::Row(place)) => self.rows.get(&place).cloned().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The rows and ranges of a base as they are now.
    fn current(&self, base: &ReadBase) -> ReadBase {
        let version = |place: &RowPlace| self.rows.get(place).map(|row| row.version);
        let range = |range: &RangeVersions| {
            let rows = self.rows.iter();
            let rows =
                rows.filter(|(place, row)| place.table == range.table && range.filter.matches(&row.values));
            let rows = rows.map(|(place, row)| (place.key.clone(), row.version));
            RangeVersions::of(&range.table, range.filter.clone(), rows.collect()).unwrap()
        };
        ReadBase {
            rows: base.rows.keys().map(|place| (place.clone(), version(place))).collect(),
            ranges: base.ranges.iter().map(range).collect(),
        }
    }

    fn commit(&mut self, diff: &WriteDiff) {
        for change in &diff.changes {
            self.next += 1;
            let now = self.rows.get(&change.place).map(|row| row.values.clone());
            assert_eq!(now, change.before, "a diff applies to the state that it was made of");
            match change.after.clone() {
                Some(values) => {
                    self.rows.insert(change.place.clone(), StoredRow { version: self.next, values });
                }
                None => {
                    self.rows.remove(&change.place);
                }
            }
        }
    }
}

/// A call by a program, as JSON.
fn call(function: &'static str, arguments: Value) -> (&'static str, Value) {
    (function, arguments)
}

fn perform(set: &mut WriteSet, shelf: &Shelf, asked: (&str, Value)) -> Result<Value, StagedError> {
    let call = TableCall::read(set.tables(), asked.0, &object(asked.1))?;
    let found = shelf.read(set.tables(), &call);
    set.perform(&call, found)
}

fn sku() -> impl Strategy<Value = String> {
    "[a-e]".prop_map(|letter| letter)
}

fn filter() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        sku().prop_map(|sku| json!({"sku": sku})),
        (sku(), sku()).prop_map(|(a, b)| json!({"sku": [a, b]})),
        (0..9_i64, 0..9_i64).prop_map(|(low, high)| json!({"stock": {"gte": low, "lt": high}})),
        (0..9_i64).prop_map(|stock| json!({"stock": stock})),
        (sku(), 0..9_i64).prop_map(|(sku, low)| json!({"sku": {"lte": sku}, "stock": {"gt": low}})),
    ]
}

fn asked() -> impl Strategy<Value = (&'static str, Value)> {
    let values = (-1..9_i64, 0..3_i64);
    prop_oneof![
        filter().prop_map(|filter| call("find", json!({"table": "items", "where": filter}))),
        sku().prop_map(|sku| call("get", json!({"table": "items", "key": sku}))),
        sku().prop_map(|sku| call("delete", json!({"table": "items", "key": {"sku": sku}}))),
        (sku(), values.clone()).prop_map(|(sku, (stock, price))| {
            let values = json!({"sku": sku, "stock": stock, "price_cents": price});
            call("insert", json!({"table": "items", "values": values}))
        }),
        (sku(), values).prop_map(|(sku, (stock, _))| {
            call("update", json!({"table": "items", "key": sku, "values": {"stock": stock}}))
        }),
    ]
}

fn shelf() -> impl Strategy<Value = Shelf> {
    prop::collection::vec((sku(), 0..9_i64, 0..3_i64), 0..6).prop_map(|rows| {
        let mut shelf = Shelf::default();
        for (sku, stock, price) in rows {
            let values = json!({"sku": sku, "stock": stock, "price_cents": price});
            shelf.put(&items_alone(), "items", values);
        }
        shelf
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn reads_of_staged_rows_are_those_after_the_commit_and_the_diff_leads_there(
        shelf in shelf(),
        calls in prop::collection::vec(asked(), 0..12),
        last in filter(),
    ) {
        let tables = items_alone();
        let mut set = set(&tables);
        for one in calls {
            // Programs go on after calls that are refused: these stage nothing.
            let before = set.diff();
            if perform(&mut set, &shelf, one).is_err() {
                prop_assert_eq!(set.diff(), before);
            }
        }
        let read = perform(&mut set, &shelf, call("find", json!({"table": "items", "where": last.clone()}))).unwrap();
        let (base, diff) = set.finish().unwrap();
        prop_assert!(base.conflicts(&shelf.current(&base)).is_empty(), "nothing changed in between");
        let mut after = shelf.clone();
        after.commit(&diff);
        let table = tables.table("items").unwrap();
        let filter = RowFilter::read(table, &object(last)).unwrap();
        let stored: Vec<_> = after.range("items", &filter).into_iter().map(|row| table::row_json(&row.values)).collect();
        prop_assert_eq!(read, Value::Array(stored));
        // Nothing that is not in the diff changed, and every row passes its checks.
        for (place, row) in &after.rows {
            prop_assert!(table.check_row(&row.values).is_ok());
            let changed = diff.changes.iter().any(|change| change.place == *place);
            prop_assert!(changed || shelf.rows.get(place) == Some(row));
        }
    }

    #[test]
    fn base_and_diff_are_read_back_as_they_are_written_and_bind_alike(
        shelf in shelf(),
        calls in prop::collection::vec(asked(), 1..12),
    ) {
        let tables = items_alone();
        let mut set = set(&tables);
        for one in calls {
            let _ = perform(&mut set, &shelf, one);
        }
        let (base, diff) = set.finish().unwrap();
        let (written_base, written) = (serde_json::to_value(&base).unwrap(), serde_json::to_value(&diff).unwrap());
        let (again_base, again) =
            (ReadBase::read(&tables, &written_base).unwrap(), WriteDiff::read(&tables, &written).unwrap());
        prop_assert_eq!(&again_base, &base);
        prop_assert_eq!(&again, &diff);
        prop_assert_eq!(again.binding(&again_base).unwrap(), diff.binding(&base).unwrap());
        if !diff.is_empty() {
            prop_assert_ne!(WriteDiff::default().binding(&base).unwrap(), diff.binding(&base).unwrap());
        }
    }

    #[test]
    fn there_is_a_conflict_exactly_if_a_row_or_range_that_was_read_changed(
        shelf in shelf(),
        reads in prop::collection::vec(asked(), 1..4),
        changes in prop::collection::vec((sku(), prop::option::of(0..9_i64)), 0..3),
    ) {
        let tables = items_alone();
        let mut set = set(&tables);
        for one in reads {
            let _ = perform(&mut set, &shelf, one);
        }
        let base = set.base();
        let mut later = shelf.clone();
        for (sku, stock) in changes {
            match stock {
                Some(stock) => later.put(&tables, "items", json!({"sku": sku, "stock": stock, "price_cents": 1})),
                None => {
                    later.rows.remove(&item(&sku));
                }
            }
        }
        let places: std::collections::BTreeSet<&RowPlace> = shelf.rows.keys().chain(later.rows.keys()).collect();
        let changed = places.into_iter().filter(|place| shelf.rows.get(place) != later.rows.get(place));
        let touched = |place: &&RowPlace| {
            let within = |row: &StoredRow| base.ranges.iter().any(|range| range.filter.matches(&row.values));
            base.rows.contains_key(*place)
                || shelf.rows.get(place).is_some_and(within)
                || later.rows.get(place).is_some_and(within)
        };
        let expected = changed.filter(touched).count() > 0;
        prop_assert_eq!(!base.conflicts(&later.current(&base)).is_empty(), expected);
    }
}

fn stocked() -> (Arc<SceneTables>, Shelf) {
    let (tables, mut shelf) = (shop(), Shelf::default());
    shelf.put(&tables, "items", json!({"sku": "cup", "stock": 3, "price_cents": 450}));
    shelf.put(&tables, "items", json!({"sku": "pot", "stock": 1, "price_cents": 2_900}));
    (tables, shelf)
}

fn sale(sku: &str, change: i64, unit: i64) -> (&'static str, Value) {
    let total = -change * unit;
    let values = json!({"sku": sku, "change": change, "unit_cents": unit, "total_cents": total});
    call("insert", json!({"table": "sales", "values": values}))
}

#[test]
fn quantity_that_is_no_whole_number_or_leaves_less_than_nothing_is_refused() {
    let (tables, shelf) = stocked();
    let mut set = set(&tables);
    let mut code = |stock: Value| {
        let update = call("update", json!({"table": "items", "key": "cup", "values": {"stock": stock}}));
        perform(&mut set, &shelf, update).map_err(|error| error.code)
    };
    for wrong in [json!(2.0), json!(true), json!("NaN"), json!(null), json!("2")] {
        assert_eq!(code(wrong.clone()), Err("staged.value"), "{wrong}");
    }
    assert_eq!(code(json!(-1)), Err("staged.check"));
    assert!(code(json!(0)).is_ok());
}

#[test]
fn entry_is_compared_with_its_row_and_with_what_the_user_said() {
    let (tables, shelf) = stocked();
    let sold_at = |unit: i64, stated: Option<&[i64]>| {
        let mut set = set(&tables);
        if let Some(stated) = stated {
            set = set.with_stated(stated.iter().copied().collect());
        }
        let cups = call("update", json!({"table": "items", "key": "cup", "values": {"stock": 1}}));
        for one in [cups, sale("cup", -2, unit)] {
            perform(&mut set, &shelf, one).unwrap();
        }
        set.finish().map(|_| ()).map_err(|error| error.message)
    };
    assert_eq!(sold_at(450, Some(&[])), Ok(()));
    assert_eq!(sold_at(400, Some(&[200, 400])), Ok(()));
    // Tools are not programs: what the user said is not known there.
    assert_eq!(sold_at(400, None), Ok(()));
    let error = sold_at(400, Some(&[450])).unwrap_err();
    assert!(error.contains("breaks the rule `unit_cents == items.price_cents or"), "{error}");
    assert!(error.contains("\"price_cents\":450"), "{error}");
}

#[test]
fn each_changed_row_has_one_entry_with_its_amount() {
    let (tables, shelf) = stocked();
    let sold = |calls: Vec<(&'static str, Value)>| {
        let mut set = set(&tables);
        for one in calls {
            perform(&mut set, &shelf, one).unwrap();
        }
        set.finish().map(|(_, diff)| diff.changes.len()).map_err(|error| error.code)
    };
    let cups =
        |stock: i64| call("update", json!({"table": "items", "key": "cup", "values": {"stock": stock}}));
    assert_eq!(sold(vec![cups(1), sale("cup", -2, 450)]), Ok(2));
    assert_eq!(sold(vec![cups(1)]), Err("staged.rule"), "no entry");
    assert_eq!(sold(vec![cups(1), sale("cup", -1, 450)]), Err("staged.rule"), "another amount");
    assert_eq!(sold(vec![cups(1), sale("cup", -1, 450), sale("cup", -1, 450)]), Err("staged.rule"), "two");
    assert_eq!(sold(vec![sale("pot", -1, 2_900)]), Err("staged.rule"), "nothing was sold");
    let price = || call("update", json!({"table": "items", "key": "pot", "values": {"price_cents": 9}}));
    assert_eq!(sold(vec![sale("pot", 0, 2_900)]), Err("staged.rule"), "nothing changed");
    assert_eq!(sold(vec![sale("jar", 0, 2_900)]), Err("staged.rule"), "no such item");
    assert_eq!(sold(vec![price(), sale("pot", 0, 2_900)]), Ok(2), "a change without an amount");
    assert_eq!(sold(vec![price()]), Err("staged.rule"), "which has an entry, too");
}

#[test]
fn balance_is_exact_and_what_cannot_be_computed_is_refused() {
    let (tables, shelf) = stocked();
    let mut set = set(&tables);
    let mut insert = |values: Value| {
        let insert = call("insert", json!({"table": "sales", "values": values}));
        perform(&mut set, &shelf, insert).map_err(|error| error.code)
    };
    let off = json!({"sku": "cup", "change": -2, "unit_cents": 450, "total_cents": 901});
    assert_eq!(insert(off), Err("staged.check"));
    let huge = json!({"sku": "cup", "change": i64::MIN, "unit_cents": i64::MAX, "total_cents": 0});
    assert_eq!(insert(huge), Err("staged.check"));
    let forged = json!({"id": "x", "sku": "cup", "change": 0, "unit_cents": 1, "total_cents": 0});
    assert_eq!(insert(forged), Err("staged.value"), "the host sets ids");
}

#[test]
fn host_fills_its_columns_and_entries_are_never_changed() {
    let (tables, shelf) = stocked();
    let mut set = set(&tables);
    let first = perform(&mut set, &shelf, sale("cup", 0, 450)).unwrap();
    let second = perform(&mut set, &shelf, sale("pot", 0, 2_900)).unwrap();
    assert_eq!((&first["id"], &first["by"]), (&json!("r1-1"), &json!("ada")));
    assert_eq!(second["id"], json!("r1-2"));
    for asked in [
        call("delete", json!({"table": "sales", "key": "r1-1"})),
        call("update", json!({"table": "sales", "key": "r1-1", "values": {"change": 5}})),
    ] {
        assert_eq!(perform(&mut set, &shelf, asked).unwrap_err().code, "staged.append_only");
    }
}

#[test]
fn diff_with_other_values_in_the_columns_of_the_host_is_refused() {
    let (tables, shelf) = stocked();
    let mut set = set(&tables);
    perform(
        &mut set,
        &shelf,
        call("update", json!({"table": "items", "key": "cup", "values": {"stock": 2}})),
    )
    .unwrap();
    perform(&mut set, &shelf, sale("cup", -1, 450)).unwrap();
    let (_, diff) = set.finish().unwrap();
    for column in ["id", "by"] {
        let mut forged = diff.clone();
        let row = forged.changes[1].after.as_mut().unwrap();
        row.insert(column.to_owned(), CellValue::Text("mallory".to_owned()));
        assert_eq!(
            tables.check_diff(&forged, set.host(), None).unwrap_err().code,
            "staged.value",
            "{column}"
        );
    }
}

#[test]
fn row_that_changes_between_two_reads_is_a_conflict_at_once() {
    let (tables, mut shelf) = stocked();
    let mut set = set(&tables);
    let get = || call("get", json!({"table": "items", "key": "cup"}));
    perform(&mut set, &shelf, get()).unwrap();
    shelf.put(&tables, "items", json!({"sku": "cup", "stock": 2, "price_cents": 450}));
    assert_eq!(perform(&mut set, &shelf, get()).unwrap_err().code, "staged.conflict");
    let all = call("find", json!({"table": "items"}));
    assert_eq!(perform(&mut set, &shelf, all).unwrap_err().code, "staged.conflict");
}

#[test]
fn reads_and_changes_are_bounded() {
    let tables = items_alone();
    let limits = StagedLimits { read_rows: 6, changed_rows: 2, bytes: 4_096 };
    let host = HostValues { id: "r".to_owned(), now: String::new(), user: String::new() };
    let mut set = WriteSet::new(tables, host, limits);
    let shelf = Shelf::default();
    let mut insert = |sku: &str| {
        let values = json!({"sku": sku, "stock": 1, "price_cents": 1});
        perform(&mut set, &shelf, call("insert", json!({"table": "items", "values": values})))
            .map_err(|error| error.code)
    };
    assert_eq!(insert(&"x".repeat(2_049)), Err("staged.value"));
    assert!(insert("a").is_ok() && insert("b").is_ok());
    assert_eq!(insert("c"), Err("staged.too_large"));
    assert_eq!(set.diff().changes.len(), 2);
    let codes: Vec<_> = (0..4)
        .map(|_| {
            perform(&mut set, &shelf, call("get", json!({"table": "items", "key": "z"}))).map_err(|e| e.code)
        })
        .collect();
    assert_eq!(codes, [Ok(Value::Null), Ok(Value::Null), Ok(Value::Null), Err("staged.too_large")]);
}

#[test]
fn arguments_that_do_not_fit_say_what_is_expected() {
    let (tables, shelf) = stocked();
    let mut set = set(&tables);
    let cases = [
        call("find", json!({"table": "nothing"})),
        call("find", json!({"table": "items", "where": {"colour": "red"}})),
        call("find", json!({"table": "items", "where": {"stock": {"above": 3}}})),
        call("find", json!({"table": "items", "key": "cup"})),
        call("get", json!({"table": "items", "key": ["cup", "pot"]})),
        call("update", json!({"table": "items", "key": "cup", "values": {"sku": "pot"}})),
        call("update", json!({"table": "items", "key": "jar", "values": {"stock": 1}})),
        call("insert", json!({"table": "items", "values": {"sku": "cup", "stock": 1, "price_cents": 1}})),
        call("insert", json!({"table": "items", "values": {"sku": "jar"}})),
    ];
    let faults: Vec<String> = cases
        .into_iter()
        .map(|asked| perform(&mut set, &shelf, asked).unwrap_err())
        .map(|error| format!("{}: {error}", error.code))
        .collect();
    insta::assert_snapshot!(faults.join("\n"), @r#"
    staged.table: there is no table "nothing"; the tables are items, sales
    staged.column: items has no column "colour"; its columns are sku, stock, price_cents
    staged.filter: the condition on items.stock is {"above":3}: a range has gte, gt, lte and lt
    staged.arguments: find takes table and where: others were given
    staged.key: the key of items is sku, not ["cup","pot"]
    staged.key: the key of items "cup" cannot change; delete the row and insert another
    staged.no_row: there is no row items "jar"
    staged.exists: items "cup" exists already; use update to change it
    staged.value: items.stock is null; expected a value
    "#);
}

#[test]
fn check_of_a_row_names_only_its_columns() {
    assert_eq!(check_expression("stock >= 0 and kind in ['sale', 'return']", &["stock", "kind"]), Ok(()));
    assert!(check_expression("stok >= 0", &["stock"]).unwrap_err().contains("stok"));
    assert!(check_expression("1 == 1", &["stock"]).is_err());
    assert!(check_expression("stock >=", &["stock"]).is_err());
}
