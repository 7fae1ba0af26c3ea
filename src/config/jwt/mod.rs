//! JSON Web Tokens (RFC 7519): which keys sign them, and what a verified one says.

mod key_set;
mod signature;
mod verified;
mod verifier;

pub use key_set::{KeySet, KeySetError};
pub use verifier::{Expected, Verifier};

#[cfg(test)]
mod tests;
