//! Verifies JSON Web Tokens, and reads their claims: named values in a token, such as `sub`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::KeySet;
use super::token_cache::{TokenCache, VerifiedToken, digest_of};

/// Requirements for a token, besides a signature by one of the keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenRequirements {
    /// The token's `aud` must contain one of these. Empty: any audience.
    pub audience: Vec<String>,
    /// The token's `iss` must be one of these. Empty: any issuer.
    pub issuer: Vec<String>,
    /// Tolerated difference between the clocks of the issuer and the gateway.
    pub leeway: Duration,
}

/// Verifies tokens, and caches verified ones.
#[derive(Default)]
pub struct Verifier {
    keys: KeySet,
    expected: TokenRequirements,
    /// Names of the claims that are read.
    claims: Vec<String>,
    cache: TokenCache,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Verifier");
        shown.field("expected", &self.expected);
        shown.field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// Compares verifiers by the tokens that they accept, ignoring their caches.
impl PartialEq for Verifier {
    fn eq(&self, other: &Self) -> bool {
        (&self.keys, &self.expected, &self.claims) == (&other.keys, &other.expected, &other.claims)
    }
}

impl Verifier {
    /// Makes a verifier with these keys and requirements, which reads `claims`.
    pub fn new(keys: KeySet, expected: TokenRequirements, claims: Vec<String>) -> Self {
        Self {
            keys,
            expected,
            claims,
            cache: TokenCache::default(),
        }
    }

    /// Appends a claim of a token to `out`, or nothing if the token does not verify.
    ///
    /// A text is appended unchanged, a number or boolean as JSON, and a list of these with commas.
    /// Any other value has no text. `now`: the Unix time, in seconds.
    pub fn add_claim(&self, token: &[u8], claim: &str, now: u64, out: &mut Vec<u8>) {
        let Some(index) = self.claims.iter().position(|known| known == claim) else {
            return;
        };
        let verified = self.verified_token(token, now);
        if let Some(text) = verified.as_ref().and_then(|token| token.claims.get(index)) {
            out.extend_from_slice(text);
        }
    }

    /// Returns a verified token, from the cache or after verification; `None`: it does not verify.
    fn verified_token(&self, token: &[u8], now: u64) -> Option<Arc<VerifiedToken>> {
        let digest = digest_of(token);
        if let Some(cached) = self.cache.get(&digest, now) {
            return Some(cached);
        }
        let verified = Arc::new(self.verify(token, now)?);
        self.cache.remember(digest, Arc::clone(&verified));
        Some(verified)
    }

    /// Returns the number of tokens in the cache.
    #[cfg(test)]
    pub(super) fn cached_count(&self) -> usize {
        self.cache.count()
    }

    /// Verifies a token without the cache, and reads its claims; `None`: it does not verify.
    fn verify(&self, token: &[u8], now: u64) -> Option<VerifiedToken> {
        let header = decode_header(token).ok()?;
        // Extensions marked as critical must be understood. drip knows none (RFC 7515, section
        // 4.1.11).
        if header.crit.is_some() {
            return None;
        }
        let validation = self.validation(header.alg);
        let signed_by = |key: &DecodingKey| decode::<Map<String, Value>>(token, key, &validation);
        let mut results = self.keys.candidates(&header).map(signed_by);
        let claims = results.find_map(Result::ok)?.claims;
        let expires_at = expiry(&claims)?.saturating_add(self.expected.leeway.as_secs());
        let text = |name: &String| claims.get(name).map(text_of).unwrap_or_default();
        (now < expires_at).then(|| VerifiedToken {
            expires_at,
            claims: self.claims.iter().map(text).collect(),
        })
    }

    /// Returns the checks of a token's claims, for a token with this algorithm.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.expected.leeway.as_secs();
        validation.validate_nbf = true;
        let mut required = vec!["exp"];
        let (audience, issuer) = (&self.expected.audience, &self.expected.issuer);
        validation.validate_aud = !audience.is_empty();
        if !audience.is_empty() {
            validation.set_audience(audience);
            required.push("aud");
        }
        if !issuer.is_empty() {
            validation.set_issuer(issuer);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        validation
    }
}

/// Returns `exp` of a token, in seconds of Unix time. It may have a fraction (RFC 7519, section 2).
fn expiry(claims: &Map<String, Value>) -> Option<u64> {
    let value = claims.get("exp")?;
    let whole = value.as_f64().map(limit::to_whole);
    value.as_u64().or(whole)
}

/// 2^53: smaller whole numbers are exact as floating point.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the text of a claim, as [`Verifier::add_claim`] appends it.
fn text_of(value: &Value) -> Box<[u8]> {
    fn scalar(value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            // A larger number is not exact: two different numbers could get the same text.
            Value::Number(number) if number.is_f64() => {
                let is_exact = number.as_f64().is_some_and(|it| it.abs() < MAX_EXACT);
                is_exact.then(|| number.to_string())
            }
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
    let text = match value {
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(scalar).collect();
            items.map(|it| it.join(","))
        }
        value => scalar(value),
    };
    text.unwrap_or_default().into_bytes().into()
}
