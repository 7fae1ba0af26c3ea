//! Tests of crowds that request the same few pages of a slow origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::programs::nginx::Nginx;
use crate::support::{Gateway, MS, Origin, all_pauses, alone, eventually, now};

const CLIENTS: usize = 2000;
const PAGES: usize = 20;
/// Time for which the clients send requests.
const SPAN: Duration = Duration::from_secs(6);

/// Outcomes of the requests of a crowd.
#[derive(Default)]
struct Crowd {
    answered: usize,
    refused: usize,
    longest: Duration,
}

/// Starts an origin that takes 50 ms for a page and answers with its name.
fn origin() -> Origin {
    Origin::answering(|exchange| {
        thread::sleep(50 * MS);
        let page = exchange.target().to_owned();
        exchange.reply(page.as_bytes())
    })
}

fn file(origin: SocketAddr, collapse: &str) -> String {
    format!(
        r#"
[origins.app]
servers = ["http://{origin}"]
rate = "20r/s"
queue = 100
max_queue = 100

[[routes]]
path = "/"
origin = "app"
{collapse}"#
    )
}

/// Lets all clients request one page after the other. `patience`: maximum wait for a response.
fn come(to: SocketAddr, patience: Duration) -> Crowd {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let until = now() + SPAN;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| tokio::spawn(read_pages(to, nth, until, patience)))
            .collect();
        let mut crowd = Crowd::default();
        for client in clients {
            let one = client.await.expect("no panic");
            crowd.answered += one.answered;
            crowd.refused += one.refused;
            crowd.longest = crowd.longest.max(one.longest);
        }
        crowd
    })
}

async fn read_pages(to: SocketAddr, nth: usize, until: Instant, patience: Duration) -> Crowd {
    let mut seen = Crowd::default();
    let mut page = nth % PAGES;
    while now() < until {
        page = (page * 7 + 3) % PAGES;
        let asked = now();
        if let Ok(Some(body)) = tokio::time::timeout(patience, ask(to, page)).await {
            assert_eq!(body, format!("/page/{page}"), "a page of another kind");
            seen.answered += 1;
            seen.longest = seen.longest.max(asked.elapsed());
        } else {
            seen.refused += 1;
            tokio::time::sleep(200 * MS).await;
        }
    }
    seen
}

/// Requests a page on a new connection. `None`: the request was refused.
async fn ask(to: SocketAddr, page: usize) -> Option<String> {
    let mut stream = TcpStream::connect(to).await.ok()?;
    let request = format!("GET /page/{page} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

/// Returns the maximum number of requests within a second.
fn most_in_a_second(origin: &Origin) -> usize {
    let moments = origin.moments("/page");
    let within = |(nth, first): (usize, &Instant)| {
        let in_time = |at: &&Instant| at.duration_since(*first) < Duration::from_secs(1);
        moments[nth..].iter().take_while(in_time).count()
    };
    moments.iter().enumerate().map(within).max().unwrap_or(0)
}

#[test]
fn twenty_departures_a_second_serve_a_crowd_of_two_thousand() {
    let _alone = alone();
    let began = now();
    let shop = origin();
    let gateway = Gateway::start(&file(shop.address, "\n[routes.collapse]\n"));
    let crowd = come(gateway.address(), Duration::from_secs(20));
    let paused = all_pauses(began, now());
    let (sent, most) = (shop.arrivals().len(), most_in_a_second(&shop));
    let Crowd {
        answered,
        refused,
        longest,
    } = crowd;
    println!(
        "drip: {answered} answered, {refused} refused, the longest wait {longest:?}, {sent} sent, at most {most} in a second; the machine paused {paused:?}"
    );
    assert_eq!(refused, 0);
    assert!(answered > 2 * CLIENTS, "{answered}");
    assert!(longest <= 1200 * MS + paused, "{longest:?}, {paused:?}");
    // A second that begins with a departure has one more than the rate.
    assert!(most <= 21, "{most}");
    drop(gateway);

    let alone = origin();
    let gateway = Gateway::start(&file(alone.address, ""));
    let without = come(gateway.address(), Duration::from_secs(5));
    println!(
        "drip without collapse: {} answered, {} refused",
        without.answered, without.refused
    );
    assert!(without.refused > 10 * without.answered);
    drop(gateway);

    let behind_nginx = origin();
    let folder = tempfile::tempdir().expect("a folder");
    let http = format!(
        "proxy_cache_path {} keys_zone=pages:1m;",
        folder.path().display()
    );
    let lock = "proxy_cache pages; proxy_cache_lock on; proxy_cache_valid 200 1s;";
    let nginx = Nginx::start(&behind_nginx, &http, &[("/", lock)]);
    let beside = come(nginx.address, Duration::from_secs(20));
    println!(
        "nginx with proxy_cache_lock: {} answered, {} refused, the longest wait {:?}, {} sent, at most {} in a second",
        beside.answered,
        beside.refused,
        beside.longest,
        behind_nginx.arrivals().len(),
        most_in_a_second(&behind_nginx),
    );
    assert!(beside.answered > 0);
}

#[test]
fn ten_thousand_who_follow_one_answer_of_a_megabyte_cost_less_than_sixty_megabytes() {
    const FOLLOWERS: usize = 10_000;
    const SIZE: usize = 1_000_000;
    let _alone = alone();
    let released = Arc::<AtomicUsize>::default();
    let of_origin = Arc::clone(&released);
    let origin = Origin::answering(move |exchange| {
        while of_origin.load(Ordering::SeqCst) == 0 {
            thread::sleep(5 * MS);
        }
        exchange.reply(&vec![b'x'; SIZE])
    });
    let gateway = Gateway::start(&file(origin.address, "\n[routes.collapse]\n"));
    let before = gateway.peak_memory();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut clients = Vec::new();
        for nth in 0..=FOLLOWERS {
            clients.push(slow_reader(gateway.address()).await);
            if nth % 100 == 0 {
                let asked = i64::try_from(nth).expect("a small number");
                eventually("they follow", || {
                    gateway.count("drip_shared_waiting", &[]) >= asked
                });
            }
        }
        let waiting = gateway.peak_memory() - before;
        released.store(1, Ordering::SeqCst);
        // Each client has received the head, and as much of the body as the kernel buffers.
        for client in &mut clients {
            let mut head = [0; 12];
            client.read_exact(&mut head).await.expect("the head");
            assert_eq!(&head, b"HTTP/1.1 200");
        }
        let reading = gateway.peak_memory() - before;
        println!("{waiting} bytes while they wait, {reading} while they read");
        assert!(reading < 60_000_000, "{reading}");
        // Clients that read on receive the complete body.
        for client in clients.iter_mut().step_by(5000) {
            let mut rest = vec![0; SIZE];
            client.read_exact(&mut rest).await.expect("the answer");
        }
    });
    assert_eq!(origin.arrivals().len(), 1);
    let followers = i64::try_from(FOLLOWERS).expect("a small number");
    let shared = ["leader", "follower"].map(|outcome| gateway.shared(outcome));
    assert_eq!(shared, [1, followers]);
}

/// Requests the page on a connection with a small buffer, without reading the response.
async fn slow_reader(to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(32_768).expect("a small buffer");
    let mut stream = socket.connect(to).await.expect("a connection");
    let request = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    stream
}
