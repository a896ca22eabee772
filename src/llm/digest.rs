//! The digest of a request: what the journal records of a prompt, and what the cache compares.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Request;

/// SHA-256 of a request as JSON. It is computed once for each question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// The digest of a request.
    pub fn of(request: &Request) -> Self {
        let mut json = Vec::with_capacity(request.json_bytes());
        // Serialising a request cannot fail.
        let _ = serde_json::to_writer(&mut json, request);
        Self(Sha256::digest(&json).into())
    }

    /// In hex, as `model_asked` records it.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A request with its digest. It cannot be changed, so the digest stays true.
#[derive(Debug, Clone)]
pub struct DigestedRequest {
    request: Request,
    digest: RequestDigest,
}

impl DigestedRequest {
    /// The request, digested.
    pub fn new(request: Request) -> Self {
        Self { digest: RequestDigest::of(&request), request }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The request, without its digest.
    pub fn into_request(self) -> Request {
        self.request
    }

    /// Its digest.
    pub fn digest(&self) -> &RequestDigest {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, Purpose, ToolChoice};
    use super::*;

    #[test]
    fn digest_is_that_of_the_json_text() {
        let request = Request {
            purpose: Purpose::Answer,
            messages: vec![Message::User { text: "\"quoted\"\n".to_owned() }],
            tools: Vec::new(),
            choice: ToolChoice::None,
            temperature: Some(0.5),
            max_output_tokens: None,
        };
        let json = serde_json::to_vec(&request).unwrap();
        assert_eq!(RequestDigest::of(&request).hex(), HEXLOWER.encode(&Sha256::digest(json)));
    }
}
