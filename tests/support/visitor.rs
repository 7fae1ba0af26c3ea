//! Visitors of a waiting room, and the file of a shop that has one.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::support::{Answer, Gateway, eventually, fetch_with, now};

/// Field of a room without a draw: a client may take any number of positions.
pub const NO_DRAW: &str = "draw = \"none\"\n";

pub const SECRET: &str = "secret = \"sixteen bytes and more\"\n";

/// Returns a file with the origin `shop`, these fields of its room, and a route `/` to it.
///
/// Fields of the route may follow. All visitors have one address, so `draw` is `"none"` unless
/// `room` sets it.
pub fn shop(origin: SocketAddr, room: &str) -> String {
    let draw = if room.contains("draw") { "" } else { NO_DRAW };
    let room = format!("{room}\n{draw}");
    format!(
        "[origins.shop]\nservers = [\"http://{origin}\"]\n[origins.shop.room]\n{room}\n\
         [[routes]]\npath = \"/\"\norigin = \"shop\"\n"
    )
}

/// Returns the same file with a secret and a single session, which lasts for the whole test.
pub fn full_shop(origin: SocketAddr, room: &str) -> String {
    shop(origin, &format!("{SECRET}sessions = 1\n{room}"))
}

/// A visitor that keeps its cookies.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    pub ticket: Option<String>,
    pub session: Option<String>,
}

impl Visitor {
    /// Sends a request with the visitor's cookies.
    pub fn ask(&mut self, to: SocketAddr, target: &str, more: &str) -> Answer {
        let fields = [
            ("Drip-Ticket", &self.ticket),
            ("Drip-Session", &self.session),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| {
            let value = value.as_ref()?;
            Some(format!("{name}: {value}\r\n"))
        });
        let fields: String = fields.collect();
        let answer = fetch_with(to, target, &format!("{fields}{more}"));
        self.keep(&answer);
        answer
    }

    pub fn keep(&mut self, answer: &Answer) {
        if let Some(session) = answer.field("drip-session") {
            (self.session, self.ticket) = (Some(session.to_owned()), None);
        }
        if let Some(ticket) = answer.field("drip-ticket") {
            (self.ticket, self.session) = (Some(ticket.to_owned()), None);
        }
    }

    /// Sends the first request of a new visitor.
    pub fn come(to: SocketAddr) -> (Self, Answer) {
        let mut visitor = Self::default();
        let answer = visitor.ask(to, "/", "");
        (visitor, answer)
    }

    /// Sends the first request of a visitor that must be admitted.
    pub fn walk_in(to: SocketAddr) -> Self {
        let (visitor, answer) = Self::come(to);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(visitor.session.is_some(), "{answer:?}");
        visitor
    }

    /// Sends the first request of a visitor that must wait.
    pub fn draw(to: SocketAddr) -> Self {
        let (visitor, answer) = Self::come(to);
        assert!(visitor.ticket.is_some(), "{answer:?}");
        visitor
    }

    /// Returns the visitor's number.
    pub fn number(&self) -> u64 {
        let text = self.ticket.as_ref().or(self.session.as_ref());
        number(text.expect("a ticket or a session"))
    }

    /// Polls as the room says, until the visitor is admitted.
    pub fn wait(&mut self, to: SocketAddr) -> Answer {
        let deadline = now() + Duration::from_secs(60);
        loop {
            let answer = self.ask(to, "/", "");
            if answer.status == 200 {
                return answer;
            }
            assert!(now() < deadline, "it still waits: {answer:?}");
            thread::sleep(Duration::from_secs(answer.number("retry-after")));
        }
    }

    /// Returns whether the visitor is inside: the origin answers, and no session begins.
    pub fn is_inside(&mut self, to: SocketAddr) -> bool {
        let had = self.session.clone();
        let answer = self.ask(to, "/", "");
        answer.status == 200 && self.session == had && had.is_some()
    }
}

/// Returns the number in a ticket or a session: its first eight bytes.
pub fn number(text: &str) -> u64 {
    let bytes = BASE64.decode(text).expect("base64url");
    u64::from_be_bytes(*bytes.first_chunk().expect("a number"))
}

/// Returns all cookies that a response sets.
pub fn cookies(answer: &Answer) -> Vec<&str> {
    let fields = answer.head.fields.iter();
    let cookies = fields.filter(|(name, _)| name == "set-cookie");
    cookies.map(|(_, value)| value.as_str()).collect()
}

/// Returns the position in line that a JSON response reports.
pub fn position(answer: &Answer) -> Option<u64> {
    let received: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert!(received.get("position").is_some(), "{received}");
    received["position"].as_u64()
}

pub const JSON: &str = "Accept: application/json\r\n";

/// Returns the number of requests of this kind, over all rooms.
pub fn counted(gateway: &Gateway, request: &str) -> i64 {
    let labels = [("request", request)];
    gateway.count("drip_room_requests_total", &labels)
}

/// Returns the number of visitors `waiting`, `called` or `inside`, over all rooms.
pub fn visitors(gateway: &Gateway, state: &str) -> i64 {
    let labels = [("where", state)];
    gateway.count("drip_room_visitors", &labels)
}

pub fn wait_until_called(gateway: &Gateway) {
    eventually("one is called", || visitors(gateway, "called") == 1);
}

/// Replaces the file and waits until it is in force.
pub fn reload(gateway: &Gateway, rest: &str) {
    let count = || {
        gateway
            .log()
            .matches("the changed file is in force")
            .count()
    };
    let before = count();
    gateway.site.write(rest);
    eventually("it is in force", || count() > before);
}
