//! Embeddings: texts as vectors, whose cosine similarity says how close their meanings are.
//!
//! A request for embeddings is a [`Request`] whose messages are the texts, and its reply's text is the vectors as JSON.
//! So it passes the gateway like any other request. Everything here is pure.

use super::{Message, Purpose, Request, ToolChoice};

/// Maximum number of texts of one request, so that the reply to vectors of 4,096 numbers stays within the bound of replies.
pub const MAX_TEXTS: usize = 32;
/// The longest vector that is read.
const MAX_DIMENSIONS: usize = 16_384;
/// Characters of a text that are embedded: most models have at least 512 tokens.
const MAX_TEXT_CHARS: usize = 2_000;

/// The embedding of a text, of length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// The vector in this direction.
    ///
    /// # Errors
    /// Why there is none: no or too many numbers, one that is not finite, or only zeros.
    pub fn new(numbers: Vec<f32>) -> Result<Self, String> {
        if numbers.is_empty() || numbers.len() > MAX_DIMENSIONS {
            return Err(format!("a vector of {} numbers; 1 to {MAX_DIMENSIONS} are allowed", numbers.len()));
        }
        let length = numbers.iter().map(|n| f64::from(*n).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() || length <= f64::from(f32::MIN_POSITIVE) {
            return Err("a vector without a direction".to_owned());
        }
        Ok(Self(numbers.into_iter().map(|n| (f64::from(n) / length) as f32).collect()))
    }

    /// How many numbers it has.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The cosine similarity, from -1 to 1; `None` if the other has another number of dimensions.
    pub fn similarity(&self, other: &Self) -> Option<f32> {
        let pairs = self.0.iter().zip(&other.0);
        (self.dimensions() == other.dimensions()).then(|| pairs.map(|(a, b)| a * b).sum())
    }
}

/// The request for the vectors of `texts`, each cut to its first 2,000 characters.
pub fn request<'t>(texts: impl IntoIterator<Item = &'t str>) -> Request {
    let message = |text: &str| Message::User { text: text.chars().take(MAX_TEXT_CHARS).collect() };
    Request {
        purpose: Purpose::Embedding,
        messages: texts.into_iter().map(message).collect(),
        tools: Vec::new(),
        choice: ToolChoice::None,
        temperature: None,
        // There is no reply in words. The cache stores only replies below the maximum.
        max_output_tokens: Some(1),
    }
}

/// The texts of a request for embeddings.
pub fn texts(request: &Request) -> Vec<&str> {
    request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        })
        .collect()
}

/// The vectors as the text of a reply.
pub fn write(vectors: &[Vector]) -> String {
    let numbers: Vec<&[f32]> = vectors.iter().map(|vector| &*vector.0).collect();
    // Finite numbers are always serialisable.
    serde_json::to_string(&numbers).unwrap_or_default()
}

/// The `count` vectors of a reply's text.
///
/// # Errors
/// What is wrong with them.
pub fn read(text: &str, count: usize) -> Result<Vec<Vector>, String> {
    let numbers: Vec<Vec<f32>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    of_one_kind(numbers, count)
}

/// `count` vectors of the same number of dimensions.
///
/// # Errors
/// What is wrong with them.
pub fn of_one_kind(numbers: Vec<Vec<f32>>, count: usize) -> Result<Vec<Vector>, String> {
    if numbers.len() != count {
        return Err(format!("{} vectors for {count} texts", numbers.len()));
    }
    let vectors = numbers.into_iter().map(Vector::new).collect::<Result<Vec<_>, _>>()?;
    let dimensions = vectors.first().map_or(0, Vector::dimensions);
    match vectors.iter().find(|vector| vector.dimensions() != dimensions) {
        Some(odd) => Err(format!("vectors of {dimensions} and of {} numbers", odd.dimensions())),
        None => Ok(vectors),
    }
}

/// The places of `candidates` by their similarity to `of`, the most similar first; equal ones in their order.
///
/// # Errors
/// A candidate has another number of dimensions.
pub fn by_similarity<'v>(
    of: &Vector,
    candidates: impl IntoIterator<Item = &'v Vector>,
) -> Result<Vec<usize>, String> {
    let mut scored = Vec::new();
    for (place, candidate) in candidates.into_iter().enumerate() {
        let (own, other) = (of.dimensions(), candidate.dimensions());
        let score =
            of.similarity(candidate).ok_or_else(|| format!("vectors of {own} and of {other} numbers"))?;
        scored.push((place, score));
    }
    scored.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    Ok(scored.into_iter().map(|(place, _)| place).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(numbers: &[f32]) -> Vector {
        Vector::new(numbers.to_vec()).unwrap()
    }

    #[test]
    fn similarity_is_the_cosine_whatever_the_length() {
        let close = |a: Option<f32>, b: f32| (a.unwrap() - b).abs() < 1e-6;
        assert!(close(vector(&[3.0, 0.0]).similarity(&vector(&[0.5, 0.0])), 1.0));
        assert!(close(vector(&[1.0, 0.0]).similarity(&vector(&[0.0, 9.0])), 0.0));
        assert!(close(vector(&[1.0, 1.0]).similarity(&vector(&[-2.0, -2.0])), -1.0));
        assert!(close(vector(&[1.0, 0.0]).similarity(&vector(&[1.0, 1.0])), 0.5_f32.sqrt()));
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        let long = vec![1.0; MAX_DIMENSIONS + 1];
        for numbers in
            [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY], &[f32::MIN_POSITIVE / 2.0], &long]
        {
            assert!(Vector::new(numbers.to_vec()).is_err());
        }
    }

    #[test]
    fn replies_with_another_number_of_vectors_or_dimensions_are_refused() {
        assert_eq!(read("[[1.0]]", 2).unwrap_err(), "1 vectors for 2 texts");
        assert_eq!(read("[[1.0],[1.0,2.0]]", 2).unwrap_err(), "vectors of 1 and of 2 numbers");
        for garbage in ["", "{}", "[1.0]", "[[null]]", "[[\"1\"]]", "[[1e99]]"] {
            assert!(read(garbage, 1).is_err(), "{garbage}");
        }
    }

    #[test]
    fn equally_similar_candidates_keep_their_order() {
        let candidates = [vector(&[0.0, 1.0]), vector(&[1.0, 1.0]), vector(&[2.0, 2.0]), vector(&[1.0, 0.0])];
        assert_eq!(by_similarity(&vector(&[1.0, 0.0]), &candidates), Ok(vec![3, 1, 2, 0]));
        assert!(by_similarity(&vector(&[1.0]), &candidates).is_err());
    }

    #[test]
    fn texts_are_cut_to_a_fixed_number_of_characters() {
        let long = "è".repeat(MAX_TEXT_CHARS + 10);
        let request = request(["short", &long]);
        let texts = texts(&request);
        assert_eq!((texts[0], texts[1].chars().count()), ("short", MAX_TEXT_CHARS));
    }

    proptest! {
        #[test]
        fn written_vectors_are_read_as_they_were(
            numbers in prop::collection::vec(prop::collection::vec(-1e30_f32..1e30, 3), 1..5),
        ) {
            prop_assume!(numbers.iter().all(|vector| vector.iter().any(|n| n.abs() > 1e-3)));
            let vectors: Vec<Vector> = numbers.iter().map(|vector| Vector::new(vector.clone()).unwrap()).collect();
            let read = read(&write(&vectors), vectors.len()).unwrap();
            for (a, b) in vectors.iter().zip(&read) {
                let similarity = a.similarity(b).unwrap();
                prop_assert!((similarity - 1.0).abs() < 1e-5, "{similarity}");
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}", count in 0_usize..4) {
            let _ = read(&text, count);
        }

        #[test]
        fn every_candidate_has_one_place(
            numbers in prop::collection::vec(prop::collection::vec(0.1_f32..1.0, 4), 1..20),
        ) {
            let vectors: Vec<Vector> = numbers.iter().map(|vector| Vector::new(vector.clone()).unwrap()).collect();
            let mut places = by_similarity(&vectors[0], &vectors).unwrap();
            prop_assert_eq!(places[0], 0);
            places.sort_unstable();
            prop_assert_eq!(places, (0..vectors.len()).collect::<Vec<_>>());
        }
    }
}
