use proptest::prelude::*;

use super::*;

fn run(number: u128) -> RunId {
    RunId(uuid::Uuid::from_u128(number))
}

fn runs(numbers: impl IntoIterator<Item = u128>) -> BTreeSet<RunId> {
    numbers.into_iter().map(run).collect()
}

/// Starts a process with the runs `unfinished`, all queued for admission.
fn start_process(stored: &CrashHistory, unfinished: &BTreeSet<RunId>) -> RecoveryAdmission {
    let mut admission = RecoveryAdmission::new(stored.at_start(unfinished), unfinished.clone());
    for run in unfinished.iter().filter(|run| !stored.at_start(unfinished).is_quarantined(**run)) {
        admission.enqueue(*run);
    }
    admission.open();
    admission
}

fn admitted(admission: &mut RecoveryAdmission) -> Vec<RunId> {
    std::iter::from_fn(|| admission.admit().map(|(_, run)| run)).collect()
}

#[test]
fn repeated_crashes_without_progress_quarter_the_limit() {
    let all = runs(1..=100);
    let mut stored = CrashHistory::default();
    let mut begun = Vec::new();
    for _ in 0..7 {
        let mut admission = start_process(&stored, &all);
        begun.push(admitted(&mut admission).len());
        stored = admission.to_store().0;
    }
    // The first process starts after no crash, the second after one.
    assert_eq!(begun, [100, 100, 16, 4, 1, 1, 1]);
}

#[test]
fn shutdown_is_not_counted_as_a_crash() {
    let all = runs(1..=40);
    let mut stored = CrashHistory::default();
    for _ in 0..10 {
        let mut admission = start_process(&stored, &all);
        assert_eq!(admitted(&mut admission).len(), 40);
        stored = admission.to_store().0;
        stored.record_shutdown();
    }
}

#[test]
fn only_a_run_alone_at_three_consecutive_crashes_is_quarantined() {
    let (one, two) = (runs([1]), runs([1, 2]));
    let mut stored = CrashHistory::default();
    let mut alone = Vec::new();
    for unfinished in [&one, &one, &two, &two, &two, &two, &two, &one] {
        let mut admission = start_process(&stored, unfinished);
        admitted(&mut admission);
        stored = admission.to_store().0;
        alone.push(stored.alone.map_or(0, |(_, crashes)| crashes));
    }
    // Alone at the first crash, then not; in the end, one run at a time is in progress.
    assert_eq!((alone, stored.is_quarantined(run(1))), (vec![0, 1, 0, 0, 0, 1, 2, 0], true), "{stored:?}");
    // Another crash before the quarantine is recorded changes nothing.
    let again = stored.at_start(&one);
    assert!(again.is_quarantined(run(1)) && again.limit().is_none(), "{again:?}");
    let mut admission = RecoveryAdmission::new(again, one.clone());
    admission.clear_quarantine(run(1));
    let stored = admission.to_store().0;
    // A person resumed it: it takes three more crashes.
    assert!(!stored.at_start(&one).is_quarantined(run(1)));
}

#[test]
fn progress_raises_the_limit_and_new_requests_queue_behind() {
    let mut all = runs(1..=30);
    let mut stored = CrashHistory::default();
    for _ in 0..5 {
        stored = stored.at_start(&all);
    }
    let mut admission = start_process(&stored, &all);
    all.insert(run(0));
    // Its id is the lowest, but it is new.
    admission.enqueue(run(0));
    assert_eq!(admitted(&mut admission), [run(1)]);
    admission.record_progress(run(1));
    assert_eq!(admitted(&mut admission), [run(2), run(3), run(4)]);
    for number in 2..=5 {
        admission.release(run(number));
        admitted(&mut admission);
    }
    let under_way = admitted(&mut admission).len() + 15;
    assert!(under_way >= 15 && admission.to_store().0.limit() == Some(16), "{admission:?}");
    for number in 6..=30 {
        admission.release(run(number));
        admitted(&mut admission);
    }
    assert_eq!(admission.to_store().0.limit(), None);
    assert_eq!(admission.to_store().0.at_start(&runs([])).level, 0);
}

/// What one process does until it crashes: how many events happen, and to which of the runs in progress.
fn lives() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(proptest::collection::vec(0_usize..64, 0..12), 60)
}

proptest! {
    #[test]
    fn only_the_run_that_crashes_its_server_is_quarantined(
        healthy in 0_u128..40, at in 0_u128..40, lives in lives(),
    ) {
        let poison = run(at * 2 + 1);
        let mut unfinished = runs((1..=healthy).map(|n| n * 2));
        unfinished.insert(poison);
        let mut stored = CrashHistory::default();
        for happens in lives {
            let mut admission = start_process(&stored, &unfinished);
            for run in &unfinished {
                prop_assert!(*run == poison || !admission.is_quarantined(*run), "{run} did nothing wrong");
            }
            if admission.is_quarantined(poison) {
                return Ok(());
            }
            let mut under_way = admitted(&mut admission);
            let mut happens = happens.into_iter();
            // It crashes the server sooner or later, once it is in progress.
            while !under_way.is_empty() && (!under_way.contains(&poison) || happens.len() > 0) {
                let limit = admission.to_store().0.limit();
                prop_assert!(limit.is_none_or(|limit| under_way.len() <= limit));
                let of = happens.next().unwrap_or_default() % under_way.len();
                if under_way[of] == poison {
                    break;
                }
                let ended = under_way.swap_remove(of);
                unfinished.remove(&ended);
                admission.release(ended);
                under_way.extend(admitted(&mut admission));
            }
            stored = admission.to_store().0;
        }
        prop_assert!(false, "it was never put aside: {stored:?}");
    }

    #[test]
    fn runs_that_are_never_alone_are_never_quarantined(
        numbers in proptest::collection::vec(2_u128..60, 1..30), lives in lives(),
    ) {
        let mut stored = CrashHistory::default();
        for (count, happens) in numbers.into_iter().zip(lives) {
            let unfinished = runs(1..=count);
            let mut admission = start_process(&stored, &unfinished);
            let mut under_way = admitted(&mut admission);
            for of in happens {
                if under_way.len() < 2 {
                    break;
                }
                admission.record_progress(under_way[of % under_way.len()]);
                under_way.extend(admitted(&mut admission));
            }
            if under_way.len() < 2 {
                // A shutdown: no crash while one run is alone.
                stored = admission.to_store().0;
                stored.record_shutdown();
            } else {
                stored = admission.to_store().0;
            }
            prop_assert!(unfinished.iter().all(|run| !stored.at_start(&unfinished).is_quarantined(*run)));
        }
    }

    #[test]
    fn every_run_is_admitted_and_the_limit_ends_with_recovery(
        count in 0_u128..200, crashes in 0_usize..8, order in proptest::collection::vec(0_usize..64, 400),
    ) {
        let unfinished = runs(1..=count);
        let mut stored = CrashHistory::default();
        for _ in 0..crashes {
            // Several are in progress, so none is quarantined.
            stored = CrashHistory { under_way: None, ..stored.at_start(&runs(1..=2 + count)) };
        }
        let mut admission = start_process(&stored, &unfinished);
        let mut under_way = admitted(&mut admission);
        let mut done = 0;
        let mut order = order.into_iter();
        while !under_way.is_empty() {
            let of = order.next().unwrap_or_default() % under_way.len();
            admission.release(under_way.swap_remove(of));
            done += 1;
            under_way.extend(admitted(&mut admission));
        }
        prop_assert_eq!(done, count);
        prop_assert_eq!(admission.to_store().0.level, 0);
        prop_assert_eq!(admission.to_store().0.limit(), None);
    }
}
