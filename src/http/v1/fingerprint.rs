//! The fingerprint of a request: what is asked, by whom and from which address.

use actix_web::HttpRequest;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use sha2::{Digest, Sha256};

use super::super::principal::RequestPrincipal;
use super::request::CompletionRequest;
use crate::run::SessionId;

/// Equal fingerprints mean equal requests of one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestFingerprint(pub(super) [u8; 32]);

impl RequestFingerprint {
    pub(crate) fn of(
        who: &RequestPrincipal,
        request: &HttpRequest,
        session: Option<&SessionId>,
        body: &CompletionRequest,
    ) -> Self {
        let peer = request.peer_addr().map(|addr| addr.ip().to_string()).unwrap_or_default();
        let session = session.map_or("", SessionId::as_str);
        let mut hasher = Sha256::new();
        for part in [who.tenant.as_str(), &who.user, &peer, session] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        // Plain data always serializes. Absent parts are not hashed, so that new optional parts do not change
        // existing fingerprints.
        hasher.update(serde_json::to_vec(body).unwrap_or_default());
        for name in ["x-execution-level", "x-execution-mode", "x-documents"] {
            if let Some(value) = request.headers().get(name) {
                hasher.update(name);
                hasher.update(value.as_bytes());
            }
        }
        Self(hasher.finalize().into())
    }

    /// The fingerprint in hex, as stored in the journal.
    pub(crate) fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    pub(super) fn from_hex(mark: &str) -> Option<Self> {
        HEXLOWER_PERMISSIVE.decode(mark.as_bytes()).ok()?.try_into().ok().map(Self)
    }
}
