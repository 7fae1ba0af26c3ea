//! Tests of people who wait on the page of a waiting room in Chromium.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::chromium::page::webdriver::{Browser, DESKTOP, Look};
use crate::support::visitor::{SECRET, Visitor, number, shop};
use crate::support::{Exchange, Gateway, MS, Origin, assert_contains, eventually};

const PHONE: Look = Look {
    width: 320,
    height: 640,
    dark: true,
};

/// Targets and cookies of requests.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// Starts an origin whose page shows the requested target. Also returns its requests.
fn page_origin() -> (Origin, Requests) {
    let seen = Requests::default();
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        let cookies = exchange.field("cookie").unwrap_or_default().to_owned();
        let page = format!(
            "<!doctype html><title>shop</title><link rel=icon href=data:,><p id=wanted>{target}</p>"
        );
        to_see.lock().expect("no panic").push((target, cookies));
        let length = page.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: cart=7; Path=/";
        exchange.send(format!("{head}\r\nContent-Length: {length}\r\n\r\n{page}").as_bytes())
    });
    (origin, seen)
}

/// A visitor that occupies the only session until this is dropped.
struct OccupiedSession {
    leaves: Arc<AtomicBool>,
    asking: Option<thread::JoinHandle<()>>,
}

impl OccupiedSession {
    fn take(at: SocketAddr) -> Self {
        let mut visitor = Visitor::walk_in(at);
        let leaves = Arc::<AtomicBool>::default();
        let seen = Arc::clone(&leaves);
        let asking = thread::spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                assert!(visitor.is_inside(at));
                thread::sleep(300 * MS);
            }
        });
        Self {
            leaves,
            asking: Some(asking),
        }
    }
}

impl Drop for OccupiedSession {
    fn drop(&mut self) {
        self.leaves.store(true, Ordering::SeqCst);
        let ended = self.asking.take().map(thread::JoinHandle::join);
        let is_held = thread::panicking() || ended.is_some_and(|it| it.is_ok());
        assert!(is_held, "it lost its place");
    }
}

/// Starts a gateway with a room of one session.
fn room(origin: &Origin, idle: &str) -> Gateway {
    let room = format!("{SECRET}sessions = 1\nidle = \"{idle}\"\nclaim = \"60s\"");
    let aside = "[[routes]]\npath = \"/aside\"\norigin = \"shop\"\nroom = false\n";
    Gateway::start(&format!("{}{aside}", shop(origin.address, &room)))
}

#[test]
fn a_visitor_waits_on_the_page_and_reaches_the_requested_page() {
    let (origin, seen) = page_origin();
    let gateway = room(&origin, "8s");
    let at = gateway.address();
    let browser = Browser::start(&[]);
    browser.look(DESKTOP);
    // A page without the room fills the cart.
    browser.go(&format!("http://{at}/aside"));
    browser.holds("document.cookie === 'cart=7'");
    let occupied = OccupiedSession::take(at);
    let expected = "/tickets?seat=12&row=%C3%A4#map";
    browser.go(&format!("http://{at}{expected}"));
    browser.reads("#position", "1");
    browser.reads("#ahead", "0");
    browser.holds("document.title === 'Place 1 in line'");
    browser.holds("/^Next check in \\d+ s$/.test(says('#next'))");
    // The page polls by itself, and waits while another visitor is inside.
    browser.run("window.stays = true");
    let asked = || gateway.count("drip_room_requests_total", &[("request", "poll")]);
    let before = asked();
    eventually("it has polled twice", || asked() >= before + 2);
    let position = browser.run("return window.stays && says('#position')");
    assert_eq!(position, "1");
    drop(occupied);
    browser.holds("!!document.querySelector('#wanted')");
    assert_eq!(
        browser.run("return [says('#wanted'), location.pathname + location.search + location.hash, document.cookie]"),
        json!(["/tickets?seat=12&row=%C3%A4", expected, "cart=7"]),
        "the session is not for scripts"
    );
    let requests: Vec<_> = seen.lock().expect("no panic").clone();
    let expected: Vec<_> = requests
        .iter()
        .filter(|(target, _)| target.starts_with("/tickets"))
        .collect();
    let [(_, cookies)] = expected[..] else {
        panic!("the admission is one request to the origin: {requests:?}")
    };
    assert_contains!(cookies, "cart=7", "drip_room_shop=");
    assert!(!cookies.contains("drip_ticket_shop"), "{cookies}");
    let session = cookies.split("drip_room_shop=").nth(1).expect("a session");
    assert_eq!(number(session.split(';').next().expect("a session")), 2);
    let complaints = browser.complaints();
    let others = complaints
        .iter()
        .filter(|it| !it["message"].to_string().contains("status of 503"));
    assert_eq!(others.count(), 0, "{complaints:?}");
    for request in browser.requests() {
        assert!(
            request.starts_with(&format!("http://{at}/")) || request.starts_with("data:"),
            "{request}"
        );
    }
}

#[test]
fn a_person_without_script_on_a_phone_waits_as_well() {
    let (origin, seen) = page_origin();
    let gateway = room(&origin, "6s");
    let at = gateway.address();
    let occupied = OccupiedSession::take(at);
    let browser = Browser::start(&[]);
    browser.look(PHONE);
    browser.disable_scripts();
    browser.go(&format!("http://{at}/plain?a=1"));
    browser.reads("#position", "1");
    browser.has("body", "Check now");
    browser.holds("!!document.querySelector('meta[http-equiv=refresh]')");
    let sideways = "return document.documentElement.scrollWidth > innerWidth";
    assert_eq!(browser.run(sideways), json!(false));
    drop(occupied);
    browser.reads("#wanted", "/plain?a=1");
    let mut requests = seen.lock().expect("no panic").clone();
    // Other requests are of the visitor that was inside before.
    requests.retain(|(target, _)| target == "/plain?a=1");
    let [(_, cookies)] = &requests[..] else {
        panic!("one request reaches the origin: {requests:?}")
    };
    let has_session = cookies.contains("drip_room_shop");
    assert!(!has_session, "it entered with its ticket: {cookies}");
}

#[test]
fn on_a_phone_the_page_of_one_who_asks_often_scrolls_only_down() {
    let (origin, _) = page_origin();
    let gateway = room(&origin, "10m");
    let at = gateway.address();
    Visitor::walk_in(at);
    for _ in 0..3 {
        Visitor::draw(at);
    }
    let browser = Browser::start(&[]);
    for (nth, look) in [PHONE, PHONE, DESKTOP, PHONE, PHONE, PHONE, PHONE]
        .into_iter()
        .enumerate()
    {
        browser.look(look);
        // Reloading by hand changes no position, even if it is too often.
        browser.go(&format!("http://{at}/a?nth={nth}"));
        browser.reads("#position", "4");
        browser.reads("#ahead", "3");
        let sideways = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.run(sideways), json!(false), "{nth}");
    }
    assert_eq!(crate::support::visitor::counted(&gateway, "drew"), 4);
    assert!(crate::support::visitor::counted(&gateway, "too_often") > 0);
}
