//! Tests of Redis's certificate: which are accepted, and the log lines about others.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, Certificate, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream};

use super::{authority, key, params};
use crate::support::secure::server_config;
use crate::support::{Gateway, Site, assert_contains, eventually, side_by_side};

const HOST: &str = "127.0.0.1";

/// A TLS server that answers nothing, with the bytes that its clients have sent.
struct Listening {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Listening {
    fn with(certificate: &Certificate, key: &KeyPair) -> Self {
        let config = server_config(certificate.der().clone(), key);
        let listener = TcpListener::bind((HOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, all) = (Arc::clone(&config), Arc::clone(&all));
                thread::spawn(move || receive(socket, config, &all));
            }
        });
        Self { address, received }
    }

    /// Returns whether a client has sent a command of Redis.
    fn has_command(&self) -> bool {
        self.received.lock().expect("no panic").starts_with(b"*")
    }
}

fn receive(mut socket: TcpStream, config: Arc<ServerConfig>, all: &Mutex<Vec<u8>>) {
    let mut tls = ServerConnection::new(config).expect("TLS");
    let mut stream = Stream::new(&mut tls, &mut socket);
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        all.lock().expect("no panic").extend(&bytes[..count]);
    }
}

/// Starts a gateway with a zone in the Redis at `to`, and sends it a request.
fn asked(to: &Listening, scheme: &str, ca: &str) -> Gateway {
    let site = Site::new();
    fs::write(site.folder().join("ca.pem"), ca).expect("a file");
    let address = to.address;
    site.write(&format!(
        "[redis]\nurl = \"{scheme}://{address}\"\nca = \"ca.pem\"\ntimeout = \"2s\"\n\
         [origins.app]\nservers = [\"http://127.0.0.1:9\"]\n\
         [zones.z]\nkey = \"$remote_addr\"\nrate = \"100r/s\"\nstore = \"redis\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}]\n"
    ));
    let gateway = Gateway::start_at(site);
    assert_eq!(gateway.fetch("/").status, 502);
    gateway
}

#[test]
fn a_certificate_of_redis_in_ca_itself_is_accepted_as_one_of_its_authorities_is() {
    let root_key = key();
    let root = authority().self_signed(&root_key).expect("a root");
    let issuer = Issuer::new(authority(), root_key);
    let own_key = key();
    let own = params(HOST, IsCa::Ca(BasicConstraints::Unconstrained));
    let own = own.self_signed(&own_key).expect("a certificate");
    let signed = params(HOST, IsCa::NoCa).signed_by(&own_key, &issuer);
    let signed = signed.expect("a certificate");
    side_by_side([(&own, &own), (&signed, &root)], |(certificate, ca)| {
        for scheme in ["rediss", "rediss+cluster"] {
            let redis = Listening::with(certificate, &own_key);
            let _gateway = asked(&redis, scheme, &ca.pem());
            eventually(scheme, || redis.has_command());
        }
    });
}

/// The log has the reason why Redis's certificate is refused, and the remedy.
///
/// `tls::origins` tests further reasons, which are found in the same way.
#[test]
fn the_log_says_why_the_certificate_of_redis_is_refused_and_what_to_do() {
    let own_key = key();
    let certificate = params("other.internal", IsCa::NoCa).self_signed(&own_key);
    let certificate = certificate.expect("a certificate");
    let redis = Listening::with(&certificate, &own_key);
    let words =
        "not valid for 127.0.0.1, but for other.internal. Write one of its names in url of [redis]";
    for scheme in ["rediss", "rediss+cluster"] {
        let gateway = asked(&redis, scheme, &certificate.pem());
        let line = gateway.wait_for_line(words);
        assert_contains!(line, "the store is out");
    }
    assert!(!redis.has_command(), "nothing is sent to it");
}

#[test]
fn a_file_of_authorities_that_changes_counts_at_once_and_a_broken_one_changes_nothing() {
    let own_key = key();
    let own = params(HOST, IsCa::NoCa).self_signed(&own_key);
    let own = own.expect("a certificate");
    let stranger = authority().self_signed(&key()).expect("a root").pem();
    let redis = Listening::with(&own, &own_key);
    let gateway = asked(&redis, "rediss", &stranger);
    let _refused = gateway.wait_for_line("signed by none of the authorities in ");
    let file = gateway.site.folder().join("ca.pem");
    fs::write(&file, "nonsense").expect("a file");
    let _kept = gateway.wait_for_line("it has no certificate in PEM");
    fs::remove_file(&file).expect("the file");
    let _missing = gateway.wait_for_line("cannot be read");
    assert!(!redis.has_command());
    fs::write(&file, own.pem()).expect("a file");
    let _changed = gateway.wait_for_line("redis certificate file ca.pem content changed");
    eventually("a command comes", || {
        let _status = gateway.fetch("/").status;
        redis.has_command()
    });
}
