//! A turn as a conversation keeps it, with its size.

use serde::{Deserialize, Serialize};

use super::{MAX_TURN_TOKENS, truncate};
use crate::run::{CompactJson, RunId, RunStatus, Turn, TurnCall};

/// A turn, truncated to [`MAX_TURN_TOKENS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptTurn {
    run: Option<RunId>,
    request: Box<str>,
    answer: Box<str>,
    status: RunStatus,
    calls: Box<[KeptCall]>,
    /// Its size in quarters of a token, with the comma after it.
    size: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptCall {
    scene: Box<str>,
    tool: Box<str>,
    arguments: Box<str>,
    result: Box<str>,
    stale: bool,
}

impl KeptTurn {
    pub(super) fn of(turn: &Turn) -> Self {
        let (turn, size) = truncate::turn(turn, MAX_TURN_TOKENS * 4);
        let Turn { run, request, answer, status, calls } = turn;
        let call = |TurnCall { scene, tool, arguments, result, stale }: TurnCall| KeptCall {
            scene: scene.into(),
            tool: tool.into(),
            arguments: arguments.text().into(),
            result: result.text().into(),
            stale,
        };
        let calls = calls.into_iter().map(call).collect();
        Self { run, request: request.into(), answer: answer.into(), status, calls, size: size + 1 }
    }

    pub(super) fn turn(&self) -> Turn {
        let call = |call: &KeptCall| TurnCall {
            scene: call.scene.to_string(),
            tool: call.tool.to_string(),
            arguments: CompactJson::of_text(&call.arguments),
            result: CompactJson::of_text(&call.result),
            stale: call.stale,
        };
        Turn {
            run: self.run,
            request: self.request.to_string(),
            answer: self.answer.to_string(),
            status: self.status,
            calls: self.calls.iter().map(call).collect(),
        }
    }

    /// The turn in at most `max` quarters of a token, and its size as that of [`KeptTurn::size`].
    pub(super) fn within(&self, max: usize) -> (Turn, usize) {
        // One that fits has no values that are shortened in any prompt.
        if self.size <= max.saturating_add(1) {
            return (self.turn(), self.size);
        }
        let (turn, size) = truncate::turn(&self.turn(), max);
        (turn, size + 1)
    }

    /// Its size in quarters of a token, with the comma after it.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the request and the answer.
    pub(super) fn said(&self) -> (&str, &str) {
        (&self.request, &self.answer)
    }
}
