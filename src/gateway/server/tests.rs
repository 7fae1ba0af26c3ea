//! Tests of a whole gateway on real sockets, whose actors panic under load.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use config::AdminTokens;
use tokio::sync::watch;

use super::{load, serve};
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::{Crash, Key};

const KEYS: [&str; 3] = ["a", "b", "c"];
/// Number of clients of each key. More requests than pass at once, so that some always wait.
const CLIENTS: usize = 8;
/// Number of times that the actor of a key, which holds its queue, is made to panic.
const CRASHES: usize = 150;

/// Starts an origin that answers each request at once. Returns its address and its count of
/// requests.
fn start_origin() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&served);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                while read_head(&mut reader).is_some() {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                    if (&stream).write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, served)
}

/// Reads the lines of a message's head; `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(lines),
            text => lines.push(text.to_owned()),
        }
    }
}

/// Finds an address with a port that is free now.
fn find_free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Requests of a client and their responses.
#[derive(Debug, Default)]
struct Answers {
    sent: usize,
    passed: usize,
    /// 503 with Retry-After: an actor panicked.
    unavailable: usize,
}

/// Sends requests over one connection until `stop`. Each must get a response.
fn send_requests(gateway: SocketAddr, key: &str, stop: &AtomicBool) -> Answers {
    let stream = TcpStream::connect(gateway).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut reader = BufReader::new(&stream);
    let mut answers = Answers::default();
    while !stop.load(Ordering::SeqCst) {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Key: {key}\r\n\r\n");
        (&stream).write_all(request.as_bytes()).unwrap();
        answers.sent += 1;
        let lines = read_head(&mut reader).expect("every request is answered");
        let lines: Vec<String> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        if lines[0].starts_with("http/1.1 200") {
            answers.passed += 1;
        } else {
            assert!(lines[0].starts_with("http/1.1 503"), "{lines:?}");
            let says_when = lines.iter().any(|line| line.starts_with("retry-after: "));
            assert!(says_when, "{lines:?}");
            answers.unavailable += 1;
        }
    }
    answers
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits at most 30 seconds until `look` returns a value. `what`: the expected event.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = clock::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        let is_in_time = clock::now().since(began) < Duration::from_secs(30);
        assert!(is_in_time, "{what}: waited in vain");
        sleep(Duration::from_millis(5));
    }
}

/// Runs a gateway on a thread that ends with the process.
fn start(text: String) -> watch::Receiver<Option<Arc<Gateway>>> {
    let (gateway_sender, gateway_receiver) = watch::channel(None);
    thread::spawn(move || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        std::fs::write(&file, text).unwrap();
        let loaded = load(&file, false).unwrap();
        let served =
            actix_rt::System::new().block_on(serve(loaded, AdminTokens::default(), gateway_sender));
        served.expect("the gateway runs");
    });
    gateway_receiver
}

/// Reads the value of a metric's series.
fn read_counter(admin: SocketAddr, series: &str) -> usize {
    let metrics = get(admin, "/metrics");
    let mut lines = metrics.lines().filter_map(|line| line.strip_prefix(series));
    let value = lines.next().unwrap_or_else(|| panic!("no {series}"));
    value.trim().parse().unwrap()
}

#[test]
fn actors_panic_under_load_and_every_request_is_answered() {
    const SUPERVISORS: &str = "drip_actor_restarts_total{kind=\"supervisor\"}";
    let _counted = crate::observe::metrics::count_alone();
    let (origin, served) = start_origin();
    let (listen, admin) = (find_free_address(), find_free_address());
    let gateway_receiver = start(format!(
        "[server]\nlisten = [\"{listen}\"]\nadmin = \"{admin}\"\nworkers = 2\n\
         [origins.a]\nservers = [\"http://{origin}\"]\n\
         [zones.z]\nkey = \"$http_x_key\"\nrate = \"100r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"a\"\nlimits = [{{ zone = \"z\", burst = 50 }}]\n"
    ));
    let gateway = wait_for("the gateway starts", || gateway_receiver.borrow().clone());
    wait_for("it is ready", || {
        TcpStream::connect(admin).ok()?;
        get(admin, "/readyz")
            .starts_with("HTTP/1.1 200")
            .then_some(())
    });
    let stop = Arc::<AtomicBool>::default();
    let clients: Vec<_> = KEYS
        .iter()
        .flat_map(|key| std::iter::repeat_n(*key, CLIENTS))
        .map(|key| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || send_requests(listen, key, &stop))
        })
        .collect();
    for crash in 0..CRASHES {
        let key = Key::from(KEYS[crash % KEYS.len()].as_bytes());
        gateway.zone(0).crash(&key, Crash::Key(Key::clone(&key)));
        sleep(Duration::from_millis(20));
    }
    assert!(
        get(admin, "/readyz").starts_with("HTTP/1.1 200"),
        "keys that panic are no outage"
    );
    let before = read_counter(admin, SUPERVISORS);
    // One supervisor panics twice within seconds, so it pauses.
    for _ in 0..2 {
        let key = Key::from(KEYS[0].as_bytes());
        gateway.zone(0).crash(&key, Crash::Supervisor);
    }
    let not_ready = wait_for("it says that it is not ready", || {
        let answer = get(admin, "/readyz");
        answer.starts_with("HTTP/1.1 503").then_some(answer)
    });
    let says_why = not_ready.contains("zone z has panicked several times");
    assert!(says_why, "{not_ready}");
    wait_for("it is ready again", || {
        get(admin, "/readyz")
            .starts_with("HTTP/1.1 200")
            .then_some(())
    });
    stop.store(true, Ordering::SeqCst);
    let mut all = Answers::default();
    for client in clients {
        let answers = client.join().expect("a client is answered to the end");
        all.sent += answers.sent;
        all.passed += answers.passed;
        all.unavailable += answers.unavailable;
    }
    assert_eq!(all.sent, all.passed + all.unavailable);
    assert_eq!(served.load(Ordering::SeqCst), all.passed, "{all:?}");
    assert!(all.unavailable > 0 && all.passed > 0, "{all:?}");
    // A key may have been parked, or its supervisor new, at the time of a panic.
    let keys = read_counter(admin, "drip_actor_restarts_total{kind=\"key\"}");
    assert!(keys >= CRASHES / 2, "{keys} of {CRASHES}");
    assert_eq!(read_counter(admin, SUPERVISORS) - before, 2);
    let rejected = "drip_zone_rejections_total{zone=\"z\",reason=\"restart\"}";
    wait_for("all rejections are counted", || {
        (read_counter(admin, rejected) >= all.unavailable).then_some(())
    });
    wait_for("no waiter is counted", || {
        (read_counter(admin, "drip_zone_queue_depth{zone=\"z\"}") == 0).then_some(())
    });
}
