use proptest::prelude::*;

use super::*;

fn run(number: u128) -> RunId {
    RunId(uuid::Uuid::from_u128(number))
}

fn runs(numbers: impl IntoIterator<Item = u128>) -> BTreeSet<RunId> {
    numbers.into_iter().map(run).collect()
}

/// A life of a process over `unfinished`: what is stored, and its admission with everybody in the line.
fn life(stored: &Deaths, unfinished: &BTreeSet<RunId>) -> Admission {
    let mut admission = Admission::new(stored.after(unfinished), unfinished.clone());
    for run in unfinished.iter().filter(|run| !stored.after(unfinished).is_aside(**run)) {
        admission.wait(*run);
    }
    admission.open();
    admission
}

fn admitted(admission: &mut Admission) -> Vec<RunId> {
    std::iter::from_fn(|| admission.admit().map(|(_, run)| run)).collect()
}

#[test]
fn each_further_death_before_progress_quarters_how_many_are_under_way() {
    let all = runs(1..=100);
    let mut stored = Deaths::default();
    let mut begun = Vec::new();
    for _ in 0..7 {
        let mut admission = life(&stored, &all);
        begun.push(admitted(&mut admission).len());
        stored = admission.stored().0;
    }
    // The first life begins after no death, the second after one.
    assert_eq!(begun, [100, 100, 16, 4, 1, 1, 1]);
}

#[test]
fn a_process_that_was_told_to_stop_has_not_died() {
    let all = runs(1..=40);
    let mut stored = Deaths::default();
    for _ in 0..10 {
        let mut admission = life(&stored, &all);
        assert_eq!(admitted(&mut admission).len(), 40);
        stored = admission.stored().0;
        stored.stop();
    }
}

#[test]
fn only_a_run_that_was_alone_at_three_deaths_in_a_row_is_put_aside() {
    let (one, two) = (runs([1]), runs([1, 2]));
    let mut stored = Deaths::default();
    let mut alone = Vec::new();
    for unfinished in [&one, &one, &two, &two, &two, &two, &two, &one] {
        let mut admission = life(&stored, unfinished);
        admitted(&mut admission);
        stored = admission.stored().0;
        alone.push(stored.alone.map_or(0, |(_, deaths)| deaths));
    }
    // Alone at the first death and then not; in the end one at a time is under way.
    assert_eq!((alone, stored.is_aside(run(1))), (vec![0, 1, 0, 0, 0, 1, 2, 0], true), "{stored:?}");
    // Another death before it was put aside changes nothing of that.
    let again = stored.after(&one);
    assert!(again.is_aside(run(1)) && again.limit().is_none(), "{again:?}");
    let mut admission = Admission::new(again, one.clone());
    admission.was_put_aside(run(1));
    let stored = admission.stored().0;
    // Somebody had it carried on: it needs three deaths more.
    assert!(!stored.after(&one).is_aside(run(1)));
}

#[test]
fn what_comes_to_something_widens_the_bound_and_new_requests_queue_behind() {
    let mut all = runs(1..=30);
    let mut stored = Deaths::default();
    for _ in 0..5 {
        stored = stored.after(&all);
    }
    let mut admission = life(&stored, &all);
    all.insert(run(0));
    // Its id is the lowest, but it came just now.
    admission.wait(run(0));
    assert_eq!(admitted(&mut admission), [run(1)]);
    admission.passed(run(1));
    assert_eq!(admitted(&mut admission), [run(2), run(3), run(4)]);
    for number in 2..=5 {
        admission.left(run(number));
        admitted(&mut admission);
    }
    let under_way = admitted(&mut admission).len() + 15;
    assert!(under_way >= 15 && admission.stored().0.limit() == Some(16), "{admission:?}");
    for number in 6..=30 {
        admission.left(run(number));
        admitted(&mut admission);
    }
    assert_eq!(admission.stored().0.limit(), None);
    assert_eq!(admission.stored().0.after(&runs([])).level, 0);
}

/// What one process does until it dies: how many things happen, and which of the runs under way they befall.
fn lives() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(proptest::collection::vec(0_usize..64, 0..12), 60)
}

proptest! {
    #[test]
    fn a_run_that_ends_its_server_is_put_aside_and_no_other(
        healthy in 0_u128..40, at in 0_u128..40, lives in lives(),
    ) {
        let poison = run(at * 2 + 1);
        let mut unfinished = runs((1..=healthy).map(|n| n * 2));
        unfinished.insert(poison);
        let mut stored = Deaths::default();
        for happens in lives {
            let mut admission = life(&stored, &unfinished);
            for run in &unfinished {
                prop_assert!(*run == poison || !admission.is_aside(*run), "{run} did nothing wrong");
            }
            if admission.is_aside(poison) {
                return Ok(());
            }
            let mut under_way = admitted(&mut admission);
            let mut happens = happens.into_iter();
            // It ends the server sooner or later, once it is under way.
            while !under_way.is_empty() && (!under_way.contains(&poison) || happens.len() > 0) {
                let limit = admission.stored().0.limit();
                prop_assert!(limit.is_none_or(|limit| under_way.len() <= limit));
                let of = happens.next().unwrap_or_default() % under_way.len();
                if under_way[of] == poison {
                    break;
                }
                let ended = under_way.swap_remove(of);
                unfinished.remove(&ended);
                admission.left(ended);
                under_way.extend(admitted(&mut admission));
            }
            stored = admission.stored().0;
        }
        prop_assert!(false, "it was never put aside: {stored:?}");
    }

    #[test]
    fn runs_that_are_never_alone_are_never_put_aside(
        numbers in proptest::collection::vec(2_u128..60, 1..30), lives in lives(),
    ) {
        let mut stored = Deaths::default();
        for (count, happens) in numbers.into_iter().zip(lives) {
            let unfinished = runs(1..=count);
            let mut admission = life(&stored, &unfinished);
            let mut under_way = admitted(&mut admission);
            for of in happens {
                if under_way.len() < 2 {
                    break;
                }
                admission.passed(under_way[of % under_way.len()]);
                under_way.extend(admitted(&mut admission));
            }
            if under_way.len() < 2 {
                // A stop: nobody dies while one is alone.
                stored = admission.stored().0;
                stored.stop();
            } else {
                stored = admission.stored().0;
            }
            prop_assert!(unfinished.iter().all(|run| !stored.after(&unfinished).is_aside(*run)));
        }
    }

    #[test]
    fn everything_is_admitted_and_the_bound_is_gone_once_all_have_come_to_something(
        count in 0_u128..200, deaths in 0_usize..8, order in proptest::collection::vec(0_usize..64, 400),
    ) {
        let unfinished = runs(1..=count);
        let mut stored = Deaths::default();
        for _ in 0..deaths {
            // Several are under way, so nobody is put aside.
            stored = Deaths { under_way: None, ..stored.after(&runs(1..=2 + count)) };
        }
        let mut admission = life(&stored, &unfinished);
        let mut under_way = admitted(&mut admission);
        let mut done = 0;
        let mut order = order.into_iter();
        while !under_way.is_empty() {
            let of = order.next().unwrap_or_default() % under_way.len();
            admission.left(under_way.swap_remove(of));
            done += 1;
            under_way.extend(admitted(&mut admission));
        }
        prop_assert_eq!(done, count);
        prop_assert_eq!(admission.stored().0.level, 0);
        prop_assert_eq!(admission.stored().0.limit(), None);
    }
}
