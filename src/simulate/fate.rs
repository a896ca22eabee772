//! The fate of a request: which fault it meets, and how long its reply takes.
//!
//! The fate of a request follows from the seed, from what it asks and from how often that was asked before, not from
//! what else arrives or when. So a run of load meets the same faults again; among equal requests that arrive
//! together, only which of them meets which is open.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use strum::{EnumCount, EnumIter, IntoEnumIterator, IntoStaticStr};

use super::profile::Profile;
use super::question::QuestionFacts;

/// A fault that the simulated model shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumCount, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    /// Status 429 with `Retry-After`.
    RateLimited,
    /// Status 500.
    ServerError,
    /// No reply for a long time, then status 504.
    Timeout,
    /// A reply in many pieces with long pauses.
    SlowDrip,
    /// A connection that breaks in the middle of the reply.
    CutStream,
    /// A call whose arguments are cut off.
    MalformedCall,
    /// A call of a function that was not offered, with arguments that none has.
    WrongCall,
    /// Words in place of the function that was required.
    IgnoredChoice,
}

impl FaultKind {
    /// Its name in profiles and counts.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// All kinds, in the order in which rates add up.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// Whether a request can meet it: a malformed call takes a call, an ignored choice a choice.
    fn applies_to(self, question: &QuestionFacts) -> bool {
        match self {
            FaultKind::RateLimited
            | FaultKind::ServerError
            | FaultKind::Timeout
            | FaultKind::SlowDrip
            | FaultKind::CutStream => true,
            FaultKind::MalformedCall | FaultKind::WrongCall => question.calls,
            FaultKind::IgnoredChoice => question.calls && question.is_forced,
        }
    }
}

#[derive(Debug)]
pub(super) struct Fate {
    pub(super) fault: Option<FaultKind>,
    /// What its latencies are drawn from.
    pub(super) rng: ChaCha8Rng,
}

impl Fate {
    /// The fate of a request with this question, which is asked for the `nth` time, counted from 1.
    pub(super) fn of(profile: &Profile, question: &QuestionFacts, nth: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"proscenium simulate-llm 1");
        hash.update(profile.seed.to_le_bytes());
        hash.update(question.identity);
        hash.update(nth.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(hash.finalize().into());
        // Drawn in any case, so that a change of the script or the rates leaves the latencies as they are.
        let drawn: f64 = rng.random();
        let scripted = profile.script.iter().find(|entry| {
            entry.fits(question, nth) && entry.fault.is_none_or(|fault| fault.applies_to(question))
        });
        let fault = match scripted {
            Some(entry) => entry.fault,
            None => by_rate(profile, question, drawn),
        };
        Self { fault, rng }
    }
}

/// The fault whose share of the numbers from 0 to 1 the drawn number is in.
fn by_rate(profile: &Profile, question: &QuestionFacts, drawn: f64) -> Option<FaultKind> {
    let mut below = 0.0;
    FaultKind::all().filter(|fault| fault.applies_to(question)).find(|fault| {
        below += profile.faults.rate(*fault);
        drawn < below
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rand::Rng;

    use super::*;
    use crate::run::Purpose;
    use crate::simulate::profile::ScriptedFault;

    fn question(words: &str) -> QuestionFacts {
        QuestionFacts {
            kind: Some(Purpose::Plan),
            identity: Sha256::digest(words.as_bytes()).into(),
            words: words.to_owned(),
            is_forced: true,
            calls: true,
        }
    }

    fn profile(rates: &[(FaultKind, f64)]) -> Profile {
        let mut profile = Profile { seed: 11, ..Profile::default() };
        for (fault, rate) in rates {
            profile.faults.set_rate(*fault, *rate);
        }
        profile
    }

    #[test]
    fn each_fault_is_met_as_often_as_its_rate_says_where_it_can_be() {
        let profile = profile(&[
            (FaultKind::RateLimited, 0.1),
            (FaultKind::CutStream, 0.05),
            (FaultKind::WrongCall, 0.2),
            (FaultKind::IgnoredChoice, 0.25),
        ]);
        let (mut met, mut plain) = (BTreeMap::<_, u32>::new(), BTreeMap::<_, u32>::new());
        for nth in 1..=100_u64 {
            for text in 0..100 {
                let question = question(&format!("text {text}"));
                *met.entry(Fate::of(&profile, &question, nth).fault).or_default() += 1;
                let words = QuestionFacts { calls: false, ..question };
                *plain.entry(Fate::of(&profile, &words, nth).fault).or_default() += 1;
            }
        }
        // Four standard deviations of 10,000 draws are at most 200.
        let near = |count: u32, expected: u32| count.abs_diff(expected) < 200;
        assert!(near(met[&Some(FaultKind::RateLimited)], 1_000), "{met:?}");
        assert!(near(met[&Some(FaultKind::CutStream)], 500), "{met:?}");
        assert!(near(met[&Some(FaultKind::WrongCall)], 2_000), "{met:?}");
        assert!(near(met[&Some(FaultKind::IgnoredChoice)], 2_500), "{met:?}");
        assert!(near(met[&None], 4_000), "{met:?}");
        let kinds: Vec<_> = plain.keys().copied().collect();
        assert_eq!(kinds, [None, Some(FaultKind::RateLimited), Some(FaultKind::CutStream)]);
        assert!(near(plain[&Some(FaultKind::RateLimited)], 1_000), "{plain:?}");
    }

    proptest! {
        #[test]
        fn fates_of_a_question_do_not_depend_on_what_else_arrives(order in proptest::collection::vec(0..5_usize, 1..60)) {
            let profile = profile(&[(FaultKind::ServerError, 0.3), (FaultKind::SlowDrip, 0.3)]);
            let mut asked = [0_u64; 5];
            let mut fates: BTreeMap<(usize, u64), (Option<FaultKind>, u64)> = BTreeMap::new();
            for which in order {
                asked[which] += 1;
                let mut fate = Fate::of(&profile, &question(&format!("text {which}")), asked[which]);
                fates.insert((which, asked[which]), (fate.fault, fate.rng.random()));
            }
            for ((which, nth), expected) in fates {
                let mut alone = Fate::of(&profile, &question(&format!("text {which}")), nth);
                prop_assert_eq!((alone.fault, alone.rng.random::<u64>()), expected);
            }
        }
    }

    #[test]
    fn another_seed_has_other_fates() {
        let one = profile(&[(FaultKind::ServerError, 0.5)]);
        let other = Profile { seed: 12, ..one.clone() };
        let fates = |profile: &Profile| -> Vec<bool> {
            (1..=64).map(|nth| Fate::of(profile, &question("text"), nth).fault.is_some()).collect()
        };
        assert_eq!(fates(&one), fates(&one));
        assert_ne!(fates(&one), fates(&other));
    }

    #[test]
    fn script_comes_before_rates_and_names_questions_words_and_times() {
        let entry = |question, contains: &str, times: &[u64], fault| ScriptedFault {
            question,
            contains: contains.to_owned(),
            times: times.to_vec(),
            fault,
        };
        let mut profile = profile(&[(FaultKind::ServerError, 1.0)]);
        profile.script = vec![
            entry(Some(Some(Purpose::Scene)), "", &[], Some(FaultKind::Timeout)),
            entry(None, "Rome", &[2], Some(FaultKind::RateLimited)),
            entry(None, "Rome", &[], None),
        ];
        let fault = |words: &str, nth| Fate::of(&profile, &question(words), nth).fault;
        assert_eq!(fault("The weather in Rome", 1), None);
        assert_eq!(fault("The weather in Rome", 2), Some(FaultKind::RateLimited));
        assert_eq!(fault("The weather in Rome", 3), None);
        assert_eq!(fault("The weather in Milan", 2), Some(FaultKind::ServerError));
        let scene = QuestionFacts { kind: Some(Purpose::Scene), ..question("anything") };
        assert_eq!(Fate::of(&profile, &scene, 5).fault, Some(FaultKind::Timeout));
    }

    #[test]
    fn scripted_fault_that_cannot_be_shown_leaves_the_request_to_the_next_entry() {
        let entry = |fault| ScriptedFault { fault: Some(fault), ..ScriptedFault::default() };
        let script = vec![entry(FaultKind::MalformedCall), entry(FaultKind::CutStream)];
        let profile = Profile { script, ..Profile::default() };
        let words = QuestionFacts { calls: false, ..question("text") };
        assert_eq!(Fate::of(&profile, &words, 1).fault, Some(FaultKind::CutStream));
        assert_eq!(Fate::of(&profile, &question("text"), 1).fault, Some(FaultKind::MalformedCall));
    }
}
