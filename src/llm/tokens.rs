//! Estimates the number of tokens if the provider does not report it.
//!
//! The rule: two tokens for every seven bytes of UTF-8, rounded up, and four for each message and each
//! tool. English prose has about four bytes a token, JSON about three, Italian about three and a half,
//! so the rule is close for what is sent here, and for prose rather too high than too low. It needs no tables and is
//! the same for every model.

use super::{Message, Request};
use crate::run::Reply;

const FRAME: u64 = 4;

/// Tokens of a text.
pub fn text(text: &str) -> u64 {
    bytes(text.len() as u64)
}

fn bytes(count: u64) -> u64 {
    count.saturating_mul(2).div_ceil(7)
}

/// Tokens of a whole request: messages, calls in them, and tools with their schemas.
pub fn request(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(message).sum();
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| {
            FRAME + text(&tool.name) + text(&tool.description) + bytes(tool.parameters.json_bytes() as u64)
        })
        .sum();
    messages + tools
}

/// Tokens of one message.
pub fn message(message: &Message) -> u64 {
    FRAME
        + match message {
            Message::System { text: words } | Message::User { text: words } => text(words),
            Message::Tool { text: words, .. } => text(words),
            Message::Assistant { text: words, calls } => {
                let calls: u64 = calls.iter().map(|c| FRAME + text(&c.name) + text(&c.arguments)).sum();
                text(words) + calls
            }
        }
}

/// Tokens of a reply.
pub fn reply(reply: &Reply) -> u64 {
    let calls: u64 = reply.calls.iter().map(|c| FRAME + text(&c.name) + text(&c.arguments)).sum();
    text(&reply.text) + calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{Purpose, ToolChoice, ToolSpec};

    #[test]
    fn every_part_of_a_request_counts() {
        let mut one = Request {
            purpose: Purpose::Plan,
            messages: vec![Message::User { text: "1234567".into() }],
            tools: vec![],
            choice: ToolChoice::Auto,
            temperature: None,
            max_output_tokens: None,
        };
        assert_eq!(request(&one), 4 + 2);
        one.tools.push(ToolSpec {
            name: "abc".into(),
            description: "1234567".into(),
            parameters: serde_json::json!({}).into(),
            strict: true,
        });
        assert_eq!(request(&one), 6 + 4 + 1 + 2 + 1);
    }

    #[test]
    fn an_empty_text_has_no_token_and_any_other_at_least_one() {
        assert_eq!(text(""), 0);
        assert_eq!(text("a"), 1);
    }
}
