//! Origins behind socket files, TLS and names.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::support::{Client, Exchange, Gateway, Origin, SOON, eventually, fetch, now};

fn forwarding(server: &str, more: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"{server}\"]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

/// A certificate authority, and the file through which the gateway trusts it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("a root");
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("roots.pem"), root.pem()).expect("a file");
        let issuer = Issuer::new(params, key);
        Self { issuer, folder }
    }

    fn roots(&self) -> PathBuf {
        self.folder.path().join("roots.pem")
    }

    /// The TLS configuration of a server for `name` that speaks `protocols`.
    fn server(&self, name: &str, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .expect("a pair");
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// The gateway in front of `server`, trusting the certificates in `roots`.
fn believing(roots: &Path, server: &str, more: &str) -> Gateway {
    Gateway::start_with(&forwarding(server, more), &[("SSL_CERT_FILE", roots)])
}

fn hello(exchange: &mut Exchange) -> std::io::Result<()> {
    let body = exchange.body()?;
    let host = exchange.field("host").unwrap_or_default().to_owned();
    exchange.reply([host.as_bytes(), b" ", &body].concat().as_slice())
}

#[test]
fn a_server_behind_a_socket_file_is_asked_over_kept_connections() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    let origin = Origin::at_unix(&path, hello);
    let more = "host = \"origin\"\n";
    let gateway = Gateway::start(&forwarding(&format!("unix:{}", path.display()), more));
    let mut client = Client::connect(gateway.address());
    for _ in 0..5 {
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.answer().text(), "localhost hello");
    }
    assert!(
        origin
            .arrivals()
            .iter()
            .all(|arrival| arrival.connection == 0)
    );
}

#[test]
fn a_socket_file_that_nobody_listens_on_any_more_is_a_502_that_says_so() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    drop(Origin::at_unix(&path, hello));
    let gateway = Gateway::start(&forwarding(&format!("unix:{}", path.display()), ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    gateway.wait_for_line("Connection refused");
}

#[test]
fn a_server_with_a_certificate_for_its_name_or_address_is_asked_over_tls() {
    let authority = Authority::new("known");
    for host in ["localhost", "127.0.0.1"] {
        // It would choose HTTP/2 if it were offered it.
        let tls = authority.server(host, &["h2", "http/1.1"]);
        let origin = Origin::with_tls("127.0.0.1:0", tls, hello);
        let server = format!("{host}:{}", origin.address.port());
        let more = "host = \"origin\"\nhttp2 = \"off\"\n";
        let gateway = believing(&authority.roots(), &format!("https://{server}"), more);
        let mut client = Client::connect(gateway.address());
        for _ in 0..5 {
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
            let answer = client.answer();
            assert_eq!(
                (answer.status, answer.text()),
                (200, format!("{server} hello"))
            );
        }
        assert!(
            origin
                .arrivals()
                .iter()
                .all(|arrival| arrival.connection == 0)
        );
    }
}

#[test]
fn a_large_answer_comes_whole_over_tls() {
    let authority = Authority::new("known");
    let body: Vec<u8> = (0..3_000_000_u32).map(|it| it.to_le_bytes()[1]).collect();
    let sent = body.clone();
    let tls = authority.server("127.0.0.1", &[]);
    let origin = Origin::with_tls("127.0.0.1:0", tls, move |exchange| exchange.reply(&sent));
    let gateway = believing(
        &authority.roots(),
        &format!("https://{}", origin.address),
        "",
    );
    assert!(fetch(gateway.address(), "/").body == body);
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
        let gateway = believing(
            &authority.roots(),
            &format!("https://{}", origin.address),
            "",
        );
        assert_eq!(fetch(gateway.address(), "/").status, 502, "{why}");
        let line = gateway.wait_for_line(why);
        assert!(line.contains(&origin.address.to_string()), "{line}");
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
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    gateway.wait_for_line("missing.pem");

    fs::copy(authority.roots(), &missing).expect("a file");
    assert_eq!(fetch(gateway.address(), "/").status, 200, "it is read anew");
}

#[test]
fn a_server_that_does_not_speak_tls_is_a_502() {
    let origin = Origin::start();
    let gateway = Gateway::start(&forwarding(&format!("https://{}", origin.address), ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
}

#[test]
fn connect_timeout_holds_for_a_server_that_takes_connections_and_never_speaks_tls() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("https://{}", silent.local_addr().expect("an address"));
    let gateway = Gateway::start(&forwarding(&server, "connect_timeout = \"300ms\"\n"));
    let began = now();
    assert_eq!(fetch(gateway.address(), "/").status, 504);
    let took = began.elapsed();
    assert!((300..1500).contains(&took.as_millis()), "it took {took:?}");
}

#[test]
fn a_name_is_reached_at_whichever_of_its_addresses_listens() {
    let known = ("localhost", 0)
        .to_socket_addrs()
        .expect("localhost has addresses");
    // Not every machine has both.
    for address in known {
        let origin = Origin::at(&address.to_string(), hello);
        let server = format!("http://localhost:{}", origin.address.port());
        let gateway = Gateway::start(&forwarding(&server, "host = \"origin\"\n"));
        let wanted = format!("localhost:{} ", origin.address.port());
        for _ in 0..3 {
            assert_eq!(fetch(gateway.address(), "/").text(), wanted, "{address}");
        }
    }
}

#[test]
fn a_name_that_nobody_knows_delays_no_request_to_others_and_is_a_502_that_says_so() {
    let origin = Origin::start();
    let file = format!(
        "workers = 1\n[origins.app]\nservers = [\"http://{}\"]\n[origins.gone]\nservers = [\"http://no-such-host.invalid\"]\nconnect_timeout = \"2s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n[[routes]]\npath = \"/gone\"\norigin = \"gone\"\n",
        origin.address
    );
    let gateway = Gateway::start(&file);
    let mut gone: Vec<_> = (0..20)
        .map(|_| Client::ask(gateway.address(), "/gone"))
        .collect();
    let began = now();
    for _ in 0..20 {
        assert_eq!(fetch(gateway.address(), "/").status, 200);
    }
    assert!(began.elapsed() < SOON);
    for client in &mut gone {
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
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};
    let closed = Arc::<AtomicBool>::default();
    let to_tell = Arc::clone(&closed);
    let left = Origin::answering(move |exchange| {
        exchange.reply(b"left")?;
        // Ends with the connection: the gateway sends nothing more on it.
        let (rest, told) = (exchange.stream(), Arc::clone(&to_tell));
        let ended = matches!(rest.read(&mut [0]), Ok(0) | Err(_));
        told.store(ended, Ordering::SeqCst);
        Exchange::close()
    });
    let stays = Origin::start();
    let file = |origin: &Origin| forwarding(&format!("http://{}", origin.address), "");
    let gateway = Gateway::start(&file(&left));
    // The client's own connection stays, with what the gateway knows about it.
    let mut client = Client::ask(gateway.address(), "/");
    assert_eq!(client.answer().text(), "left");
    gateway.site.write(&file(&stays));
    eventually("its idle connection is closed", || {
        closed.load(Ordering::SeqCst)
    });
    // Each worker hears of the new file by itself.
    eventually("the other server answers", || {
        client.get("/");
        client.answer().text() == "ok"
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
    let healthy = || {
        gateway
            .metrics()
            .count("drip_origin_healthy", &[("server", &server)])
    };
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
