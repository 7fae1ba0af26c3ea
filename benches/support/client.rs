//! A client's connection, which sends one request after the other.
//!
//! It is written by hand instead of with hyper, so that a client costs little compared with the
//! proxy. It parses only the parts of a response that the measurements need.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tls::{self, Alpn};

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Plain,
    Tls,
}

trait Socket: AsyncRead + AsyncWrite + Debug + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Socket for T {}

/// A connection that is kept between requests.
#[derive(Debug)]
pub struct Connection {
    transport: Transport,
    to: SocketAddr,
    /// `None`: not connected.
    stream: Option<Box<dyn Socket>>,
    /// Bytes of the last response.
    read: Vec<u8>,
}

impl Connection {
    pub fn new(to: SocketAddr) -> Self {
        Self::with_transport(Transport::Plain, to)
    }

    pub fn with_transport(transport: Transport, to: SocketAddr) -> Self {
        Self {
            transport,
            to,
            stream: None,
            read: Vec::with_capacity(2048),
        }
    }

    /// Connects if there is no connection.
    pub async fn open(&mut self) -> io::Result<()> {
        if self.stream.is_none() {
            self.stream = Some(match self.transport {
                Transport::Plain => Box::new(connect_plain(self.to).await?),
                Transport::Tls => Box::new(tls::connect(self.to, Alpn::Http1).await?),
            });
        }
        Ok(())
    }

    /// Sends a request and reads its response.
    ///
    /// Returns the status. Connects if there is no connection.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        // The connection is put back only after a complete response. A request that is given up
        // closes its connection.
        self.open().await?;
        let broken = || io::Error::from(io::ErrorKind::NotConnected);
        let mut stream = self.stream.take().ok_or_else(broken)?;
        stream.write_all(request).await?;
        // TLS may still buffer some bytes.
        stream.flush().await?;
        self.read.clear();
        let head = loop {
            if let Some(end) = memmem::find(&self.read, b"\r\n\r\n") {
                break Head::of(&self.read[..end], end + 4)?;
            }
            read_more(&mut stream, &mut self.read).await?;
        };
        while self.read.len() < head.total_length {
            read_more(&mut stream, &mut self.read).await?;
        }
        if head.is_kept {
            self.stream = Some(stream);
        }
        Ok(head.status)
    }
}

impl Connection {
    /// Returns the value of a field of the last response, if the response has the field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.read)
            .ok()?
            .split("\r\n\r\n")
            .next()?;
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The parts of a response's head that matter here.
struct Head {
    status: u16,
    /// Length of head and body, in bytes.
    total_length: usize,
    is_kept: bool,
}

impl Head {
    /// Parses a head. `length`: its length with the empty line at its end.
    fn of(text: &[u8], length: usize) -> io::Result<Self> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let status = text.get(9..12).and_then(number).ok_or_else(broken)?;
        let (mut body_length, mut is_kept) = (None, true);
        for line in text.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                body_length = number(value);
            } else if name.eq_ignore_ascii_case(b"connection") {
                is_kept = !value.eq_ignore_ascii_case(b"close");
            }
        }
        Ok(Self {
            status: u16::try_from(status).map_err(|_| broken())?,
            // All servers used here send a length.
            total_length: length + body_length.ok_or_else(broken)?,
            is_kept,
        })
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Opens a TCP connection without Nagle's algorithm: writes are sent at once.
pub async fn connect_plain(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads further bytes of a response. Fails if the connection has ended.
async fn read_more(stream: &mut Box<dyn Socket>, read: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(read).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
