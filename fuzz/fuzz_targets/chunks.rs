//! Fuzzes the decoder of chunked bodies.
//!
//! A body must be decoded equally in one piece and in several pieces; the last bytes of the input
//! give their lengths. A body that is encoded again must be decoded to the same.

#![no_main]

use gateway::http::message::{BodyDecoder, BodyEncoder, BodyError, BodyLength, Buffer, Trailers};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, PartialEq)]
struct Decoded {
    data: Vec<u8>,
    used: usize,
    is_over: bool,
    trailers: Option<Trailers>,
    error: Option<BodyError>,
}

fuzz_target!(|bytes: &[u8]| {
    let cuts = &bytes[bytes.len().saturating_sub(8)..];
    let whole = decode(bytes, std::iter::once(usize::MAX));
    let lengths = cuts.iter().map(|cut| usize::from(*cut) + 1);
    let pieces = lengths.clone().chain(std::iter::repeat(1));
    assert_eq!(decode(bytes, pieces), without_count(&whole), "in pieces");
    let pieces = lengths.chain(std::iter::once(usize::MAX));
    assert_eq!(
        decode(bytes, pieces),
        without_count(&whole),
        "in few pieces"
    );
    if whole.is_over {
        let sent = encode(&whole, cuts);
        let again = decode(&sent, std::iter::once(usize::MAX));
        let used = sent.len();
        assert_eq!(again, Decoded { used, ..whole }, "sent on");
    }
});

/// Returns the result without the number of consumed bytes.
///
/// For an invalid body the decoder does not say how many bytes belonged to it.
fn without_count(decoded: &Decoded) -> Decoded {
    Decoded {
        data: decoded.data.clone(),
        trailers: decoded.trailers.clone(),
        ..*decoded
    }
}

fn decode(bytes: &[u8], cuts: impl Iterator<Item = usize>) -> Decoded {
    let mut decoder = BodyDecoder::new(BodyLength::Chunked);
    let (mut data, mut used, mut error) = (Vec::new(), 0, None);
    for cut in cuts {
        if decoder.is_over() || used == bytes.len() {
            break;
        }
        let end = bytes.len().min(used.saturating_add(cut));
        let mut piece = bytes[used..end].to_vec();
        match decoder.decode(&mut piece) {
            Ok((count, taken)) => {
                assert!(count <= taken && taken <= piece.len());
                assert!(taken == piece.len() || decoder.is_over());
                data.extend(&piece[..count]);
                used += taken;
            }
            Err(invalid) => {
                data.extend(&piece[..decoder.salvaged()]);
                (error, used) = (Some(invalid), 0);
                break;
            }
        }
    }
    Decoded {
        data,
        used,
        is_over: decoder.is_over(),
        trailers: decoder.trailers().cloned(),
        error,
    }
}

/// Encodes the same body in other chunks.
fn encode(body: &Decoded, cuts: &[u8]) -> Vec<u8> {
    let encoder = BodyEncoder::new(BodyLength::Chunked);
    let (mut sent, mut rest) = (Vec::new(), &body.data[..]);
    for cut in cuts.iter().copied().chain(std::iter::once(u8::MAX)).cycle() {
        if rest.is_empty() {
            break;
        }
        let (data, behind) = rest.split_at(rest.len().min(usize::from(cut) + 1));
        let mut piece = Buffer::take();
        if cut % 2 == 0 {
            piece.clear_for_body();
        }
        piece.put(data);
        encoder.frame(&mut piece);
        sent.extend(piece.filled());
        rest = behind;
    }
    let mut end = Buffer::take();
    encoder.finish(body.trailers.as_ref(), &mut end);
    sent.extend(end.filled());
    sent
}
