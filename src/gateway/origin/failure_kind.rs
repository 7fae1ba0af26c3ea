//! What kind of failure an error of an origin is, as far as that decides what helps.

use std::io;

use config::tls::CertificateRefused;

use super::dns::LookupError;
use super::error::OriginError;

/// What kind of failure it is that an origin gave no response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// Nothing listens at the address of the server.
    Refused,
    /// The name of the server does not resolve.
    Lookup,
    /// A certificate is refused, by the gateway or by the server.
    Certificate,
    /// Any other.
    #[default]
    Other,
}

impl FailureKind {
    /// The kind of this error.
    pub(super) fn of(error: &OriginError) -> Self {
        match error {
            OriginError::Connect { source, .. } => Self::of_connecting(source),
            OriginError::Outage { last, .. } => Self::of(last),
            _ => Self::Other,
        }
    }

    fn of_connecting(error: &io::Error) -> Self {
        let source = error.get_ref();
        if error.kind() == io::ErrorKind::ConnectionRefused {
            Self::Refused
        } else if source
            .and_then(|it| it.downcast_ref::<LookupError>())
            .is_some()
        {
            Self::Lookup
        } else if source
            .and_then(|it| it.downcast_ref::<CertificateRefused>())
            .is_some()
        {
            Self::Certificate
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_helps_is_known_of_refused_connections_and_certificates_alone() {
        let connect = |source| OriginError::Connect {
            server: "http://app:80".to_owned(),
            source,
        };
        let refused = || connect(io::ErrorKind::ConnectionRefused.into());
        let words = "the certificate of the server expired. Renew it".to_owned();
        let certificate = CertificateRefused {
            words,
            expired: Some(1),
        };
        let held = OriginError::Outage {
            last: Arc::new(refused()),
            hold: Duration::from_secs(1),
        };
        for (error, kind) in [
            (refused(), FailureKind::Refused),
            (held, FailureKind::Refused),
            (
                connect(io::Error::new(io::ErrorKind::InvalidData, certificate)),
                FailureKind::Certificate,
            ),
            (
                connect(io::ErrorKind::ConnectionReset.into()),
                FailureKind::Other,
            ),
            (
                OriginError::AllFull {
                    origin: "app".to_owned(),
                },
                FailureKind::Other,
            ),
        ] {
            assert_eq!(FailureKind::of(&error), kind, "{error}");
        }
    }
}
