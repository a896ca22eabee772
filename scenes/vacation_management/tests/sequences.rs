//! Whatever is called in whatever order.

use proptest::prelude::*;

use super::*;

/// One call: days from the clock's day on, or a request number.
#[derive(Debug, Clone)]
enum Call {
    Make { start: i64, length: i64, again: bool },
    Cancel { id: i64 },
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (-5..420i64, -1..25i64, any::<bool>())
            .prop_map(|(start, length, again)| Call::Make { start, length, again }),
        1 => (0..12i64).prop_map(|id| Call::Cancel { id }),
    ]
}

/// The day so many days after the clock's.
fn day(after: i64) -> String {
    use jiff::ToSpan;
    jiff::civil::date(2026, 5, 4).checked_add(after.days()).unwrap().to_string()
}

async fn hold(calls: Vec<Call>) {
    let asker = Asker::new().await;
    for (number, call) in calls.into_iter().enumerate() {
        let key = number.to_string();
        match call {
            Call::Make { start, length, again } => {
                let arguments = json!({"from": day(start), "to": day(start + length)});
                let first = asker.with_key(Some(&key), "make_request", arguments.clone()).await;
                if again {
                    assert_eq!(asker.with_key(Some(&key), "make_request", arguments).await, first);
                }
            }
            Call::Cancel { id } => {
                let _ = asker.with_key(Some(&key), "cancel_request", json!({"request_id": id})).await;
            }
        }
        let standing: Vec<_> = asker.rows().await.into_iter().filter(|row| !row.3).collect();
        for (index, (_, from, to, _)) in standing.iter().enumerate() {
            for (_, other_from, other_to, _) in &standing[index + 1..] {
                assert!(to < other_from || other_to < from, "{standing:?}");
            }
        }
        for year in [2026, 2027] {
            let balance = asker.ok("get_balance", json!({"year": year})).await;
            let (used, left) =
                (balance["requested_days"].as_i64().unwrap(), balance["remaining_days"].as_i64().unwrap());
            assert!(used + left == 26 && left >= 0, "{balance}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_calls_overdraws_a_year_or_books_a_day_twice(calls in prop::collection::vec(call(), 1..20)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(hold(calls));
    }
}
