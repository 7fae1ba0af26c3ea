//! Expiry of the certificate that a server of an origin showed last.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use config::ServerUrl;
use config::tls::{CertificateRefused, DAY, expiry, unix_now};

use super::stream::OriginStream;
use super::tls::shown_expiry;

/// Expiry of the certificate that a server showed last.
pub(super) struct ShownCertificate {
    origin: String,
    /// Expiry in Unix time; 0: no certificate was shown yet.
    expires: AtomicI64,
    /// Unix time at which the log last reported that the certificate expires soon.
    logged: AtomicI64,
}

impl ShownCertificate {
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            expires: AtomicI64::new(0),
            logged: AtomicI64::new(0),
        }
    }

    pub(super) fn expires(&self) -> Option<i64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Records the certificate of a new connection that resumes no session.
    ///
    /// Also records it if the connection failed because the certificate has expired. Logs once a
    /// day that a certificate expires soon. For an expired one, the failed requests report it.
    pub(super) fn note(&self, server: &ServerUrl, opened: &io::Result<OriginStream>) {
        let expires = match opened {
            Ok(OriginStream::Tls(stream)) => shown_expiry(stream),
            Ok(_) => None,
            Err(error) => {
                let refused = error.get_ref();
                let refused = refused.and_then(|it| it.downcast_ref::<CertificateRefused>());
                refused.and_then(|it| it.expired)
            }
        };
        let Some(expires) = expires else {
            return;
        };
        self.expires.store(expires, Ordering::Relaxed);
        let now = unix_now();
        let Some(words) = expiry(expires, now).filter(|_| expires > now) else {
            return;
        };
        let last = self.logged.load(Ordering::Relaxed);
        let is_due = now - last >= DAY;
        let logged = &self.logged;
        // One of several workers logs it.
        if is_due
            && logged
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            tracing::warn!(
                origin = self.origin,
                %server,
                "the certificate of the server {words}; renew it there"
            );
        }
    }
}
