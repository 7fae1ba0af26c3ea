//! Makes small random changes to bytes.

use crate::support::rng::Rng;

/// Tokens that parsers look for, inserted at random.
const TOKENS: [&[u8]; 22] = [
    b"\r\n", b"\n", b"\r", b"\n\n", b" ", b"\t", b":", b": ", b",", b";", b"0", b"1", b"+", b"-",
    b"\0", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xff", b"\"", b"#?",
];
const LONG_TOKENS: [&[u8]; 7] = [
    b"\r\n\r\n",
    b"0\r\n\r\n",
    "\u{e9}".as_bytes(),
    b"chunked",
    b"close",
    b"keep-alive",
    b"HTTP/1.0",
];

/// Damages `bytes` at a few positions. `other`: source of inserted pieces.
pub fn damage(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.pick(&[1, 1, 2, 4]) {
        let at = index(rng, bytes.len() + 1);
        let longest = rng.pick(&[4, 4, 40, 400]);
        let count = index(rng, longest);
        let end = bytes.len().min(at + count);
        match rng.within(0, 9) {
            0..2 => drop(bytes.splice(at..at, rng.pick(&TOKENS).to_vec())),
            2 => drop(bytes.splice(at..at, rng.pick(&LONG_TOKENS).to_vec())),
            3 => drop(bytes.drain(at..end)),
            4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            5 => bytes.truncate(at),
            6 => {
                let from = index(rng, other.len() + 1);
                let piece = &other[from..other.len().min(from + count)];
                drop(bytes.splice(at..at, piece.to_vec()));
            }
            _ if bytes.is_empty() => {}
            7 => {
                let at = index(rng, bytes.len());
                bytes[at] ^= 1 << index(rng, 8);
            }
            _ => {
                let at = index(rng, bytes.len());
                bytes[at] = u8::try_from(index(rng, 256)).expect("a byte");
            }
        }
    }
}

fn index(rng: &mut Rng, below: usize) -> usize {
    let below = u64::try_from(below).expect("few");
    usize::try_from(rng.within(0, below)).expect("few")
}
