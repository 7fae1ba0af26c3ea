//! A login by NTLM or Negotiate belongs to the connection to the origin (RFC 4559, section 6). Such a
//! connection serves the client that logged in, and nobody else.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::bed::{GET, MS, forwarding, get_with};
use crate::support::{FrameOrigin, Gateway, Raw, eventually, one_h2c_origin, one_origin};

/// An origin whose connections are logged in. Each answer says for whom it is.
struct Intranet {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Intranet {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::<AtomicUsize>::default();
        let open = Arc::<AtomicUsize>::default();
        let counts = (Arc::clone(&connections), Arc::clone(&open));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (connections, open) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
                connections.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    serve(Raw::over(stream));
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            address,
            connections,
            open,
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One connection, until it ends.
fn serve(mut stream: Raw) {
    let (mut has_begun, mut user) = (false, None);
    while let Ok(line) = stream.try_line() {
        let mut fields = HashMap::new();
        while let Ok(line) = stream.try_line() {
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            fields.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let is_anonymous = line.contains("/public");
        let credentials = fields.get("authorization").map_or("", String::as_str);
        let (status, more, body) = match credentials.split_once(' ') {
            Some(("NTLM", "one")) => {
                has_begun = true;
                (
                    "401 Unauthorized",
                    "WWW-Authenticate: NTLM two\r\n",
                    "go on".to_owned(),
                )
            }
            Some(("NTLM", name)) if has_begun => {
                user = Some(name.to_owned());
                ("200 OK", "", format!("user={name}"))
            }
            Some(("Negotiate", name)) => {
                user = Some(name.to_owned());
                ("200 OK", "", format!("user={name}"))
            }
            _ if is_anonymous => ("200 OK", "", "nobody".to_owned()),
            _ => {
                if let Some(name) = &user {
                    ("200 OK", "", format!("user={name}"))
                } else {
                    let both = "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n";
                    ("401 Unauthorized", both, "who?".to_owned())
                }
            }
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\n{more}Cache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        if stream.try_send(answer).is_err() {
            return;
        }
    }
}

fn drip(servers: &[SocketAddr]) -> Gateway {
    Gateway::start(&forwarding(servers, ""))
}

/// The status and the body of the answer to one more request of a client.
fn told(client: &mut Raw, request: &str) -> (u16, String) {
    client.send(request);
    let answer = client.answer();
    let body = String::from_utf8(answer.body.clone()).expect("a text");
    (answer.status(), body)
}

fn ntlm(token: &str) -> String {
    get_with(&format!("Authorization: NTLM {token}\r\n"))
}

fn user(name: &str) -> (u16, String) {
    (200, format!("user={name}"))
}

fn challenge() -> (u16, String) {
    (401, "who?".to_owned())
}

/// A client that is logged in.
fn logged_in(gateway: &Gateway, name: &str) -> Raw {
    let mut client = Raw::connect(gateway.address());
    assert_eq!(told(&mut client, GET), challenge());
    assert_eq!(told(&mut client, &ntlm("one")).0, 401);
    assert_eq!(told(&mut client, &ntlm(name)), user(name));
    client
}

#[test]
fn a_stranger_gets_a_connection_of_its_own_beside_a_client_that_is_logged_in() {
    let origin = Intranet::start();
    let gateway = drip(&[origin.address]);
    let mut anna = logged_in(&gateway, "anna");
    let mut stranger = Raw::connect(gateway.address());
    assert_eq!(told(&mut stranger, GET), challenge());
    // The login holds for requests without credentials.
    assert_eq!(told(&mut anna, GET), user("anna"));
    let mut bert = logged_in(&gateway, "bert");
    for _ in 0..3 {
        assert_eq!(told(&mut anna, GET), user("anna"));
        assert_eq!(told(&mut bert, GET), user("bert"));
        assert_eq!(told(&mut stranger, GET), challenge());
    }
}

#[test]
fn the_connection_ends_with_that_of_its_client() {
    let origin = Intranet::start();
    let gateway = drip(&[origin.address]);
    let before = origin.open.load(Ordering::SeqCst);
    let anna = logged_in(&gateway, "anna");
    anna.close();
    eventually("the origin's connection has ended", || {
        origin.open.load(Ordering::SeqCst) == before
    });
    let mut stranger = Raw::connect(gateway.address());
    assert_eq!(told(&mut stranger, GET), challenge());
}

#[test]
fn one_message_logs_in_by_negotiate_and_belongs_to_its_client_as_well() {
    let origin = Intranet::start();
    let gateway = drip(&[origin.address]);
    for name in ["Authorization", "authorization"] {
        let mut client = Raw::connect(gateway.address());
        let request = get_with(&format!("{name}: Negotiate carla\r\n"));
        assert_eq!(told(&mut client, &request), user("carla"));
        assert_eq!(told(&mut client, GET), user("carla"));
        let mut stranger = Raw::connect(gateway.address());
        assert_eq!(told(&mut stranger, GET), challenge());
    }
}

#[test]
fn requests_without_a_login_share_connections_and_one_of_them_may_become_a_client_s_own() {
    let origin = Intranet::start();
    let gateway = drip(&[origin.address]);
    let public = "GET /public HTTP/1.1\r\nHost: test\r\n\r\n";
    let basic = "GET /public HTTP/1.1\r\nHost: test\r\nAuthorization: Basic bnRsbQ==\r\n\r\n";
    let before = origin.connections();
    for _ in 0..5 {
        for request in [public, basic] {
            let mut client = Raw::connect(gateway.address());
            assert_eq!(told(&mut client, request), (200, "nobody".to_owned()));
        }
    }
    assert_eq!(origin.connections(), before + 1);
    let mut anna = logged_in(&gateway, "anna");
    let mut other = Raw::connect(gateway.address());
    assert_eq!(told(&mut other, public), (200, "nobody".to_owned()));
    assert_eq!(told(&mut other, GET), challenge());
    assert_eq!(told(&mut anna, GET), user("anna"));
}

#[test]
fn a_login_holds_at_one_of_several_servers() {
    let origins = [Intranet::start(), Intranet::start(), Intranet::start()];
    let gateway = drip(&origins.each_ref().map(|it| it.address));
    let mut anna = logged_in(&gateway, "anna");
    let mut bert = logged_in(&gateway, "bert");
    for _ in 0..6 {
        assert_eq!(told(&mut anna, GET), user("anna"));
        assert_eq!(told(&mut bert, GET), user("bert"));
    }
}

#[test]
fn twenty_others_get_nothing_of_those_who_log_in_meanwhile() {
    let origin = Intranet::start();
    let gateway = Arc::new(drip(&[origin.address]));
    let is_over = Arc::<AtomicBool>::default();
    let foreign = Arc::<Mutex<Vec<String>>>::default();
    let crowd: Vec<_> = (0..20)
        .map(|_| {
            let (gateway, is_over) = (Arc::clone(&gateway), Arc::clone(&is_over));
            let foreign = Arc::clone(&foreign);
            thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let mut client = Raw::connect(gateway.address());
                    for _ in 0..2 {
                        let got = told(&mut client, GET);
                        if got != challenge() {
                            foreign.lock().expect("no panic").push(got.1);
                        }
                    }
                    thread::sleep(2 * MS);
                }
            })
        })
        .collect();
    for nth in 0..30 {
        let name = format!("user{nth}");
        let mut client = logged_in(&gateway, &name);
        assert_eq!(told(&mut client, GET), user(&name));
    }
    is_over.store(true, Ordering::SeqCst);
    for one in crowd {
        one.join().expect("no panic");
    }
    assert_eq!(*foreign.lock().expect("no panic"), [""; 0]);
}

#[test]
fn the_answers_to_a_client_that_is_logged_in_are_shared_with_nobody() {
    let origin = Intranet::start();
    let route = "[routes.collapse]\nkeep = \"1h\"\n";
    let file = one_origin(origin.address, "workers = 1", "");
    let gateway = Gateway::start(&format!("{file}{route}"));
    let mut anna = logged_in(&gateway, "anna");
    assert_eq!(told(&mut anna, GET), user("anna"));
    let mut stranger = Raw::connect(gateway.address());
    assert_eq!(told(&mut stranger, GET), challenge());
    let mut bert = logged_in(&gateway, "bert");
    assert_eq!(told(&mut bert, GET), user("bert"));
}

#[test]
fn over_http_2_a_login_has_a_connection_of_its_own_that_ends_with_it() {
    let origin = FrameOrigin::start();
    let gateway = Gateway::start(&one_h2c_origin(origin.address, "workers = 1", ""));
    let ok = (200, "ok".to_owned());
    let mut client = Raw::connect(gateway.address());
    assert_eq!(told(&mut client, GET), ok);
    for connections in [2, 3] {
        assert_eq!(told(&mut client, &ntlm("one")), ok);
        assert_eq!(origin.connections(), connections);
        eventually("it has ended", || origin.open() == 1);
        assert_eq!(told(&mut client, GET), ok);
        assert_eq!(origin.connections(), connections);
    }
}
