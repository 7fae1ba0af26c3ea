//! A proxy under test with its own origin: drip, nginx or haproxy.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::thread;
use std::time::Duration;

use crate::peers::{self, Peer};
use crate::support::{Gateway, Message, Raw, RawOrigin};
pub use crate::support::{MS, noise};

pub const MB: usize = 1 << 20;

/// The shortest response that an origin can send.
pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The same response, after which the origin may close at any time.
pub const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// A proxy with its own origin behind it.
pub struct Testbed {
    pub who: &'static str,
    pub address: SocketAddr,
    pub origin: RawOrigin,
    gateway: Option<Box<Gateway>>,
    peer: Option<Peer>,
    asked: RefCell<Vec<u8>>,
}

/// Starts one proxy after the other, drip last. The others show that the test itself is correct.
pub fn each<const N: usize>(starters: [fn() -> Testbed; N]) -> impl Iterator<Item = Testbed> {
    let beds = starters.into_iter().map(|start| start());
    // A test binary without other programs has no other proxies.
    beds.filter(|bed| bed.gateway.is_some() || bed.peer.is_some())
}

/// Returns names and addresses of the available other proxies, and of drip.
pub fn with_drip<'a>(
    peers: impl IntoIterator<Item = &'a Option<Peer>>,
    drip: &Gateway,
) -> Vec<(&'static str, SocketAddr)> {
    let peers = peers.into_iter().flatten();
    let peers = peers.map(|peer| (peer.who, peer.address));
    peers.chain([("drip", drip.address())]).collect()
}

/// Starts all three proxies with default settings.
pub fn everybody() -> impl Iterator<Item = Testbed> {
    each([
        || Testbed::nginx(""),
        || Testbed::haproxy(""),
        || Testbed::drip("", ""),
    ])
}

pub fn nginx_and_drip() -> impl Iterator<Item = Testbed> {
    each([|| Testbed::nginx(""), || Testbed::drip("", "")])
}

pub fn haproxy_and_drip() -> impl Iterator<Item = Testbed> {
    each([|| Testbed::haproxy(""), || Testbed::drip("", "")])
}

impl Testbed {
    /// Starts drip with one worker, further fields of `[server]`, and of its origin.
    pub fn drip(server: &str, origin: &str) -> Self {
        Self::limited_drip(server, origin, "", "")
    }

    /// Starts drip with zones, and further fields of the route.
    pub fn limited_drip(server: &str, origin_fields: &str, zones: &str, route: &str) -> Self {
        let origin = RawOrigin::start();
        let text = format!(
            "workers = 1\n{server}\n[origins.app]\nservers = [\"http://{}\"]\n{origin_fields}\n{zones}\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\n{route}\n",
            origin.address
        );
        let gateway = Gateway::start(&text);
        Self {
            who: "drip",
            address: gateway.address(),
            origin,
            gateway: Some(Box::new(gateway)),
            peer: None,
            asked: RefCell::default(),
        }
    }

    /// Starts nginx, forwarding what drip forwards, with further directives of `http`.
    pub fn nginx(http: &str) -> Self {
        const AS_DRIP: &str = "proxy_set_header Host $http_host; proxy_request_buffering off; proxy_buffering off; \
             underscores_in_headers on;";
        let bodies = if http.contains("client_max_body_size") {
            ""
        } else {
            "client_max_body_size 0;"
        };
        let origin = RawOrigin::start();
        let peer = peers::nginx(origin.address, &format!("{AS_DRIP} {bodies} {http}"));
        Self::of("nginx", peer, origin)
    }

    /// Starts haproxy with further lines of its only section.
    pub fn haproxy(more: &str) -> Self {
        let origin = RawOrigin::start();
        Self::of("haproxy", peers::haproxy(origin.address, more), origin)
    }

    fn of(who: &'static str, peer: Option<Peer>, origin: RawOrigin) -> Self {
        let address = peer.as_ref().map_or(origin.address, |peer| peer.address);
        Self {
            who,
            address,
            origin,
            gateway: None,
            peer,
            asked: RefCell::default(),
        }
    }

    pub fn gateway(&mut self) -> &mut Gateway {
        self.gateway.as_mut().expect("it is drip")
    }

    pub fn is_drip(&self) -> bool {
        self.gateway.is_some()
    }

    pub fn client(&self) -> Raw {
        Raw::connect(self.address)
    }

    /// Sends `bytes` on a new connection.
    pub fn ask(&self, bytes: impl AsRef<[u8]>) -> Raw {
        self.asked.replace(bytes.as_ref().to_vec());
        let mut client = self.client();
        client.send(bytes);
        client
    }

    /// Sends `bytes` on a new connection, each byte in its own segment.
    pub fn ask_byte_by_byte(&self, bytes: impl AsRef<[u8]>) -> Raw {
        self.asked.replace(bytes.as_ref().to_vec());
        let mut client = self.client();
        client.send_byte_by_byte(bytes);
        client
    }

    /// Sends a request on a new connection, and answers it at the origin.
    ///
    /// Returns both ends, and the request as the origin received it.
    pub fn pass(&self, request: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) -> Passed {
        let client = self.ask(request);
        let mut origin = self.origin.accept();
        let seen = origin.request();
        origin.send(answer);
        Passed {
            client,
            origin: OriginSide(origin),
            seen,
        }
    }

    /// Returns the request as the origin receives it. The response does not matter.
    pub fn seen(&self, request: impl AsRef<[u8]>) -> Message {
        let mut passed = self.pass(request, LAST);
        assert_eq!(passed.client.answer().body, b"ok");
        passed.seen
    }

    /// Returns the origin's response to a GET as the client receives it.
    pub fn received(&self, answer: impl AsRef<[u8]>) -> Message {
        self.pass(GET, answer).client.answer()
    }

    /// Returns the status of the proxy's own response, with which the connection must end.
    ///
    /// The origin must receive nothing of the request.
    pub fn refusal(&self, request: impl AsRef<[u8]>) -> u16 {
        self.refusal_to(self.ask(request))
    }

    /// Returns the status of the proxy's own response to a request that was sent already.
    pub fn refusal_to(&self, mut client: Raw) -> u16 {
        let answer = client.answer();
        let (rest, _) = client.end();
        assert_eq!(rest, b"", "one answer, then the end");
        self.check_unseen();
        answer.status()
    }

    /// Returns the status of the proxy's own response. The connection may stay open.
    ///
    /// The origin must receive nothing of the request.
    pub fn own_status(&self, request: impl AsRef<[u8]>) -> u16 {
        let answer = self.ask(request).answer();
        self.check_unseen();
        answer.status()
    }

    /// Fails unless the next request that the origin receives is one sent now.
    pub fn check_unseen(&self) {
        let mut client = self.client();
        client.send("GET /next HTTP/1.1\r\nHost: next\r\n\r\n");
        let mut origin = self.origin.accept();
        // A refused request may have opened a connection to the origin without sending anything.
        while origin.is_empty() {
            origin = self.origin.accept();
        }
        assert_eq!(origin.head().target(), "/next");
        origin.send(LAST);
        assert_eq!(client.answer().status(), 200);
        let (more, _) = origin.end();
        assert_eq!(more, b"", "nothing else came");
        let other = self.origin.accept_within(Duration::ZERO);
        assert!(other.is_none(), "no other connection came");
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        thread_local!(static NAMED: Cell<bool> = const { Cell::new(false) });
        // A failing test also drops the proxies that it has not tested yet.
        if thread::panicking() && !NAMED.replace(true) {
            let asked = self.asked.borrow();
            let shown = String::from_utf8_lossy(&asked[..asked.len().min(500)]);
            eprintln!("it was {}, last asked {shown:?}", self.who);
        }
    }
}

/// A request that the origin has answered.
pub struct Passed {
    pub client: Raw,
    pub origin: OriginSide,
    pub seen: Message,
}

/// The origin's side of a connection, which ends when it is dropped.
///
/// A process that another thread starts may keep a dropped socket open. The proxy would send the
/// next request on it.
pub struct OriginSide(Raw);

impl Deref for OriginSide {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.0
    }
}

impl DerefMut for OriginSide {
    fn deref_mut(&mut self) -> &mut Raw {
        &mut self.0
    }
}

impl Drop for OriginSide {
    fn drop(&mut self) {
        self.shut();
    }
}

pub const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// Returns a GET with these field lines, each with its CRLF.
pub fn get_with(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: test\r\n{lines}\r\n")
}

/// Returns a POST with these field lines and this body.
pub fn post_with(lines: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: test\r\n{lines}\r\n{body}")
}

/// Converts fields or trailers to the form in a [`Message`].
pub fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    of.iter().map(own).collect()
}

/// Returns a response with these field lines and a body of two bytes.
pub fn ok_with(lines: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok")
}

/// Returns a file for drip in front of these servers, with further fields of the origin.
pub fn forwarding(servers: &[SocketAddr], more: &str) -> String {
    let servers: Vec<_> = servers
        .iter()
        .map(|at| format!("\"http://{at}\""))
        .collect();
    let servers = servers.join(", ");
    format!(
        "workers = 1\n[origins.app]\nservers = [{servers}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

/// Sends one request on a new connection and returns the response.
pub fn ask(to: SocketAddr, request: &str) -> Message {
    let mut client = Raw::connect(to);
    client.send(request);
    client.answer()
}
