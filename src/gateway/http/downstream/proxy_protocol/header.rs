//! Parser of the PROXY protocol's header: version 1 is text, version 2 is binary.
//!
//! In the texts of the errors, "it" is the header.

use std::iter::repeat_n;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// Result of parsing the header of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The proxy forwards a connection between two IP addresses.
    Proxied {
        /// Address of the client.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
    /// The header names no IP addresses: the proxy's own connection, or one from a unix socket.
    Own,
}

/// Reason why bytes are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidHeader {
    /// The bytes do not begin like a header of either version.
    #[error("it begins with something else")]
    Missing,
    /// The header is longer than [`MAX`], or than 107 bytes in version 1.
    #[error("it is too long")]
    TooLong,
    /// The header violates the rules of its version.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// The checksum does not match the header.
    #[error("its checksum is wrong")]
    Checksum,
}

use InvalidHeader::{Checksum, Malformed, Missing, TooLong};

/// Maximum length of a header, in bytes. nginx has the same limit.
///
/// Version 2 allows 65,551 bytes, of which addresses take at most 216.
pub const MAX: usize = 4096;

/// Start of a version 1 header.
const TEXT_START: &[u8] = b"PROXY ";
/// Maximum length of a version 1 header, with its line end.
const MAX_TEXT: usize = 107;
/// Start of a version 2 header.
const BINARY_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Parses the header at the start of `bytes`. Returns the header and its length.
///
/// Returns `None` if more bytes are needed. A header without IP addresses of a stream is
/// [`ProxyHeader::Own`]. The rules are those of haproxy's `doc/proxy-protocol.txt`, section 2.
///
/// # Errors
///
/// Returns an error as soon as no further bytes can make this a header.
pub fn parse(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, InvalidHeader> {
    let may_begin_with = |start: &[u8]| bytes.iter().zip(start).all(|(byte, known)| byte == known);
    if may_begin_with(TEXT_START) {
        parse_text(bytes)
    } else if may_begin_with(BINARY_START) {
        parse_binary(bytes)
    } else {
        Err(Missing)
    }
}

/// Parses version 1: one line of text.
fn parse_text(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, InvalidHeader> {
    let within = &bytes[..bytes.len().min(MAX_TEXT)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        let is_full = within.len() == MAX_TEXT;
        return if is_full { Err(TooLong) } else { Ok(None) };
    };
    let line = within[..end].strip_suffix(b"\r");
    let line = line.ok_or(Malformed("its line does not end with CR and LF"))?;
    let header = match line.strip_prefix(b"PROXY UNKNOWN") {
        // A proxy may write anything after `UNKNOWN`.
        Some([] | [b' ', ..]) => ProxyHeader::Own,
        _ => parse_line(line).ok_or(Malformed("its line does not name two addresses and ports"))?,
    };
    Ok(Some((header, end + 1)))
}

/// Parses `PROXY TCP4 SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT`, or the same with `TCP6`.
fn parse_line(line: &[u8]) -> Option<ProxyHeader> {
    let mut words = str::from_utf8(line).ok()?.split(' ').skip(1);
    let mut word = || words.next();
    let address: fn(&str) -> Option<IpAddr> = match word()? {
        "TCP4" => |word| word.parse().ok().map(IpAddr::V4),
        "TCP6" => |word| word.parse().ok().map(IpAddr::V6),
        _ => return None,
    };
    let (source, destination) = (address(word()?)?, address(word()?)?);
    let (source_port, destination_port) = (parse_port(word()?)?, parse_port(word()?)?);
    word().is_none().then_some(ProxyHeader::Proxied {
        source: (source, source_port).into(),
        destination: (destination, destination_port).into(),
    })
}

/// Parses a port without a sign or leading zeros.
fn parse_port(word: &str) -> Option<u16> {
    let is_plain = word == "0" || word.starts_with(|first| matches!(first, '1'..='9'));
    word.parse().ok().filter(|_| is_plain)
}

/// Parses version 2: 16 bytes, addresses, and further fields, each with its type and length.
fn parse_binary(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, InvalidHeader> {
    // Version 2 in the high half, and the command in the low half.
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    // The family in the high half, and the transport in the low half: here a stream.
    const TCP_OVER_IPV4: u8 = 0x11;
    const TCP_OVER_IPV6: u8 = 0x21;

    let Some((fixed, rest)) = bytes.split_first_chunk::<16>() else {
        return Ok(None);
    };
    let [command, protocol, high, low] = [fixed[12], fixed[13], fixed[14], fixed[15]];
    if !matches!(command, LOCAL | PROXY) {
        return Err(Malformed("it has an unknown version or command"));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    let end = fixed.len() + length;
    if end > MAX {
        return Err(TooLong);
    }
    let Some(block) = rest.get(..length) else {
        return Ok(None);
    };
    if command == LOCAL {
        return Ok(Some((ProxyHeader::Own, end)));
    }
    // The families are none (0), IPv4, IPv6 and unix. The transports are none, stream and datagram.
    // The sizes are those of two addresses. Each IP address has a port of 2 bytes.
    let size = match (protocol >> 4, protocol & 0xf) {
        (0, 0..=2) => return Ok(Some((ProxyHeader::Own, end))),
        (1, 0..=2) => 2 * (4 + 2),
        (2, 0..=2) => 2 * (16 + 2),
        (3, 0..=2) => 2 * 108,
        _ => return Err(Malformed("it has an unknown family or transport")),
    };
    let Some((addresses, _)) = block.split_at_checked(size) else {
        return Err(Malformed("it is too short for its addresses"));
    };
    check_fields(&bytes[..end], fixed.len() + size)?;
    let header = match protocol {
        TCP_OVER_IPV4 => parse_addresses::<4>(addresses),
        TCP_OVER_IPV6 => parse_addresses::<16>(addresses),
        _ => None,
    };
    Ok(Some((header.unwrap_or(ProxyHeader::Own), end)))
}

/// Parses two addresses of `N` bytes each, followed by their ports.
fn parse_addresses<const N: usize>(bytes: &[u8]) -> Option<ProxyHeader>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = bytes.split_first_chunk::<N>()?;
    let (destination, ports) = rest.split_first_chunk::<N>()?;
    let [source_high, source_low, high, low] = *ports.first_chunk()?;
    let address = |bytes: &[u8; N]| IpAddr::from(*bytes);
    Some(ProxyHeader::Proxied {
        source: (
            address(source),
            u16::from_be_bytes([source_high, source_low]),
        )
            .into(),
        destination: (address(destination), u16::from_be_bytes([high, low])).into(),
    })
}

/// Checks that the further fields fill the header exactly, and the checksum if there is one.
///
/// `next`: index of the first field. A field is a type, the length of its value, and the value.
fn check_fields(header: &[u8], mut next: usize) -> Result<(), InvalidHeader> {
    const CHECKSUM: u8 = 3;

    while next < header.len() {
        let field = header[next..].split_first_chunk::<3>();
        let field = field.and_then(|([kind, high, low], rest)| {
            let value = rest.get(..usize::from(u16::from_be_bytes([*high, *low])))?;
            Some((*kind, value))
        });
        let (kind, value) = field.ok_or(Malformed("a field in it does not end within it"))?;
        // Index of the field's value.
        let start = next + 3;
        next = start + value.len();
        if kind == CHECKSUM {
            let written = value.try_into().ok().map(u32::from_be_bytes);
            // The sender computed the checksum with zeros in its position.
            let zeros = repeat_n(&0, value.len());
            let zeroed = header[..start].iter().chain(zeros).chain(&header[next..]);
            if written != Some(crc32c(zeroed.copied())) {
                return Err(Checksum);
            }
        }
    }
    Ok(())
}

/// Computes CRC-32C (RFC 3720, appendix B.4) bit by bit: few proxies write a checksum.
fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests;
