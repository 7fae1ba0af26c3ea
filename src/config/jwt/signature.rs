//! Verifies the signatures of tokens with the library ring.
//!
//! The JWT library leaves signatures to a provider, which its user installs.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
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
            Ok(Box::new(RingVerifier {
                algorithm: *algorithm,
                key: key.clone(),
            }))
        },
        key_utils: KeyUtils::new_unimplemented(),
    };
    // Already installed if this is not the first key set.
    let _installed = PROVIDER.install_default();
}

/// Verifies signatures of one algorithm by one key.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match (scheme(self.algorithm), self.key.kind()) {
            (Some(Scheme::Rsa(scheme)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signature)
            }
            (Some(Scheme::Curve(scheme)), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(scheme, key).verify(message, signature)
            }
            (Some(Scheme::Hmac(hash)), DecodingKeyKind::SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(hash, secret), message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

/// Way in which ring verifies a signature.
enum Scheme {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
    Hmac(hmac::Algorithm),
}

/// Returns how signatures of an algorithm are verified; `None` for algorithms that ring lacks.
fn scheme(algorithm: Algorithm) -> Option<Scheme> {
    Some(match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Curve(&ED25519),
        Algorithm::HS256 => Scheme::Hmac(hmac::HMAC_SHA256),
        Algorithm::HS384 => Scheme::Hmac(hmac::HMAC_SHA384),
        Algorithm::HS512 => Scheme::Hmac(hmac::HMAC_SHA512),
        _ => return None,
    })
}
