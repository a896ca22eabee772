//! Scenarios: conversations with what a user would check after each request.

use serde::Deserialize;

use super::labels::{ExpectedTool, LabelledConversation, LabelledRequest};
use crate::run::RunStatus;

/// One scenario: turns of one conversation, or a request in each of several conversations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique.
    pub id: String,
    /// The first turns.
    #[serde(default)]
    pub turns: Vec<ScenarioTurn>,
    /// Requests in conversations of their own.
    #[serde(default)]
    pub concurrent_sessions: Vec<String>,
    /// A request that is repeated, after the first turns.
    pub repeat: Option<RepeatedTurn>,
    /// The last turns.
    #[serde(default)]
    pub then: Vec<ScenarioTurn>,
    /// How often a load test sends it, relative to the others; it is not evaluated more often.
    pub weight: Option<u32>,
    /// What has to be configured, in words.
    pub with: Option<String>,
    /// What has to hold in the end, in words.
    pub check: Option<String>,
}

/// A request of a conversation, and what a user would check afterwards.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioTurn {
    /// The user's words.
    pub say: String,
    /// The exact set of scenes that complete.
    pub scenes: Option<Vec<String>>,
    /// Pairs of scenes: the first has completed before the second begins.
    #[serde(default)]
    pub before: Vec<[String; 2]>,
    /// Tools that have to be called with success.
    #[serde(default)]
    pub tools: Vec<ExpectedTool>,
    /// Texts that the answer contains.
    #[serde(default)]
    pub answer_mentions: Vec<String>,
    /// What must not happen, in words.
    #[serde(default)]
    pub never: Vec<String>,
    /// What has to hold, in words. Without it, the request completes.
    pub check: Option<String>,
}

/// The same request for each number from 1.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatedTurn {
    /// How often.
    pub times: i8,
    /// The words; `{i}` is the number.
    pub say: String,
}

impl Scenario {
    /// The same as labelled requests, with ids such as `who-approves/2`.
    pub fn conversations(&self) -> Vec<LabelledConversation> {
        let labelled = |turn: &ScenarioTurn| LabelledRequest {
            say: turn.say.clone(),
            completes: turn.scenes.clone(),
            before: turn.before.clone(),
            tools: turn.tools.clone(),
            answer_mentions: turn.answer_mentions.clone(),
            never: turn.never.clone(),
            status: turn.check.is_none().then_some(RunStatus::Completed),
            check: turn.check.iter().cloned().collect(),
            ..LabelledRequest::default()
        };
        let plain = |say: String| LabelledRequest {
            say,
            status: Some(RunStatus::Completed),
            ..LabelledRequest::default()
        };
        let mut turns: Vec<LabelledRequest> = self.turns.iter().map(labelled).collect();
        if let Some(repeat) = &self.repeat {
            turns.extend(
                (1..=repeat.times).map(|number| plain(repeat.say.replace("{i}", &number.to_string()))),
            );
        }
        turns.extend(self.then.iter().map(labelled));
        let concurrent = self.concurrent_sessions.iter().map(|say| vec![plain(say.clone())]);
        let mut conversations: Vec<Vec<LabelledRequest>> =
            std::iter::once(turns).filter(|turns| !turns.is_empty()).chain(concurrent).collect();
        if let Some(first) = conversations.first_mut().and_then(|turns| turns.first_mut()) {
            first.check.extend(self.with.iter().chain(&self.check).cloned());
        }
        let count: usize = conversations.iter().map(Vec::len).sum();
        for (request, number) in conversations.iter_mut().flatten().zip(1..) {
            request.id = if count == 1 { self.id.clone() } else { format!("{}/{number}", self.id) };
        }
        conversations.into_iter().map(|turns| LabelledConversation { turns }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_share_a_conversation_and_concurrent_requests_do_not() {
        let read = |yaml: &str| -> Scenario { serde_norway::from_str(yaml).unwrap() };
        let talk = read(
            "{id: talk, turns: [{say: a, scenes: [Weather]}, {say: b, check: it is polite}], \
             repeat: {times: 2, say: 'day {i}'}, with: a small window}",
        );
        let conversations = talk.conversations();
        assert_eq!(conversations.len(), 1);
        let turns = &conversations[0].turns;
        let ids: Vec<(&str, &str)> = turns.iter().map(|turn| (turn.id.as_str(), turn.say.as_str())).collect();
        assert_eq!(ids, [("talk/1", "a"), ("talk/2", "b"), ("talk/3", "day 1"), ("talk/4", "day 2")]);
        assert_eq!((turns[0].status, turns[1].status), (Some(RunStatus::Completed), None));
        assert_eq!(turns[0].check, ["a small window"]);
        let apart = read("{id: apart, concurrent_sessions: [a, b]}").conversations();
        assert_eq!(apart.len(), 2);
        assert_eq!(apart[1].turns[0].id, "apart/2");
        assert_eq!(read("{id: one, weight: 3, turns: [{say: a}]}").conversations()[0].turns[0].id, "one");
    }
}
