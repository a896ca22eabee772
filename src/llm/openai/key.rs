//! A model's API key, and its redaction from everything that the server returns.
//!
//! Chunks are redacted as they arrive: [`Held`] holds back what may be the beginning of the key, so that the joined
//! chunks are the redacted text, however it was split.

use std::borrow::Cow;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::super::error::ErrorKind;
use crate::run::Reply;

/// The replacement of the key.
const MARK: &str = "[key]";
/// Minimum length: a shorter value is not a key, and redacting it would garble every text.
const MIN_BYTES: usize = 4;

/// The API key of a model; empty if its server needs none.
#[derive(Clone)]
pub(super) struct ProviderKey {
    secret: SecretString,
    /// For each beginning of the key, how many bytes of the key its end is the longest beginning of: how
    /// much of it still counts when the next byte is not the key's. (The table of Knuth, Morris and Pratt.)
    borders: Arc<[usize]>,
}

impl ProviderKey {
    pub(super) fn new(secret: SecretString) -> Self {
        let key = secret.expose_secret().as_bytes();
        let mut borders = vec![0_usize; key.len()];
        for at in 1..key.len() {
            let mut length = borders[at - 1];
            while length > 0 && key[length] != key[at] {
                length = borders[length - 1];
            }
            borders[at] = length + usize::from(key[length] == key[at]);
        }
        Self { secret, borders: borders.into() }
    }

    pub(super) fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// The secret; `None` if there is none.
    fn text(&self) -> Option<&str> {
        Some(self.secret.expose_secret()).filter(|key| key.len() >= MIN_BYTES)
    }

    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.text() {
            Some(key) if text.contains(key) => text.replace(key, MARK).into(),
            _ => text.into(),
        }
    }

    /// The same error with the key redacted from the server's message, and also a beginning of the key at the end
    /// of a truncated message: events of a stream are only known one by one.
    pub(super) fn out_of(&self, mut kind: ErrorKind) -> ErrorKind {
        match &mut kind {
            ErrorKind::Connect { detail }
            | ErrorKind::RateLimited { detail, .. }
            | ErrorKind::Quota { detail }
            | ErrorKind::Unauthorized { detail, .. }
            | ErrorKind::Status { detail, .. }
            | ErrorKind::ContextOverflow { detail }
            | ErrorKind::Malformed { detail }
            | ErrorKind::Internal { detail } => {
                *detail = self.without_beginning(self.redact(detail).into_owned())
            }
            _ => {}
        }
        kind
    }

    fn without_beginning(&self, mut text: String) -> String {
        let key = self.secret.expose_secret();
        let lengths = (MIN_BYTES..key.len()).rev();
        let begun = lengths.filter_map(|length| key.get(..length)).find(|part| text.ends_with(part));
        if let Some(part) = begun {
            text.truncate(text.len() - part.len());
        }
        text
    }

    /// The reply with the key redacted.
    pub(super) fn strike(&self, reply: &mut Reply) {
        let calls =
            reply.calls.iter_mut().flat_map(|call| [&mut call.id, &mut call.name, &mut call.arguments]);
        for text in calls.chain([&mut reply.text]).chain(reply.finish_reason.as_mut()) {
            if let Cow::Owned(other) = self.redact(text) {
                *text = other;
            }
        }
    }
}

/// A text in chunks: how many bytes at its end match the beginning of the key and are held back.
#[derive(Debug, Default)]
pub(super) struct HeldSuffix(usize);

impl HeldSuffix {
    /// Adds a chunk; returns what is certainly not part of the key, with the key redacted.
    pub(super) fn next<'p>(&mut self, key: &ProviderKey, piece: &'p str) -> Cow<'p, str> {
        let Some(secret) = key.text().map(str::as_bytes) else { return piece.into() };
        let begins = |byte: &u8| secret.first() == Some(byte);
        if self.0 == 0 && !piece.as_bytes().iter().any(begins) {
            return piece.into();
        }
        let mut given = Vec::with_capacity(self.0 + piece.len());
        for &byte in piece.as_bytes() {
            // Release what can no longer be the beginning of the key.
            while self.0 > 0 && secret[self.0] != byte {
                let still = key.borders[self.0 - 1];
                given.extend_from_slice(&secret[..self.0 - still]);
                self.0 = still;
            }
            if secret[self.0] != byte {
                given.push(byte);
                continue;
            }
            self.0 += 1;
            if self.0 == secret.len() {
                given.extend_from_slice(MARK.as_bytes());
                self.0 = 0;
            }
        }
        // The held text starts at a character boundary, so no character is split.
        match String::from_utf8(given) {
            Ok(text) => text.into(),
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into(),
        }
    }

    /// The end of the text: the held part is not the key.
    pub(super) fn rest<'k>(&mut self, key: &'k ProviderKey) -> &'k str {
        let held = std::mem::take(&mut self.0);
        key.text().and_then(|key| key.get(..held)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> ProviderKey {
        ProviderKey::new(text.to_owned().into())
    }

    /// Texts over a small alphabet, so that beginnings of the key are frequent.
    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "é", "[", "key", "]", "🙂"]), 0..40)
            .prop_map(|signs| signs.concat())
    }

    fn keys() -> impl Strategy<Value = String> {
        let signs = prop::sample::select(vec!["a", "b", "é", "]"]);
        prop::collection::vec(signs, 1..9).prop_map(|signs| signs.concat())
    }

    /// The text split at any of its characters.
    fn cut(text: &str, cuts: &[bool]) -> Vec<String> {
        let mut pieces = vec![String::new()];
        for (sign, cut) in text.chars().zip(cuts.iter().cycle()) {
            if *cut {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(sign);
        }
        pieces
    }

    proptest! {
        #[test]
        fn however_a_text_is_cut_what_is_given_is_the_text_without_the_key(
            before in texts(),
            secret in keys(),
            between in texts(),
            after in texts(),
            times in 0..4_usize,
            cuts in prop::collection::vec(any::<bool>(), 1..50),
        ) {
            let text = format!("{before}{}{between}{secret}{after}", secret.repeat(times));
            let key = key(&secret);
            let meant = key.redact(&text).into_owned();
            let (mut held, mut given, mut came) = (HeldSuffix::default(), String::new(), String::new());
            for piece in cut(&text, &cuts) {
                came.push_str(&piece);
                given.push_str(&held.next(&key, &piece));
                prop_assert!(meant.starts_with(&given), "{given:?} is not how {meant:?} begins");
                // Exactly what may still become the key is held, and nothing more.
                let so_far = key.redact(&came).into_owned();
                let rest = HeldSuffix(held.0).rest(&key).to_owned();
                prop_assert_eq!(format!("{given}{rest}"), so_far);
                prop_assert!(rest.len() < secret.len() || rest.is_empty());
            }
            given.push_str(held.rest(&key));
            prop_assert_eq!(given, meant);
        }
    }

    #[test]
    fn a_piece_that_has_nothing_of_the_key_is_given_as_it_is() {
        let (key, mut held) = (key("sk-secret"), HeldSuffix::default());
        assert!(matches!(held.next(&key, "Good day. "), Cow::Borrowed("Good day. ")));
        assert_eq!(held.next(&key, "Thank"), "Thank");
        assert_eq!(held.next(&key, "s"), "");
        assert_eq!(held.next(&key, "k-sec"), "");
        assert_eq!(held.next(&key, "tion"), "sk-section");
        assert_eq!(held.rest(&key), "");
    }

    #[test]
    fn no_key_and_what_is_too_short_to_be_one_hold_nothing_back() {
        for none in ["", "sk-"] {
            let (key, mut held) = (key(none), HeldSuffix::default());
            assert!(matches!(held.next(&key, "sk-"), Cow::Borrowed("sk-")));
            assert_eq!((held.rest(&key), key.redact("sk-")), ("", "sk-".into()));
        }
    }

    #[test]
    fn truncated_key_is_redacted_from_errors() {
        let detail = "it is sk-secret and sk-se".to_owned();
        let redacted = key("sk-secret").out_of(ErrorKind::Malformed { detail });
        assert_eq!(redacted, ErrorKind::Malformed { detail: "it is [key] and ".to_owned() });
    }
}
