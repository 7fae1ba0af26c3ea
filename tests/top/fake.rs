//! A fake admin port, controlled by a test.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Debug, Default)]
struct Said {
    /// What is wrong with the file.
    error: Option<Value>,
    over: bool,
}

pub struct Fake {
    pub address: SocketAddr,
    said: Arc<Mutex<Said>>,
    accepting: Option<JoinHandle<()>>,
}

impl Fake {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let said = Arc::<Mutex<Said>>::default();
        let shared = Arc::clone(&said);
        let accepting = thread::spawn(move || {
            while !shared.lock().unwrap().over {
                if let Ok((stream, _)) = listener.accept() {
                    let said = Arc::clone(&shared);
                    // The thread ends when the client disconnects.
                    thread::spawn(move || drop(serve(stream, &said)));
                } else {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self {
            address,
            said,
            accepting: Some(accepting),
        }
    }

    pub fn break_file(&self, message: &str) {
        let problems = [json!({"line": 3, "column": 8, "message": message})];
        let error = json!({"since": "2026-11-21T06:01:00.5Z", "problems": problems});
        self.said.lock().unwrap().error = Some(error);
    }

    /// Ends all connections, and accepts no more.
    pub fn stop(&mut self) {
        self.said.lock().unwrap().over = true;
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(mut stream: TcpStream, said: &Mutex<Said>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut request = String::new();
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        request += &line.to_ascii_lowercase();
        request.push('\n');
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match answer(path, &said.lock().unwrap()) {
        Some(body) => ("200 OK", body.to_string()),
        None => ("404 Not Found", "{}".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn answer(path: &str, said: &Said) -> Option<Value> {
    Some(match path {
        "/api/now" => sample(said),
        "/api/zones" => json!({"zones": [zone("per_client", "10r/s"), zone("all", "500r/s")]}),
        "/api/origins" => json!({"origins": [{
            "name": "app", "in_flight": 1, "max_in_flight": 8, "gate": gate(),
            "servers": [
                {"url": "http://127.0.0.1:9000", "healthy": true, "in_flight": 1, "answered": 80, "failed": 0,
                 "state": "asked", "codes": {"2xx": 76, "5xx": 4}, "latency": {"p50": 0.1, "p95": 0.2, "p99": 0.25}},
                {"url": "unix:app.sock", "healthy": false, "in_flight": 0, "answered": 7, "failed": 2,
                 "state": "out",
                 "out": {"since": "2026-11-21T06:00:01Z", "until": "2026-11-21T06:00:11Z", "by": "failures"},
                 "last_failure": {"at": "2026-11-21T06:00:01Z", "text": "connection refused"}},
            ],
        }]}),
        "/api/config" => json!({
            "file": "gateway.toml", "settings": "[server]\n", "loaded_at": "2026-11-21T06:00:00.123Z",
            "version": "0.1.0", "error": said.error,
        }),
        _ => return None,
    })
}

fn gate() -> Value {
    let keys = [
        json!({"key": "192.0.2.1", "queue_depth": 22, "share": 0.733}),
        json!({"key": "\u{1b}[2J", "queue_depth": 8, "share": 0.267}),
    ];
    json!({
        "queue_depth": 30, "rate": {"file": "200r/s", "now": "173.245128r/s"},
        "max_in_flight": {"file": 8, "now": 8}, "share": "per_client", "queue": 100, "max_queue": 10_000,
        "rejections": {"queue": 9, "max_queue": 0, "timeout": 0, "max_wait": 0, "stopping": 0},
        "blocked_seconds": {"pace": 9.5, "in_flight": 0.0, "pause": 0.0, "outage": 0.0},
        "backing_off": {"reason": "trouble", "text": "14 of 120 answers"}, "deepest": keys,
    })
}

fn zone(name: &str, rate: &str) -> Value {
    json!({
        "name": name, "key": "$remote_addr", "algorithm": "leaky_bucket", "rate": rate,
        "max_keys": 100_000,
        "limits": [{"route": "/", "burst": 20, "delay": 0, "nodelay": false, "max_wait_seconds": null, "dry_run": false}],
        "totals": {"passed": 10, "delayed": 70, "rejected": 20, "cancelled": 0, "delayed_dry_run": 0, "rejected_dry_run": 0},
        "rejections": {"burst": 20, "max_wait": 0, "keys": 0, "store": 0, "restart": 0, "stopping": 0},
        "depth": 11, "depth_max": 9, "oldest_wait_seconds": 0.9, "keys": {"active": 12, "parked": 0},
    })
}

fn sample(said: &Said) -> Value {
    json!({
        "seq": 60, "time": 1_795_232_087.5,
        "zones": [
            {"name": "per_client", "rate": 10.0, "passed": 3, "delayed": 7, "rejected": 2, "cancelled": 0, "dry_run": 0,
             "depth": 11, "depth_max": 9, "oldest_wait": 0.9, "wait_p50": 0.4, "wait_p95": 0.8, "keys": 12},
            {"name": "all", "rate": 500.0, "passed": 0, "delayed": 0, "rejected": 0, "cancelled": 0, "dry_run": 0,
             "depth": 0, "depth_max": 0, "oldest_wait": 0.0, "wait_p50": null, "wait_p95": null, "keys": 0},
        ],
        "origins": [{"name": "app", "in_flight": 1, "healthy": 1, "servers": 2, "gate": {
            "depth": 30, "rate": {"file": 200.0, "now": 173.245_128}, "max_in_flight": {"file": 8, "now": 8},
            "rejected": {"queue": 3}, "blocked": {"pace": 1.0}, "wait_p50": 0.1, "wait_p99": 0.21,
            "backing_off": {"reason": "trouble", "text": "14 of 120 answers"}, "deepest": [],
        }}],
        "deepest": [
            {"zone": "per_client", "key": "192.0.2.1", "depth": 9, "oldest_wait": 0.9},
            {"zone": "per_client", "key": "\u{1b}]0;owned\u{7}\u{9b}2J\r\n\\x1B", "depth": 2, "oldest_wait": 1.5},
        ],
        "reload": 4,
        "headline": {
            "cause": "store_out", "severity": "bad", "title": "The store is out",
            "evidence": "no answer for 5 s", "remedy": "Start Redis",
        },
        "store": {"up": false, "out_for": 5.0, "reason": "connection refused", "operations": {"skipped": 12}},
        "error": said.error.as_ref().map(|_| json!({"line": 3, "message": "broken"})),
        "stopping": false,
    })
}
