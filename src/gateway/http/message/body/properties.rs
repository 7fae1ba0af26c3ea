//! Property tests of decoding and encoding bodies.

use proptest::prelude::*;
use testing::{bytes, config};

use super::*;

/// Result of decoding bytes that came in pieces.
#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    data: Vec<u8>,
    used: usize,
    is_over: bool,
    trailers: Option<Trailers>,
}

/// Decodes `bytes`, cut into pieces of the lengths in `cuts`.
///
/// An error is returned with the data before it.
fn decode(
    length: BodyLength,
    bytes: &[u8],
    cuts: &[usize],
) -> Result<Decoded, (BodyError, Vec<u8>)> {
    let mut decoder = BodyDecoder::new(length);
    let (mut data, mut used) = (Vec::new(), 0);
    for cut in cuts.iter().cycle() {
        if decoder.is_over() || used == bytes.len() {
            break;
        }
        // Reads only bytes that certainly belong to the body, as a connection does.
        let limit = decoder.read_limit().min(*cut);
        let end = bytes.len().min(used.saturating_add(limit));
        let mut piece = bytes[used..end].to_vec();
        let result = decoder.decode(&mut piece);
        let (count, taken) = result.map_err(|error| {
            let salvaged = &piece[..decoder.salvaged()];
            (error, [&data[..], salvaged].concat())
        })?;
        assert!(taken == piece.len() || decoder.is_over());
        data.extend(&piece[..count]);
        used += taken;
    }
    Ok(Decoded {
        data,
        used,
        is_over: decoder.is_over(),
        trailers: decoder.trailers().cloned(),
    })
}

/// Encodes the pieces of a body in one of three ways each, and then the end of the body.
fn encode(length: BodyLength, pieces: &[(Vec<u8>, u8)], trailers: Option<&Trailers>) -> Vec<u8> {
    let encoder = BodyEncoder::new(length);
    let mut sent = Vec::new();
    for (data, way) in pieces {
        // In the third way, there is no headroom for the size of a chunk.
        let mut piece = Buffer::take();
        if *way == 0 {
            encoder.put(data, &mut piece);
        } else {
            if *way == 1 {
                piece.clear_for_body();
            }
            piece.put(data);
            encoder.frame(&mut piece);
        }
        sent.extend(piece.filled());
    }
    let mut end = Buffer::take();
    encoder.finish(trailers, &mut end);
    sent.extend(end.filled());
    sent
}

/// Generates pieces of a body, each with the way to encode it.
fn pieces() -> impl Strategy<Value = Vec<(Vec<u8>, u8)>> {
    let data = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 0..40_000usize).prop_map(|(byte, count)| vec![byte; count]),
    ];
    prop::collection::vec((data, 0..3u8), 0..6)
}

/// Generates lengths of pieces that arrive.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    let cut = prop_oneof![4 => 1..20usize, 1 => 1..40_000usize];
    prop::collection::vec(cut, 1..10)
}

/// Generates trailers.
fn fields() -> impl Strategy<Value = Trailers> {
    let field = ("[xy][-a-z]{0,8}", "([!-~]([ -~]{0,8}[!-~])?)?");
    prop::collection::vec(field, 0..4).prop_map(|fields| {
        let mut trailers = Trailers::default();
        for (name, value) in fields {
            trailers.push(name.as_bytes(), value.as_bytes());
        }
        trailers
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn encoded_chunks_are_decoded_unchanged(
        pieces in pieces(),
        trailers in fields(),
        after in prop::collection::vec(any::<u8>(), 0..20),
        cuts in cuts(),
    ) {
        let mut sent = encode(BodyLength::Chunked, &pieces, Some(&trailers));
        let used = sent.len();
        sent.extend(after);
        let data = pieces.into_iter().flat_map(|(data, _)| data).collect();
        let trailers = (!trailers.is_empty()).then_some(trailers);
        let expected = Decoded { data, used, is_over: true, trailers };
        prop_assert_eq!(decode(BodyLength::Chunked, &sent, &cuts), Ok(expected));
    }

    #[test]
    fn a_body_with_a_length_is_not_framed(
        pieces in pieces(),
        after in prop::collection::vec(any::<u8>(), 0..20),
        cuts in cuts(),
    ) {
        let data: Vec<u8> = pieces.iter().flat_map(|(data, _)| data.clone()).collect();
        let length = BodyLength::Length(data.len() as u64);
        let mut sent = encode(length, &pieces, None);
        prop_assert_eq!(&sent, &data);
        sent.extend(after);
        let expected = Decoded { used: data.len(), data, is_over: true, trailers: None };
        prop_assert_eq!(decode(length, &sent, &cuts), Ok(expected));
    }

    #[test]
    fn any_bytes_are_the_same_body_in_any_pieces(
        bytes in bytes("chunks"),
        length in prop_oneof![
            3 => prop::sample::select(vec![BodyLength::None, BodyLength::Chunked, BodyLength::UntilClose]),
            1 => (0..300u64).prop_map(BodyLength::Length),
        ],
        cuts in cuts(),
    ) {
        let whole = decode(length, &bytes, &[usize::MAX]);
        prop_assert_eq!(&decode(length, &bytes, &cuts), &whole);
        if let (Ok(whole), Some(length)) = (whole, length.exact()) {
            let taken = usize::try_from(length).unwrap().min(bytes.len());
            prop_assert_eq!(&whole.data, &bytes[..taken]);
            prop_assert_eq!(whole.is_over, taken as u64 == length);
        }
    }
}

/// Bytes after a body are not read with it if its end is known.
#[test]
fn a_connection_that_ends_completes_only_bodies_without_another_end() {
    let cut_short = Err(BodyError::CutShort);
    for (length, read_limit, expected) in [
        (BodyLength::None, usize::MAX, Ok(())),
        (BodyLength::Length(0), usize::MAX, Ok(())),
        (BodyLength::UntilClose, usize::MAX, Ok(())),
        (BodyLength::Length(5), 5, cut_short),
        (BodyLength::Length(u64::MAX), usize::MAX, cut_short),
        (BodyLength::Chunked, usize::MAX, cut_short),
    ] {
        let mut decoder = BodyDecoder::new(length);
        assert_eq!(decoder.read_limit(), read_limit, "{length:?}");
        assert_eq!(decoder.end_of_connection(), expected, "{length:?}");
        assert_eq!(decoder.is_over(), expected.is_ok(), "{length:?}");
    }
}

#[test]
fn malformed_trailers_do_not_end_a_body() {
    let body = b"1\r\na\r\n0\r\nno colon\r\n\r\n";
    for cut in [1, 3, usize::MAX] {
        let decoded = decode(BodyLength::Chunked, body, &[cut]);
        assert_eq!(decoded, Err((BodyError::Chunks, b"a".to_vec())), "{cut}");
    }
}
