//! An origin with occasional faults.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::load::soak::board::{Board, MIN_RECORDED_HALT, Trouble};
use crate::load::soak::client::{Request, pattern};
use crate::support::rng::Rng;
use crate::support::wire::Head;
use crate::support::{free_address, now};

const TICK: Duration = Duration::from_millis(10);
/// Idle time after which an origin with the fault `CloseIdle` closes a connection.
const IDLE: Duration = Duration::from_millis(40);
/// Timeout for a gateway that sends half of a request and stops.
const HALF_SENT: Duration = Duration::from_secs(30);

const TWO_LENGTHS: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n123456";
const GARBAGE: [&[u8]; 5] = [
    b"\x16\x03\x01\x00\x05 what is it?\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    b"\r\n\r\n\r\n\r\n",
    TWO_LENGTHS,
];

/// An origin with occasional faults.
pub struct Origin {
    pub address: SocketAddr,
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

struct State {
    origin_index: usize,
    seed: u64,
    board: Arc<Board>,
    trouble: Mutex<Option<Trouble>>,
    /// Stops the threads that listen and wait.
    stopped: AtomicBool,
    open: Mutex<HashMap<usize, TcpStream>>,
    accepted: AtomicUsize,
}

impl Origin {
    pub fn start(origin_index: usize, seed: u64, board: Arc<Board>) -> Self {
        let state = State {
            origin_index,
            seed,
            board,
            trouble: Mutex::default(),
            stopped: AtomicBool::default(),
            open: Mutex::default(),
            accepted: AtomicUsize::default(),
        };
        // A port that the kernel does not give to others while this origin is down.
        let address = free_address();
        let mut origin = Self {
            address,
            state: Arc::new(state),
            listening: None,
        };
        origin.listen();
        origin
    }

    /// Sets the current fault.
    pub fn set(&mut self, trouble: Option<Trouble>) {
        let before = *self.state.trouble.lock().expect("no panic");
        if before == trouble {
            return;
        }
        if let Some(trouble) = trouble {
            self.state
                .board
                .trouble_begins(trouble, self.state.origin_index);
        }
        *self.state.trouble.lock().expect("no panic") = trouble;
        if trouble == Some(Trouble::Down) {
            self.stop();
        } else if before == Some(Trouble::Down) {
            self.listen();
        }
        if let Some(before) = before {
            self.state
                .board
                .trouble_ends(before, self.state.origin_index);
        }
    }

    /// Refuses connections and breaks the open ones.
    pub fn stop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        if let Some(listening) = self.listening.take() {
            listening.join().expect("no panic");
        }
        for (_, stream) in self.state.open.lock().expect("no panic").drain() {
            // A connection that the gateway has closed counts as closed.
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }

    fn listen(&mut self) {
        let deadline = now() + Duration::from_secs(5);
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(error) => assert!(now() < deadline, "the origin's port is taken: {error}"),
            }
            thread::sleep(TICK);
        };
        listener.set_nonblocking(true).expect("a listener");
        self.state.stopped.store(false, Ordering::SeqCst);
        let state = Arc::clone(&self.state);
        self.listening = Some(thread::spawn(move || accept(&listener, &state)));
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    loop {
        let stream = loop {
            if state.stopped.load(Ordering::SeqCst) {
                return;
            }
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        };
        let Ok(handle) = stream.try_clone() else {
            continue;
        };
        let nth = state.accepted.fetch_add(1, Ordering::Relaxed);
        state.open.lock().expect("no panic").insert(nth, handle);
        let state = Arc::clone(state);
        thread::spawn(move || {
            // The gateway handles any kind of end.
            let _ended = serve(&stream, &state);
            state.open.lock().expect("no panic").remove(&nth);
        });
    }
}

fn serve(stream: &TcpStream, state: &State) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut served = false;
    loop {
        wait_for_request(stream, &mut reader, state, served)?;
        stream.set_read_timeout(Some(HALF_SENT))?;
        let Some(head) = Head::read(&mut reader)? else {
            return Ok(());
        };
        let target = head.first_line.split(' ').nth(1).unwrap_or_default();
        let Some(request) = Request::of_target(target) else {
            state.board.fail(format!("an origin got {head:?}"));
            return Ok(());
        };
        if head.first_line.starts_with("POST") {
            state.board.saw_post(&request.id);
        }
        let body = head.read_body(&mut reader)?;
        Exchange {
            state,
            stream,
            head: &head,
            request: &request,
            rng: Rng::of(state.seed, number_of(&request.id)),
        }
        .answer(body)?;
        served = true;
    }
}

/// Returns a number that is the same for the same id.
fn number_of(id: &str) -> u64 {
    id.bytes()
        .fold(0, |number, byte| number * 31 + u64::from(byte))
}

/// Waits for the next request. Returns an error if this origin should close instead.
///
/// It closes an idle connection only if `may_idle`. A new connection was opened for a request,
/// which arrives later than [`IDLE`] on a busy machine. It does not count as idle: if it were
/// closed, the gateway would have nothing left to try. A connection with an unanswered request is
/// not idle, either.
fn wait_for_request(
    stream: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
    state: &State,
    may_idle: bool,
) -> io::Result<()> {
    let began = now();
    stream.set_read_timeout(Some(TICK))?;
    loop {
        match reader.fill_buf() {
            Ok([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let closes_idle =
            may_idle && *state.trouble.lock().expect("no panic") == Some(Trouble::CloseIdle);
        if closes_idle && began.elapsed() > IDLE || state.stopped.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

struct Exchange<'a> {
    state: &'a State,
    stream: &'a TcpStream,
    head: &'a Head,
    request: &'a Request,
    rng: Rng,
}

impl Exchange<'_> {
    fn answer(mut self, sent: Vec<u8>) -> io::Result<()> {
        let (began, mut slept) = (now(), Duration::ZERO);
        let trouble = *self.state.trouble.lock().expect("no panic");
        // A fault affects some requests. The others succeed.
        let trouble = trouble.filter(|_| self.rng.percent(50));
        let body = if self.head.first_line.starts_with("POST") {
            sent
        } else {
            pattern(&self.request.id, self.request.size)
        };
        match trouble {
            Some(Trouble::Stall) => {
                // Until the gateway gives up, or this origin stops.
                let mut reader = BufReader::new(self.stream);
                wait_for_request(self.stream, &mut reader, self.state, false)?;
                return self.close();
            }
            Some(Trouble::Garbage) if self.rng.percent(50) => {
                let mut garbage = self.rng.pick(&GARBAGE);
                if garbage == TWO_LENGTHS && self.head.first_line.starts_with("HEAD") {
                    // There the garbage does not frame a body.
                    garbage = GARBAGE[0];
                }
                self.send(garbage)?;
                return self.close();
            }
            Some(Trouble::Reset) => return self.break_off(&body),
            Some(Trouble::Shed) => return self.shed(),
            Some(Trouble::Slow) => {
                slept = Duration::from_millis(self.rng.within(20, 400));
                thread::sleep(slept);
            }
            _ => {}
        }
        let closes = trouble == Some(Trouble::Close);
        let nth = self.state.board.answer_begins();
        let late = began.elapsed().saturating_sub(slept);
        if late > MIN_RECORDED_HALT {
            self.state.board.halted_for(late);
        }
        let (mut answer, framing) = self.framed(nth, &body, closes);
        if trouble == Some(Trouble::Garbage) {
            // In one piece, so that the gateway has both before it uses the connection again.
            if body.len() < 1000 && framing != Framing::End {
                let extra = b"HTTP/1.1 200 OK\r\nX-Id: nobody\r\nContent-Length: 5\r\n\r\nwrong";
                answer.extend_from_slice(extra);
            }
        }
        if trouble == Some(Trouble::Slow) {
            for piece in answer.chunks(answer.len().div_ceil(10).max(1)) {
                self.send(piece)?;
                thread::sleep(Duration::from_millis(self.rng.within(1, 40)));
            }
        } else {
            self.send(&answer)?;
        }
        self.state.board.answer_ends(nth);
        if closes { self.close() } else { Ok(()) }
    }

    fn shed(mut self) -> io::Result<()> {
        let id = &self.request.id;
        let retry_after = if self.rng.percent(50) {
            "Retry-After: 1\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 503 Service Unavailable\r\nX-Id: {id}\r\n{retry_after}Content-Length: 0\r\n\r\n"
        );
        self.send(head.as_bytes())
    }

    /// Returns a complete response, the `nth` of all, framed in one of the ways.
    fn framed(&mut self, nth: u64, body: &[u8], closes: bool) -> (Vec<u8>, Framing) {
        let is_head = self.head.first_line.starts_with("HEAD");
        let framing = if is_head {
            Framing::Length
        } else if closes && self.rng.percent(50) {
            Framing::End
        } else {
            self.rng.pick(&[Framing::Length, Framing::Chunked])
        };
        let id = &self.request.id;
        let mut head = format!("HTTP/1.1 200 OK\r\nX-Id: {id}\r\nX-Nth: {nth}\r\n");
        match framing {
            Framing::Length => head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]),
            Framing::Chunked => head += "Transfer-Encoding: chunked\r\n",
            Framing::End => {}
        }
        if closes {
            head += "Connection: close\r\n";
        }
        let mut answer = (head + "\r\n").into_bytes();
        match framing {
            _ if is_head => {}
            Framing::Chunked => {
                for piece in body.chunks(7000) {
                    answer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    answer.extend_from_slice(piece);
                    answer.extend_from_slice(b"\r\n");
                }
                answer.extend_from_slice(b"0\r\n\r\n");
            }
            Framing::Length | Framing::End => answer.extend_from_slice(body),
        }
        (answer, framing)
    }

    /// Sends a part of the response, or nothing, and breaks the connection.
    fn break_off(mut self, body: &[u8]) -> io::Result<()> {
        let nth = self.state.board.answer_begins();
        let (answer, _) = self.framed(nth, body, false);
        let whole = u64::try_from(answer.len()).expect("it fits");
        let part = match self.rng.within(0, 3) {
            0 => 0,
            1 => self.rng.within(1, whole.min(20)),
            _ => self.rng.within(1, whole),
        };
        self.send(&answer[..usize::try_from(part).expect("it fits")])?;
        thread::sleep(Duration::from_millis(self.rng.within(0, 20)));
        if self.rng.percent(50) {
            set_socket_linger(self.stream, Some(Duration::ZERO))?;
            // The other handle would keep it open.
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.close()
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(bytes)
    }

    fn close(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)?;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Framing {
    Length,
    Chunked,
    /// The body ends with the connection.
    End,
}
