//! One line per turn, used in place of a summary when no model has made one.

use super::truncate::{self, json_text_size};

/// Maximum size of the request in a line, in quarters of a token.
const REQUEST: usize = 120;
/// Maximum size of the answer in a line, in quarters of a token.
const ANSWER: usize = 240;

/// `- request → answer` for each turn, of which these are given, newest last, in at most `max` quarters of a token.
/// If not all fit, keeps the newest, and the first line says how many are missing.
pub(super) fn lines<'a>(
    turns: impl DoubleEndedIterator<Item = (&'a str, &'a str)> + ExactSizeIterator,
    max: usize,
) -> String {
    let mut missing = turns.len();
    let mut lines = Vec::new();
    // The longest form of the line that says how many are missing.
    let notice = json_text_size("… 1000000 earlier turns are not shown\n");
    let mut room = max.saturating_sub(notice);
    for (request, answer) in turns.rev() {
        let line = format!(
            "- {} → {}",
            truncate::text(&one_line(request), REQUEST),
            truncate::text(&one_line(answer), ANSWER)
        );
        let Some(rest) = room.checked_sub(json_text_size(&line) + 2) else { break };
        room = rest;
        missing -= 1;
        lines.push(line);
    }
    if missing > 0 && max >= notice {
        lines.push(format!("… {missing} earlier turns are not shown"));
    }
    lines.reverse();
    lines.join("\n")
}

fn one_line(text: &str) -> String {
    // Bounds the work: a line shows no more of the text anyway.
    text.split_whitespace().take(200).collect::<Vec<_>>().join(" ")
}
