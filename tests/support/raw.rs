//! A connection over HTTP/1.1 on which the test reads and writes every byte.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::{PATIENCE, SOON, listen, now};

/// A connection on which the test reads and writes every byte, as a client or as an origin.
///
/// Accepts only messages framed as RFC 9112 says. Dropping it closes the connection.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A request or a response. Field names are in lower case; each char of a value is one byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub line: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
}

/// Way in which a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Reset,
}

/// Framing of a message's body.
enum Framing {
    Nothing,
    Length(usize),
    Chunks,
    UntilTheEnd,
}

impl Raw {
    pub fn connect(to: SocketAddr) -> Self {
        Self::over(TcpStream::connect(to).expect("the server accepts a connection"))
    }

    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("no delay");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the other side reads");
    }

    /// Sends bytes. Fails after a while if the peer has closed or does not read.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends each byte in a segment of its own.
    pub fn send_byte_by_byte(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            // The peer may close before the last byte.
            if self.try_send([*byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns the same connection, for another thread to send on.
    pub fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("a second handle")
    }

    /// Shuts down the sending side.
    pub fn shut_sending(&self) {
        let open = self.stream.shutdown(Shutdown::Write);
        open.expect("an open connection");
    }

    /// Ends the connection before this returns, as [`close`](super::close) does.
    ///
    /// A process that another thread starts may keep a dropped connection open.
    pub fn close(self) {
        super::close(&self.stream);
    }

    /// Shuts down both sides, if the connection is still open.
    pub fn shut(&self) {
        let _is_closed = self.stream.shutdown(Shutdown::Both);
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let linger = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        linger.expect("a socket");
    }

    /// Reads the first line and the fields; the body is not read yet.
    pub fn head(&mut self) -> Message {
        self.head_within(PATIENCE)
    }

    pub fn head_within(&mut self, limit: Duration) -> Message {
        let head = self.try_head(now() + limit);
        head.unwrap_or_else(|error| panic!("no head: {error}; there is {:?}", self.so_far()))
    }

    /// Reads a request with its body.
    pub fn request(&mut self) -> Message {
        let head = self.head();
        self.with_body(head)
    }

    /// Reads the body of a message whose head was read.
    pub fn with_body(&mut self, mut message: Message) -> Message {
        let framing = if message.is_chunked() {
            Framing::Chunks
        } else {
            message.length().map_or(Framing::Nothing, Framing::Length)
        };
        self.read_body(&mut message, &framing)
            .unwrap_or_else(|error| panic!("no body: {error}; {message:?}"));
        message
    }

    /// Reads a final response to a GET, with its body.
    pub fn answer(&mut self) -> Message {
        self.answer_to("GET")
    }

    pub fn answer_to(&mut self, method: &str) -> Message {
        let answer = self.try_answer_to(method, PATIENCE);
        answer.unwrap_or_else(|error| panic!("no answer: {error}; there is {:?}", self.so_far()))
    }

    /// Reads the final response, without interim ones. Fails if it is cut short or invalid.
    pub fn try_answer_to(&mut self, method: &str, limit: Duration) -> io::Result<Message> {
        let answers = self.try_answers_to(method, limit);
        answers.map(|(_, last)| last)
    }

    /// Reads the interim responses to a GET, in order, and the final one with its body.
    pub fn answers(&mut self) -> (Vec<Message>, Message) {
        let answers = self.try_answers_to("GET", PATIENCE);
        answers.unwrap_or_else(|error| panic!("no answer: {error}; there is {:?}", self.so_far()))
    }

    fn try_answers_to(
        &mut self,
        method: &str,
        limit: Duration,
    ) -> io::Result<(Vec<Message>, Message)> {
        let mut interim = Vec::new();
        let mut message = self.try_head(now() + limit)?;
        while message.status() < 200 && message.status() != 101 {
            let next = self.try_head(now() + limit)?;
            interim.push(std::mem::replace(&mut message, next));
        }
        let framing = message.framing(method);
        self.read_body(&mut message, &framing)?;
        Ok((interim, message))
    }

    fn read_body(&mut self, message: &mut Message, framing: &Framing) -> io::Result<()> {
        match framing {
            Framing::Nothing => {}
            Framing::Length(length) => message.body = self.try_exactly(*length)?,
            Framing::Chunks => self.read_chunks(message)?,
            Framing::UntilTheEnd => match self.end() {
                (body, End::Closed) => message.body = body,
                (_, End::Reset) => return Err(ErrorKind::ConnectionReset.into()),
            },
        }
        Ok(())
    }

    fn read_chunks(&mut self, message: &mut Message) -> io::Result<()> {
        loop {
            let size = self.try_line()?;
            let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            if size == 0 {
                break;
            }
            let piece = self.try_exactly(size)?;
            message.body.extend_from_slice(&piece);
            if !self.try_line()?.is_empty() {
                return Err(io::Error::other("something follows a chunk"));
            }
        }
        loop {
            let line = self.try_line()?;
            if line.is_empty() {
                return Ok(());
            }
            message.trailers.push(field(&line)?);
        }
    }

    /// Reads this many bytes.
    pub fn exactly(&mut self, length: usize) -> Vec<u8> {
        let bytes = self.try_exactly(length);
        bytes.unwrap_or_else(|error| {
            panic!("no {length} bytes: {error}; there is {:?}", self.so_far())
        })
    }

    fn try_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let deadline = now() + PATIENCE;
        while self.unread.len() < length {
            self.more(deadline)?;
        }
        Ok(self.unread.drain(..length).collect())
    }

    /// Reads the next line without its CRLF, if a complete one arrives soon.
    pub fn try_line(&mut self) -> io::Result<String> {
        let mut bytes = self.until(b"\n", now() + PATIENCE)?;
        bytes.pop();
        match bytes.pop() {
            Some(b'\r') if !bytes.contains(&b'\r') => Ok(text(&bytes)),
            _ => Err(io::Error::other(format!("no CRLF ends {:?}", text(&bytes)))),
        }
    }

    fn try_head(&mut self, deadline: Instant) -> io::Result<Message> {
        let bytes = self.until(b"\r\n\r\n", deadline)?;
        let all = text(&bytes);
        let mut lines = all[..all.len() - 4].split("\r\n");
        let mut message = Message {
            line: lines.next().unwrap_or_default().to_owned(),
            ..Message::default()
        };
        for line in lines {
            message.fields.push(field(line)?);
        }
        Ok(message)
    }

    /// Reads the bytes up to and including `mark`.
    fn until(&mut self, mark: &[u8], deadline: Instant) -> io::Result<Vec<u8>> {
        let mut from = 0;
        loop {
            let window = self.unread[from..].windows(mark.len());
            if let Some(at) = window.into_iter().position(|bytes| bytes == mark) {
                return Ok(self.unread.drain(..from + at + mark.len()).collect());
            }
            from = self.unread.len().saturating_sub(mark.len());
            self.more(deadline)?;
        }
    }

    fn more(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "nothing came in time"));
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 16 * 1024];
        match waiting(|| self.stream.read(&mut buffer)) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
            // The loop checks the deadline again.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits until `part` has arrived, without consuming it.
    pub fn wait_for(&mut self, part: &str) {
        let deadline = now() + PATIENCE;
        let there = |bytes: &[u8]| bytes.windows(part.len()).any(|at| at == part.as_bytes());
        while !there(&self.unread) {
            let came = self.more(deadline);
            came.unwrap_or_else(|error| {
                panic!("no {part:?}: {error}; there is {:?}", self.so_far())
            });
        }
    }

    /// Waits for the first bytes. Returns whether the connection ends without any.
    pub fn is_empty(&mut self) -> bool {
        self.unread.is_empty() && self.more(now() + PATIENCE).is_err()
    }

    /// Reads all bytes until the connection ends, which must be soon. Returns how it ended.
    pub fn end(&mut self) -> (Vec<u8>, End) {
        self.end_within(2 * SOON)
    }

    pub fn end_within(&mut self, limit: Duration) -> (Vec<u8>, End) {
        let deadline = now() + limit;
        let end = loop {
            match self.more(deadline) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break End::Closed,
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    panic!("still open after {limit:?}; there is {:?}", self.so_far())
                }
                Err(_) => break End::Reset,
            }
        };
        (std::mem::take(&mut self.unread), end)
    }

    /// Fails if bytes arrive, or the connection ends, within `span`.
    pub fn stays_quiet(&mut self, span: Duration) {
        let came = self.more(now() + span);
        assert!(came.is_ok(), "not open any more: {came:?}");
        assert_eq!(self.so_far(), "", "no bytes may arrive");
    }

    fn so_far(&self) -> String {
        text(&self.unread[..self.unread.len().min(2000)])
    }
}

impl Message {
    pub fn status(&self) -> u16 {
        let status = self.line.split(' ').nth(1).and_then(|it| it.parse().ok());
        status.unwrap_or_else(|| panic!("no status in {:?}", self.line))
    }

    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns all values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(found, _)| found == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value of a field that may appear once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} stands there twice: {self:?}");
        all.first().copied()
    }

    pub fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// Returns the names of all fields, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    pub fn is_chunked(&self) -> bool {
        self.field("transfer-encoding") == Some("chunked")
    }

    pub fn length(&self) -> Option<usize> {
        let length = self.field("content-length")?;
        Some(length.parse().expect("a length"))
    }

    /// Returns the framing of this response's body (RFC 9112, section 6.3).
    fn framing(&self, method: &str) -> Framing {
        let is_framed_twice = self.is_chunked() && self.has("content-length");
        assert!(!is_framed_twice, "a message is framed in one way: {self:?}");
        if method == "HEAD" || matches!(self.status(), 100..200 | 204 | 304) {
            Framing::Nothing
        } else if self.is_chunked() {
            Framing::Chunks
        } else {
            self.length().map_or(Framing::UntilTheEnd, Framing::Length)
        }
    }
}

/// An origin on which the test writes every byte.
pub struct RawOrigin {
    pub address: SocketAddr,
    connections: Receiver<TcpStream>,
    stopped: Arc<AtomicBool>,
}

impl RawOrigin {
    pub fn start() -> Self {
        let listener = listen("127.0.0.1:0");
        let address = listener.local_addr().expect("an address");
        let stopped = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stopped);
        let (came, connections) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if to_stop.load(Ordering::SeqCst) || came.send(stream).is_err() {
                    break;
                }
            }
        });
        Self {
            address,
            connections,
            stopped,
        }
    }

    /// Accepts the next connection, which must arrive soon.
    pub fn accept(&self) -> Raw {
        let stream = waiting(|| self.connections.recv_timeout(PATIENCE));
        Raw::over(stream.expect("the proxy connects to the origin"))
    }

    /// Accepts a connection that has arrived, or arrives within `span`.
    pub fn accept_within(&self, span: Duration) -> Option<Raw> {
        waiting(|| self.connections.recv_timeout(span))
            .ok()
            .map(Raw::over)
    }
}

/// Waits for something that blocks the thread.
///
/// In a test on an async runtime its other tasks continue meanwhile. A task that was just woken
/// would otherwise stay with this thread.
fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(runtime, Ok(RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    }
}

/// An address at which connecting neither succeeds nor fails. Ends when dropped.
pub struct DeafOrigin {
    pub address: SocketAddr,
    _listener: TcpListener,
    _in_its_backlog: Vec<TcpStream>,
}

impl DeafOrigin {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        rustix::net::listen(&listener, 0).expect("a shorter backlog");
        let address = listener.local_addr().expect("an address");
        let mut backlog = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            backlog.push(stream);
            assert!(backlog.len() < 16, "the backlog has no end");
        }
        Self {
            address,
            _listener: listener,
            _in_its_backlog: backlog,
        }
    }
}

impl Drop for RawOrigin {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, if it still exists.
        let _result = TcpStream::connect(self.address);
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn field(line: &str) -> io::Result<(String, String)> {
    let odd = || io::Error::other(format!("no field: {line:?}"));
    let (name, value) = line.split_once(':').ok_or_else(odd)?;
    if name.is_empty() || name.contains([' ', '\t']) || line.contains(['\r', '\n', '\0']) {
        return Err(odd());
    }
    let value = value.trim_matches([' ', '\t']);
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}
