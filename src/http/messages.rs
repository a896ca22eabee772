//! The messages of a chat, as both protocols send them: the last one is the request; those before it
//! are the memory where the conversation is not kept here.

use super::problem::Problem;
use crate::run::{RunStatus, Turn};

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The chatbot's own instructions.
    System,
    /// The user.
    User,
    /// The answer that was given.
    Assistant,
}

/// One message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) role: Role,
    pub(crate) text: String,
}

/// A chat, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chat {
    /// What is asked now.
    pub(crate) request: String,
    /// What was said before, oldest first: a turn for each message of the user with what was answered.
    pub(crate) turns: Vec<Turn>,
    /// The chatbot's own instructions, put together.
    pub(crate) instructions: Option<String>,
}

/// Takes the messages apart.
///
/// # Errors
/// `request.messages` where there is none, too many, or the last is not the user's.
pub(crate) fn read(messages: Vec<Said>, max: usize) -> Result<Chat, Problem> {
    let bad = |detail: String| Problem::unprocessable("request.messages", detail);
    let count = messages.len();
    if count > max {
        return Err(bad(format!(
            "`messages` has {count} messages; at most {max} are taken (server.max_messages)"
        )));
    }
    let mut turns: Vec<Turn> = Vec::new();
    let mut instructions: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut last = None;
    for Said { role, text } in messages {
        match role {
            Role::System => {
                instructions.push(text);
                continue;
            }
            Role::User => open.push(text),
            Role::Assistant => {
                let request = std::mem::take(&mut open).join("\n");
                match turns.last_mut() {
                    // Two answers in a row are one.
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
    if last != Some(Role::User) {
        let what =
            if count == 0 { "`messages` is empty" } else { "the last of `messages` is not the user's" };
        return Err(bad(format!("{what}: end it with a message of role `user`, which is the request")));
    }
    // Several messages of the user without an answer between are one request.
    let request = open.join("\n");
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n"));
    Ok(Chat { request, turns, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Said {
        Said { role, text: text.to_owned() }
    }

    #[test]
    fn the_last_message_is_the_request_and_those_before_are_turns() {
        let chat = read(
            vec![
                said(Role::System, "Be brief."),
                said(Role::User, "Hello"),
                said(Role::Assistant, "Hi."),
                said(Role::User, "And"),
                said(Role::User, "in Rome?"),
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
    fn what_is_no_request_is_refused() {
        assert_eq!(read(vec![], 3).unwrap_err().code.as_ref(), "request.messages");
        assert_eq!(read(vec![said(Role::Assistant, "x")], 3).unwrap_err().status, 422);
        let many = vec![said(Role::User, "x"); 4];
        assert!(read(many, 3).unwrap_err().detail.contains("at most 3"));
    }
}
