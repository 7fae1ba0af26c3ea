//! Kinds of failures of an origin, by the remedy that helps. The headline shows that remedy.

use std::io;

use config::tls::CertificateRefused;

use super::dns::LookupError;
use super::error::OriginError;

/// Kind of a failure for which an origin gave no response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// Nothing listens at the address of the server.
    Refused,
    /// The name of the server does not resolve.
    Lookup,
    /// The gateway refuses the server's certificate, or the server has none for the name.
    Certificate,
    /// The server refuses the gateway's certificate, or requires one that the gateway lacks.
    ClientCert,
    /// Any other failure.
    #[default]
    Other,
}

impl FailureKind {
    /// Returns the kind of this error.
    pub(super) fn of(error: &OriginError) -> Self {
        match error {
            OriginError::Connect { source, .. } | OriginError::Broken { source, .. } => {
                Self::of_connection(source)
            }
            OriginError::Outage { last, .. } => Self::of(last),
            _ => Self::Other,
        }
    }

    /// Returns the kind of a connection error.
    fn of_connection(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            return Self::Refused;
        }
        let Some(source) = error.get_ref() else {
            return Self::Other;
        };
        match source.downcast_ref::<CertificateRefused>() {
            Some(refused) if refused.is_of_gateway => Self::ClientCert,
            Some(_) => Self::Certificate,
            None if source.is::<LookupError>() => Self::Lookup,
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_known_causes_have_a_failure_kind() {
        let connect = |source| OriginError::Connect {
            server: "https://app:443".to_owned(),
            source,
        };
        let refused = || connect(io::ErrorKind::ConnectionRefused.into());
        let reset = connect(io::ErrorKind::ConnectionReset.into());
        let certificate = |is_of_gateway| {
            let refused = CertificateRefused {
                message: "the certificate expired. Renew it".to_owned(),
                expired: Some(1),
                is_of_gateway,
            };
            io::Error::new(io::ErrorKind::InvalidData, refused)
        };
        // In TLS 1.3, a server refuses the certificate of a client after the handshake.
        let (server, source) = ("https://app:443".to_owned(), certificate(true));
        let broken = OriginError::Broken { server, source };
        let (last, hold) = (Arc::new(refused()), Duration::from_secs(1));
        let origin = "app".to_owned();
        for (error, kind) in [
            (refused(), FailureKind::Refused),
            (OriginError::Outage { last, hold }, FailureKind::Refused),
            (connect(certificate(false)), FailureKind::Certificate),
            (connect(certificate(true)), FailureKind::ClientCert),
            (broken, FailureKind::ClientCert),
            (reset, FailureKind::Other),
            (OriginError::AllFull { origin }, FailureKind::Other),
        ] {
            assert_eq!(FailureKind::of(&error), kind, "{error}");
        }
    }
}
