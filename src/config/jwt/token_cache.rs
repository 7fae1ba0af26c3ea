//! Cache of verified tokens, so that each signature is checked once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use ring::digest::{SHA256, digest};

/// Maximum number of cached tokens per verifier. The least recently used are removed first.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Parts of a verified token that later requests with it need.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    /// First second, in Unix time, at which the token is not valid any more.
    pub(super) expires_at: u64,
    /// Values of the claims that the configuration uses, in the order of `Verifier::claims`.
    pub(super) claims: Box<[Box<[u8]>]>,
}

/// SHA-256 of a token. A shorter hash would let clients search for collisions.
type TokenDigest = [u8; 32];

/// Returns the digest by which a token is looked up.
pub(super) fn digest_of(token: &[u8]) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token).as_ref());
    bytes
}

/// Cache of verified tokens.
///
/// Only tokens with a correct signature are stored, so that clients cannot fill the cache with
/// others.
pub(super) struct TokenCache(
    Mutex<LruCache<TokenDigest, Arc<VerifiedToken>, foldhash::fast::RandomState>>,
);

impl Default for TokenCache {
    fn default() -> Self {
        let hasher = foldhash::fast::RandomState::default();
        // A cache that is bounded from the start would allocate all its memory at once.
        let mut tokens = LruCache::unbounded_with_hasher(hasher);
        tokens.resize(MAX_TOKENS);
        Self(Mutex::new(tokens))
    }
}

impl TokenCache {
    /// Returns a cached token that is valid at `now`, in seconds of Unix time.
    ///
    /// Removes a token that has expired.
    pub(super) fn get(&self, token: &TokenDigest, now: u64) -> Option<Arc<VerifiedToken>> {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.get(token)?;
        if now < found.expires_at {
            return Some(Arc::clone(found));
        }
        tokens.pop(token);
        None
    }

    /// Adds a verified token to the cache.
    pub(super) fn remember(&self, token: TokenDigest, verified: Arc<VerifiedToken>) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.put(token, verified);
    }

    /// Returns the number of cached tokens.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}
