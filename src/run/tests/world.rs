//! What proptest chooses: settings, the driver's style, and a tape of dice.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{ApprovalPolicy, AskFor, Duplicates, RULES, Settings};

/// How a driver performs what `next` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The first action, then `next` again.
    First,
    /// All actions of one `next`, in any order.
    All,
    /// Any action of an earlier `next`, if it can still happen.
    Stale,
}

/// One invented world.
#[derive(Debug, Clone)]
pub struct World {
    pub settings: Settings,
    pub style: Style,
    /// Out of 16: how often a tool, or a scene's model in what it asks for, goes wrong.
    pub trouble: u16,
    /// Out of 16: how often a model is out or its reply unusable.
    pub faults: u16,
    /// Most crashes.
    pub crashes: u32,
    /// Only a plan is wanted.
    pub plan_only: bool,
    /// The check asks for more, always.
    pub stubborn: bool,
    /// Out of 64: how often somebody stops the run.
    pub stops: u16,
    /// Out of 24: how often somebody wants something of it that was not asked.
    pub people: u16,
    /// How often it is carried on after its end.
    pub reopens: u32,
    /// Writes are told and not done.
    pub dry_run: bool,
    /// The plan comes with the request.
    pub given: bool,
    /// The request asks for a person's yes.
    pub require_approval: bool,
    /// Choices, in the order in which they are made; then `seed` goes on.
    pub tape: Vec<u16>,
    pub seed: u64,
}

/// A source of choices that shrinks well: the tape, then a generator that 0 silences.
#[derive(Debug, Clone)]
pub struct Dice {
    tape: std::vec::IntoIter<u16>,
    seed: u64,
}

impl Dice {
    pub fn new(world: &World) -> Self {
        Self { tape: world.tape.clone().into_iter(), seed: world.seed }
    }

    /// A number below `sides`.
    pub fn pick(&mut self, sides: usize) -> usize {
        let roll = match self.tape.next() {
            Some(roll) => usize::from(roll),
            None => {
                self.seed =
                    self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.seed & 0xffff);
                (self.seed >> 40) as usize
            }
        };
        roll % sides.max(1)
    }

    /// True `of` times out of `sides`; a silent source says no.
    pub fn chance(&mut self, of: u16, sides: u16) -> bool {
        self.pick(usize::from(sides)) + usize::from(of) >= usize::from(sides)
    }
}

fn policy() -> impl Strategy<Value = (ApprovalPolicy, bool)> {
    let asks = prop_oneof![3 => Just(AskFor::Declared), 2 => Just(AskFor::Writes), 3 => Just(AskFor::Never)];
    let policy = (asks.clone(), asks, prop::bool::weighted(0.8))
        .prop_map(|(plans, calls, by_oneself)| ApprovalPolicy { plans, calls, by_oneself });
    (policy, prop::bool::weighted(0.4))
}

pub fn settings() -> impl Strategy<Value = Settings> {
    let rounds = prop_oneof![1 => 0..2u32, 6 => 2..5u32];
    let calls = prop_oneof![1 => 0..2u32, 6 => 2..9u32];
    let bounds = (1..6u32, 0..3u32, 0..4u32, 0..5u32, rounds, calls);
    (bounds, any::<bool>(), any::<bool>(), prop::bool::weighted(0.2), policy(), 0..=RULES).prop_map(
        |(bounds, fallback, with_check, coarse, (approval, compensate), rules)| {
            let (max_steps, max_retries, max_replans, max_parallel_steps, max_rounds, max_calls) = bounds;
            Settings {
                max_steps,
                max_retries,
                max_replans,
                fallback_enabled: fallback,
                answer_with_check: with_check,
                max_parallel_steps,
                max_rounds,
                max_calls,
                duplicates: if coarse { Duplicates::SceneTool } else { Duplicates::Arguments },
                approval,
                compensate,
                rules,
                ..Settings::default()
            }
        },
    )
}

/// Worlds in which everything can go wrong.
pub fn worlds() -> impl Strategy<Value = World> {
    let style = prop_oneof![Just(Style::First), Just(Style::All), Just(Style::Stale)];
    let trouble = prop_oneof![Just(0u16), 1..4u16, 4..12u16];
    let faults = prop_oneof![2 => Just(0u16), 2 => 1..3u16, 1 => 3..13u16];
    let stops = prop_oneof![3 => Just(0u16), 1 => Just(1u16)];
    let wants = prop_oneof![2 => Just(0u16), 2 => 1..4u16];
    let kind = (prop::bool::weighted(0.05), prop::bool::weighted(0.06), prop::bool::weighted(0.1));
    let people = (any::<bool>(), stops, wants, 0..3u32, prop::bool::weighted(0.15));
    let tape = (vec(any::<u16>(), 0..120), any::<u64>());
    (settings(), style, trouble, faults, 0..6u32, people, kind, tape).prop_map(
        |(settings, style, trouble, faults, crashes, people, kind, (tape, seed))| {
            let (stubborn, stops, people, reopens, require_approval) = people;
            let (plan_only, dry_run, given) = kind;
            World {
                settings,
                style,
                trouble,
                faults,
                crashes,
                plan_only,
                stubborn,
                stops,
                people,
                reopens,
                dry_run,
                given,
                require_approval,
                tape,
                seed,
            }
        },
    )
}

/// Worlds in which nothing goes wrong and nobody stops anything: only orders differ.
pub fn calm_worlds() -> impl Strategy<Value = World> {
    worlds().prop_map(|world| World {
        settings: Settings {
            max_rounds: world.settings.max_rounds.max(2),
            duplicates: Duplicates::Arguments,
            approval: ApprovalPolicy {
                plans: AskFor::Never,
                calls: AskFor::Never,
                ..world.settings.approval
            },
            ..world.settings
        },
        trouble: 0,
        faults: 0,
        crashes: 0,
        stops: 0,
        people: 0,
        reopens: 0,
        require_approval: false,
        plan_only: false,
        ..world
    })
}
