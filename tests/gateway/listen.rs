//! Tests of listening addresses with TLS, permissions, redirects, or trust.

mod files;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use files::*;

use crate::support::launch::launch;
use crate::support::secure;
use crate::support::{
    Client, Exchange, Gateway, Origin, Site, drip, exchange, file, free_address, one_zone,
    over_unix, zone,
};

/// Starts an origin that answers with the client's fields that it received, and its target.
fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let names = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
        let received = names.map(|name| exchange.field(name).unwrap_or("-").to_owned());
        exchange.reply(received.join("|").as_bytes())
    })
}

#[test]
fn tls_is_on_the_addresses_that_have_it_and_fields_and_keys_say_so() {
    let origin = echo_origin();
    let [plain, one, other] = [free_address(), free_address(), free_address()];
    let listen = format!(
        "{{ address = \"{plain}\", tls = false }}, \"{one}\", {{ address = \"{other}\", tls = true }}, \"unix:drip.sock\""
    );
    let zones = zone("z", "$scheme:$server_port", "1r/h");
    let rest = file(&origin, &zones, &[("/", LIMITS)]);
    let gateway = Gateway::start_at(site(&listen, TLS, &rest));

    let answer = Client::ask(plain, "/").answer();
    assert_eq!(answer.text(), format!("127.0.0.1|http|{plain}"));
    for to in [one, other] {
        for protocol in ["h2", "http/1.1"] {
            let answer = secure::fetch(to, protocol, None).expect("an answer");
            assert_eq!(answer.text(), format!("127.0.0.1|https|{to}"), "{protocol}");
        }
    }
    let socket = gateway.site.folder().join("drip.sock");
    let received = over_unix(&socket, "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(received.ends_with("-|http|a"), "{received}");
    // One key for each address: two with TLS, one plain, and the socket file.
    let keys = gateway.admin("/api/zones/z/keys").expect("an answer");
    let keys = keys.text();
    for key in [
        format!("http:{}", plain.port()),
        format!("https:{}", one.port()),
        format!("https:{}", other.port()),
        "http:0".to_owned(),
    ] {
        assert!(keys.contains(&format!("\"{key}\"")), "{key}: {keys}");
    }
}

/// Starts the program under a umask. Returns all modes that its socket file had.
fn modes_seen(site: Site, umask: &str) -> (Gateway, Vec<u32>) {
    let socket = site.folder().join("drip.sock");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Vec::new();
            let mut is_last = false;
            while !is_last {
                is_last = over.load(Ordering::SeqCst);
                if let Ok(file) = fs::symlink_metadata(&socket) {
                    seen.push(file.permissions().mode() & 0o7777);
                    seen.dedup();
                }
            }
            seen
        });
        let mut program = drip();
        program.args(["run", "-c"]).arg(site.file());
        let command = launch(&program, &format!("umask={umask}"));
        let gateway = Gateway::run_as(site, command);
        gateway.wait_until_ready();
        over.store(true, Ordering::SeqCst);
        (gateway, watcher.join().expect("no panic"))
    })
}

#[test]
fn a_socket_file_has_its_mode_before_anybody_can_connect() {
    let origin = Origin::start();
    let rest = file(&origin, "", &[("/", "")]);
    for umask in ["000", "022", "077"] {
        for _ in 0..5 {
            let listen = "{ address = \"unix:drip.sock\", mode = \"0660\" }";
            let (gateway, seen) = modes_seen(site(listen, "", &rest), umask);
            assert_eq!(seen.last(), Some(&0o660), "umask {umask}");
            let is_within = |mode: &u32| mode & !0o660 == 0;
            assert!(seen.iter().all(is_within), "umask {umask}: {seen:?}");
            let socket = gateway.site.folder().join("drip.sock");
            let received = over_unix(&socket, "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
            assert!(received.starts_with("HTTP/1.0 200 "), "{received}");
        }
        let (_gateway, seen) = modes_seen(site("\"unix:drip.sock\"", "", &rest), umask);
        let umask = u32::from_str_radix(umask, 8).expect("octal");
        let usual = 0o777 & !umask;
        assert_eq!(seen, [usual], "without a mode, as the umask has it");
    }
}

#[test]
fn an_old_socket_file_is_replaced_and_one_in_use_is_not() {
    let origin = Origin::start();
    let rest = file(&origin, "", &[("/", "")]);
    let listen = "{ address = \"unix:drip.sock\", mode = \"0600\" }";
    let listening = site(listen, "", &rest);
    let socket = listening.folder().join("drip.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let gateway = Gateway::start_at(listening);
    let mode = fs::metadata(&socket).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = format!(
        "[server]\nlisten = [{{ address = \"unix:{}\", mode = \"0666\" }}]\nadmin = \"off\"\n{rest}",
        socket.display()
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gateway.toml");
    fs::write(&path, second).expect("a file");
    let output = drip().arg("-c").arg(&path).output().expect("an end");
    let received = String::from_utf8_lossy(&output.stderr);
    let is_refused = !output.status.success() && received.contains("another program");
    assert!(is_refused, "{received}");
    let mode = fs::metadata(&socket).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the file of the first is untouched");
    drop(gateway);
}

fn location(to: SocketAddr, request: &str) -> (u16, Option<String>) {
    let answer = exchange(to, request);
    (answer.status, answer.field("location").map(str::to_owned))
}

#[test]
fn an_address_that_redirects_sends_every_request_to_tls_and_none_to_the_origin() {
    let origin = echo_origin();
    let (gateway, plain, tls) = redirecting(&origin, "https");
    let port = tls.port();
    for (line, host, to) in [
        ("GET /", "a.test", "a.test:PORT/"),
        ("GET /a?b=c%20d", "A.test:80", "a.test:PORT/a?b=c%20d"),
        ("GET //b.test/..//x", "a.test.", "a.test:PORT//b.test/..//x"),
        ("GET /caf\u{e9}", "[::1]:80", "[::1]:PORT/caf%C3%A9"),
        ("GET http://b.test/x", "a.test", "b.test:PORT/x"),
        ("OPTIONS *", "a.test", "a.test:PORT/"),
        ("GET /.well-known/x", "a.test", "a.test:PORT/.well-known/x"),
        (
            "GET /.well-known/acme-challenge/../x",
            "a.test",
            "a.test:PORT/.well-known/acme-challenge/../x",
        ),
    ] {
        let to = to.replace("PORT", &port.to_string());
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let expected = (308, Some(format!("https://{to}")));
        assert_eq!(location(plain, &request), expected, "{request}");
    }
    for head in [
        "1.0\r\n",
        "1.1\r\n",
        "1.1\r\nHost: \r\n",
        "1.1\r\nHost: a/b\r\n",
        "1.1\r\nHost: a\r\nHost: b\r\n",
    ] {
        let request = format!("GET / HTTP/{head}\r\n");
        assert_eq!(location(plain, &request), (400, None), "{request}");
    }
    // The body that follows is not a request.
    let mut client = Client::connect(plain);
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status, 308);
    let second = format!("https://a:{port}/2");
    assert_eq!(client.answer().field("location"), Some(&*second));
    assert_eq!(origin.arrivals().len(), 0);
    assert_eq!(gateway.zone("drip_zone_keys"), 0, "no zone counts them");

    // The check of a certificate authority has its own route.
    let request = "GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let status = exchange(plain, request).status;
    assert_eq!((status, origin.arrivals().len()), (200, 1));
}

#[test]
fn a_redirect_names_the_port_that_clients_reach() {
    let origin = Origin::start();
    let (_gateway, plain, _) = redirecting(&origin, "https:443");
    let request = "GET /a HTTP/1.1\r\nHost: a.test:8080\r\n\r\n";
    let expected = Some("https://a.test/a".to_owned());
    assert_eq!(location(plain, request), (308, expected));
}

#[test]
fn peers_on_a_socket_file_name_their_clients_if_they_are_trusted() {
    let origin = echo_origin();
    let zones = zone("z", "$remote_addr", "1r/h");
    let ask = |gateway: &Gateway, client: &str| {
        let fields = format!("Host: a\r\nX-Forwarded-For: {client}\r\nX-Forwarded-Proto: https");
        let request = format!("GET / HTTP/1.0\r\n{fields}\r\n\r\n");
        let answer = over_unix(&gateway.site.folder().join("drip.sock"), &request);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let head = head.to_ascii_lowercase();
        let left = head.split_once("x-ratelimit-remaining: ").expect("a field");
        (left.1[..1].to_owned(), body.to_owned())
    };
    let networks = "trusted_proxies = [\"127.0.0.0/8\", \"::/0\"]";
    for (more, rests) in [
        ("trusted_proxies = [\"unix:\"]", ["9", "9", "8"]),
        (networks, ["9", "8", "7"]),
    ] {
        let rest = file(&origin, &zones, &[("/", LIMITS)]);
        let gateway = Gateway::start_at(site("\"unix:drip.sock\"", more, &rest));
        for (client, left) in ["192.0.2.1", "192.0.2.2", "192.0.2.1"].iter().zip(rests) {
            let received = if more == networks {
                "-|http|a".to_owned()
            } else {
                format!("{client}|https|a")
            };
            assert_eq!(ask(&gateway, client), (left.to_owned(), received), "{more}");
        }
    }
}

#[test]
fn one_connection_slot_serves_all_listeners() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let file = format!("max_connections = 1\nworkers = 2\n{file}");
    let (gateway, socket) = Gateway::start_with_unix_socket(&file);
    for _ in 0..3 {
        let answer = over_unix(&socket, "GET / HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        assert_eq!(gateway.fetch("/").status, 200);
    }
}
