//! The requests of a load test: conversations from a file of scenarios.
//!
//! It is the file that `eval` reads, too. A load test sends the words and judges no answer, so only these fields count here:
//!
//! ```yaml
//! scenarios:
//!   - id: weather
//!     weight: 3                      # how often, relative to the others; 1 if absent
//!     turns:
//!       - say: "What is the weather in Milan?"
//!       - say: "And in Rome?"
//!   - id: unique
//!     turns: [{say: "What is the weather in Milan? (request {n})"}]   # {n}: no two requests are equal
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{LoadFault, random};
use crate::nearest::did_you_mean;

/// Largest file, in bytes.
pub const MAX_MIX_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of conversations of a file.
const MAX_CONVERSATIONS: usize = 10_000;
/// Maximum number of requests of a conversation.
const MAX_TURNS: usize = 200;
const MAX_WEIGHT: u32 = 1_000_000;

/// Reads of the shipped scenes, which change nothing.
const BUILT_IN: &str = include_str!("mix.yaml");

/// The conversations of a load test, and how often each is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestMix {
    conversations: Vec<MixConversation>,
    /// For each conversation, the sum of the weights up to it.
    up_to: Vec<u64>,
}

/// The requests of one conversation, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixConversation {
    /// Its name in the file.
    pub id: String,
    /// Its requests; at least one.
    pub turns: Vec<String>,
}

#[derive(Deserialize)]
struct MixFile {
    #[serde(default)]
    scenarios: Vec<MixScenario>,
    /// The labelled requests of `eval`.
    #[serde(default)]
    requests: Vec<MixRequest>,
}

#[derive(Deserialize)]
struct MixScenario {
    id: String,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default)]
    turns: Vec<MixTurn>,
    #[serde(default)]
    concurrent_sessions: Vec<String>,
    repeat: Option<MixRepeat>,
    #[serde(default)]
    then: Vec<MixTurn>,
    /// Fields of `eval`.
    #[serde(flatten)]
    other: BTreeMap<String, serde::de::IgnoredAny>,
}

/// The fields of a scenario that count here.
const FIELDS: [&str; 6] = ["id", "weight", "turns", "concurrent_sessions", "repeat", "then"];

#[derive(Deserialize)]
struct MixTurn {
    say: String,
}

#[derive(Deserialize)]
struct MixRepeat {
    times: u32,
    say: String,
}

#[derive(Deserialize)]
struct MixRequest {
    id: String,
    #[serde(default = "one")]
    weight: u32,
    say: String,
    /// Earlier turns, whose answers are given: such a request cannot be sent by itself.
    #[serde(default)]
    history: Vec<serde::de::IgnoredAny>,
}

fn one() -> u32 {
    1
}

impl RequestMix {
    /// Questions about the shipped scenes, which write nothing.
    ///
    /// # Errors
    /// None: the file is part of the program, and a test reads it.
    pub fn built_in() -> Result<Self, LoadFault> {
        Self::parse(BUILT_IN)
    }

    /// The same words in each conversation, which has one request for each of them.
    ///
    /// # Errors
    /// `load.mix` if there are none or too many.
    pub fn of_messages(messages: &[String]) -> Result<Self, LoadFault> {
        let conversation = |(at, text): (usize, &String)| {
            (MixConversation { id: format!("message-{}", at + 1), turns: vec![text.clone()] }, 1)
        };
        Self::of(messages.iter().enumerate().map(conversation).collect())
    }

    /// Reads a file of scenarios, in YAML.
    ///
    /// # Errors
    /// `load.mix` with the line, the scenario or the bound.
    pub fn parse(text: &str) -> Result<Self, LoadFault> {
        if text.len() > MAX_MIX_BYTES {
            return Err(fault(format!("the file has more than {MAX_MIX_BYTES} bytes")));
        }
        let file: MixFile = serde_norway::from_str(text).map_err(|error| fault(error.to_string()))?;
        let mut all = Vec::new();
        for scenario in file.scenarios {
            let weight = scenario.weight;
            let id = scenario.id.clone();
            for field in scenario.other.keys() {
                let near = did_you_mean(field, FIELDS);
                if !near.is_empty() {
                    return Err(fault(format!("scenario `{id}` has the field `{field}`: {near}")));
                }
            }
            let turns = scenario_turns(&scenario)?;
            if turns.is_empty() && scenario.concurrent_sessions.is_empty() {
                return Err(fault(format!("scenario `{id}` says nothing: it needs `turns` with `say`")));
            }
            if !turns.is_empty() {
                all.push((MixConversation { id: id.clone(), turns }, weight));
            }
            let alone = |text: String| (MixConversation { id: id.clone(), turns: vec![text] }, weight);
            all.extend(scenario.concurrent_sessions.into_iter().map(alone));
        }
        for request in file.requests.into_iter().filter(|request| request.history.is_empty()) {
            all.push((MixConversation { id: request.id, turns: vec![request.say] }, request.weight));
        }
        Self::of(all)
    }

    fn of(all: Vec<(MixConversation, u32)>) -> Result<Self, LoadFault> {
        if all.len() > MAX_CONVERSATIONS {
            return Err(fault(format!("there are more than {MAX_CONVERSATIONS} conversations")));
        }
        let mut sum = 0_u64;
        let mut mix = Self { conversations: Vec::new(), up_to: Vec::new() };
        for (conversation, weight) in all {
            let id = &conversation.id;
            if weight > MAX_WEIGHT {
                return Err(fault(format!("`{id}`: `weight` = {weight} must be at most {MAX_WEIGHT}")));
            }
            if conversation.turns.iter().any(|text| text.trim().is_empty()) {
                return Err(fault(format!("`{id}` has an empty request")));
            }
            // With the weight 0, a scenario is switched off.
            if weight > 0 {
                sum += u64::from(weight);
                mix.conversations.push(conversation);
                mix.up_to.push(sum);
            }
        }
        if mix.conversations.is_empty() {
            return Err(fault(
                "there is nothing to send: `scenarios` with `turns`, or `requests`, are missing",
            ));
        }
        Ok(mix)
    }

    /// Returns conversation number `n`: chosen by weight, the same for the same seed.
    pub fn conversation(&self, seed: u64, n: u64) -> &MixConversation {
        let last = self.up_to.len() - 1;
        let chosen = random(seed, n) % self.up_to[last];
        let at = self.up_to.partition_point(|sum| *sum <= chosen).min(last);
        &self.conversations[at]
    }
}

impl MixConversation {
    /// Request number `turn` of the conversation, which is request `n` of the load. A conversation that has more requests
    /// than the file gives it repeats them.
    pub fn text(&self, turn: usize, n: u64) -> String {
        let text = self.turns.get(turn % self.turns.len().max(1)).map_or("", String::as_str);
        if text.contains("{n}") { text.replace("{n}", &n.to_string()) } else { text.to_owned() }
    }
}

fn scenario_turns(scenario: &MixScenario) -> Result<Vec<String>, LoadFault> {
    let repeated = scenario.repeat.as_ref().map_or(0, |repeat| repeat.times as usize);
    if scenario.turns.len() + scenario.then.len() + repeated > MAX_TURNS {
        return Err(fault(format!("scenario `{}` has more than {MAX_TURNS} requests", scenario.id)));
    }
    let said = scenario.turns.iter().map(|turn| turn.say.clone());
    let again = scenario
        .repeat
        .iter()
        .flat_map(|repeat| (1..=repeat.times).map(|number| repeat.say.replace("{i}", &number.to_string())));
    Ok(said.chain(again).chain(scenario.then.iter().map(|turn| turn.say.clone())).collect())
}

fn fault(message: impl Into<String>) -> LoadFault {
    LoadFault::new("load.mix", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_of_the_tests_and_labelled_requests_are_mixes() {
        let mix = RequestMix::parse(include_str!("../../tests/scenarios/multi-scene.yaml")).unwrap();
        let turns = |id: &str| {
            let all = mix.conversations.iter().filter(|conversation| conversation.id == id);
            all.map(|conversation| conversation.turns.len()).collect::<Vec<_>>()
        };
        assert_eq!((turns("identity-remembered"), turns("three-at-once")), (vec![2], vec![1, 1, 1]));
        let long =
            mix.conversations.iter().find(|conversation| conversation.id == "long-conversation").unwrap();
        assert_eq!((long.turns.len(), long.turns[2].as_str()), (16, "Che tempo fa a Milano il giorno 3?"));
        assert!(
            RequestMix::parse(include_str!("../../tests/eval/shipped.yaml")).unwrap().conversations.len()
                > 10
        );
        assert!(!RequestMix::built_in().unwrap().conversations.is_empty());
    }

    #[test]
    fn conversations_are_chosen_by_weight_and_repeatably() {
        let mix = RequestMix::parse(
            "scenarios: [{id: often, weight: 3, turns: [{say: 'a {n}'}]}, {id: off, weight: 0, turns: [{say: b}]}, {id: rarely, turns: [{say: c}]}]",
        )
        .unwrap();
        let mut chosen = BTreeMap::new();
        for n in 0..4000 {
            assert_eq!(mix.conversation(7, n), mix.conversation(7, n));
            *chosen.entry(mix.conversation(7, n).id.as_str()).or_insert(0) += 1;
        }
        assert!((2900..3100).contains(&chosen["often"]) && !chosen.contains_key("off"), "{chosen:?}");
        assert_eq!(mix.conversations[0].text(5, 12), "a 12");
    }

    #[test]
    fn unusable_mix_is_explained() {
        for (text, why) in [
            ("scenarios: [{id: x}]", "scenario `x` says nothing"),
            ("scenarios: [{id: x, turns: [{sya: hello}]}]", "missing field `say`"),
            ("scenarios: [{id: x, turns: [{say: ' '}]}]", "`x` has an empty request"),
            ("scenarios: [{id: x, wieght: 3, turns: [{say: a}]}]", "did you mean \"weight\"?"),
            ("scenarios: []", "nothing to send"),
            ("scenarios: [{id: x, repeat: {times: 1000, say: a}}]", "more than 200 requests"),
            ("scenarios: [{id: x", "line"),
        ] {
            let fault = RequestMix::parse(text).unwrap_err();
            assert!(fault.code == "load.mix" && fault.message.contains(why), "{text}: {fault}");
        }
    }
}
