use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use ring::digest::{SHA256, digest};

/// Most remembered tokens of one verifier. The least recently used are forgotten first.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A token that was verified.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    /// The first second, in Unix time, at which it counts no longer.
    pub(super) until: u64,
    /// One text for each claim that the file names, in their order.
    pub(super) claims: Box<[Box<[u8]>]>,
}

/// SHA-256 of a token. A shorter hash would let clients look for two tokens with one.
type TokenDigest = [u8; 32];

pub(super) fn digest_of(token: &[u8]) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token).as_ref());
    bytes
}

/// Verified tokens, so that a signature is checked once.
///
/// Only those with a right signature are remembered, so that nobody fills it with others.
pub(super) struct VerifiedTokens(
    Mutex<LruCache<TokenDigest, Arc<VerifiedToken>, foldhash::fast::RandomState>>,
);

impl Default for VerifiedTokens {
    fn default() -> Self {
        let hasher = foldhash::fast::RandomState::default();
        // It grows as tokens come.
        let mut tokens = LruCache::unbounded_with_hasher(hasher);
        tokens.resize(MAX_TOKENS);
        Self(Mutex::new(tokens))
    }
}

impl VerifiedTokens {
    /// A known token that still counts at this Unix time, in seconds.
    pub(super) fn get(&self, token: &TokenDigest, now: u64) -> Option<Arc<VerifiedToken>> {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.get(token)?;
        if now < found.until {
            return Some(Arc::clone(found));
        }
        tokens.pop(token);
        None
    }

    pub(super) fn remember(&self, token: TokenDigest, verified: Arc<VerifiedToken>) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.put(token, verified);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}
