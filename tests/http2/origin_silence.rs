//! How long a connection to an origin over HTTP/2 is used, and what becomes of one whose origin falls silent.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::http2::{GET, POST, ask, check_fine, drip};
use crate::support::frames::{Frames, HEADERS, ok, settings};
use crate::support::{FrameOrigin, Gateway, Raw, eventually, now};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_connection_ends_after_so_many_requests_and_at_its_age() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_requests = 3");
    for _ in 0..9 {
        check_fine(&gateway, "requests");
    }
    assert_eq!(origin.connections(), 3);
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_time = \"400ms\"");
    let begun = now();
    while begun.elapsed() < 1000 * MS {
        check_fine(&gateway, "age");
        thread::sleep(20 * MS);
    }
    let count = origin.connections();
    assert!((3..=4).contains(&count), "{count} connections");
    // What is in flight on an old one goes on.
    let origin = FrameOrigin::start();
    let gateway = Arc::new(drip(&origin, "", "keep_alive_requests = 2"));
    let (release, is_released) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let waits = Arc::clone(&release);
    origin.next(move |to, stream| {
        while !waits.load(Ordering::SeqCst) {
            thread::sleep(5 * MS);
        }
        to.send(ok(stream))
    });
    let slow = {
        let (gateway, is_released) = (Arc::clone(&gateway), Arc::clone(&is_released));
        thread::spawn(move || {
            let answer = ask(&gateway, GET);
            assert!(is_released.load(Ordering::SeqCst));
            answer.status()
        })
    };
    eventually("the request is there", || origin.requests() == 1);
    let second = {
        let gateway = Arc::clone(&gateway);
        thread::spawn(move || ask(&gateway, GET).status())
    };
    thread::sleep(100 * MS);
    for _ in 0..2 {
        check_fine(&gateway, "beside one in flight");
    }
    is_released.store(true, Ordering::SeqCst);
    release.store(true, Ordering::SeqCst);
    assert_eq!(slow.join().expect("no panic"), 200);
    assert_eq!(second.join().expect("no panic"), 200);
}

#[test]
fn a_connection_without_requests_ends_after_its_idle_time() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive_timeout = \"400ms\"");
    for _ in 0..3 {
        check_fine(&gateway, "in time");
        thread::sleep(200 * MS);
    }
    assert_eq!(origin.connections(), 1);
    thread::sleep(300 * MS);
    check_fine(&gateway, "too late");
    assert_eq!(origin.connections(), 2);
    eventually("both have ended", || origin.open() == 0);
}

/// An origin over HTTP/2 whose connections fall silent when it is told so: those that are open then read nothing more, and
/// no end of them comes.
struct Freezing {
    origin: FrameOrigin,
    frozen: Arc<AtomicUsize>,
}

/// A connection that stands still once it is one of the frozen ones.
struct Freezer {
    stream: TcpStream,
    nth: usize,
    frozen: Arc<AtomicUsize>,
}

impl Freezer {
    fn wait(&self) {
        while self.nth <= self.frozen.load(Ordering::SeqCst) {
            thread::sleep(20 * MS);
        }
    }
}

impl io::Read for Freezer {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(to);
        self.wait();
        count
    }
}

impl io::Write for Freezer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait();
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Freezing {
    fn start() -> Self {
        let frozen = Arc::<AtomicUsize>::default();
        let count = AtomicUsize::new(0);
        let to_freeze = Arc::clone(&frozen);
        let origin = FrameOrigin::wrapping(settings(&[]), move |stream| {
            Ok(Frames::over(Freezer {
                stream,
                nth: count.fetch_add(1, Ordering::SeqCst) + 1,
                frozen: Arc::clone(&to_freeze),
            }))
        });
        Self { origin, frozen }
    }

    /// No connection that is there sends anything more.
    fn freeze(&self) {
        self.frozen
            .store(self.origin.connections(), Ordering::SeqCst);
    }
}

/// The status of a request, and how long it took.
fn timed(gateway: &Gateway, request: &str) -> (u16, Duration) {
    let begun = now();
    let mut client = Raw::connect(gateway.address());
    client.send(request);
    let answer = client.try_answer_to("GET", Duration::from_secs(40));
    (answer.expect("an answer").status(), begun.elapsed())
}

#[test]
fn a_silent_connection_is_pinged_and_lost_and_only_what_may_be_is_sent_again() {
    let origin = Freezing::start();
    let gateway = Arc::new(drip(&origin.origin, "", ""));
    check_fine(&gateway, "before");
    origin.freeze();
    let begun = now();
    let [get, post] = [GET, POST].map(|request| {
        let gateway = Arc::clone(&gateway);
        thread::spawn(move || timed(&gateway, request))
    });
    // Once a ping has had no answer for a second, others use another connection.
    thread::sleep(8000 * MS);
    for _ in 0..5 {
        let (status, took) = timed(&gateway, GET);
        assert!(status == 200 && took < 1000 * MS, "{status} {took:?}");
    }
    assert_eq!(origin.origin.connections(), 2);
    let (status, took) = get.join().expect("no panic");
    assert_eq!(status, 200, "it is sent again");
    let expected = 13_000 * MS..19_000 * MS;
    assert!(expected.contains(&took), "{took:?}");
    let (status, took) = post.join().expect("no panic");
    assert_eq!(status, 502, "it is not");
    assert!(expected.contains(&took), "{took:?}");
    assert!(begun.elapsed() < 20_000 * MS);
    assert!(gateway.log().contains("no answer to a ping"));
}

#[test]
fn an_origin_that_answers_pings_may_take_its_time() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    check_fine(&gateway, "before");
    // It reads on until another request comes, and so answers pings.
    origin.next(|to, stream| {
        loop {
            let next = to.next()?;
            if next.kind == HEADERS {
                to.send(ok(stream))?;
                return to.send(ok(next.stream));
            }
        }
    });
    let gateway = Arc::new(gateway);
    let slow = {
        let gateway = Arc::clone(&gateway);
        thread::spawn(move || timed(&gateway, POST))
    };
    thread::sleep(17_000 * MS);
    check_fine(&gateway, "after 17 s");
    let (status, took) = slow.join().expect("no panic");
    assert_eq!(status, 200, "after {took:?}");
    assert_eq!(origin.connections(), 1);
}
