//! A client that sends, pipelines and disconnects at random, and checks each response.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::load::soak::board::{Board, End, RequestOutcome};
use crate::load::soak::file::ROUTES;
use crate::support::now;
use crate::support::rng::Rng;
use crate::support::wire::Head;

/// Maximum duration of a request: the longest queue, two response timeouts, and a slow body.
const DEADLINE: Duration = Duration::from_secs(15);

const KEYS: u64 = 6;

/// One of many clients. Sends one request after another until it is stopped.
pub struct Client {
    nth: u64,
    sent: u64,
    to: SocketAddr,
    rng: Rng,
    board: Arc<Board>,
    /// Events of its current connection, for failure reports.
    story: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Get,
    Head,
    Post,
}

#[derive(Debug)]
struct Sent {
    method: Method,
    /// Index of its route.
    route: usize,
    request: Request,
    at: Instant,
}

/// Expected continuation after a response on the same connection.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    GoesOn,
    Ends,
}

impl Client {
    pub fn new(nth: u64, seed: u64, to: SocketAddr, board: Arc<Board>) -> Self {
        let rng = Rng::of(seed, 1000 + nth);
        Self {
            nth,
            sent: 0,
            to,
            rng,
            board,
            story: Vec::new(),
        }
    }

    /// Runs the client. `began`: common start that all clients time their bursts from.
    pub fn run(mut self, began: Instant, stop: &AtomicBool) {
        const BEAT: u128 = 700;
        while !stop.load(Ordering::SeqCst) {
            if self.rng.percent(25) {
                let left = BEAT - began.elapsed().as_millis() % BEAT;
                thread::sleep(Duration::from_millis(
                    u64::try_from(left).expect("less than a beat"),
                ));
            } else {
                self.pause(150);
            }
            match self.rng.within(0, 100) {
                0..30 => self.one_shot(),
                30..65 => self.keep_alive(),
                65..80 => self.pipeline(),
                80..92 => self.leave_waiting(),
                _ => self.leave_mid_answer(),
            }
        }
    }

    fn pause(&mut self, most: u64) {
        thread::sleep(Duration::from_millis(self.rng.within(0, most)));
    }

    /// Opens a connection. `way`: its use, for failure reports.
    fn connect(&mut self, way: &str) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.to).expect("the gateway takes connections");
        let port = stream.local_addr().expect("a socket").port();
        self.story = vec![format!("{way} from port {port}")];
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        BufReader::new(stream)
    }

    /// Appends a new request to `to`.
    fn compose(&mut self, to: &mut Vec<u8>, fields: &str) -> Sent {
        self.sent += 1;
        let id = format!("c{}n{}", self.nth, self.sent);
        let size = self.rng.pick(&[0, 1, 10, 900, 900, 20_000, 200_000]);
        let request = Request { id, size };
        let method = match self.rng.within(0, 100) {
            0..55 => Method::Get,
            55..65 => Method::Head,
            _ => Method::Post,
        };
        let route = usize::from(self.rng.percent(30));
        let target = request.target(ROUTES[route].path, self.rng.within(0, KEYS));
        let name = match method {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
        };
        write!(to, "{name} {target} HTTP/1.1\r\nHost: soak\r\n{fields}").expect("memory");
        if method == Method::Post {
            write_body(to, &request, self.rng.percent(50)).expect("memory");
        } else {
            to.extend_from_slice(b"\r\n");
        }
        let at = now();
        Sent {
            method,
            route,
            request,
            at,
        }
    }

    fn ended(&self, sent: &Sent, fate: RequestOutcome) {
        self.board.ended(End {
            id: sent.request.id.clone(),
            route: sent.route,
            sent: sent.at,
            at: now(),
            fate,
        });
    }

    /// Sends bytes. The gateway may answer and close before it has read everything.
    fn send(on: &BufReader<TcpStream>, bytes: &[u8]) {
        let mut stream = on.get_ref();
        let _result = stream.write_all(bytes);
    }

    fn one_shot(&mut self) {
        let mut bytes = Vec::new();
        let sent = self.compose(&mut bytes, "Connection: close\r\n");
        let mut on = self.connect("one shot");
        Self::send(&on, &bytes);
        if self.take_answer(&mut on, &sent) == Then::Ends {
            let mut rest = Vec::new();
            // A reset ends the connection as well.
            let _end = on.read_to_end(&mut rest);
            if !rest.is_empty() {
                let text = String::from_utf8_lossy(&rest[..rest.len().min(200)]).into_owned();
                self.fail(&sent, &format!("{text:?} follows the answer"));
            }
        } else {
            self.fail(&sent, "the answer does not say that the connection closes");
        }
    }

    fn keep_alive(&mut self) {
        let mut on = self.connect("kept alive");
        for _ in 0..self.rng.within(2, 12) {
            let mut bytes = Vec::new();
            let sent = self.compose(&mut bytes, "");
            Self::send(&on, &bytes);
            if self.take_answer(&mut on, &sent) == Then::Ends {
                return;
            }
            self.pause(80);
        }
    }

    /// Sends requests all at once. The responses must come in order.
    fn pipeline(&mut self) {
        let mut bytes = Vec::new();
        let count = self.rng.within(2, 8);
        let all: Vec<Sent> = (0..count).map(|_| self.compose(&mut bytes, "")).collect();
        let mut on = self.connect("pipelined");
        let writer = on.get_ref().try_clone().expect("a second handle");
        // The gateway may stop reading until it has answered, or stop answering until this client
        // reads.
        let writing = thread::spawn(move || {
            let mut writer = writer;
            let _result = writer.write_all(&bytes);
        });
        let mut all = all.iter();
        for sent in all.by_ref() {
            if self.take_answer(&mut on, sent) == Then::Ends {
                break;
            }
        }
        for sent in all {
            self.ended(sent, RequestOutcome::BehindTheEnd);
        }
        // The writer may still be writing if an early response closed the connection.
        let _closed = on.get_ref().shutdown(Shutdown::Both);
        writing.join().expect("no panic");
    }

    fn leave_waiting(&mut self) {
        let mut bytes = Vec::new();
        let sent = self.compose(&mut bytes, "");
        let on = self.connect("to leave while waiting");
        Self::send(&on, &bytes);
        self.pause(300);
        self.leave(&on);
        self.ended(&sent, RequestOutcome::LeftWaiting);
    }

    fn leave_mid_answer(&mut self) {
        let mut bytes = Vec::new();
        let sent = self.compose(&mut bytes, "");
        let mut on = self.connect("to leave mid-answer");
        Self::send(&on, &bytes);
        let mut some = [0; 40];
        let what = match on.read(&mut some) {
            Ok(0) => "closed without an answer".to_owned(),
            Err(error) => format!("no answer: {error}"),
            Ok(_) => {
                self.leave(&on);
                self.ended(&sent, RequestOutcome::LeftMidAnswer);
                return;
            }
        };
        self.fail(&sent, &what);
    }

    fn leave(&mut self, on: &BufReader<TcpStream>) {
        if self.rng.percent(50) {
            // Dropping the socket resets the connection.
            set_socket_linger(on.get_ref(), Some(Duration::ZERO)).expect("a socket");
        }
    }

    /// Reads a response and checks it.
    fn take_answer(&mut self, on: &mut BufReader<TcpStream>, sent: &Sent) -> Then {
        let began = now();
        let head = match Head::read(on) {
            Ok(Some(head)) => head,
            Ok(None) => return self.fail(sent, "closed without an answer"),
            Err(error) => return self.fail(sent, &format!("no answer: {error}")),
        };
        let status = head.first_line.split(' ').nth(1);
        let Some(status) = status.and_then(|status| status.parse().ok()) else {
            return self.fail(sent, &format!("this is no answer: {head:?}"));
        };
        let outcome = format!("{} got {status}", sent.request.id);
        self.story.push(outcome);
        let mut body = Vec::new();
        if sent.method != Method::Head {
            if !head.is_chunked() && head.length().is_none() {
                return self.fail(sent, &format!("an answer without framing: {head:?}"));
            }
            if let Err(error) = head.pass_body(on, |piece| body.extend_from_slice(piece)) {
                if nth(&head).is_some_and(|nth| self.board.was_cut(nth)) {
                    self.ended(sent, RequestOutcome::CutByOrigin);
                } else {
                    let got = body.len();
                    self.fail(sent, &format!("cut after {got} bytes: {error}: {head:?}"));
                }
                return Then::Ends;
            }
        }
        if began.elapsed() > DEADLINE {
            self.fail(sent, &format!("it took {:?}", began.elapsed()));
        }
        match self.judge(sent, status, &head, &body) {
            Err(what) => _ = self.fail(sent, &what),
            Ok(fate) => self.ended(sent, fate),
        }
        let closes = head.field("connection") == Some("close");
        if closes { Then::Ends } else { Then::GoesOn }
    }

    fn judge(
        &self,
        sent: &Sent,
        status: u16,
        head: &Head,
        body: &[u8],
    ) -> Result<RequestOutcome, String> {
        let is_post = sent.method == Method::Post;
        let id = &sent.request.id;
        if status == 503 && head.field("x-id") == Some(id) && self.board.may_shed(sent.at) {
            return Ok(RequestOutcome::Shed);
        }
        if !self.board.allows(status, sent.route, is_post, sent.at) {
            return Err(format!("{status}, and nothing was wrong"));
        }
        if status != 200 {
            let is_rejected = status == 503 || status == ROUTES[sent.route].reject_status;
            if is_rejected && head.field("retry-after").is_none() {
                return Err(format!("no Retry-After: {head:?}"));
            }
            if head.field("x-id").is_some() {
                return Err(format!("an origin's answer: {head:?}"));
            }
            return Ok(RequestOutcome::Answered(status));
        }
        if head.field("x-id") != Some(id) {
            return Err(format!("it got another's answer: {head:?}"));
        }
        if !nth(head).is_some_and(|nth| self.board.is_whole(nth)) {
            return Err("a whole answer, and the origin had not sent all of it".to_owned());
        }
        if sent.method == Method::Post && !self.board.has_seen_post(id) {
            return Err("answered, and no origin has seen it".to_owned());
        }
        // The body of a POST is echoed.
        let right = match sent.method {
            Method::Head => Vec::new(),
            Method::Get | Method::Post => pattern(id, sent.request.size),
        };
        if body == right {
            Ok(RequestOutcome::Answered(status))
        } else {
            Err(format!(
                "a wrong body of {} bytes, not {}",
                body.len(),
                right.len()
            ))
        }
    }

    fn fail(&self, sent: &Sent, what: &str) -> Then {
        let Sent {
            method,
            request,
            at,
            ..
        } = sent;
        let (id, size, took) = (&request.id, request.size, at.elapsed());
        let story = self.story.join(", ");
        let what = format!("{method:?} {id} of {size} bytes, after {took:?}: {what} ({story})");
        self.board.failed_since(*at, what);
        Then::Ends
    }
}

/// Returns the number of an origin's response, if it has one.
fn nth(head: &Head) -> Option<u64> {
    head.field("x-nth")?.parse().ok()
}

/// Parameters of a request, encoded in its target.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: String,
    pub size: usize,
}

impl Request {
    pub fn target(&self, path: &str, key: u64) -> String {
        format!("{path}?key=k{key}&id={}&size={}", self.id, self.size)
    }

    pub fn of_target(target: &str) -> Option<Self> {
        let (_, arguments) = target.split_once('?')?;
        let argument = |name: &str| {
            arguments
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        Some(Self {
            id: argument("id")?.to_owned(),
            size: argument("size")?.parse().ok()?,
        })
    }
}

/// Returns a body of this size, different for each id.
pub fn pattern(id: &str, size: usize) -> Vec<u8> {
    let line = format!("{id}/");
    line.bytes().cycle().take(size).collect()
}

/// Writes the head and body of a POST of `size` bytes, in chunks or with its length.
pub fn write_body(to: &mut Vec<u8>, request: &Request, chunked: bool) -> io::Result<()> {
    let body = pattern(&request.id, request.size);
    if !chunked {
        write!(to, "Content-Length: {}\r\n\r\n", body.len())?;
        return to.write_all(&body);
    }
    to.write_all(b"Transfer-Encoding: chunked\r\n\r\n")?;
    for piece in body.chunks(5000) {
        write!(to, "{:X}\r\n", piece.len())?;
        to.write_all(piece)?;
        to.write_all(b"\r\n")?;
    }
    to.write_all(b"0\r\n\r\n")
}
