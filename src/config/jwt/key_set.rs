//! Reads JSON Web Key Sets (RFC 7517): the keys that verify tokens.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header};
use ring::digest::{SHA256, digest};

use super::signature;

/// Keys that verify tokens: a JSON Web Key Set (RFC 7517).
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    /// Digest of the text that the keys were read from.
    digest: Vec<u8>,
}

/// Compares the texts that the keys were read from.
impl PartialEq for KeySet {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// A key and its permitted algorithms. A token cannot choose another algorithm.
#[derive(Clone, Debug)]
struct Key {
    /// `kid` of the key, by which tokens name it.
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    /// The key itself, in the form of the JWT library.
    decoding: DecodingKey,
}

/// Minimum modulus of an RSA key, in bytes (RFC 7518, section 3.3).
const MIN_RSA: usize = 2048 / 8;

/// Minimum length of a secret, in bytes: that of the shortest hash (RFC 7518, section 3.2).
const MIN_SECRET: usize = 32;

impl KeySet {
    /// Reads a key set. Skips keys for other purposes and of unknown kinds.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no key set, if a key is wrong, or if no key remains.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        signature::install();
        let set: JwkSet = serde_json::from_slice(text).map_err(|error| {
            format!("this is not a JSON Web Key Set such as {{\"keys\": [...]}}: {error}")
        })?;
        let mut keys = Vec::new();
        for (number, jwk) in (1..).zip(&set.keys) {
            let wrong = |why| match &jwk.common.key_id {
                Some(id) => format!("key {number} (kid {id:?}): {why}"),
                None => format!("key {number}: {why}"),
            };
            keys.extend(Key::parse(jwk).map_err(wrong)?);
        }
        if keys.is_empty() {
            let count = set.keys.len();
            return Err(format!(
                "none of its {count} keys verifies tokens; drip knows RSA, EC with P-256 or P-384, OKP with Ed25519, and oct"
            ));
        }
        Ok(Self {
            keys,
            digest: digest(&SHA256, text).as_ref().to_vec(),
        })
    }

    /// Returns the keys that may have signed a token with this header.
    ///
    /// If the token names a key, these are the key of that name and the keys without a name.
    pub(super) fn candidates(&self, header: &Header) -> impl Iterator<Item = &DecodingKey> {
        let is_candidate = |key: &&Key| {
            let fits_name = match (&key.id, &header.kid) {
                (Some(id), Some(name)) => id == name,
                _ => true,
            };
            fits_name && key.algorithms.contains(&header.alg)
        };
        let candidates = self.keys.iter().filter(is_candidate);
        candidates.map(|key| &key.decoding)
    }
}

impl Key {
    /// Reads a key. `None`: it has another purpose, or is of an unknown kind.
    ///
    /// # Errors
    ///
    /// Returns an error if a number of the key is wrong, or the key is too short.
    fn parse(jwk: &Jwk) -> Result<Option<Self>, &'static str> {
        let usage = jwk.common.public_key_use.as_ref();
        if usage.is_some_and(|usage| *usage != PublicKeyUse::Signature) {
            return Ok(None);
        }
        let fitting: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms(),
            AlgorithmParameters::OctetKey(_) => AlgorithmFamily::Hmac.algorithms(),
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return Ok(None),
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            _ => return Ok(None),
        };
        let algorithms = match jwk.common.key_algorithm {
            None => fitting.to_vec(),
            Some(only) => match Algorithm::try_from(only) {
                Ok(only) if fitting.contains(&only) => vec![only],
                _ => return Ok(None),
            },
        };
        let decoding = DecodingKey::from_jwk(jwk).map_err(|_| "its numbers are not base64url")?;
        check_length(&decoding, &jwk.algorithm)?;
        Ok(Some(Self {
            id: jwk.common.key_id.clone(),
            algorithms,
            decoding,
        }))
    }
}

/// Checks that a key is long enough to be safe.
fn check_length(key: &DecodingKey, parameters: &AlgorithmParameters) -> Result<(), &'static str> {
    use jsonwebtoken::DecodingKeyKind::{RsaModulusExponent, SecretOrDer};
    match (parameters, key.kind()) {
        (_, RsaModulusExponent { n, .. })
            if n.iter().skip_while(|byte| **byte == 0).count() < MIN_RSA =>
        {
            Err("an RSA key has at least 2048 bits")
        }
        (AlgorithmParameters::OctetKey(_), SecretOrDer(key)) if key.len() < MIN_SECRET => {
            Err("a secret (oct) has at least 32 bytes")
        }
        // A key whose length does not fit its curve verifies no token.
        _ => Ok(()),
    }
}
