//! Certificates of clients, their authorities, and routes that tell the origin about them.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

use crate::support::secure::{Identity, fetch, write_pair};
use crate::support::{Exchange, Origin, Site};

pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// Creates an authority that may sign certificates and lists. `NAME.pem` is its certificate.
pub fn authority(folder: &Path, name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), authority.pem()).expect("a file");
    authority
}

/// Creates a client's certificate with this serial number, in `NAME.pem` and `NAME.key`.
pub fn client(folder: &Path, authority: &Authority, name: &str, serial: &[u8]) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.serial_number = Some(SerialNumber::from_slice(serial));
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Drip, Inc.");
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("a file");
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
}

/// Returns a list of revoked serial numbers.
pub fn revoked(authority: &Authority, serials: &[&[u8]]) -> String {
    let certificate = |serial: &&[u8]| RevokedCertParams {
        serial_number: SerialNumber::from_slice(serial),
        revocation_time: date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(2099, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: serials.iter().map(certificate).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params
        .signed_by(authority)
        .expect("a list")
        .pem()
        .expect("text")
}

/// Sends a request with the certificate `name`, or without one if `name` is empty.
///
/// Returns the body of the response, or `none` if the connection fails.
pub fn ask(to: SocketAddr, folder: &Path, name: &str) -> String {
    let identity = (!name.is_empty()).then(|| Identity::read(folder, name));
    match fetch(to, "http/1.1", identity.as_ref()) {
        Ok(answer) => answer.text(),
        Err(error) => {
            // Errors that are expected: a TLS alert, or a connection that ends without one.
            let expected = [
                ErrorKind::InvalidData,
                ErrorKind::UnexpectedEof,
                ErrorKind::ConnectionReset,
                ErrorKind::BrokenPipe,
            ];
            assert!(expected.contains(&error.kind()), "{error:?}");
            "none".to_owned()
        }
    }
}

/// Starts an origin that answers with the fields about the client that it received.
pub fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let names = ["x-verify", "x-fingerprint", "x-subject", "x-serial"];
        let received = names.map(|name| exchange.field(name).unwrap_or("-").to_owned());
        exchange.reply(received.join("|").as_bytes())
    })
}

pub fn routes(origin: &Origin) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$ssl_client_fingerprint\"\nrate = \"1000r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 100 }}]\n\
         request_headers = {{ x-verify = \"$ssl_client_verify\", x-fingerprint = \"$ssl_client_fingerprint\", \
         x-subject = \"$ssl_client_subject\", x-serial = \"$ssl_client_serial\" }}\n",
        origin.address
    )
}

/// Creates a site with the authority `ca`, an untrusted authority, and clients of both.
pub fn site() -> (Site, Authority) {
    let site = Site::new();
    let folder = site.folder().to_owned();
    write_pair(&folder, "a", &["a.test"]);
    let trusted = authority(&folder, "ca");
    client(&folder, &trusted, "alice", &[0x80, 0x0a]);
    client(&folder, &trusted, "bob", &[2]);
    let stranger = authority(&folder, "stranger");
    client(&folder, &stranger, "mallory", &[3]);
    (site, trusted)
}
