//! How bytes are cut into what comes with one read.

use crate::support::night::some_of;
use crate::support::rng::Rng;

fn cut(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect()
}

/// All at once, byte by byte, and in two pieces with each fourth cut, by night with each possible cut.
pub fn each(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let in_two = |at: usize| vec![bytes[..at].to_vec(), bytes[at..].to_vec()];
    let mut all = vec![cut(bytes, bytes.len()), cut(bytes, 1)];
    all.extend(some_of(1..bytes.len().min(300), 4).map(in_two));
    all
}

/// In pieces of any length.
pub fn any(rng: &mut Rng, bytes: Vec<u8>) -> Vec<Vec<u8>> {
    match rng.within(0, 10) {
        0..4 => vec![bytes],
        4 if bytes.len() < 2000 => cut(&bytes, 1),
        _ => {
            let longest = rng.pick(&[4, 20, 100, 1000]).max(bytes.len() as u64 / 100);
            let (mut pieces, mut at) = (Vec::new(), 0);
            while at < bytes.len() {
                let size = usize::try_from(rng.within(1, longest)).expect("few");
                let end = bytes.len().min(at + size);
                pieces.push(bytes[at..end].to_vec());
                at = end;
            }
            pieces
        }
    }
}
