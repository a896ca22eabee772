//! Embeddings: texts that share words, or parts of words, have similar vectors. They know no meaning.

use actix_web::web::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::question::{QuestionFacts, RefusedRequest};
use super::reply::SimulatedUsage;
use crate::llm::tokens;
use crate::run::Purpose;

/// The numbers of a vector.
const DIMENSIONS: usize = 64;
/// Maximum number of texts of one request.
const MAX_INPUTS: usize = 2_048;

#[derive(Deserialize)]
#[serde(expecting = "an object with `input`")]
struct AskedEmbeddings {
    model: Option<String>,
    input: EmbeddedInput,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum EmbeddedInput {
    One(String),
    Several(Vec<String>),
}

/// The reply to the body of `POST /v1/embeddings`, what its fate depends on, and its tokens.
///
/// # Errors
/// `simulate.request`: it is not of the protocol.
pub(super) fn answer(body: &[u8]) -> Result<(QuestionFacts, Bytes, SimulatedUsage), RefusedRequest> {
    let asked: AskedEmbeddings = serde_json::from_slice(body).map_err(|error| {
        RefusedRequest::invalid(format!("the body is no request for embeddings: {error}; fix it"))
    })?;
    let texts = match asked.input {
        EmbeddedInput::One(text) => vec![text],
        EmbeddedInput::Several(texts) => texts,
    };
    if texts.is_empty() || texts.len() > MAX_INPUTS {
        let message = format!("`input` has {} texts: send 1 to {MAX_INPUTS}", texts.len());
        return Err(RefusedRequest::invalid(message));
    }
    let embedded = |(index, text): (usize, &String)| {
        let vector = vector(text);
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let data: Vec<Value> = texts.iter().enumerate().map(embedded).collect();
    let usage = SimulatedUsage {
        prompt: texts.iter().map(|text| tokens::text(text)).sum(),
        ..SimulatedUsage::default()
    };
    let model = asked.model.unwrap_or_else(|| "simulated".to_owned());
    let reply = json!({"object": "list", "model": model, "data": data,
        "usage": {"prompt_tokens": usage.prompt, "total_tokens": usage.prompt}});
    let mut hash = Sha256::new();
    hash.update(b"embedding");
    for text in &texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let facts = QuestionFacts {
        kind: Some(Purpose::Embedding),
        identity: hash.finalize().into(),
        words: texts.into_iter().next().unwrap_or_default(),
        is_forced: false,
        calls: false,
    };
    Ok((facts, Bytes::from(reply.to_string()), usage))
}

/// The vector of a text: each word, and each three letters of it, count in a place that follows from a hash.
fn vector(text: &str) -> Vec<f32> {
    let mut numbers = [0.0_f64; DIMENSIONS];
    let mut add = |part: &str, weight: f64| {
        let hash = part.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let place = usize::try_from(hash >> 32).unwrap_or_default() % DIMENSIONS;
        if let Some(number) = numbers.get_mut(place) {
            *number += if hash & 1 == 0 { weight } else { -weight };
        }
    };
    // A text without words has a direction, too.
    add("", 0.01);
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        add(word, 1.0);
        let letters: Vec<char> = word.chars().collect();
        for three in letters.windows(3) {
            add(&three.iter().collect::<String>(), 0.5);
        }
    }
    let length = numbers.iter().map(|n| n * n).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    numbers.iter().map(|n| (n / length) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_texts_have_similar_vectors() {
        let similarity = |one: &str, other: &str| -> f32 {
            vector(one).iter().zip(vector(other)).map(|(a, b)| a * b).sum()
        };
        let near = similarity("the weather in Milan", "What is the weather in Milan today?");
        let far = similarity("the weather in Milan", "my bank account");
        assert!(near > 0.5 && near > far + 0.3, "{near} and {far}");
        assert!((similarity("", "") - 1.0).abs() < 1e-3);
    }

    #[test]
    fn each_text_has_its_vector_and_tokens_are_counted() {
        let (facts, body, usage) = answer(br#"{"model": "e", "input": ["one", "two"]}"#).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((body["data"].as_array().unwrap().len(), body["data"][1]["index"].as_u64()), (2, Some(1)));
        assert_eq!(
            (facts.kind, usage.prompt, &body["usage"]["prompt_tokens"]),
            (Some(Purpose::Embedding), 2, &json!(2))
        );
        for wrong in ["{}", r#"{"input": []}"#, r#"{"input": [1]}"#] {
            assert_eq!(answer(wrong.as_bytes()).unwrap_err().code, "simulate.request");
        }
    }
}
