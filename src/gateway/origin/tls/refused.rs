//! Explanations of TLS errors about certificates, with the remedy of each.
//!
//! Either the gateway refuses the certificate of the server, or the server that of the gateway. TLS
//! reports the second as an *alert*.

use std::io;

use config::OriginTls;
use config::tls::{CertificateRefused, RefusalContext};
use tokio_rustls::rustls::{AlertDescription, Error};

/// Explains the error of a handshake, with a remedy, if it is about a certificate.
pub(super) fn explain_handshake(error: io::Error, settings: &OriginTls) -> io::Error {
    let context = RefusalContext {
        owner: "server",
        field: "ca",
        ca: settings.authorities.as_ref().map(|it| &*it.file),
        pinnable: "this very certificate",
        purpose: "serverAuth",
        name_remedy: "Set server_name to one of its names",
    };
    context.explain(explain_alert(error))
}

/// Explains an alert of the server. In TLS 1.3 it may arrive after the handshake.
pub(in crate::origin) fn explain_alert(error: io::Error) -> io::Error {
    let source = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let Some(Error::AlertReceived(alert)) = source else {
        return error;
    };
    match refusal_of(*alert) {
        Some(refused) => io::Error::new(error.kind(), refused),
        None => error,
    }
}

/// Explains an alert about the gateway's certificate, or about the requested server name.
fn refusal_of(alert: AlertDescription) -> Option<CertificateRefused> {
    use AlertDescription as Alert;
    let wrong = match alert {
        Alert::CertificateRequired => "requires a certificate of the gateway, which shows none",
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => "refuses the certificate of the gateway, or requires one",
        Alert::UnrecognisedName => "has no certificate for the requested name",
        _ => return None,
    };
    let is_of_gateway = alert != Alert::UnrecognisedName;
    let remedy = if is_of_gateway {
        "Name one that the server accepts in client_cert and client_key"
    } else {
        "Set server_name to one that it has"
    };
    Some(CertificateRefused {
        message: format!("the server {wrong} ({alert:?}). {remedy}"),
        expired: None,
        is_of_gateway,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_certificate_of_the_gateway_names_the_fields_and_other_errors_stay_unchanged() {
        let explain = |error: Error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            explain_handshake(error, &OriginTls::default()).to_string()
        };
        assert_eq!(
            explain(Error::DecryptError),
            Error::DecryptError.to_string()
        );
        let words = explain(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(words.contains("client_cert"), "{words}");
        assert!(words.contains("shows none"), "{words}");
    }
}
