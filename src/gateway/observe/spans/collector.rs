//! A client that posts to a collector, on the thread that calls it.

use std::fmt::Write as _;
use std::future::ready;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{Request, Response, StatusCode, Uri};
use limit::Moment;
use opentelemetry_http::{HttpClient, HttpError};

use crate::time::clock;

/// Longest time for one request, once the name of the collector is resolved.
const LIMIT: Duration = Duration::from_secs(3);

/// Largest head of a response.
const LARGEST_HEAD: u64 = 16 * 1024;

/// Opens a connection for each request. It blocks, and is for a thread of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    /// Why the last request had no response. The crate that calls this does not pass it on.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Collector {
    /// Takes the reason why the last request had no response.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl HttpClient for Collector {
    fn send_bytes<'client, 'answer>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'answer>>
    where
        'client: 'answer,
        Self: 'answer,
    {
        let posted = post(&request).map_err(|error| {
            let kind = error.kind();
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some(error);
            HttpError::from(io::Error::from(kind))
        });
        Box::pin(ready(posted))
    }
}

/// Posts a request. The body of the response is not read: only its status matters.
fn post(request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
    let uri = request.uri();
    let mut stream = connect(uri)?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let host = uri.authority().map_or("", |host| host.as_str());
    let length = request.body().len();
    let mut head = format!(
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n"
    );
    for (name, value) in request.headers() {
        if name != CONTENT_LENGTH && name != HOST {
            let value = value.to_str().map_err(io::Error::other)?;
            write!(head, "{name}: {value}\r\n").map_err(io::Error::other)?;
        }
    }
    head += "\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status(stream)?;
    Ok(response)
}

/// A connection on which nothing blocks for longer than until a moment.
struct Timed {
    stream: TcpStream,
    until: Moment,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.since(clock::now()) {
            Duration::ZERO => Err(late()),
            left => Ok(Some(left)),
        }
    }
}

fn late() -> io::Error {
    let what = format!("the collector did not answer in {LIMIT:?}");
    io::Error::new(io::ErrorKind::TimedOut, what)
}

/// A socket's timeout is reported as if it did not block.
fn say_late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(say_late)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(say_late)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn connect(uri: &Uri) -> io::Result<Timed> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = (host, uri.port_u16().unwrap_or(80)).to_socket_addrs()?;
    let until = clock::now() + LIMIT;
    let mut failed = io::Error::other("the name has no addresses");
    for address in addresses {
        let left = until.since(clock::now());
        if left.is_zero() {
            return Err(late());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(Timed { stream, until }),
            Err(error) => failed = say_late(error),
        }
    }
    Err(failed)
}

/// The status of the response that a collector sends.
fn status(stream: impl Read) -> io::Result<StatusCode> {
    let mut head = Vec::new();
    let mut stream = stream.take(LARGEST_HEAD);
    let mut piece = [0; 1024];
    loop {
        let count = stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..count]);
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(&head).map_err(io::Error::other)?;
        match response.code {
            Some(code) if parsed.is_complete() => {
                return StatusCode::from_u16(code).map_err(io::Error::other);
            }
            _ if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}
