//! Why a certificate is refused, and what to do.

use std::io;

use jiff::Timestamp;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

use crate::config::OriginTls;

/// The same error, in words that say what to do, if it is about a certificate.
pub(super) fn explained(error: io::Error, settings: &OriginTls) -> io::Error {
    let source = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let words = match source {
        Some(Error::InvalidCertificate(why)) => of_server(why, settings),
        Some(Error::AlertReceived(alert)) => of_gateway(*alert, settings),
        _ => None,
    };
    match words {
        Some(words) => io::Error::new(error.kind(), words),
        None => error,
    }
}

/// Why the gateway refuses the certificate of a server.
fn of_server(why: &CertificateError, settings: &OriginTls) -> Option<String> {
    use CertificateError as Why;
    let ca = settings.authorities.as_ref().map(|it| it.file.display());
    Some(match why {
        Why::UnknownIssuer => match ca {
            Some(ca) => format!(
                "the certificate of the server is signed by none of the authorities in {ca} (UnknownIssuer). Add its authority, or the certificate itself, to that file, and let the server send its intermediate certificates"
            ),
            None => "the certificate of the server is signed by none of the system's authorities (UnknownIssuer). Name a file with its authority, or with the certificate itself, in ca, and let the server send its intermediate certificates".to_owned(),
        },
        Why::ExpiredContext { time, not_after } => format!(
            "the certificate of the server expired at {}, and the clock says {}. Renew it on the server, and its copy in ca if there is one",
            shown(*not_after),
            shown(*time)
        ),
        Why::NotValidYetContext { time, not_before } => format!(
            "the certificate of the server is not valid before {}, and the clock says {}. Set the clock, or wait",
            shown(*not_before),
            shown(*time)
        ),
        Why::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            if presented.is_empty() {
                format!(
                    "the certificate of the server is not valid for {expected}: it has no subjectAltName, and its common name does not count. Make one with subjectAltName"
                )
            } else {
                // Each is a name in quotes, or an address.
                let name = |it: &'_ String| it.split('"').nth(1).unwrap_or(it).to_owned();
                let names = presented.iter().map(name).collect::<Vec<_>>().join(", ");
                format!(
                    "the certificate of the server is not valid for {expected}, but for {names}. Set server_name to one of its names"
                )
            }
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => "the certificate of the server is not for servers: its extendedKeyUsage has no serverAuth. Make one that has".to_owned(),
        Why::BadSignature => "the signature of the server's certificate or handshake is wrong (BadSignature). An authority in ca may have a new key under its old name: renew ca, and see that the server has the key of its certificate".to_owned(),
        Why::Revoked => "the certificate of the server is revoked. Renew it on the server".to_owned(),
        Why::BadEncoding => "the certificate of the server cannot be read (BadEncoding). Make a new one".to_owned(),
        Why::UnhandledCriticalExtension => "the certificate of the server has a critical extension that is not known here. Make one without it, or add the certificate itself to ca".to_owned(),
        Why::UnsupportedSignatureAlgorithmContext { .. }
        | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => "the certificate of the server is signed in a way that is not secure or not known, such as SHA-1 or RSA of less than 2048 bits. Make one with SHA-256 and ECDSA P-256 or RSA 2048".to_owned(),
        Why::Other(other) => return of_other(&other.to_string()),
        _ => return None,
    })
}

/// The same for what rustls has no name for.
fn of_other(why: &str) -> Option<String> {
    let words = match why {
        "CaUsedAsEndEntity" => {
            "the server shows a certificate of an authority (CA:TRUE) as its own. Add this very certificate to the file in ca, or give the server one with CA:FALSE"
        }
        "EndEntityUsedAsCa" => {
            "a certificate that is not an authority's (CA:FALSE) signed that of the server. Sign it by an authority, or add the server's certificate itself to the file in ca"
        }
        "PathLenConstraintViolated" | "NameConstraintViolation" => {
            "the authority of the server's certificate may not sign it (its pathLenConstraint or nameConstraints). Have it signed by another one, or add the certificate itself to the file in ca"
        }
        "UnsupportedCertVersion" => {
            "the certificate of the server is of an old version of X.509. Make one of version 3, with subjectAltName"
        }
        _ => return None,
    };
    Some(format!("{words} ({why})"))
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

fn shown(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .unwrap_or(Timestamp::MAX)
        .to_string()
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
