//! Why TLS to a server fails on account of a certificate, and what to do.

use std::io;

use config::OriginTls;
use config::tls::{CertificateRefused, Refused};
use tokio_rustls::rustls::{AlertDescription, Error};

/// The same error, in words that say what to do, if it is about a certificate.
pub(super) fn explained(error: io::Error, settings: &OriginTls) -> io::Error {
    let source = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let words = match source {
        Some(Error::AlertReceived(alert)) => of_gateway(*alert, settings),
        _ => None,
    };
    match words {
        Some(words) => {
            let expired = None;
            io::Error::new(error.kind(), CertificateRefused { words, expired })
        }
        None => of_server(settings).explain(error),
    }
}

/// The certificate of a server.
fn of_server(settings: &OriginTls) -> Refused<'_> {
    Refused {
        of: "server",
        field: "ca",
        ca: settings.authorities.as_ref().map(|it| &*it.file),
        itself: "this very certificate",
        purpose: "serverAuth",
        rename: "Set server_name to one of its names",
    }
}

/// Why a server refuses the gateway's certificate.
fn of_gateway(alert: AlertDescription, settings: &OriginTls) -> Option<String> {
    use AlertDescription as Alert;
    let shows = match &settings.identity {
        Some(identity) => identity.certificate_file.display().to_string(),
        None => "none".to_owned(),
    };
    match alert {
        Alert::CertificateRequired
        | Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => Some(format!(
            "the server refuses the certificate of the gateway ({alert:?}), which shows {shows}. Name one that the server accepts in client_cert and client_key"
        )),
        Alert::UnrecognisedName => Some(
            "the server has no certificate for the name that it is asked for (UnrecognisedName). Set server_name to one that it has".to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_no_certificate_stays_as_it_is() {
        let settings = OriginTls::default();
        let other = io::Error::new(io::ErrorKind::InvalidData, Error::DecryptError);
        let explained = explained(other, &settings);
        assert_eq!(explained.to_string(), Error::DecryptError.to_string());
    }

    #[test]
    fn a_refused_certificate_of_the_gateway_names_the_fields() {
        let refused = Error::AlertReceived(AlertDescription::CertificateRequired);
        let error = io::Error::new(io::ErrorKind::InvalidData, refused);
        let words = explained(error, &OriginTls::default()).to_string();
        assert!(words.contains("client_cert"), "{words}");
        assert!(words.contains("shows none"), "{words}");
    }
}
