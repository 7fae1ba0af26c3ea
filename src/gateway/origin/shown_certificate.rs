//! Expiry of the certificate that a server of an origin showed last.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicI64, Ordering};

use config::ServerUrl;
use config::tls::{CertificateRefused, expiry_warning, unix_now};

use super::stream::OriginStream;
use super::tls::shown_expiry;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Seconds of a day.
const DAY: NonZeroU64 = NonZeroU64::new(24 * 60 * 60).expect("it is not zero");

/// Expiry of the certificate that a server showed last.
pub(super) struct ShownCertificate {
    origin: String,
    /// Expiry in Unix time; 0: no certificate was shown yet.
    expires: AtomicI64,
    /// Limits the log events for a certificate that expires soon to one a day.
    log: Throttle,
}

impl ShownCertificate {
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            expires: AtomicI64::new(0),
            log: Throttle::every(DAY),
        }
    }

    /// Returns the expiry in Unix time; `None`: no certificate was shown yet.
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
                let source = error.get_ref();
                let refused = source.and_then(|it| it.downcast_ref::<CertificateRefused>());
                refused.and_then(|it| it.expired)
            }
        };
        let Some(expires) = expires else {
            return;
        };
        self.expires.store(expires, Ordering::Relaxed);
        let now = unix_now();
        // `expiry_warning` returns a text only if the certificate has expired or expires soon.
        let Some(expiry_text) = expiry_warning(expires, now).filter(|_| expires > now) else {
            return;
        };
        if self.log.show(clock::wall()).is_some() {
            tracing::warn!(
                origin = self.origin,
                %server,
                "the certificate of the server {expiry_text}; renew it on the server"
            );
        }
    }
}
