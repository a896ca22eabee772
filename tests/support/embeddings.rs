//! A simulated model of embeddings: a text becomes a vector of the concepts that its words belong to, and a little of its
//! other words. Deterministic, and no measure of any real model.

use std::collections::BTreeMap;

use proscenium::llm::ModelOptions;
use serde_json::{Value, json};

use super::scripted::Scripted;
use super::scripted_llm::ScriptedLlm;

/// Beginnings of words, in English and Italian, by concept.
const CONCEPTS: [&[&str]; 8] = [
    &[
        "weather", "forecast", "rain", "umbrella", "temperature", "freez", "sunny", "snow", "meteo", "piov",
        "piogg", "ombrell", "caldo", "freddo", "nevic", "gradi",
    ],
    &[
        "vacation", "holiday", "leave", "absence", "break", "unwind", "ferie", "vacanz", "riposo", "stacc",
        "assen",
    ],
    &[
        "colleague", "employee", "directory", "identity", "username", "colleg", "dipendent", "rubrica",
        "sits", "desk",
    ],
    &["doctor", "clinic", "patient", "tooth", "dentist", "medic", "dottor", "visit", "dent", "appuntament"],
    &[
        "bank", "account", "balance", "transfer", "payday", "landlord", "rent", "bonific", "saldo", "conto",
        "affitto",
    ],
    &["car", "cars", "wheels", "drive", "airport", "auto", "macchin", "guid", "noleggi", "aeroport"],
    &["park", "roadster", "overnight", "parchegg"],
    &["library", "novel", "author", "shelf", "poems", "bibliotec", "libr", "romanz", "leggere", "read"],
];
/// Dimensions for all other words.
const OTHERS: usize = 32;
/// How much other words count.
const OTHER_WEIGHT: f32 = 0.15;

/// The vector of a text.
pub fn vector(text: &str) -> Vec<f32> {
    let mut numbers = vec![0.0_f32; CONCEPTS.len() + OTHERS];
    // A text without any word has a direction, too.
    numbers[CONCEPTS.len()] = 0.01;
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match CONCEPTS.iter().position(|stems| stems.iter().any(|stem| word.starts_with(stem))) {
            Some(concept) => numbers[concept] += 1.0,
            None => {
                let hash = word.bytes().fold(7_usize, |hash, byte| {
                    hash.wrapping_mul(31).wrapping_add(usize::from(byte)) & 0xffff
                });
                numbers[CONCEPTS.len() + hash % OTHERS] += OTHER_WEIGHT;
            }
        }
    }
    numbers
}

/// The texts of a request for embeddings; `None` for any other request.
pub fn inputs(request: &Value) -> Option<Vec<String>> {
    let inputs = request["input"].as_array()?;
    Some(inputs.iter().map(|text| text.as_str().unwrap().to_owned()).collect())
}

/// The reply with these vectors, which counts ten tokens a text.
pub fn reply(vectors: &[Vec<f32>]) -> Scripted {
    let data = vectors.iter().enumerate();
    let data: Vec<Value> = data
        .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    let tokens = 10 * vectors.len();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Scripted::Json(json!({"object": "list", "model": "vectors", "data": data, "usage": usage}))
}

/// The reply to a request for embeddings.
pub fn embedded(request: &Value) -> Scripted {
    let texts = inputs(request).unwrap_or_else(|| panic!("no request for embeddings: {request:#}"));
    reply(&texts.iter().map(|text| vector(text)).collect::<Vec<_>>())
}

/// A server that embeds.
pub fn server() -> ScriptedLlm {
    ScriptedLlm::start(|request, _| embedded(request))
}

/// The model of embeddings `vectors` at a server, for one USD per million tokens.
pub fn model(llm: &ScriptedLlm) -> ModelOptions {
    ModelOptions { embeddings: true, input_usd_per_million: 1.0, ..llm.model("vectors") }
}

/// How often each text was embedded.
pub fn counts(llm: &ScriptedLlm) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in llm.requests().iter().filter_map(inputs).flatten() {
        *counts.entry(text).or_default() += 1;
    }
    counts
}
