//! JSON Web Tokens (RFC 7519): keys, verification and claims.
//!
//! `key_set` reads the keys, `verifier` checks tokens, and `verified` caches the result.

mod key_set;
mod signature;
mod verified;
mod verifier;

pub use key_set::KeySet;
pub use verifier::{TokenRequirements, Verifier};

#[cfg(test)]
mod tests;
