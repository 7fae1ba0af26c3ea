//! Tests of a server at `redis.url` that is no Redis, or that sends far too much.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, assert_contains, eventually, now, side_by_side};

/// A server that answers each command, by its name, with the output of `answer`.
struct Fake {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Fake {
    fn answering(
        answer: impl Fn(&str, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::<AtomicUsize>::default();
        let (counted, answer) = (Arc::clone(&connections), Arc::new(answer));
        // The thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, SeqCst);
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(stream, answer.as_ref()));
            }
        });
        Self {
            address,
            connections,
        }
    }

    fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&str, &mut TcpStream) -> io::Result<()>,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some(words) = line.trim().strip_prefix('*') else {
            return Ok(());
        };
        let mut name = String::new();
        for nth in 0..words.parse::<usize>().map_err(io::Error::other)? {
            let mut length = String::new();
            reader.read_line(&mut length)?;
            let length = length.trim().strip_prefix('$').unwrap_or_default();
            let mut word = vec![0; length.parse::<usize>().map_err(io::Error::other)? + 2];
            io::Read::read_exact(&mut reader, &mut word)?;
            if nth == 0 {
                String::from_utf8_lossy(&word).trim().clone_into(&mut name);
            }
        }
        answer(&name, &mut stream)?;
    }
}

fn file(origin: &Origin, url: &str) -> String {
    super::file(origin, url, "100r/s", "on_store_failure = \"open\"", "")
}

/// Returns the lines of the log about the begin or end of an outage.
fn outages(gateway: &Gateway) -> Vec<String> {
    let log = gateway.log();
    let reports = |line: &&str| line.contains("the store is out") || line.contains("is back");
    log.lines().filter(reports).map(str::to_owned).collect()
}

#[test]
fn an_http_server_is_named_once_and_asked_less_and_less_often() {
    let fake = Fake::answering(|_, stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    });
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, &fake.url()));
    let began = now();
    let line = gateway.wait_for_line("the store is out");
    let says = "the server is not a usable Redis: its answer begins with";
    assert_contains!(line, says, "HTTP/1.1 400 Bad Request");
    eventually("it is tried again and again", || {
        assert_eq!(gateway.fetch("/?key=a").status, 200);
        began.elapsed().as_secs() >= day_or_night(3, 5)
    });
    // Each of the two workers retries at 0.25 s, 0.75 s, 1.75 s, 3.75 s and 7.75 s. Four retries
    // per second would be forty in 5 s.
    let (tries, second) = (fake.connections.load(SeqCst), began.elapsed().as_secs());
    let most = day_or_night(13, 16);
    assert!(second > 20 || tries <= most, "{tries} tries in {second} s");
    assert_eq!(outages(&gateway).len(), 1, "{:?}", outages(&gateway));
    // Once the file names a real Redis, the gateway uses it at once.
    let redis = Redis::start();
    gateway.site.write(&file(&origin, &redis.url()));
    let keys = || redis.ask("DBSIZE") != ":0";
    eventually("Redis decides", || {
        gateway.fetch("/?key=a").status == 200 && keys()
    });
}

/// Replies that cannot be parsed count as one outage.
///
/// They are of another type, or missing.
#[test]
fn replies_that_cannot_be_read_are_one_outage() {
    let check = |garbage: &'static [u8]| {
        let fake = Fake::answering(move |name, stream| {
            let is_script = name.starts_with("EVAL");
            stream.write_all(if is_script { garbage } else { b"+OK\r\n" })
        });
        let origin = Origin::start();
        let gateway = Gateway::start(&file(&origin, &fake.url()));
        let began = now();
        eventually("it stays so", || {
            assert_eq!(gateway.fetch("/?key=a").status, 200);
            began.elapsed().as_millis() >= 1500
        });
        let received = outages(&gateway);
        let garbage = String::from_utf8_lossy(garbage);
        assert!(received.len() <= 1, "{garbage:?}: {received:?}");
        let is_status = garbage.starts_with('+');
        let says = gateway.log().contains("the store's answer is invalid");
        assert!(!is_status || says && received.len() == 1, "{received:?}");
    };
    let all = [
        &b"$x\r\n"[..],
        b"-\xFF\r\n",
        b":1\r\n",
        b"$3\r\nabc\r\n",
        b"*1\r\n*1\r\n:1\r\n",
        b"+OK\r\n",
    ];
    side_by_side(all, check);
}

#[test]
fn a_reply_of_512_mb_ends_the_connection_and_costs_no_memory() {
    const LARGE: usize = 512 << 20;
    let sent = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&sent);
    let fake = Fake::answering(move |name, stream| {
        if !name.starts_with("EVAL") {
            return stream.write_all(b"+OK\r\n");
        }
        stream.write_all(format!("${LARGE}\r\n").as_bytes())?;
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..LARGE / piece.len() {
            stream.write_all(&piece)?;
            counted.fetch_add(piece.len(), SeqCst);
        }
        stream.write_all(b"\r\n")
    });
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, &fake.url()));
    let before = gateway.peak_memory();
    eventually("it is found out", || {
        assert_eq!(gateway.fetch("/?key=a").status, 200);
        gateway.log().contains("it sent a reply of more than 2 MB")
    });
    let grown = gateway.peak_memory().saturating_sub(before);
    assert!(grown < 100 << 20, "it grew by {grown} bytes");
    assert!(sent.load(SeqCst) < LARGE / 2, "it was read");
}
