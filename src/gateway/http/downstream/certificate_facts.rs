//! Facts in an X.509 certificate that rustls does not return: identity of a client, DNS names.
//!
//! `peer` keeps the identity of a client. `certificates` chooses a server certificate by its names.

use ring::digest::{SHA256, digest};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Identity of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
    /// Distinguished name of the subject, in the form of RFC 4514.
    pub subject: String,
    /// Serial number in upper-case hexadecimal, as nginx writes it.
    pub serial: String,
}

impl ClientCertificate {
    /// Reads a certificate in DER form. A field that cannot be read is empty.
    pub fn of(certificate: &[u8]) -> Self {
        let hash = digest(&SHA256, certificate);
        let fingerprint_digits = { hash.as_ref().iter() }.map(|byte| format!("{byte:02x}"));
        let parsed = CertificateInner::<Raw>::from_der(certificate).ok();
        let facts = parsed.as_ref().map(CertificateInner::tbs_certificate);
        let serial = facts.map(|facts| facts.serial_number().as_bytes());
        // A leading zero byte only marks the number as positive.
        let serial = serial.map(|bytes| match bytes {
            [0, rest @ ..] if !rest.is_empty() => rest,
            bytes => bytes,
        });
        let serial = serial.unwrap_or_default().iter();
        let serial_digits = serial.map(|byte| format!("{byte:02X}"));
        Self {
            fingerprint: fingerprint_digits.collect(),
            subject: facts.map_or(String::new(), |facts| facts.subject().to_string()),
            serial: serial_digits.collect(),
        }
    }
}

/// Returns the DNS names in a certificate in DER form. Wildcards are returned as they are written.
pub(super) fn dns_names(certificate: &[u8]) -> Vec<Box<str>> {
    let Ok(parsed) = CertificateInner::<Raw>::from_der(certificate) else {
        return Vec::new();
    };
    let facts = parsed.tbs_certificate();
    let Ok(Some((_is_critical, SubjectAltName(names)))) = facts.get_extension() else {
        return Vec::new();
    };
    let hosts = names.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.as_str().into()),
        _ => None,
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber, date_time_ymd};

    use super::*;
    use config::tls::version_and_validity;

    #[test]
    fn version_times_subject_serial_and_names_are_read() {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_before = date_time_ymd(1970, 1, 2);
        params.not_after = date_time_ymd(2050, 1, 1);
        params.serial_number = Some(SerialNumber::from_slice(&[0x80, 0x0a]));
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, "client, \"one\"");
        subject.push(DnType::OrganizationName, "drip");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let (version, validity) = version_and_validity(certificate.der()).unwrap();
        assert_eq!(version, 3);
        assert_eq!((validity.from, validity.to), (86_400, 2_524_608_000));
        let facts = ClientCertificate::of(certificate.der());
        assert_eq!(facts.serial, "800A");
        assert_eq!(dns_names(certificate.der()), [Box::<str>::from("a.test")]);
        assert_eq!(facts.fingerprint.len(), 64);
        for part in ["O=drip", r#"client\, \"one\""#] {
            assert!(facts.subject.contains(part), "{}", facts.subject);
        }
    }

    #[test]
    fn an_invalid_certificate_has_no_facts() {
        let certificate = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
        let whole = certificate.cert.der();
        for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
            assert_eq!(version_and_validity(&whole[..length]), None, "{length}");
            let facts = ClientCertificate::of(&whole[..length]);
            assert_eq!((&*facts.subject, &*facts.serial), ("", ""), "{length}");
        }
    }
}
