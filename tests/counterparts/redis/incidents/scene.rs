//! What the scenes share: the bounds within which a headline comes and goes, and a simple gateway with a client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, path::PathBuf};

use serde_json::Value;

use crate::support::operator::{json, parse};
use crate::support::{Client, Gateway, Origin, Site, all_pauses, now};

/// Within this time of its begin an incident is the headline, with the right remedy.
pub const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Within this time of its end nothing is said of an incident in the present tense.
pub const CALM_WITHIN: Duration = Duration::from_secs(5);

/// How long each incident lasts after it was seen.
pub fn lasts() -> Duration {
    let seconds = env::var("DRIP_INCIDENT_SECONDS").ok();
    let seconds = seconds.map(|it| it.parse().expect("a whole number"));
    Duration::from_secs(seconds.unwrap_or(0))
}

/// Title, evidence and remedy.
pub fn text(headline: &Value) -> String {
    let part = |name: &str| headline[name].as_str().expect("a text").to_owned();
    [part("title"), part("evidence"), part("remedy")].join(" ")
}

/// What must be told of an incident.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub cause: &'a str,
    /// Whether it must be bad, and not only worth a warning.
    pub is_bad: bool,
    /// Parts of title, evidence and remedy.
    pub says: &'a [&'a str],
    /// A part of the remedy: the right action.
    pub remedy: &'a str,
}

impl Wanted<'_> {
    pub fn is_told(&self, headline: &Value) -> bool {
        let text = text(headline);
        let is_bad = headline["severity"] == "bad";
        let is_severe = is_bad || (!self.is_bad && headline["severity"] == "warn");
        let helps = headline["remedy"].as_str().expect("a text");
        headline["cause"] == self.cause
            && is_severe
            && helps.contains(self.remedy)
            && self.says.iter().all(|part| text.contains(part))
    }
}

/// Waits for a headline that `is_it`, at most for `limit` after `began`.
///
/// What the machine has not given to this process in this time does not count; the gateway misses as much again.
pub fn wait(
    began: Instant,
    limit: Duration,
    what: &str,
    mut headline: impl FnMut() -> Value,
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    loop {
        let told = headline();
        let took = began.elapsed();
        if is_it(&told) {
            println!("{what}: after {took:.1?}");
            return told;
        }
        let limit = limit + 2 * all_pauses(began, now());
        assert!(took < limit, "no {what} in {limit:.1?}: {told:#}");
        thread::sleep(Duration::from_millis(200));
    }
}

pub fn headline(gateway: &Gateway) -> Value {
    json(gateway, "/api/headline")["headline"].clone()
}

/// Waits for a headline that says what is wanted, from the begin of an incident on.
pub fn told(gateway: &Gateway, wanted: &Wanted<'_>) -> Value {
    let what = format!("{wanted:?}");
    let ask = || headline(gateway);
    let told = wait(now(), SEEN_WITHIN, &what, ask, |it| wanted.is_told(it));
    thread::sleep(lasts());
    told
}

/// Waits until nothing is wrong, from the end of an incident on.
pub fn calm(gateway: &Gateway) {
    wait(now(), CALM_WITHIN, "calm", || headline(gateway), is_calm);
}

/// The same, and nothing that is told meanwhile has this part.
pub fn calm_without(gateway: &Gateway, part: &str) {
    let ask = || {
        let told = headline(gateway);
        assert!(!text(&told).contains(part), "{part:?} in {told:#}");
        told
    };
    wait(now(), CALM_WITHIN, "calm", ask, is_calm);
}

pub fn is_calm(headline: &Value) -> bool {
    headline["cause"] == "fine" || headline["cause"] == "idle"
}

/// Waits until the gateway has measured its first seconds.
pub fn begin(gateway: &Gateway) {
    wait(
        now(),
        SEEN_WITHIN,
        "first seconds",
        || headline(gateway),
        is_calm,
    );
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

/// A gateway that is started under these limits of the shell.
pub fn started_under(limits: &str, rest: &str) -> Gateway {
    let site = Site::new();
    site.write(rest);
    let mut command = std::process::Command::new("sh");
    let script = format!("{limits}; exec \"$0\" -c \"$1\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_drip")]);
    let file: PathBuf = site.file();
    command.arg(file);
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    gateway
}

/// A route with a limit in the zone `per_key`.
pub fn file(origin: &Origin, zone: &str, limit: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n[zones.per_key]\n{zone}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"per_key\", {limit} }}]\n",
        origin.address
    )
}

/// Sends a request with these fields each few milliseconds until it is dropped.
pub struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    pub fn start(to: SocketAddr, fields: impl Fn(usize) -> String + Send + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut answer = [0; 4096];
            for nth in 0.. {
                if to_stop.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(mut stream) = TcpStream::connect(to) {
                    let fields = fields(nth);
                    let head = format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
                    let _timeout = stream.set_read_timeout(Some(Duration::from_secs(5)));
                    let _sent = stream.write_all(head.as_bytes());
                    let _read = stream.read(&mut answer);
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
