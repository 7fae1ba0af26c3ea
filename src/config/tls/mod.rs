//! TLS code that origins, Redis and clients share.
//!
//! It has trusted certificates, their verification, and the texts that explain why a certificate is
//! refused. It knows the files and fields of the configuration only by their names. Connections to
//! origins are in `origin`, those to Redis in `store`, and those of clients in `http/downstream`.

mod client;
mod expiry;
mod facts;
mod refused;
mod verifier;

pub use client::{Authorities, client};
pub use expiry::{DAY, date, expiry, is_nearly_soon, unix_now};
pub use facts::{Validity, is_self_issued, unfit, validity, verify_validity, version_and_validity};
pub use refused::{CertificateRefused, RefusalContext};
