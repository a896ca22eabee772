//! Turns in a line each: what stands for turns when no model has summarised them.

use super::cut::{self, size};
use crate::run::Turn;

/// Most of a line's request, in quarters of a token.
const REQUEST: usize = 120;
/// Most of a line's answer.
const ANSWER: usize = 240;

/// `- request → answer` for each turn, the newest last, in at most `max` quarters of a token; where not
/// all fit, the newest do, and the first line says how many are missing.
pub(super) fn lines<'a>(
    turns: impl DoubleEndedIterator<Item = &'a Turn> + ExactSizeIterator,
    max: usize,
) -> String {
    let mut missing = turns.len();
    let mut lines = Vec::new();
    // The line that says how many are missing, at its longest.
    let said = size("… 1000000 earlier turns are not shown\n");
    let mut room = max.saturating_sub(said);
    for turn in turns.rev() {
        let line = format!(
            "- {} → {}",
            cut::text(&one_line(&turn.request), REQUEST),
            cut::text(&one_line(&turn.answer), ANSWER)
        );
        let Some(rest) = room.checked_sub(size(&line) + 2) else { break };
        room = rest;
        missing -= 1;
        lines.push(line);
    }
    if missing > 0 && max >= said {
        lines.push(format!("… {missing} earlier turns are not shown"));
    }
    lines.reverse();
    lines.join("\n")
}

fn one_line(text: &str) -> String {
    // A bounded look at the text: a line shows no more of it anyway.
    text.split_whitespace().take(200).collect::<Vec<_>>().join(" ")
}
