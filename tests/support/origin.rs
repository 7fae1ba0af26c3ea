//! An origin over HTTP/1.1 that records the instant of each request.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::wire::Head;
use super::{PATIENCE, close, listen, note_pauses, now};

/// A request as the origin received it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Instant at which the complete head had arrived.
    pub at: Instant,
    pub target: String,
    /// Number of its connection, from 0 in the order of arrival.
    pub connection: usize,
}

/// An origin on its own port that records each request as it arrives.
///
/// A dropped origin accepts no more connections. Existing ones continue.
pub struct Origin {
    /// `None` for a unix socket.
    pub address: SocketAddr,
    seen: Arc<Seen>,
    stopped: Arc<AtomicBool>,
    listening: OwnedFd,
    accepting: Option<thread::JoinHandle<()>>,
}

/// The bytes to and from the gateway.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

#[derive(Default)]
struct Seen {
    arrivals: Mutex<Vec<Arrival>>,
    more: Condvar,
}

/// One request at the origin that must be answered.
pub struct Exchange {
    pub head: Head,
    /// Number of requests that this connection has carried, including this one.
    pub nth: usize,
    /// Number of its connection, as in [`Arrival`].
    pub connection: usize,
    reader: BufReader<Box<dyn Stream>>,
}

impl Origin {
    /// Starts an origin that answers everything with `ok`.
    pub fn start() -> Self {
        Self::answering(|exchange| exchange.reply(b"ok"))
    }

    /// Starts an origin that answers with the body of the request.
    pub fn echo() -> Self {
        Self::answering(|exchange| {
            let body = exchange.body()?;
            exchange.reply(&body)
        })
    }

    /// Starts an origin that answers with the length of the request's body.
    pub fn counting() -> Self {
        Self::answering(|exchange| {
            let length = exchange.body()?.len();
            exchange.reply(length.to_string().as_bytes())
        })
    }

    /// Starts an origin that answers with `answer`. If `answer` fails, the connection is closed.
    pub fn answering(
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", answer)
    }

    /// Starts the same origin at an address chosen by the test.
    pub fn at(
        address: &str,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::over_tcp(address, |tcp| Ok(Box::new(tcp)), answer)
    }

    /// Starts the same origin at a socket file.
    pub fn at_unix(
        path: &Path,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let listening = listener.try_clone().expect("a socket");
        let accept = move || Ok(Box::new(listener.accept()?.0) as Box<dyn Stream>);
        let address = SocketAddr::from(([0; 4], 0));
        Self::new(address, accept, listening.into(), answer)
    }

    /// Starts the same origin over TLS.
    pub fn with_tls(
        address: &str,
        config: Arc<ServerConfig>,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let encrypt = move |tcp| -> io::Result<Box<dyn Stream>> {
            let tls = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
            Ok(Box::new(StreamOwned::new(tls, tcp)))
        };
        Self::over_tcp(address, encrypt, answer)
    }

    fn over_tcp(
        address: &str,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + 'static,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        note_pauses();
        let listener = listen(address);
        let address = listener.local_addr().expect("an address");
        let listening = listener.try_clone().expect("a socket");
        let accept = move || {
            let (tcp, _) = listener.accept()?;
            tcp.set_nodelay(true)?;
            wrap(tcp)
        };
        Self::new(address, accept, listening.into(), answer)
    }

    fn new(
        address: SocketAddr,
        accept: impl Fn() -> io::Result<Box<dyn Stream>> + Send + 'static,
        listening: OwnedFd,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let (seen, stopped) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        let (to_see, to_stop, answer) = (Arc::clone(&seen), Arc::clone(&stopped), Arc::new(answer));
        let accepting = thread::spawn(move || {
            for connection in 0.. {
                let stream = accept();
                if to_stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (seen, answer) = (Arc::clone(&to_see), Arc::clone(&answer));
                thread::spawn(move || serve(stream, connection, &seen, answer.as_ref()));
            }
        });
        Self {
            address,
            seen,
            stopped,
            listening,
            accepting: Some(accepting),
        }
    }

    /// Returns all requests so far, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = self.seen.arrivals.lock().expect("no panic").clone();
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    /// Returns the arrivals of requests whose target contains `part`.
    pub fn moments(&self, part: &str) -> Vec<Instant> {
        self.arrivals()
            .iter()
            .filter(|arrival| arrival.target.contains(part))
            .map(|arrival| arrival.at)
            .collect()
    }

    /// Waits until `count` requests have arrived.
    pub fn wait_for(&self, count: usize) {
        self.wait_within(count, PATIENCE);
    }

    pub fn wait_within(&self, count: usize, limit: Duration) {
        let arrivals = self.seen.arrivals.lock().expect("no panic");
        let waited = self
            .seen
            .more
            .wait_timeout_while(arrivals, limit, |arrivals| arrivals.len() < count);
        let (arrivals, timeout) = waited.expect("no panic");
        assert!(
            !timeout.timed_out(),
            "{} requests at the origin in {limit:?}, not {count}",
            arrivals.len()
        );
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Also wakes the thread.
        close(&self.listening);
        let _ended = self.accepting.take().map(thread::JoinHandle::join);
    }
}

impl Exchange {
    pub fn target(&self) -> &str {
        self.head.first_line.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    pub fn body(&mut self) -> io::Result<Vec<u8>> {
        self.head.read_body(&mut self.reader)
    }

    /// Reads the body piece by piece.
    pub fn pass_body(&mut self, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.head.pass_body(&mut self.reader, take)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    /// Returns the bytes that the gateway still sends.
    pub fn stream(&mut self) -> &mut impl Read {
        &mut self.reader
    }

    pub fn reply(&mut self, body: &[u8]) -> io::Result<()> {
        let mut reply =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        reply.extend_from_slice(body);
        self.send(&reply)
    }

    /// Returns the error that makes the origin close the connection.
    pub fn close() -> io::Result<()> {
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

fn serve(
    stream: Box<dyn Stream>,
    connection: usize,
    seen: &Seen,
    answer: impl Fn(&mut Exchange) -> io::Result<()>,
) {
    let mut reader = BufReader::new(stream);
    for nth in 1.. {
        let Ok(Some(head)) = Head::read(&mut reader) else {
            return;
        };
        let mut exchange = Exchange {
            head,
            nth,
            connection,
            reader,
        };
        let arrival = Arrival {
            at: now(),
            target: exchange.target().to_owned(),
            connection,
        };
        seen.arrivals.lock().expect("no panic").push(arrival);
        seen.more.notify_all();
        if answer(&mut exchange).is_err() {
            return;
        }
        reader = exchange.reader;
    }
}
