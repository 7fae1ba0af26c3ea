//! What TLS of all sides has in common: certificates that are trusted without a chain, and the words
//! for why a certificate is refused.
//!
//! It knows the files and fields that a certificate is about only by their names. Servers of origins
//! are in `origin`, clients in `http/downstream`.

mod facts;
mod refused;

pub(crate) use facts::{is_self_issued, verify_validity};
pub(crate) use refused::Refused;
