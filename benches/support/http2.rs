//! A client's HTTP/2 connection, with a few streams that each repeat their request.
//!
//! A stream sends its next request as soon as the last one is answered. The client is written by
//! hand instead of with h2, so that it costs little compared with the proxy. RFC 9113 defines the
//! frames, RFC 7541 the fields.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::answers::Outcome;
use super::tls::{self, Alpn};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;

// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

// Flags. ACK applies to SETTINGS and PING.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

const INITIAL_WINDOW_SIZE: u16 = 4;
/// Window larger than all that a connection reads in a run, so no window is ever widened.
const MAX_WINDOW: u32 = (1 << 31) - 1;
const DEFAULT_WINDOW: u32 = (1 << 16) - 1;

/// A connection and its open streams.
#[derive(Debug)]
pub struct Connection<S = TlsStream<TcpStream>> {
    socket: S,
    path: &'static str,
    /// Bytes that the next write sends.
    write: Vec<u8>,
    read: Vec<u8>,
    next_stream: u32,
    /// Key of the first request. It is in the server's dynamic table.
    first_key: Option<u64>,
    /// Streams with a status other than 200.
    not_ok: Vec<u32>,
}

impl Connection {
    pub async fn open(to: SocketAddr, path: &'static str) -> io::Result<Self> {
        Ok(Self::with_socket(
            tls::connect(to, Alpn::Http2).await?,
            path,
        ))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Uses a connected socket. The first call of `outcomes` sends the preface.
    pub fn with_socket(socket: S, path: &'static str) -> Self {
        let mut write = PREFACE.to_vec();
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(MAX_WINDOW.to_be_bytes());
        write_frame(&mut write, SETTINGS, 0, 0, &settings);
        let increment = (MAX_WINDOW - DEFAULT_WINDOW).to_be_bytes();
        write_frame(&mut write, WINDOW_UPDATE, 0, 0, &increment);
        Self {
            socket,
            path,
            write,
            read: Vec::with_capacity(1 << 14),
            next_stream: 1,
            first_key: None,
            not_ok: Vec::new(),
        }
    }

    /// Opens a stream with a request. The next call of `outcomes` sends it.
    pub fn open_stream(&mut self, key: u64) {
        let block = self.fields(key);
        let flags = END_STREAM | END_HEADERS;
        write_frame(&mut self.write, HEADERS, flags, self.next_stream, &block);
        self.next_stream += 2;
    }

    /// The request's fields, compressed.
    ///
    /// Like a browser, the client puts the fields of its first request into the server's table.
    fn fields(&mut self, key: u64) -> Vec<u8> {
        const GET: u8 = 0x82;
        const HTTPS: u8 = 0x87;
        // The dynamic table begins at 62, with the field that was added last.
        const PATH: u8 = 0x80 + 64;
        const AUTHORITY: u8 = 0x80 + 63;
        const X_KEY: u8 = 0x80 + 62;
        let digits = key.to_string();
        match self.first_key {
            None => {
                self.first_key = Some(key);
                let mut block = vec![GET, HTTPS, 0x40 + 4];
                write_text(&mut block, self.path);
                block.push(0x40 + 1);
                write_text(&mut block, "bench");
                block.push(0x40);
                write_text(&mut block, "x-key");
                write_text(&mut block, &digits);
                block
            }
            Some(first) if first == key => vec![GET, HTTPS, PATH, AUTHORITY, X_KEY],
            Some(_) => {
                // The name comes from the table, the value does not. Index 62 is encoded with a
                // prefix of four bits and one more byte.
                let mut block = vec![GET, HTTPS, PATH, AUTHORITY, 0x0F, 62 - 0x0F];
                write_text(&mut block, &digits);
                block
            }
        }
    }

    /// Sends the requests. Returns the outcomes of the streams that the next bytes end.
    pub async fn outcomes(&mut self) -> io::Result<Vec<Outcome>> {
        if !self.write.is_empty() {
            self.socket.write_all(&self.write).await?;
            self.socket.flush().await?;
            self.write.clear();
        }
        if self.socket.read_buf(&mut self.read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = std::mem::take(&mut self.read);
        let (mut rest, mut ended) = (read.as_slice(), Vec::new());
        while let Some((frame, after)) = Frame::first_of(rest) {
            rest = after;
            ended.extend(self.process(&frame)?);
        }
        self.read = rest.to_vec();
        Ok(ended)
    }

    /// Processes a frame. Returns the outcome of its stream, if the frame ends it.
    fn process(&mut self, frame: &Frame) -> io::Result<Option<Outcome>> {
        match frame.kind {
            HEADERS if !frame.is_ok() => self.not_ok.push(frame.stream),
            SETTINGS if frame.flags & ACK == 0 => self.acknowledge(SETTINGS, &[]),
            PING if frame.flags & ACK == 0 => self.acknowledge(PING, frame.payload),
            RST_STREAM => return Ok(Some(Outcome::Failed)),
            GOAWAY => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
        if !matches!(frame.kind, HEADERS | DATA) || frame.flags & END_STREAM == 0 {
            return Ok(None);
        }
        let index = self
            .not_ok
            .iter()
            .position(|stream| *stream == frame.stream);
        let status = match index {
            // To know the exact status, the client would need a field table.
            Some(index) => {
                self.not_ok.swap_remove(index);
                0
            }
            None => 200,
        };
        Ok(Some(Outcome::Answered(status)))
    }

    /// Sends the acknowledgement of a frame.
    fn acknowledge(&mut self, kind: u8, payload: &[u8]) {
        write_frame(&mut self.write, kind, ACK, 0, payload);
    }
}

/// A frame that was read.
struct Frame<'r> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'r [u8],
}

impl<'r> Frame<'r> {
    /// The first frame of `read`, and the bytes after it; `None` if the frame is not complete.
    fn first_of(read: &'r [u8]) -> Option<(Self, &'r [u8])> {
        let (head, rest) = read.split_first_chunk::<FRAME_HEAD>()?;
        let [high, middle, low, kind, flags, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        let stream = u32::from_be_bytes(stream) & MAX_WINDOW;
        let frame = Self {
            kind,
            flags,
            stream,
            payload,
        };
        Some((frame, rest))
    }

    /// Whether the fields begin with `:status: 200`.
    ///
    /// Servers encode it by its index in the static table.
    fn is_ok(&self) -> bool {
        const STATUS_200: u8 = 0x88;
        let padding = usize::from(self.flags & PADDED != 0);
        let priority = if self.flags & PRIORITY == 0 { 0 } else { 5 };
        self.payload.get(padding + priority) == Some(&STATUS_200)
    }
}

/// Appends a frame.
fn write_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    out.extend(length);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Appends an uncompressed string of less than 127 bytes.
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(u8::try_from(text.len()).unwrap_or(0));
    out.extend(text.as_bytes());
}
