use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use strum::{IntoEnumIterator, VariantArray};

use super::*;
use crate::adapt::{AlternativeTool, CachedResult, ExecutionLevel, ExecutionMode, capabilities};

fn classes() -> impl Strategy<Value = FaultClass> {
    proptest::sample::select(FaultClass::iter().collect::<Vec<_>>())
}

fn policies() -> impl Strategy<Value = ToolPolicies> {
    let actions = vec(proptest::sample::select(PolicyAction::declarable().collect::<Vec<_>>()), 0..4);
    let policy = (of(actions), of(1..=10u32), of(0..60_000u64), of(0..600_000u64)).prop_map(
        |(actions, attempts, backoff_ms, max_wait_ms)| FaultPolicy {
            actions,
            attempts,
            backoff_ms,
            max_wait_ms,
        },
    );
    let alternative = AlternativeTool { tool: "backup".to_owned(), ..AlternativeTool::default() };
    let others =
        vec(Just(AlternativeTool { tool: "another".to_owned(), ..AlternativeTool::default() }), 0..3);
    (btree_map(classes(), policy, 0..4), any::<bool>(), of((Just(alternative), others)), any::<bool>())
        .prop_map(|(by_class, optional, alternatives, chooses)| {
            let cached = optional.then_some(CachedResult { max_age_s: 60 });
            let (alternative, others) = alternatives.unzip();
            let choose_by = if chooses { "the cheaper one" } else { "" }.to_owned();
            let others = others.unwrap_or_default();
            ToolPolicies { by_class, optional, alternative, others, choose_by, cached, interpret: false }
        })
}

/// The failure of a call of a tool that declares this: its first alternative is not open any more once one was called.
fn of_tool<'a>(failure: &CallFailure<'a>, declared: Option<&ToolPolicies>) -> CallFailure<'a> {
    const PLACES: [u32; 4] = [0, 1, 2, 3];
    let count = declared.map_or(0, |declared| declared.alternatives().count());
    let first = usize::from(failure.used_alternative).min(count);
    CallFailure { open_alternatives: &PLACES[first..count], ..*failure }
}

fn repetitions() -> impl Strategy<Value = Repetition> {
    use Repetition::{Harmless, Keyed, NothingDone, SurelyNothingDone, Unsafe};
    proptest::sample::select(vec![Harmless, NothingDone, SurelyNothingDone, Keyed, Unsafe])
}

fn failures() -> impl Strategy<Value = CallFailure<'static>> {
    let times = (0..40u32, prop_oneof![Just(0), 0..90_000u64], of(any::<u64>()), any::<u64>());
    (classes(), repetitions(), 1..12u32, times, any::<bool>()).prop_map(
        |(class, repetition, attempts, times, used_alternative)| {
            let (retries_in_run, waited_ms, asked_ms, left_ms) = times;
            CallFailure {
                class,
                repetition,
                is_barred: false,
                attempts,
                retries_in_run,
                waited_ms,
                asked_ms,
                left_ms,
                used_alternative,
                open_alternatives: &[],
                used_cached: retries_in_run % 3 == 1,
                wrote: retries_in_run % 2 == 1,
                seed: "run.1.2.3",
            }
        },
    )
}

fn modes() -> impl Strategy<Value = Option<ExecutionMode>> {
    of(proptest::sample::select(ExecutionMode::VARIANTS))
}

/// A read that timed out for the first time, with much time left.
fn timed_out() -> CallFailure<'static> {
    CallFailure {
        class: FaultClass::Timeout,
        repetition: Repetition::Harmless,
        is_barred: false,
        attempts: 1,
        retries_in_run: 0,
        waited_ms: 0,
        asked_ms: None,
        left_ms: u64::MAX,
        used_alternative: false,
        open_alternatives: &[],
        used_cached: false,
        wrote: false,
        seed: "run.1.2.1",
    }
}

fn chosen(failure: &CallFailure<'_>, declared: Option<&ToolPolicies>) -> PolicyAction {
    let may = capabilities(Some(ExecutionLevel::Basic), Some(ExecutionMode::Adaptive));
    respond(&of_tool(failure, declared), declared, &PolicyDefaults::default(), may).0.action()
}

fn declared(class: FaultClass, actions: &[PolicyAction], optional: bool) -> ToolPolicies {
    let policy = FaultPolicy { actions: Some(actions.to_vec()), ..FaultPolicy::default() };
    let alternative = Some(AlternativeTool { tool: "backup".to_owned(), ..AlternativeTool::default() });
    let cached = Some(CachedResult { max_age_s: 60 });
    ToolPolicies {
        by_class: [(class, policy)].into(),
        optional,
        alternative,
        cached,
        ..ToolPolicies::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_policy_repeats_or_leaves_out_what_may_be_done(failure in failures(), policies in of(policies()), mode in modes()) {
        let may = capabilities(None, mode);
        let failure = CallFailure { repetition: Repetition::Unsafe, ..of_tool(&failure, policies.as_ref()) };
        let (choice, _) = respond(&failure, policies.as_ref(), &PolicyDefaults::default(), may);
        prop_assert_eq!(choice, PolicyChoice::Fail);
        let failure = CallFailure { repetition: Repetition::Keyed, ..failure };
        let (choice, _) = respond(&failure, policies.as_ref(), &PolicyDefaults::default(), may);
        let action = choice.action();
        prop_assert!(!matches!(action, PolicyAction::Skip | PolicyAction::Alternative));
    }

    #[test]
    fn first_open_alternative_is_called_and_none_in_mode_strict(
        failure in failures(), policies in policies(), mode in modes()
    ) {
        let (may, failure) = (capabilities(None, mode), of_tool(&failure, Some(&policies)));
        let (choice, _) = respond(&failure, Some(&policies), &PolicyDefaults::default(), may);
        if let PolicyChoice::Alternative { at } = choice {
            prop_assert!(mode > Some(ExecutionMode::Strict));
            prop_assert_eq!(failure.open_alternatives.first(), Some(&at));
            prop_assert!(policies.alternative_at(at).is_some());
        }
    }

    #[test]
    fn decision_offers_what_predefined_logic_could_call(
        failure in failures(), policies in of(policies()), mode in modes()
    ) {
        let (may, failure) = (capabilities(None, mode), of_tool(&failure, policies.as_ref()));
        let (choice, _) = respond(&failure, policies.as_ref(), &PolicyDefaults::default(), may);
        let options = decision_options(&failure, policies.as_ref());
        prop_assert!(options.is_empty() || policies.as_ref().is_some_and(|all| !all.choose_by.is_empty()));
        prop_assert!(options.is_empty() || options.len() == failure.open_alternatives.len());
        prop_assert_ne!(options.len(), 1, "one option is no choice");
        let ids: BTreeSet<_> = failure.open_alternatives.iter().map(|at| decision_id(*at)).collect();
        prop_assert_eq!(ids.len(), failure.open_alternatives.len());
        for option in options {
            let refused = decision_refusal(option, &failure, policies.as_ref(), may);
            prop_assert!(refused.is_none() || choice.action() != PolicyAction::Alternative);
        }
    }

    #[test]
    fn every_retry_is_within_its_bounds(failure in failures(), policies in of(policies()), mode in modes()) {
        let (may, defaults) = (capabilities(None, mode), PolicyDefaults::default());
        let failure = of_tool(&failure, policies.as_ref());
        let (choice, weighed) = respond(&failure, policies.as_ref(), &defaults, may);
        prop_assert_eq!(respond(&failure, policies.as_ref(), &defaults, may), (choice, weighed.clone()));
        let (last, before) = weighed.split_last().unwrap();
        prop_assert_eq!((last.action, last.refused), (choice.action(), None));
        prop_assert!(before.iter().all(|weighed| weighed.refused.is_some()));
        if let PolicyChoice::Retry { delay_ms } = choice {
            prop_assert!(mode.is_some() && failure.attempts < 10);
            prop_assert!(failure.waited_ms + delay_ms <= defaults.max_wait_per_run_ms);
            prop_assert!(delay_ms < failure.left_ms && delay_ms >= failure.asked_ms.unwrap_or(0));
        }
        if mode == Some(ExecutionMode::Strict) {
            prop_assert_ne!(choice, PolicyChoice::Skip);
        }
    }

    #[test]
    fn no_option_repeats_or_circumvents_what_predefined_logic_would_not(
        failure in failures(), policies in of(policies()), mode in modes()
    ) {
        let (may, defaults) = (capabilities(Some(ExecutionLevel::Adaptive), mode), PolicyDefaults::default());
        let failure = of_tool(&failure, policies.as_ref());
        let options = recovery_options(&failure, policies.as_ref(), &defaults, may);
        let list = policies.as_ref().and_then(|all| all.by_class.get(&failure.class)?.actions.clone());
        let declares = |action| list.iter().flatten().any(|one| *one == action);
        prop_assert_eq!(options.last(), Some(&RecoveryAction::Abort));
        for option in &options {
            prop_assert_eq!(recovery_refusal(*option, &failure, policies.as_ref(), &defaults, may), None);
            prop_assert_eq!(options.iter().filter(|other| other.id() == option.id()).count(), 1);
            match option {
                RecoveryAction::Retry { delay_ms } => {
                    prop_assert!(may.repeats && failure.repetition != Repetition::Unsafe);
                    prop_assert!(failure.repetition != Repetition::NothingDone || declares(PolicyAction::Retry));
                    prop_assert!(failure.attempts <= 10, "once beyond the most that can be declared");
                    prop_assert!(failure.waited_ms + delay_ms <= defaults.max_wait_per_run_ms);
                }
                RecoveryAction::Skip | RecoveryAction::Alternative { .. } => {
                    let action = match option {
                        RecoveryAction::Skip => PolicyAction::Skip,
                        _ => PolicyAction::Alternative,
                    };
                    prop_assert!(mode > Some(ExecutionMode::Strict));
                    prop_assert!(failure.class != FaultClass::Denied || declares(action));
                    prop_assert!(!matches!(failure.repetition, Repetition::Keyed | Repetition::Unsafe));
                }
                RecoveryAction::Cached { .. } => {
                    prop_assert!(mode > Some(ExecutionMode::Strict) && failure.class != FaultClass::Denied);
                    prop_assert!(failure.repetition == Repetition::Harmless && !failure.wrote);
                }
                RecoveryAction::AskUser => {
                    prop_assert!(!matches!(failure.repetition, Repetition::Keyed | Repetition::Unsafe));
                }
                RecoveryAction::Abort => {}
            }
        }
    }

    #[test]
    fn every_option_of_mode_strict_is_one_of_mode_adaptive(failure in failures(), policies in of(policies())) {
        let failure = of_tool(&failure, policies.as_ref());
        let options = |mode| {
            let may = capabilities(Some(ExecutionLevel::Adaptive), Some(mode));
            recovery_options(&failure, policies.as_ref(), &PolicyDefaults::default(), may)
        };
        let (strict, adaptive) = (options(ExecutionMode::Strict), options(ExecutionMode::Adaptive));
        prop_assert!(strict.iter().all(|option| adaptive.contains(option)));
        prop_assert!(strict.iter().all(|option| !matches!(option.id(), "skip" | "alternative" | "cached")));
    }
}

fn options(failure: &CallFailure<'_>, declared: Option<&ToolPolicies>) -> Vec<&'static str> {
    let may = capabilities(Some(ExecutionLevel::Adaptive), Some(ExecutionMode::Adaptive));
    let options = recovery_options(&of_tool(failure, declared), declared, &PolicyDefaults::default(), may);
    options.iter().map(|option| option.id()).collect()
}

#[test]
fn recovery_offers_one_more_attempt_where_it_may_help_and_is_safe() {
    let used = CallFailure { attempts: 3, ..timed_out() };
    assert_eq!(options(&used, None), ["retry", "ask_user", "abort"]);
    assert_eq!(options(&CallFailure { attempts: 4, ..used }, None), ["ask_user", "abort"]);
    let of = |class| CallFailure { class, ..timed_out() };
    assert_eq!(options(&of(FaultClass::Other), None), ["retry", "ask_user", "abort"]);
    assert_eq!(options(&of(FaultClass::BadData), None), ["ask_user", "abort"]);
    let with = |repetition| CallFailure { repetition, ..used };
    assert_eq!(options(&with(Repetition::Keyed), None), ["retry", "abort"]);
    assert_eq!(options(&with(Repetition::NothingDone), None), ["ask_user", "abort"]);
    assert_eq!(options(&with(Repetition::Unsafe), None), ["abort"]);
    let declared = declared(FaultClass::Timeout, &[PolicyAction::Retry], true);
    assert_eq!(
        options(&with(Repetition::NothingDone), Some(&declared)),
        ["retry", "alternative", "skip", "ask_user", "abort"]
    );
}

#[test]
fn skipping_precedes_a_retry_that_hardly_helps() {
    let optional = ToolPolicies { optional: true, ..ToolPolicies::default() };
    let other = CallFailure { class: FaultClass::Other, ..timed_out() };
    assert_eq!(options(&other, Some(&optional)), ["skip", "retry", "ask_user", "abort"]);
    let denied = CallFailure { class: FaultClass::Denied, ..timed_out() };
    assert_eq!(options(&denied, Some(&optional)), ["ask_user", "abort"], "a refusal is not walked around");
}

#[test]
fn asking_the_user_alone_is_a_choice_only_where_waiting_does_not_help() {
    let last = [RecoveryAction::AskUser, RecoveryAction::Abort];
    assert_eq!(recovery_choices(&last, FaultClass::NotFound), 1);
    assert_eq!(recovery_choices(&last, FaultClass::Timeout), 0);
    assert_eq!(recovery_choices(&[RecoveryAction::Abort], FaultClass::NotFound), 0);
    let all = [RecoveryAction::Retry { delay_ms: 0 }, RecoveryAction::Skip, RecoveryAction::AskUser];
    assert_eq!(recovery_choices(&all, FaultClass::Timeout), 2);
}

#[test]
fn failure_is_final_where_its_list_ends_with_fail() {
    let final_list = declared(FaultClass::Timeout, &[PolicyAction::Retry, PolicyAction::Fail], false);
    assert!(is_final(FaultClass::Timeout, Some(&final_list)));
    assert!(!is_final(FaultClass::Other, Some(&final_list)) && !is_final(FaultClass::Timeout, None));
    let open = declared(FaultClass::Timeout, &[PolicyAction::Retry], false);
    assert!(!is_final(FaultClass::Timeout, Some(&open)));
}

#[test]
fn without_a_declaration_only_what_passes_by_itself_is_retried() {
    for class in FaultClass::iter() {
        let passes = matches!(class, FaultClass::RateLimit | FaultClass::Timeout | FaultClass::Unavailable);
        let expected = |passes| if passes { PolicyAction::Retry } else { PolicyAction::Fail };
        let with = |repetition| CallFailure { class, repetition, ..timed_out() };
        assert_eq!(chosen(&with(Repetition::Harmless), None), expected(passes), "{class:?}");
        assert_eq!(chosen(&with(Repetition::SurelyNothingDone), None), expected(passes), "{class:?}");
        assert_eq!(chosen(&with(Repetition::NothingDone), None), PolicyAction::Fail, "{class:?}");
        assert_eq!(chosen(&with(Repetition::Keyed), None), PolicyAction::Retry, "{class:?}");
        assert_eq!(chosen(&with(Repetition::Unsafe), None), PolicyAction::Fail, "{class:?}");
    }
}

#[test]
fn a_declared_list_counts_in_its_order() {
    let policies = declared(FaultClass::Timeout, &[PolicyAction::Skip, PolicyAction::Retry], true);
    assert_eq!(chosen(&timed_out(), Some(&policies)), PolicyAction::Skip);
    let policies = declared(FaultClass::Timeout, &[PolicyAction::Retry, PolicyAction::Skip], true);
    assert_eq!(chosen(&timed_out(), Some(&policies)), PolicyAction::Retry);
    assert_eq!(chosen(&CallFailure { attempts: 3, ..timed_out() }, Some(&policies)), PolicyAction::Skip);
    let keyed = CallFailure { repetition: Repetition::Keyed, ..timed_out() };
    let policies = declared(FaultClass::Timeout, &[PolicyAction::Skip], true);
    assert_eq!(chosen(&keyed, Some(&policies)), PolicyAction::Retry, "its repetition is not lost");
    let policies = declared(FaultClass::Timeout, &[PolicyAction::Fail], true);
    assert_eq!(chosen(&keyed, Some(&policies)), PolicyAction::Fail);
}

#[test]
fn alternative_is_called_only_where_nothing_can_have_been_done() {
    let policies = declared(FaultClass::Timeout, &[PolicyAction::Alternative, PolicyAction::Retry], false);
    let with = |repetition| CallFailure { repetition, ..timed_out() };
    for (repetition, expected) in [
        (Repetition::Harmless, PolicyAction::Alternative),
        (Repetition::NothingDone, PolicyAction::Alternative),
        (Repetition::SurelyNothingDone, PolicyAction::Alternative),
        (Repetition::Keyed, PolicyAction::Retry),
        (Repetition::Unsafe, PolicyAction::Fail),
    ] {
        assert_eq!(chosen(&with(repetition), Some(&policies)), expected, "{repetition:?}");
    }
    let used = CallFailure { used_alternative: true, ..timed_out() };
    assert_eq!(chosen(&used, Some(&policies)), PolicyAction::Retry, "the rest of the list counts");
}

#[test]
fn last_result_is_used_for_reads_only_and_not_after_a_write() {
    let policies = |class| declared(class, &[PolicyAction::Cached], false);
    let after = |failure: CallFailure<'_>| chosen(&failure, Some(&policies(failure.class)));
    assert_eq!(after(timed_out()), PolicyAction::Cached);
    assert_eq!(after(CallFailure { wrote: true, ..timed_out() }), PolicyAction::Fail);
    assert_eq!(after(CallFailure { used_cached: true, ..timed_out() }), PolicyAction::Fail);
    assert_eq!(after(CallFailure { class: FaultClass::Denied, ..timed_out() }), PolicyAction::Fail);
    for repetition in [Repetition::NothingDone, Repetition::SurelyNothingDone, Repetition::Unsafe] {
        assert_eq!(after(CallFailure { repetition, ..timed_out() }), PolicyAction::Fail);
    }
}

#[test]
fn delay_beyond_the_bound_means_no_retry() {
    assert_eq!(chosen(&CallFailure { asked_ms: Some(20_000), ..timed_out() }, None), PolicyAction::Retry);
    assert_eq!(chosen(&CallFailure { asked_ms: Some(20_001), ..timed_out() }, None), PolicyAction::Fail);
    assert_eq!(chosen(&CallFailure { asked_ms: Some(u64::MAX), ..timed_out() }, None), PolicyAction::Fail);
    assert_eq!(chosen(&CallFailure { left_ms: 1_100, ..timed_out() }, None), PolicyAction::Fail);
    assert_eq!(chosen(&CallFailure { waited_ms: 60_000, ..timed_out() }, None), PolicyAction::Fail);
    assert_eq!(chosen(&CallFailure { retries_in_run: 32, ..timed_out() }, None), PolicyAction::Fail);
}
