//! The content of requests and responses, unique for each.

use std::io::{self, Write};

/// What a request asks for, encoded in its target.
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

/// FNV-1a, and the length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checksum(u64, usize);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325, 0)
    }
}

impl Checksum {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
        self.1 += bytes.len();
    }

    pub fn of(bytes: &[u8]) -> u64 {
        let mut checksum = Self::default();
        checksum.add(bytes);
        checksum.0
    }

    /// The body of the answer to a POST whose body had this checksum.
    pub fn echo(&self, id: &str) -> Vec<u8> {
        format!("{id} {:016x} {}\n", self.0, self.1).into_bytes()
    }
}

/// A body of this size, unlike that of any other id.
pub fn pattern(id: &str, size: usize) -> Vec<u8> {
    let line = format!("{id}/");
    line.bytes().cycle().take(size).collect()
}

/// The head and body of a POST of `size` bytes, in chunks or with its length.
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
