//! A gateway with a limit, a client, and waits for a headline in incidents that have several steps.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::clients::Background;
use super::driver::{Rule, is_calm, lasts, pauses, text};
use crate::support::launch::launch;
use crate::support::operator::{json, parse};
use crate::support::{Client, Gateway, MS, Origin, Site, drip, now};

/// Within this time of its begin an incident is the headline, with the right remedy.
pub const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Within this time of its end no headline reports an incident.
pub const CALM_WITHIN: Duration = Duration::from_secs(5);

/// Waits for a headline that `is_it`, at most for `limit` and the [pauses] after `began`.
pub fn wait(
    began: Instant,
    limit: Duration,
    what: &str,
    mut headline: impl FnMut() -> Value,
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    loop {
        let last = headline();
        let took = began.elapsed();
        if is_it(&last) {
            println!("{what}: after {took:.1?}");
            return last;
        }
        let limit = limit + pauses(began);
        assert!(took < limit, "no {what} in {limit:.1?}: {last:#}");
        thread::sleep(200 * MS);
    }
}

pub fn headline(gateway: &Gateway) -> Value {
    json(gateway, "/api/headline")["headline"].clone()
}

/// Returns whether a headline is what a rule asks for.
pub fn follows(headline: &Value, rule: &Rule) -> bool {
    rule.lacks(headline, &[]).is_empty()
}

/// Waits for a headline that follows the rule, from the begin of an incident on.
pub fn reported(gateway: &Gateway, rule: &Rule) -> Value {
    let what = format!("{rule:?}");
    let ask = || headline(gateway);
    let reported = wait(now(), SEEN_WITHIN, &what, ask, |it| follows(it, rule));
    thread::sleep(lasts());
    reported
}

/// Waits until nothing is wrong, from the end of an incident on.
pub fn calm(gateway: &Gateway) {
    wait(now(), CALM_WITHIN, "calm", || headline(gateway), is_calm);
}

/// The same, and no headline meanwhile has this part.
pub fn calm_without(gateway: &Gateway, part: &str) {
    let ask = || {
        let headline = headline(gateway);
        assert!(!text(&headline).contains(part), "{part:?} in {headline:#}");
        headline
    };
    wait(now(), CALM_WITHIN, "calm", ask, is_calm);
}

/// Waits until the gateway has measured its first seconds.
pub fn begin(gateway: &Gateway) {
    let ask = || headline(gateway);
    wait(now(), SEEN_WITHIN, "first seconds", ask, is_calm);
}

/// A connection to the admin port that was there before the incident.
pub struct Admin(Client);

impl Admin {
    pub fn connect(gateway: &Gateway) -> Self {
        Self(Client::connect(gateway.site.admin))
    }

    pub fn headline(&mut self) -> Value {
        self.0.get("/api/headline");
        parse(&self.0.answer())["headline"].clone()
    }

    /// Lets the incident last. An idle connection would be closed.
    pub fn last(&mut self) {
        let began = now();
        while began.elapsed() < lasts() {
            self.headline();
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// A gateway that may open so many files.
pub fn with_descriptors(count: usize, rest: &str) -> Gateway {
    let site = Site::new();
    site.write(rest);
    let mut program = drip();
    program.arg("-c").arg(site.file());
    let command = launch(&program, &format!("nofile={count}"));
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    gateway
}

/// A route with a limit in the zone `per_key`.
pub fn file(origin: &Origin, zone: &str, limit: &str) -> String {
    super::servers::limited(origin.address, zone, "/", limit)
}

/// Sends a request with these fields, waits for its answer, and sends the next one a few milliseconds later.
pub fn sender(to: SocketAddr, fields: impl Fn(usize) -> String + Send + 'static) -> Background {
    Background::start(move |stop| {
        let mut answer = [0; 4096];
        for nth in 0.. {
            if stop.load(std::sync::atomic::Ordering::SeqCst) {
                return;
            }
            if let Ok(mut stream) = TcpStream::connect(to) {
                let fields = fields(nth);
                let head = format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
                let _timeout = stream.set_read_timeout(Some(Duration::from_secs(5)));
                let _sent = stream.write_all(head.as_bytes());
                let _read = stream.read(&mut answer);
            }
            thread::sleep(10 * MS);
        }
    })
}
