//! What TLS of all sides has in common: the servers and the certificates that are trusted, and the
//! words for why a certificate is refused.
//!
//! It knows the files and fields that a certificate is about only by their names. Servers of origins
//! are in `origin`, Redis in `store`, clients in `http/downstream`.

mod authorities;
mod client;
mod facts;
mod refused;
mod verifier;

pub use authorities::Authorities;
pub(crate) use client::client;
pub(crate) use facts::{is_self_issued, verify_validity};
pub(crate) use refused::Refused;
