//! What a model is told after a reply that could not be used: that reply, and its problems.
//!
//! Both are bounded. A reply may be megabytes long, whatever was asked for, and every repetition of it would be paid for.

use crate::llm::Message;
use crate::plan::PlanProblem;
use crate::run::{AskStatus, Reply, ReplyCall, RunState};

/// The longest reply that is repeated, in bytes, with the list of problems behind each of its calls.
const MAX_REPEATED_BYTES: usize = 49_152;
/// The most problems that are listed.
const MAX_LISTED: usize = 32;
/// The longest list of problems, in bytes. A problem may quote what a model wrote.
const MAX_LISTED_BYTES: usize = 16_384;

/// The last rejected reply of `tries` and its problems. Older ones would only cost tokens.
pub(super) fn repair(state: &RunState, tries: &[u32]) -> Vec<Message> {
    let last = tries.iter().rev().filter_map(|call| state.asks.get(call)).find_map(|ask| match &ask.status {
        AskStatus::Rejected { reply, problems } => Some((reply, problems)),
        _ => None,
    });
    last.map(|(reply, problems)| messages(reply, problems)).unwrap_or_default()
}

fn messages(reply: &Reply, problems: &[PlanProblem]) -> Vec<Message> {
    let list = listed(problems);
    let text = format!("That reply could not be used:\n{list}\nReply again, corrected.");
    let calls: usize =
        reply.calls.iter().map(|call| call.name.len() + call.arguments.len() + text.len()).sum();
    if reply.text.len() + calls > MAX_REPEATED_BYTES {
        let text = format!(
            "Your reply, which is too long to be repeated here, could not be used:\n{list}\nReply again, corrected and \
             shorter."
        );
        return vec![Message::User { text }];
    }
    // A scene's unforced reply has calls only if they were understood, and then it was not rejected.
    if reply.calls.is_empty() {
        let mut messages = Vec::new();
        if !reply.text.trim().is_empty() {
            messages.push(Message::Assistant { text: reply.text.clone(), calls: Vec::new() });
        }
        messages.push(Message::User { text });
        return messages;
    }
    let calls: Vec<ReplyCall> = reply
        .calls
        .iter()
        .enumerate()
        .map(|(i, call)| ReplyCall { id: format!("try_{i}"), ..call.clone() })
        .collect();
    let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut messages = vec![Message::Assistant { text: reply.text.clone(), calls }];
    messages.extend(ids.into_iter().map(|call_id| Message::Tool { call_id, text: text.clone() }));
    messages
}

/// One line per problem, up to [`MAX_LISTED`] and [`MAX_LISTED_BYTES`].
fn listed(problems: &[PlanProblem]) -> String {
    let mut list = String::new();
    for (n, problem) in problems.iter().enumerate() {
        let line = format!("{}- {}", if n > 0 { "\n" } else { "" }, problem.message);
        if n == MAX_LISTED || list.len() + line.len() > MAX_LISTED_BYTES {
            // Something of the first is always told, however long a name it quotes.
            if n == 0 {
                list.push_str(line.get(..line.floor_char_boundary(MAX_LISTED_BYTES)).unwrap_or_default());
                list.push('…');
            }
            if let more @ 1.. = problems.len() - n.max(1) {
                list.push_str(&format!("\n- and {more} more"));
            }
            break;
        }
        list.push_str(&line);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(calls: usize, arguments: usize, problems: usize, message: usize) -> usize {
        let call = ReplyCall { id: String::new(), name: "Plan".to_owned(), arguments: "x".repeat(arguments) };
        let reply = Reply {
            calls: vec![call; calls],
            text: "y".to_owned(),
            finish_reason: None,
            model: String::new(),
        };
        let problems = vec![PlanProblem::new("odd", "é".repeat(message)); problems];
        serde_json::to_string(&messages(&reply, &problems)).unwrap().len()
    }

    #[test]
    fn messages_are_bounded_whatever_was_replied() {
        for (calls, arguments, problems, message) in [
            (1, 2_000_000, 1, 10),
            (1000, 10, 1, 10),
            (30, 10, 9_000, 60),
            (1, 10, 1, 1_000_000),
            (0, 0, 2, 9_000),
        ] {
            let bytes = bytes(calls, arguments, problems, message);
            assert!(bytes < 100_000, "{calls} {arguments} {problems} {message}: {bytes}");
        }
        assert!(bytes(2, 10_000, 3, 100) > 20_000, "an ordinary reply is repeated");
    }
}
