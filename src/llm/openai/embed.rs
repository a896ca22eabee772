//! Embeddings in the OpenAI protocol: the body of the request, and reading the reply.

use serde_json::{Value, json};

use super::super::Request;
use super::super::embeddings::{self, Vector};
use super::super::error::ErrorKind;
use super::super::options::ModelOptions;
use super::reply::{ProviderReply, usage};
use super::transport::error_object;
use crate::run::Reply;

/// Characters for each token of a model's window. Real texts have more, so a cut text fits.
const CHARS_PER_TOKEN: usize = 2;

/// The body of `POST /embeddings`. Texts are cut to the model's window: servers refuse longer ones.
pub(super) fn body(request: &Request, model: &ModelOptions) -> Value {
    let max = usize::try_from(model.context_window).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
    let texts = embeddings::texts(request).into_iter().map(|text| text.chars().take(max).collect::<String>());
    // Some servers refuse an empty text.
    let texts = texts.map(|text| if text.trim().is_empty() { "-".to_owned() } else { text });
    json!({"model": model.id(), "input": texts.collect::<Vec<_>>(), "encoding_format": "float"})
}

/// Reads a reply with the vectors of `count` texts. Its text is the vectors in the order of the texts.
pub(super) fn reply(body: &Value, count: usize) -> Result<ProviderReply, ErrorKind> {
    if body.get("error").is_some_and(|error| !error.is_null()) {
        return Err(error_object(body));
    }
    let malformed = |detail: String| ErrorKind::Malformed { detail: format!("embeddings: {detail}") };
    let vectors = vectors(body, count).map_err(malformed)?;
    let reply = Reply {
        text: embeddings::write(&vectors),
        finish_reason: Some("stop".to_owned()),
        ..Reply::default()
    };
    Ok(ProviderReply { reply, usage: usage(body), first_token: None })
}

fn vectors(body: &Value, count: usize) -> Result<Vec<Vector>, String> {
    let data = body.get("data").and_then(Value::as_array).ok_or("there is no data")?;
    if data.len() != count {
        return Err(format!("{} vectors for {count} texts", data.len()));
    }
    let mut found: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, item) in data.iter().enumerate() {
        // Some servers give no index.
        let index = match item.get("index") {
            None | Some(Value::Null) => Some(place),
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let slot = index.and_then(|index| found.get_mut(index)).ok_or("an index is out of range")?;
        let numbers = item.get("embedding").and_then(Value::as_array).ok_or("a vector is missing")?;
        let numbers: Option<Vec<f32>> = numbers.iter().map(|n| n.as_f64().map(|n| n as f32)).collect();
        if slot.replace(numbers.ok_or("a vector has what is no number")?).is_some() {
            return Err("an index occurs twice".to_owned());
        }
    }
    embeddings::of_one_kind(found.into_iter().flatten().collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value, count: usize) -> Result<Vec<Vector>, String> {
        reply(body, count)
            .map(|read| embeddings::read(&read.reply.text, count).unwrap())
            .map_err(|kind| kind.to_string())
    }

    fn item(index: u64, embedding: Value) -> Value {
        json!({"object": "embedding", "index": index, "embedding": embedding})
    }

    #[test]
    fn vectors_are_put_in_the_order_of_the_texts() {
        let body = json!({"data": [item(1, json!([0, 2])), item(0, json!([3.0, 0.0]))], "usage": {"prompt_tokens": 5}});
        let vectors = read(&body, 2).unwrap();
        assert_eq!(vectors, [Vector::new(vec![1.0, 0.0]).unwrap(), Vector::new(vec![0.0, 1.0]).unwrap()]);
        assert_eq!(reply(&body, 2).unwrap().usage.unwrap().input, 5);
        let bare = json!({"data": [{"embedding": [1]}, {"embedding": [2]}]});
        assert_eq!(read(&bare, 2).unwrap().len(), 2);
    }

    #[test]
    fn anything_else_is_malformed_and_names_what_is_wrong() {
        for (body, why) in [
            (json!({}), "there is no data"),
            (json!("hello"), "there is no data"),
            (json!({"data": [item(0, json!([1]))]}), "1 vectors for 2 texts"),
            (json!({"data": [item(0, json!([1])), item(2, json!([1]))]}), "out of range"),
            (json!({"data": [item(0, json!([1])), item(0, json!([1]))]}), "occurs twice"),
            (json!({"data": [item(0, json!([1])), item(1, json!([1, 2]))]}), "vectors of 1 and of 2"),
            (json!({"data": [item(0, json!([1])), item(1, json!("AAAA"))]}), "a vector is missing"),
            (json!({"data": [item(0, json!([1])), item(1, json!([null]))]}), "no number"),
            (json!({"data": [item(0, json!([1])), item(1, json!([0.0]))]}), "without a direction"),
            (json!({"data": [item(0, json!([1])), item(1, json!([1e300]))]}), "without a direction"),
            (json!({"data": [item(0, json!([1])), item(1, json!([]))]}), "a vector of 0 numbers"),
        ] {
            let error = read(&body, 2).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
        let busy = reply(&json!({"error": {"message": "busy", "code": 503}}), 1).unwrap_err();
        assert_eq!(busy.code(), "llm.status");
    }

    #[test]
    fn texts_fit_into_the_window_and_are_never_empty() {
        let model = ModelOptions { name: "e".to_owned(), context_window: 256, ..ModelOptions::default() };
        let long = "a".repeat(1_000);
        let sent = body(&embeddings::request([long.as_str(), " "]), &model);
        assert_eq!(sent["input"][0].as_str().unwrap().len(), 512);
        assert_eq!(sent["input"][1], "-");
    }
}
