//! A provider of chat completions that replies at once, or after a while, with prepared bytes. It inspects nothing of a
//! request itself: a function selects the reply.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer requests do not belong to a benchmark.
const MOST_BYTES: usize = 1 << 24;

/// A whole response, as bytes on the wire.
pub type PreparedReply = Arc<[u8]>;

/// Serves until its runtime ends, on a free port. `reply` selects the reply to a request's body; each takes `latency`.
///
/// # Errors
/// If no port can be bound.
pub async fn serve(
    latency: Duration,
    reply: impl Fn(&str) -> PreparedReply + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let reply = Arc::new(reply);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let reply = reply.clone();
            // The client reports broken connections.
            tokio::spawn(async move { drop(connection(stream, latency, &*reply).await) });
        }
    });
    Ok(address)
}

async fn connection(
    mut stream: TcpStream,
    latency: Duration,
    reply: &(impl Fn(&str) -> PreparedReply + Sync),
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let (head, length) = loop {
            if let Some(head) = find(&buffer, b"\r\n\r\n") {
                break (head + 4, content_length(&buffer[..head])?);
            }
            if buffer.len() > MOST_BYTES || stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        if length > MOST_BYTES {
            return Err(io::Error::other("the request is too long"));
        }
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        // Exported traces are no text, and only counted.
        let bytes = reply(&String::from_utf8_lossy(&buffer[head..head + length]));
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        stream.write_all(&bytes).await?;
        buffer.drain(..head + length);
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &[u8]) -> io::Result<usize> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    let line = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    });
    line.unwrap_or("0").trim().parse().map_err(io::Error::other)
}

/// A reply that calls functions, each with its name and arguments.
pub fn calls(all: &[(&str, Value)]) -> PreparedReply {
    let numbered = all.iter().enumerate().map(|(number, (name, arguments))| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"id": format!("call_{number}"), "type": "function", "function": function})
    });
    let calls: Vec<Value> = numbered.collect();
    completion(&json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

/// A reply in words.
pub fn words(text: &str) -> PreparedReply {
    completion(&json!({"role": "assistant", "content": text}), "stop")
}

fn completion(message: &Value, reason: &str) -> PreparedReply {
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000,
        "model": "instant", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}})
    .to_string();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
        .into()
}
