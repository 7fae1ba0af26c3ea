//! An origin of four workers behind a gate that learns costs from the time at the origin.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::{Client, Exchange, Gateway, Origin, now};

/// Duration of the work of a light and of a heavy request.
const LIGHT: Duration = Duration::from_millis(20);
const HEAVY: Duration = Duration::from_secs(2);

/// Busy periods of the workers: key, begin and end.
type Busy = Mutex<Vec<(String, Instant, Instant)>>;

/// Four workers that each process one request at a time.
pub struct Workers {
    idle: Mutex<u32>,
    free: Condvar,
    busy: Busy,
}

impl Workers {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            idle: Mutex::new(4),
            free: Condvar::new(),
            busy: Mutex::default(),
        })
    }

    fn work(&self, target: &str, span: Duration) {
        let idle = self.idle.lock().expect("no panic");
        let mut idle = self
            .free
            .wait_while(idle, |idle| *idle == 0)
            .expect("no panic");
        *idle -= 1;
        drop(idle);
        let from = now();
        thread::sleep(span);
        let entry = (target.to_owned(), from, now());
        self.busy.lock().expect("no panic").push(entry);
        *self.idle.lock().expect("no panic") += 1;
        self.free.notify_one();
    }

    pub fn origin(self: &Arc<Self>) -> Origin {
        let workers = Arc::clone(self);
        Origin::answering(move |exchange: &mut Exchange| {
            let target = exchange.target().to_owned();
            if exchange.field("x-read").is_some() {
                exchange.body()?;
            }
            let span = match exchange.field("x-work") {
                Some(millis) => Duration::from_millis(millis.parse().expect("a number")),
                None if target.starts_with("/report/short") => HEAVY / 2,
                None if target.starts_with("/report") => HEAVY,
                None => LIGHT,
            };
            workers.work(&target, span);
            let kind = exchange.field("x-type").unwrap_or("text/plain").to_owned();
            let status = exchange.field("x-status").unwrap_or("200 OK").to_owned();
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: 2\r\n\r\nok");
            let (head, body) = head.split_at(head.len() - 2);
            exchange.send(head.as_bytes())?;
            if let Some(millis) = exchange.field("x-then") {
                thread::sleep(Duration::from_millis(millis.parse().expect("a number")));
            }
            exchange.send(body.as_bytes())
        })
    }

    /// Returns the seconds that the workers were busy in each second of a span.
    pub fn by_second(&self, from: Instant, seconds: u64) -> Vec<f64> {
        let busy = self.busy.lock().expect("no panic");
        let of = |nth| {
            let begin = from + Duration::from_secs(nth);
            let end = begin + Duration::from_secs(1);
            let overlap = |(_, a, b): &(String, Instant, Instant)| {
                (*b).min(end)
                    .saturating_duration_since((*a).max(begin))
                    .as_secs_f64()
            };
            busy.iter().map(overlap).sum()
        };
        (0..seconds).map(of).collect()
    }

    /// Returns the workers' seconds for each of these keys in a span.
    ///
    /// Work that runs at the end of the span counts in part.
    pub fn by_key(&self, keys: &[String], from: Instant, to: Instant) -> Vec<f64> {
        let busy = self.busy.lock().expect("no panic");
        let of = |key: &String| {
            let end = format!("key={key}");
            let own = busy.iter().filter(|(target, ..)| target.ends_with(&end));
            let own = own.map(|(_, a, b)| (*b).min(to).saturating_duration_since((*a).max(from)));
            own.map(|it| it.as_secs_f64()).sum()
        };
        keys.iter().map(of).collect()
    }
}

/// Returns a file whose origin has a gate of this rate, shared by key, and these routes.
pub fn file(origin: &Origin, rate: &str, routes: &str) -> String {
    format!(
        r#"workers = 2

[origins.app]
servers = ["http://{}"]
rate = "{rate}"
max_in_flight = 4
share = "key"
queue_timeout = "1m"

[zones.key]
key = "$arg_key"
rate = "none"

[log]
format = "json"
access = "access.log"
{routes}"#,
        origin.address
    )
}

/// Returns a route of this path with a line for its cost.
pub fn route(path: &str, cost: &str) -> String {
    format!(
        "\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\nmethods = [\"GET\", \"POST\"]\n{cost}\n"
    )
}

/// Setting that learns costs, in units of 10 ms.
pub const LEARNED: &str = "cost = { learn = \"time\", unit = \"10ms\", max = 200 }";

/// Returns the status of the response to a request with these fields.
pub fn ask(gateway: &Gateway, target: &str, fields: &str) -> u16 {
    let mut client = gateway.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes());
    client.answer().status
}
