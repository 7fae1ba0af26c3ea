//! A login by NTLM or Negotiate belongs to the connection to the origin.
//!
//! Such a connection serves only the client that logged in (RFC 4559, section 6).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::bed::{GET, MS, OK, Testbed, forwarding, get_with};
use crate::support::{
    Done, FrameOrigin, Gateway, Origin, Raw, eventually, one_h2c_origin, one_origin,
};

/// Starts an origin with logins per connection. Each response names the user.
fn intranet() -> Origin {
    // User by connection. The empty name means that a login has begun.
    let users = Mutex::new(HashMap::<usize, String>::new());
    Origin::answering(move |exchange| {
        let mut users = users.lock().expect("no panic");
        let before = users.get(&exchange.connection).map(String::as_str);
        let credentials = exchange.field("authorization").unwrap_or_default();
        let logged_in = |name: &str| ("200 OK", "", format!("user={name}"));
        let (status, more, body) = match (credentials.split_once(' '), before) {
            (Some(("NTLM", "one")), _) => {
                let more = "WWW-Authenticate: NTLM two\r\n";
                ("401 Unauthorized", more, "go on".to_owned())
            }
            (Some(("NTLM", name)), Some(_)) | (Some(("Negotiate", name)), _) => logged_in(name),
            _ if exchange.target() == "/public" => ("200 OK", "", "nobody".to_owned()),
            (_, Some(name)) if !name.is_empty() => logged_in(name),
            _ => {
                let both = "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n";
                ("401 Unauthorized", both, "who?".to_owned())
            }
        };
        let user = body
            .strip_prefix("user=")
            .or((body == "go on").then_some(""));
        if let Some(user) = user {
            users.insert(exchange.connection, user.to_owned());
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{more}Cache-Control: max-age=60\r\nContent-Length: {length}"
        );
        exchange.send(format!("{head}\r\n\r\n{body}").as_bytes())
    })
}

fn drip(servers: &[SocketAddr]) -> Gateway {
    Gateway::start(&forwarding(servers, ""))
}

/// Returns the status and the body of the response to one more request of a client.
fn received(client: &mut Raw, request: &str) -> (u16, String) {
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

/// Returns a client that is logged in.
fn logged_in(gateway: &Gateway, name: &str) -> Raw {
    let mut client = Raw::connect(gateway.address());
    assert_eq!(received(&mut client, GET), challenge());
    assert_eq!(received(&mut client, &ntlm("one")).0, 401);
    assert_eq!(received(&mut client, &ntlm(name)), user(name));
    client
}

#[test]
fn a_stranger_gets_a_connection_of_its_own_beside_a_client_that_is_logged_in() {
    let origin = intranet();
    let gateway = drip(&[origin.address]);
    let mut anna = logged_in(&gateway, "anna");
    let mut stranger = Raw::connect(gateway.address());
    assert_eq!(received(&mut stranger, GET), challenge());
    // The login also applies to requests without credentials.
    assert_eq!(received(&mut anna, GET), user("anna"));
    let mut bert = logged_in(&gateway, "bert");
    for _ in 0..3 {
        assert_eq!(received(&mut anna, GET), user("anna"));
        assert_eq!(received(&mut bert, GET), user("bert"));
        assert_eq!(received(&mut stranger, GET), challenge());
    }
}

#[test]
fn the_connection_ends_with_that_of_its_client() {
    let bed = Testbed::drip("", "");
    let mut passed = bed.pass(ntlm("one"), OK);
    assert_eq!(passed.client.answer().body, b"ok");
    passed.client.close();
    assert_eq!(passed.origin.end().0, b"");
}

#[test]
fn one_message_logs_in_by_negotiate_and_belongs_to_its_client_as_well() {
    let origin = intranet();
    let gateway = drip(&[origin.address]);
    for name in ["Authorization", "authorization"] {
        let mut client = Raw::connect(gateway.address());
        let request = get_with(&format!("{name}: Negotiate carla\r\n"));
        assert_eq!(received(&mut client, &request), user("carla"));
        assert_eq!(received(&mut client, GET), user("carla"));
        let mut stranger = Raw::connect(gateway.address());
        assert_eq!(received(&mut stranger, GET), challenge());
    }
}

#[test]
fn requests_without_a_login_share_connections_and_one_of_them_may_become_a_client_s_own() {
    let origin = intranet();
    let gateway = drip(&[origin.address]);
    let public = "GET /public HTTP/1.1\r\nHost: test\r\n\r\n";
    let basic = "GET /public HTTP/1.1\r\nHost: test\r\nAuthorization: Basic bnRsbQ==\r\n\r\n";
    for _ in 0..5 {
        for request in [public, basic] {
            let mut client = Raw::connect(gateway.address());
            assert_eq!(received(&mut client, request), (200, "nobody".to_owned()));
        }
    }
    let arrivals = origin.arrivals();
    assert!(arrivals.iter().all(|it| it.connection == 0), "{arrivals:?}");
    let mut anna = logged_in(&gateway, "anna");
    let mut other = Raw::connect(gateway.address());
    assert_eq!(received(&mut other, public), (200, "nobody".to_owned()));
    assert_eq!(received(&mut other, GET), challenge());
    assert_eq!(received(&mut anna, GET), user("anna"));
}

#[test]
fn a_login_holds_at_one_of_several_servers() {
    let origins = [intranet(), intranet(), intranet()];
    let gateway = drip(&origins.each_ref().map(|it| it.address));
    let mut anna = logged_in(&gateway, "anna");
    let mut bert = logged_in(&gateway, "bert");
    for _ in 0..6 {
        assert_eq!(received(&mut anna, GET), user("anna"));
        assert_eq!(received(&mut bert, GET), user("bert"));
    }
}

#[test]
fn twenty_others_get_nothing_of_those_who_log_in_meanwhile() {
    let origin = intranet();
    let gateway = drip(&[origin.address]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let mut client = Raw::connect(gateway.address());
                    for _ in 0..2 {
                        assert_eq!(received(&mut client, GET), challenge());
                    }
                    thread::sleep(2 * MS);
                }
            });
        }
        let _over = Done(&is_over);
        for nth in 0..30 {
            let name = format!("user{nth}");
            let mut client = logged_in(&gateway, &name);
            assert_eq!(received(&mut client, GET), user(&name));
        }
    });
}

#[test]
fn the_answers_to_a_client_that_is_logged_in_are_shared_with_nobody() {
    let origin = intranet();
    let route = "[routes.collapse]\nkeep = \"1h\"\n";
    let file = one_origin(origin.address, "workers = 1", "");
    let gateway = Gateway::start(&format!("{file}{route}"));
    let mut anna = logged_in(&gateway, "anna");
    assert_eq!(received(&mut anna, GET), user("anna"));
    let mut stranger = Raw::connect(gateway.address());
    assert_eq!(received(&mut stranger, GET), challenge());
    let mut bert = logged_in(&gateway, "bert");
    assert_eq!(received(&mut bert, GET), user("bert"));
}

#[test]
fn over_http_2_a_login_has_a_connection_of_its_own_that_ends_with_it() {
    let origin = FrameOrigin::start();
    let gateway = Gateway::start(&one_h2c_origin(origin.address, "workers = 1", ""));
    let ok = (200, "ok".to_owned());
    let mut client = Raw::connect(gateway.address());
    assert_eq!(received(&mut client, GET), ok);
    for connections in [2, 3] {
        assert_eq!(received(&mut client, &ntlm("one")), ok);
        assert_eq!(origin.connections(), connections);
        eventually("it has ended", || origin.open() == 1);
        assert_eq!(received(&mut client, GET), ok);
        assert_eq!(origin.connections(), connections);
    }
}
