//! Verifies signatures with ring. The JWT library lets its users choose a provider.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::hmac;
use ring::signature as ring_signature;
use ring_signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// Installs this module as the library's provider. Tokens are never signed here.
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        verifier_factory: |algorithm, key| {
            if key.family() != algorithm.family() {
                return Err(ErrorKind::InvalidKeyFormat.into());
            }
            Ok(Box::new(Signature {
                algorithm: *algorithm,
                key: key.clone(),
            }))
        },
        key_utils: KeyUtils::new_unimplemented(),
    };
    // Already installed if this is not the first key set.
    let _installed = PROVIDER.install_default();
}

/// A signature algorithm and its key.
struct Signature {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let is_right = match (self.key.family(), self.key.kind()) {
            (AlgorithmFamily::Rsa, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                rsa(self.algorithm).is_some_and(|scheme| {
                    let key = RsaPublicKeyComponents { n, e };
                    key.verify(scheme, message, signature).is_ok()
                })
            }
            (AlgorithmFamily::Ec | AlgorithmFamily::Ed, DecodingKeyKind::SecretOrDer(key)) => {
                curve(self.algorithm).is_some_and(|scheme| {
                    let key = UnparsedPublicKey::new(scheme, key);
                    key.verify(message, signature).is_ok()
                })
            }
            (AlgorithmFamily::Hmac, DecodingKeyKind::SecretOrDer(secret)) => hash(self.algorithm)
                .is_some_and(|hash| {
                    let key = hmac::Key::new(hash, secret);
                    hmac::verify(&key, message, signature).is_ok()
                }),
            _ => false,
        };
        if is_right { Ok(()) } else { Err(Error::new()) }
    }
}

/// Returns the verification parameters of an RSA algorithm.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Returns the verification algorithm of an elliptic curve.
fn curve(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::ES256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &ED25519,
        _ => return None,
    })
}

/// Returns the hash function of an HMAC algorithm.
fn hash(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    Some(match algorithm {
        Algorithm::HS256 => hmac::HMAC_SHA256,
        Algorithm::HS384 => hmac::HMAC_SHA384,
        Algorithm::HS512 => hmac::HMAC_SHA512,
        _ => return None,
    })
}
