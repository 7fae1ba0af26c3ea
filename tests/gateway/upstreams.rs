//! Tests of origins behind socket files, TLS and names.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::ServerConfig;

use crate::support::client_certificates;
use crate::support::secure::server_config;
use crate::support::{
    Exchange, Gateway, Origin, PATIENCE, SOON, assert_contains, eventually, now, servers,
};

/// Returns a file that only forwards. `more`: further fields of the origin.
fn forwarding(server: &str, more: &str) -> String {
    servers(&[server], more)
}

/// A certificate authority, and the file through which the gateway trusts it.
struct Authority {
    issuer: client_certificates::Authority,
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = client_certificates::authority(folder.path(), name);
        fs::write(folder.path().join("roots.pem"), issuer.pem()).expect("a file");
        Self { issuer, folder }
    }

    fn roots(&self) -> PathBuf {
        self.folder.path().join("roots.pem")
    }

    /// Returns the TLS configuration of a server for `name` that supports `protocols`.
    fn server(&self, name: &str, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        let mut config = Arc::unwrap_or_clone(server_config(cert.der().clone(), &key));
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Starts the gateway in front of `server`, trusting the certificates in `roots`.
fn believing(roots: &Path, server: &str, more: &str) -> Gateway {
    Gateway::start_with(&forwarding(server, more), &[("SSL_CERT_FILE", roots)])
}

fn hello(exchange: &mut Exchange) -> std::io::Result<()> {
    let body = exchange.body()?;
    let host = exchange.field("host").unwrap_or_default().to_owned();
    exchange.reply([host.as_bytes(), b" ", &body].concat().as_slice())
}

#[test]
fn a_server_behind_a_socket_file_gets_kept_connections_and_answers_502_once_lost() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    let origin = Origin::at_unix(&path, hello);
    let more = "host = \"origin\"\n";
    let file = forwarding(&format!("unix:{}", path.display()), more);
    let gateway = Gateway::start(&file);
    let mut client = gateway.connect();
    for _ in 0..5 {
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.answer().text(), "localhost hello");
    }
    let arrivals = origin.arrivals();
    assert!(arrivals.iter().all(|arrival| arrival.connection == 0));
    drop(origin);
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/").status, 502);
    gateway.wait_for_line("Connection refused");
}

#[test]
fn a_server_with_a_certificate_for_its_name_or_address_is_asked_over_tls() {
    let authority = Authority::new("known");
    let large: Vec<u8> = (0..3_000_000_u32).map(|it| it.to_le_bytes()[1]).collect();
    for host in ["localhost", "127.0.0.1"] {
        // The server would choose HTTP/2 if the gateway offered it.
        let tls = authority.server(host, &["h2", "http/1.1"]);
        let sent = large.clone();
        let origin = Origin::with_tls("127.0.0.1:0", tls, move |exchange| {
            if exchange.target() == "/large" {
                return exchange.reply(&sent);
            }
            hello(exchange)
        });
        let server = format!("{host}:{}", origin.address.port());
        let more = "host = \"origin\"\nhttp2 = \"off\"\n";
        let gateway = believing(&authority.roots(), &format!("https://{server}"), more);
        let mut client = gateway.connect();
        for _ in 0..5 {
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
            let answer = client.answer();
            let expected = (200, format!("{server} hello"));
            assert_eq!((answer.status, answer.text()), expected);
        }
        client.get("/large");
        assert!(client.answer().body == large);
        let arrivals = origin.arrivals();
        assert!(arrivals.iter().all(|arrival| arrival.connection == 0));
    }
}

#[test]
fn a_certificate_that_does_not_verify_is_a_502_and_the_log_says_why() {
    let (authority, stranger) = (Authority::new("known"), Authority::new("stranger"));
    let cases = [
        (&stranger, "127.0.0.1", "UnknownIssuer"),
        (&authority, "other.example", "not valid for"),
    ];
    for (signed_by, name, why) in cases {
        let origin = Origin::with_tls("127.0.0.1:0", signed_by.server(name, &[]), hello);
        let server = format!("https://{}", origin.address);
        let gateway = believing(&authority.roots(), &server, "");
        assert_eq!(gateway.fetch("/").status, 502, "{why}");
        let line = gateway.wait_for_line(why);
        assert_contains!(line, &origin.address.to_string());
        assert!(origin.arrivals().is_empty(), "nothing is sent to it");
    }
}

#[test]
fn without_roots_nobody_is_believed_and_the_log_names_the_file() {
    let authority = Authority::new("known");
    let tls = authority.server("127.0.0.1", &[]);
    let origin = Origin::with_tls("127.0.0.1:0", tls, hello);
    let missing = authority.folder.path().join("missing.pem");
    let gateway = believing(&missing, &format!("https://{}", origin.address), "");
    assert_eq!(gateway.fetch("/").status, 502);
    gateway.wait_for_line("missing.pem");

    fs::copy(authority.roots(), &missing).expect("a file");
    assert_eq!(gateway.fetch("/").status, 200, "it is read anew");
}

#[test]
fn a_server_that_does_not_speak_tls_is_a_502() {
    let origin = Origin::start();
    let gateway = Gateway::start(&forwarding(&format!("https://{}", origin.address), ""));
    assert_eq!(gateway.fetch("/").status, 502);
}

#[test]
fn a_name_that_nobody_knows_delays_no_request_to_others_and_is_a_502_that_says_so() {
    let origin = Origin::start();
    let clients_of_missing = "[origins.gone]\nservers = [\"http://no-such-host.invalid\"]\nconnect_timeout = \"2s\"\n\
                [[routes]]\npath = \"/gone\"\norigin = \"gone\"\n";
    let file = forwarding(&format!("http://{}", origin.address), "");
    let gateway = Gateway::start(&format!("workers = 1\n{file}{clients_of_missing}"));
    let mut clients_of_missing = [(); 20].map(|()| gateway.ask("/gone"));
    let began = now();
    gateway.check_each(20, "/", 200);
    assert!(began.elapsed() < SOON);
    for client in &mut clients_of_missing {
        // Some machines' resolvers never report a missing name.
        let status = client.answer().status;
        assert!(matches!(status, 502 | 504), "{status}");
        if status == 502 {
            gateway.wait_for_line("looking up no-such-host.invalid");
        }
    }
}

#[test]
fn idle_connections_to_a_server_that_left_the_file_are_closed() {
    let (closed, is_closed) = mpsc::channel();
    let closed = Mutex::new(closed);
    let left = Origin::answering(move |exchange| {
        exchange.reply(b"left")?;
        // Ends with the connection: the gateway sends nothing more on it.
        let ended = exchange.stream().read(&mut [0]);
        if matches!(ended, Ok(0) | Err(_)) {
            closed
                .lock()
                .expect("no panic")
                .send(())
                .map_err(io::Error::other)?;
        }
        Exchange::close()
    });
    let stays = Origin::start();
    let file = |origin: &Origin| forwarding(&format!("http://{}", origin.address), "");
    let gateway = Gateway::start(&file(&left));
    // The client's connection stays open, with what the gateway knows about it.
    let mut client = gateway.ask("/");
    assert_eq!(client.answer().text(), "left");
    gateway.site.write(&file(&stays));
    is_closed.recv_timeout(PATIENCE).expect("it is closed");
    // Each worker learns of the new file separately.
    eventually("the other server answers", || {
        client.fetch("/").text() == "ok"
    });
}

#[test]
fn a_server_over_tls_is_checked_over_tls() {
    let authority = Authority::new("known");
    let tls = authority.server("127.0.0.1", &[]);
    let answer = |exchange: &mut Exchange| exchange.reply(b"ok");
    let origin = Origin::with_tls("127.0.0.1:0", Arc::clone(&tls), answer);
    let (address, server) = (
        origin.address.to_string(),
        format!("https://{}", origin.address),
    );
    let more = "[origins.app.health]\npath = \"/\"\ninterval = \"50ms\"\nunhealthy_after = 1\n";
    let gateway = believing(&authority.roots(), &server, more);
    let healthy = || gateway.count("drip_origin_healthy", &[("server", &server)]);
    origin.wait_for(3);
    assert_eq!(healthy(), 1);
    drop(origin);
    eventually("it is out", || healthy() == 0);
    let stranger = Authority::new("stranger").server("127.0.0.1", &[]);
    let origin = Origin::with_tls(&address, stranger, answer);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(healthy(), 0, "it is not whom the certificate should be for");
    drop(origin);
    let _origin = Origin::with_tls(&address, tls, answer);
    eventually("it is in", || healthy() == 1);
}
