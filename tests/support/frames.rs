//! HTTP/2 frame by frame, on both sides, including frames that no library would send.
//!
//! The format is that of RFC 9113, sections 4 and 6.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Gateway, PATIENCE};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// First bytes of a client's connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame as it was received.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 9];
        from.read_exact(&mut head)?;
        let number = |bytes: &[u8]| {
            let each = bytes.iter();
            each.fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
        };
        let mut payload = vec![0; number(&head[..3]) as usize];
        from.read_exact(&mut payload)?;
        Ok(Self {
            kind: head[3],
            flags: head[4],
            stream: number(&head[5..]),
            payload,
        })
    }

    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Returns the error code of a `RST_STREAM`, or of a `GOAWAY` after its last stream.
    fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        let code = self.payload.get(at..at + 4).unwrap_or_default();
        code.iter()
            .fold(0, |code, byte| code << 8 | u32::from(*byte))
    }

    /// Returns the status of a head whose first field is the status.
    ///
    /// Heads of drip and of this file have it first. The dynamic table is not read, so the reader's
    /// setting for its size must be zero.
    pub fn status(&self) -> Option<u16> {
        let mut bytes = self
            .payload
            .iter()
            .copied()
            .skip_while(|byte| byte >> 5 == 1);
        match bytes.next()? {
            indexed @ 0x88..=0x8e => {
                Some([200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)])
            }
            // The name is in the static table, and the value follows.
            literal if matches!(literal & 0x3f, 8..=14) => {
                let length = bytes.next()?;
                let value: Vec<u8> = bytes.take(usize::from(length & 0x7f)).collect();
                let digits = if length & 0x80 == 0 {
                    String::from_utf8(value).ok()?
                } else {
                    huffman_digits(&value)?
                };
                digits.parse().ok()
            }
            _ => None,
        }
    }
}

/// Decodes digits by the Huffman code of RFC 7541, appendix B.
fn huffman_digits(coded: &[u8]) -> Option<String> {
    let bits: Vec<_> = coded.iter().map(|byte| format!("{byte:08b}")).collect();
    let (bits, mut digits) = (bits.concat(), String::new());
    let mut rest = &*bits;
    while digits.len() < 3 {
        let (length, least, first) = match rest.get(..5)? {
            "00000" | "00001" | "00010" => (5, 0, 0),
            _ => (6, 0b01_1001, 3),
        };
        let (code, behind) = rest.split_at_checked(length)?;
        let digit = u32::from_str_radix(code, 2).ok()?.checked_sub(least)? + first;
        digits.push(char::from_digit(digit, 10)?);
        rest = behind;
    }
    Some(digits)
}

/// Returns the bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = u32::try_from(payload.len()).expect("a short frame");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns a field as a literal without indexing.
pub fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name.as_ref(), value.as_ref()] {
        let length = text.len();
        if length < 127 {
            bytes.push(u8::try_from(length).expect("short"));
        } else {
            bytes.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).expect("seven bits") | 0x80);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).expect("seven bits"));
        }
        bytes.extend(text);
    }
    bytes
}

/// Returns a block of fields.
pub fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect()
}

/// Returns a `HEADERS` frame. `flags` are set in addition to `END_HEADERS`.
pub fn head<N: AsRef<[u8]>, V: AsRef<[u8]>>(stream: u32, flags: u8, fields: &[(N, V)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, block(fields))
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, code.to_be_bytes())
}

/// Returns a complete response with the body `ok`.
pub fn ok(stream: u32) -> Vec<u8> {
    let fields = [(":status", "200"), ("content-length", "2")];
    [
        head(stream, 0, &fields),
        frame(DATA, END_STREAM, stream, "ok"),
    ]
    .concat()
}

/// Returns a `GOAWAY`. `last`: the last stream that the sender has processed.
pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(
        GOAWAY,
        0,
        0,
        [last.to_be_bytes(), code.to_be_bytes()].concat(),
    )
}

pub fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, by.to_be_bytes())
}

pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let each = settings.iter();
    let payload = each.flat_map(|(name, value)| {
        [name.to_be_bytes().to_vec(), value.to_be_bytes().to_vec()].concat()
    });
    frame(SETTINGS, 0, 0, payload.collect::<Vec<_>>())
}

/// The bytes to and from the peer.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One end of a connection over HTTP/2. Dropping it closes the connection.
pub struct Frames(Box<dyn Stream>);

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The final head had this status.
    Status(u16),
    /// The stream was reset with this code.
    Reset(u32),
    /// The connection ended, with this code if one was received.
    Closed(Option<u32>),
}

impl Frames {
    pub fn over(stream: impl Stream + 'static) -> Self {
        Self(Box::new(stream))
    }

    /// Connects as a client with prior knowledge.
    pub fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).expect("the gateway accepts a connection");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        let mut client = Self::over(stream);
        client.begin();
        client
    }

    /// Sends the start of a client's connection.
    pub fn begin(&mut self) {
        // Without a dynamic table, each head can be read alone.
        let first = [PREFACE, &settings(&[(1, 0)])].concat();
        self.send(first).expect("the other side reads");
    }

    /// Reads the start of a client's connection.
    pub fn expect_client(&mut self) -> io::Result<()> {
        let mut preface = [0; PREFACE.len()];
        self.0.read_exact(&mut preface)?;
        assert_eq!(preface, PREFACE);
        Ok(())
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())?;
        self.0.flush()
    }

    /// Returns the next frame that is not only about the connection. Answers settings and pings.
    pub fn next(&mut self) -> io::Result<Frame> {
        loop {
            let next = Frame::read(&mut self.0)?;
            match next.kind {
                SETTINGS if next.flags & ACK == 0 => self.send(frame(SETTINGS, ACK, 0, []))?,
                PING if next.flags & ACK == 0 => self.send(frame(PING, ACK, 0, next.payload))?,
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => return Ok(next),
            }
        }
    }

    /// Returns the outcome of the request on a stream. Ignores frames of other streams.
    pub fn outcome(&mut self, stream: u32) -> Outcome {
        let mut received = None;
        loop {
            match self.next() {
                Ok(it) if it.kind == GOAWAY => received = Some(it.code()),
                Ok(it) if it.stream == stream && it.kind == RST_STREAM => {
                    return Outcome::Reset(it.code());
                }
                Ok(it) if it.stream == stream && it.kind == HEADERS => {
                    let status = it.status().expect("a status that this can read");
                    if status >= 200 {
                        return Outcome::Status(status);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("nothing came of stream {stream}");
                }
                Err(_) => return Outcome::Closed(received),
            }
        }
    }

    /// Reads the body of the response whose head was read, or returns how it was cut off.
    pub fn body(&mut self, stream: u32) -> Result<Vec<u8>, Outcome> {
        let mut body = Vec::new();
        loop {
            match self.next() {
                Ok(it) if it.stream == stream && it.kind == DATA => {
                    let is_over = it.ends_stream();
                    body.extend(it.payload);
                    if is_over {
                        return Ok(body);
                    }
                }
                Ok(it) if it.stream == stream && it.kind == RST_STREAM => {
                    return Err(Outcome::Reset(it.code()));
                }
                Ok(it) if it.stream == stream && it.ends_stream() => return Ok(body),
                Ok(_) => {}
                Err(_) => return Err(Outcome::Closed(None)),
            }
        }
    }
}

/// Returns the fields of a request to the host `test`.
pub fn request<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [
        (":method", method),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
    ]
}

/// Returns the fields of a gRPC call.
pub fn call(path: &str) -> Vec<(&str, &str)> {
    let more = [("content-type", "application/grpc"), ("te", "trailers")];
    [&request("POST", path)[..], &more].concat()
}

/// Returns a GET of `path` that opens `stream`.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    head(stream, END_STREAM, &request("GET", path))
}

/// Connects a client that sends `count` requests and gives no window for the responses.
pub fn without_window(gateway: &Gateway, path: &str, count: u32) -> Frames {
    let mut client = Frames::connect(gateway.address());
    let none = settings(&[(INITIAL_WINDOW_SIZE, 0)]);
    client.send(none).expect("the gateway reads");
    for nth in 0..count {
        let request = get(2 * nth + 1, path);
        client.send(request).expect("the gateway reads");
    }
    client
}
