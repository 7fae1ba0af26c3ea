//! TLS code that connections to origins, to Redis and from clients share.
//!
//! It has trusted certificates, their verification, and texts that explain why a certificate is
//! refused. In the gateway, connections to origins are in `origin`, those to Redis in `store`, and
//! those from clients in `http/downstream`.

mod client;
mod expiry;
mod facts;
mod refused;
mod verifier;

pub use client::{Authorities, client};
pub use expiry::{DAY, date, expiry_warning, is_expiry_near, unix_now};
pub use facts::{Validity, flaw, is_self_issued, validity, verify_validity, version_and_validity};
pub use refused::{CertificateRefused, RefusalContext};
