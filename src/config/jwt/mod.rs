//! JSON Web Tokens (RFC 7519): the keys of their issuer, their verification, and their claims.
//!
//! A claim is a named value in a token, such as `sub`. `key_set` reads the keys, `verifier`
//! verifies tokens with `signature`, and `token_cache` keeps verified tokens.

mod key_set;
mod signature;
mod token_cache;
mod verifier;

pub use key_set::KeySet;
pub use verifier::{TokenRequirements, Verifier};

#[cfg(test)]
mod tests;
