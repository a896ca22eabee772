//! The messages of a chat, for both protocols: the last one is the request. The earlier ones are the memory
//! if the server does not keep the conversation.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::problem::Problem;
use crate::run::{RunStatus, Turn};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChatRole {
    /// The chatbot's instructions.
    System,
    /// The user.
    User,
    /// An earlier answer.
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextMessage {
    pub(crate) role: ChatRole,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedChat {
    pub(crate) request: String,
    /// Earlier turns, oldest first: each is a message of the user with its answer.
    pub(crate) turns: Vec<Turn>,
    /// The chatbot's instructions, joined.
    pub(crate) instructions: Option<String>,
}

/// Parses the messages.
///
/// # Errors
/// `request.messages` if there are none or too many, or the last is not from the user.
pub(crate) fn parse_messages(messages: Vec<TextMessage>, max: usize) -> Result<ParsedChat, Problem> {
    let bad = |detail: String| Problem::unprocessable("request.messages", detail);
    let count = messages.len();
    if count > max {
        return Err(bad(format!(
            "`messages` has {count} messages; at most {max} are allowed (server.max_messages)"
        )));
    }
    let mut turns: Vec<Turn> = Vec::new();
    let mut instructions: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut last = None;
    for TextMessage { role, text } in messages {
        match role {
            ChatRole::System => {
                instructions.push(text);
                continue;
            }
            ChatRole::User => open.push(text),
            ChatRole::Assistant => {
                let request = std::mem::take(&mut open).join("\n");
                match turns.last_mut() {
                    // Consecutive answers are joined.
                    Some(turn) if request.is_empty() => {
                        if !turn.answer.is_empty() && !text.is_empty() {
                            turn.answer.push('\n');
                        }
                        turn.answer.push_str(&text);
                    }
                    None if request.is_empty() && text.is_empty() => {}
                    _ => turns.push(Turn {
                        run: None,
                        request,
                        answer: text,
                        status: RunStatus::Completed,
                        calls: Vec::new(),
                    }),
                }
            }
        }
        last = Some(role);
    }
    if last != Some(ChatRole::User) {
        let what =
            if count == 0 { "`messages` is empty" } else { "the last of `messages` is not from the user" };
        return Err(bad(format!("{what}: end it with a message of role `user`, which is the request")));
    }
    // Consecutive messages of the user are one request.
    let request = open.join("\n");
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n"));
    Ok(ParsedChat { request, turns, instructions })
}

/// Removes the oldest messages of more than `max`, and returns how many. Instructions and the request stay; an
/// answer whose request was removed is removed, too.
pub(crate) fn omit_oldest(messages: &mut Vec<TextMessage>, max: usize) -> usize {
    let count = messages.len();
    let mut excess = count.saturating_sub(max);
    if excess == 0 {
        return 0;
    }
    // Consecutive messages of the user at the end are the request.
    let is_answer = |message: &TextMessage| message.role == ChatRole::Assistant;
    let history = messages.iter().rposition(is_answer).map_or(0, |at| at + 1);
    let (mut at, mut was_removed) = (0, false);
    messages.retain(|message| {
        let is_history = at < history && message.role != ChatRole::System;
        at += 1;
        if is_history {
            was_removed = excess > 0 || (was_removed && is_answer(message));
            excess = excess.saturating_sub(usize::from(was_removed));
        }
        !(is_history && was_removed)
    });
    count - messages.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: ChatRole, text: &str) -> TextMessage {
        TextMessage { role, text: text.to_owned() }
    }

    #[test]
    fn last_message_is_the_request_and_earlier_ones_are_turns() {
        let chat = parse_messages(
            vec![
                message(ChatRole::System, "Be brief."),
                message(ChatRole::User, "Hello"),
                message(ChatRole::Assistant, "Hi."),
                message(ChatRole::User, "And"),
                message(ChatRole::User, "in Rome?"),
            ],
            10,
        )
        .unwrap();
        assert_eq!(chat.request, "And\nin Rome?");
        assert_eq!(chat.turns.len(), 1);
        assert_eq!((chat.turns[0].request.as_str(), chat.turns[0].answer.as_str()), ("Hello", "Hi."));
        assert_eq!(chat.instructions.as_deref(), Some("Be brief."));
    }

    #[test]
    fn messages_without_a_user_request_are_rejected() {
        assert_eq!(parse_messages(vec![], 3).unwrap_err().code.as_ref(), "request.messages");
        assert_eq!(parse_messages(vec![message(ChatRole::Assistant, "x")], 3).unwrap_err().status, 422);
        let many = vec![message(ChatRole::User, "x"); 4];
        assert!(parse_messages(many, 3).unwrap_err().detail.contains("at most 3"));
    }

    #[test]
    fn oldest_messages_are_removed_but_not_instructions_or_the_request() {
        use ChatRole::{Assistant, System, User};
        let texts = |messages: &[TextMessage]| -> Vec<String> {
            messages.iter().map(|message| message.text.clone()).collect()
        };
        let mut chat = vec![
            message(System, "s"),
            message(User, "a"),
            message(Assistant, "A"),
            message(User, "b"),
            message(Assistant, "B"),
            message(User, "c"),
        ];
        assert_eq!((omit_oldest(&mut chat, 6), chat.len()), (0, 6));
        assert_eq!(omit_oldest(&mut chat, 5), 2);
        assert_eq!(texts(&chat), ["s", "b", "B", "c"]);
        // What is left cannot be cut: the request has more messages than are allowed.
        let mut request = vec![message(Assistant, "A"), message(User, "b"), message(User, "c")];
        assert_eq!(omit_oldest(&mut request, 1), 1);
        assert_eq!(texts(&request), ["b", "c"]);
        assert!(parse_messages(request, 1).unwrap_err().detail.contains("at most 1"));
    }

    #[test]
    fn empty_answers_separate_requests() {
        use ChatRole::{Assistant, User};
        let messages = [
            (Assistant, ""),
            (User, "a"),
            (Assistant, ""),
            (User, "b"),
            (Assistant, ""),
            (Assistant, "B"),
            (User, "c"),
        ];
        let chat = parse_messages(messages.map(|(role, text)| message(role, text)).to_vec(), 9).unwrap();
        assert_eq!(chat.request, "c");
        let turns: Vec<_> =
            chat.turns.iter().map(|turn| (turn.request.as_str(), turn.answer.as_str())).collect();
        assert_eq!(turns, [("a", ""), ("b", "B")]);
    }
}
