//! The messages of a chat, for both protocols: the last one is the request. The earlier ones are the memory
//! if the server does not keep the conversation.

use super::problem::Problem;
use crate::run::{RunStatus, Turn};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// The chatbot's instructions.
    System,
    /// The user.
    User,
    /// An earlier answer.
    Assistant,
}

/// One text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextMessage {
    pub(crate) role: MessageRole,
    pub(crate) text: String,
}

/// A parsed chat.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedChat {
    /// The request.
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
            MessageRole::System => {
                instructions.push(text);
                continue;
            }
            MessageRole::User => open.push(text),
            MessageRole::Assistant => {
                let request = std::mem::take(&mut open).join("\n");
                match turns.last_mut() {
                    // Consecutive answers are joined.
                    Some(turn) if request.is_empty() => {
                        turn.answer.push('\n');
                        turn.answer.push_str(&text);
                    }
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
    if last != Some(MessageRole::User) {
        let what =
            if count == 0 { "`messages` is empty" } else { "the last of `messages` is not from the user" };
        return Err(bad(format!("{what}: end it with a message of role `user`, which is the request")));
    }
    // Consecutive messages of the user are one request.
    let request = open.join("\n");
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n"));
    Ok(ParsedChat { request, turns, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: MessageRole, text: &str) -> TextMessage {
        TextMessage { role, text: text.to_owned() }
    }

    #[test]
    fn last_message_is_the_request_and_earlier_ones_are_turns() {
        let chat = parse_messages(
            vec![
                message(MessageRole::System, "Be brief."),
                message(MessageRole::User, "Hello"),
                message(MessageRole::Assistant, "Hi."),
                message(MessageRole::User, "And"),
                message(MessageRole::User, "in Rome?"),
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
        assert_eq!(parse_messages(vec![message(MessageRole::Assistant, "x")], 3).unwrap_err().status, 422);
        let many = vec![message(MessageRole::User, "x"); 4];
        assert!(parse_messages(many, 3).unwrap_err().detail.contains("at most 3"));
    }
}
