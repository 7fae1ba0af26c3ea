//! Requests that were sent to a server that restarts, and got no byte of an answer.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{held, origin_at, wait_for_depth};
use crate::checklist::haproxy::Haproxy;
use crate::support::frames::{RST_STREAM, frame};
use crate::support::{
    Client, Exchange, FrameOrigin, Gateway, Origin, alone, close, eventually, fetch, free_address,
    now, python_with,
};

/// Takes so many requests, each on a connection of its own, and closes each without an answer.
///
/// Its port is closed before the last is lost: whoever sends it again at once finds nobody there.
fn lose(listener: &TcpListener, requests: usize) -> Vec<String> {
    let mut lost = Vec::new();
    for nth in 1..=requests {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            assert_eq!(stream.read(&mut byte).expect("a request"), 1);
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("ASCII");
        lost.extend(head.lines().next().map(str::to_owned));
        if nth == requests {
            close(listener);
        }
    }
    lost
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

#[test]
fn a_get_that_was_lost_waits_for_the_server_and_is_sent_once_more() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let losing = thread::spawn(move || lose(&listener, 1));
    let mut client = Client::ask(gateway.address(), "/1");
    assert_eq!(losing.join().expect("no panic"), ["GET /1 HTTP/1.1"]);
    wait_for_depth(&gateway, 1);
    let origin = origin_at(address);
    assert_eq!(client.answer().status, 200);
    assert_eq!(origin.arrivals().len(), 1);
    // The loss is counted as the server's failure.
    let broken = [("origin", "app"), ("outcome", "broken")];
    let counted = gateway
        .metrics()
        .count("drip_origin_requests_total", &broken);
    assert_eq!(counted, 1);
}

#[test]
fn what_was_lost_twice_is_a_502() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let losing = thread::spawn(move || lose(&listener, 2));
    assert_eq!(fetch(gateway.address(), "/1").status, 502);
    assert_eq!(losing.join().expect("no panic").len(), 2);
}

#[test]
fn a_post_or_a_body_or_a_begun_answer_is_never_sent_again_after_a_loss() {
    for request in [
        "POST / HTTP/1.1\r\nHost: test\r\n\r\n",
        "PATCH / HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi",
        "PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        let (listener, address) = listener();
        let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
        let losing = thread::spawn(move || lose(&listener, 1));
        let mut client = Client::connect(gateway.address());
        client.send(request.as_bytes());
        assert_eq!(client.answer().status, 502, "{request}");
        losing.join().expect("no panic");
    }
    let begun = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 2")?;
        Exchange::close()
    });
    let gateway = Gateway::start(&held(&[begun.address], "hold = \"30s\"", ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    assert_eq!(begun.arrivals().len(), 1);
}

#[test]
fn without_hold_a_get_that_was_lost_on_a_new_connection_is_a_502() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "rate = \"100r/s\"", ""));
    let losing = thread::spawn(move || lose(&listener, 1));
    assert_eq!(fetch(gateway.address(), "/1").status, 502);
    assert_eq!(losing.join().expect("no panic").len(), 1);
}

#[test]
fn it_waits_no_longer_than_hold_from_the_loss_on() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "hold = \"500ms\"", ""));
    let losing = thread::spawn(move || lose(&listener, 1));
    let began = now();
    let mut client = Client::ask(gateway.address(), "/1");
    losing.join().expect("no panic");
    assert_eq!(client.answer().status, 502);
    assert!(began.elapsed() >= Duration::from_millis(500));
}

#[test]
fn over_http2_a_connection_that_ends_is_a_loss_and_a_reset_stream_is_not() {
    let origin = FrameOrigin::start();
    let text = held(&[origin.address], "hold = \"30s\"", "");
    let gateway = Gateway::start(
        &text
            .replace("http://", "h2c://")
            .replace("workers = 4", "workers = 1"),
    );
    origin.next(|_, _| Err(std::io::ErrorKind::ConnectionReset.into()));
    assert_eq!(fetch(gateway.address(), "/1").status, 200);
    assert_eq!(origin.connections(), 2);
    origin.next(|to, stream| to.send(frame(RST_STREAM, 0, stream, 2_u32.to_be_bytes())));
    assert_eq!(fetch(gateway.address(), "/2").status, 502);
    assert_eq!((origin.connections(), origin.requests()), (2, 3));
}

/// gunicorn with workers that answer after a while, as users run it.
struct Gunicorn {
    folder: TempDir,
    address: SocketAddr,
    process: Option<Child>,
}

const APP: &str = "import time\n\
    def app(environ, start):\n    time.sleep(0.02)\n    \
    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n";

impl Gunicorn {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("app.py"), APP).expect("a file");
        let mut server = Self {
            folder,
            address: free_address(),
            process: None,
        };
        server.start_again();
        server
    }

    fn start_again(&mut self) {
        let process = Command::new(python_with(&["gunicorn==23.0.0"]))
            .args(["-m", "gunicorn", "--workers", "2", "--threads", "20"])
            .args([
                "--graceful-timeout",
                "1",
                "--log-level",
                "critical",
                "--bind",
            ])
            .arg(self.address.to_string())
            .arg("app:app")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("gunicorn"));
        eventually("gunicorn listens", || {
            TcpStream::connect(self.address).is_ok()
        });
    }

    /// Stops it as an operator or a supervisor does: at once, with what it was doing.
    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let id = rustix::process::Pid::from_child(&process);
            // SIGQUIT: a quick shutdown.
            let sent = rustix::process::kill_process(id, rustix::process::Signal::QUIT);
            sent.expect("a process");
            process.wait().expect("a child");
        }
    }
}

impl Drop for Gunicorn {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends GETs over so many connections until `is_over`. Returns how many were sent and lost.
fn load(to: SocketAddr, connections: usize, is_over: &Arc<AtomicUsize>) -> (usize, usize) {
    let loads: Vec<_> = (0..connections)
        .map(|_| {
            let is_over = Arc::clone(is_over);
            thread::spawn(move || {
                let (mut sent, mut lost) = (0, 0);
                while is_over.load(SeqCst) == 0 {
                    let Ok(mut client) = Client::try_connect(to) else {
                        thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    while is_over.load(SeqCst) == 0 {
                        sent += 1;
                        if client.try_get("/").ok() != Some(200) {
                            lost += 1;
                            break;
                        }
                    }
                }
                (sent, lost)
            })
        })
        .collect();
    let sums = loads.into_iter().map(|it| it.join().expect("no panic"));
    sums.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

#[test]
fn a_real_gunicorn_that_restarts_costs_no_more_gets_than_behind_haproxy() {
    const RESTARTS: usize = 4;
    let _alone = alone();
    let (mut one, mut two) = (Gunicorn::start(), Gunicorn::start());
    let fields = "hold = \"20s\"\nqueue_timeout = \"30s\"";
    let drip = Gateway::start(&held(&[one.address], fields, ""));
    let haproxy = Haproxy::before(two.address, "    retries 3\n    option redispatch\n");
    let is_over = Arc::new(AtomicUsize::new(0));
    let running = [drip.address(), haproxy.address].map(|to| {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || load(to, 20, &is_over))
    });
    for _ in 0..RESTARTS {
        thread::sleep(Duration::from_millis(700));
        one.stop();
        two.stop();
        thread::sleep(Duration::from_millis(300));
        one.start_again();
        two.start_again();
    }
    thread::sleep(Duration::from_millis(700));
    is_over.store(1, SeqCst);
    let [drip_load, haproxy_load] = running.map(|it| it.join().expect("no panic"));
    eprintln!("sent and lost: drip {drip_load:?}, haproxy {haproxy_load:?}");
    assert!(drip_load.0 > 20 * RESTARTS, "{drip_load:?}");
    assert!(
        drip_load.1 <= haproxy_load.1,
        "drip {drip_load:?}, haproxy {haproxy_load:?}"
    );
}
