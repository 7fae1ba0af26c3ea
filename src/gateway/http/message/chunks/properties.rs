//! Property tests of the chunked decoder with any bytes.

use proptest::prelude::*;
use testing::config;

use super::*;
use crate::http::message::fields::without_blanks;

/// Result of decoding: the data, the number of bytes of the body, and the final state.
type Decoded = Result<(Vec<u8>, usize, Chunks), InvalidChunk>;

/// Decodes `bytes`, cut into pieces of the lengths in `cuts`, as from a connection.
fn decode(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Decoded {
    let (mut chunks, mut data, mut at) = (Chunks::default(), Vec::new(), 0);
    for cut in cuts {
        if at == bytes.len() || chunks.is_over() {
            break;
        }
        let mut piece = bytes[at..bytes.len().min(at.saturating_add(cut))].to_vec();
        let (length, used) = chunks.decode(&mut piece)?;
        assert!(length <= used && used <= piece.len());
        assert!(used == piece.len() || chunks.is_over());
        data.extend(&piece[..length]);
        at += used;
    }
    Ok((data, at, chunks))
}

/// Returns the size of a chunk from its size line, which is given without its line ending.
fn naive_size(line: &[u8]) -> Option<usize> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (size, rest) = line.split_at(digits.count());
    let blanks = rest.iter().take_while(|byte| b" \t".contains(byte));
    let extension = &rest[blanks.count()..];
    let is_good = (1..=15).contains(&size.len())
        && (extension.is_empty() || extension[0] == b';')
        && extension
            .iter()
            .all(|byte| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f);
    let size = str::from_utf8(size).ok().filter(|_| is_good)?;
    usize::from_str_radix(size, 16).ok()
}

/// A complete chunked body, as parsed line by line by a simple second implementation.
struct Naive<'a> {
    data: Vec<u8>,
    /// Lines after the last chunk.
    lines: Vec<&'a [u8]>,
    end: usize,
}

/// Parses the chunked body at the start of `bytes`, if it is complete.
fn naive(bytes: &[u8]) -> Option<Naive<'_>> {
    let mut at = 0;
    let line = |at: &mut usize| {
        let length = bytes[*at..].iter().position(|byte| *byte == b'\n')?;
        let line = bytes[*at..*at + length].strip_suffix(b"\r");
        *at += length + 1;
        line.filter(|line| !line.contains(&b'\r'))
    };
    let mut data = Vec::new();
    loop {
        let size = naive_size(line(&mut at)?)?;
        if size == 0 {
            break;
        }
        let end = at.checked_add(size)?;
        data.extend(bytes.get(at..end)?);
        at = end;
        if bytes.get(at..at + 2)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
    let mut lines = Vec::new();
    loop {
        match line(&mut at)? {
            b"" => break,
            trailer => lines.push(trailer),
        }
    }
    let end = at;
    Some(Naive { data, lines, end })
}

/// Parses the trailers in these lines; `None` if one is malformed, or if they are too many.
fn naive_trailers(lines: &[&[u8]]) -> Option<Trailers> {
    let mut trailers = Trailers::default();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let is_text = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
        if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_text) {
            return None;
        }
        trailers.push(name, without_blanks(&value[1..]));
    }
    (lines.len() <= 128).then_some(trailers)
}

fn holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let whole = decode(bytes, [usize::MAX]);
    let shown = String::from_utf8_lossy(bytes);
    // Byte by byte, and in two pieces, cut at various offsets.
    prop_assert_eq!(&decode(bytes, std::iter::repeat(1)), &whole, "{}", shown);
    for cut in (1..bytes.len()).step_by(1 + bytes.len() / 100) {
        let in_two = decode(bytes, [cut, usize::MAX]);
        prop_assert_eq!(&in_two, &whole, "{} {}", cut, shown);
    }
    let naive = naive(bytes);
    if let Ok((data, used, chunks)) = whole {
        prop_assert!(used == bytes.len() || chunks.is_over());
        prop_assert_eq!(naive.is_some(), chunks.is_over(), "{}", shown);
        if let Some(naive) = naive {
            prop_assert_eq!((data, used), (naive.data, naive.end), "{}", shown);
            // A chunked body ends with an empty line.
            prop_assert!(bytes[..used].ends_with(b"\r\n\r\n"));
            let trailers = naive_trailers(&naive.lines);
            prop_assert_eq!(chunks.trailers().ok(), trailers, "{}", shown);
        }
    } else {
        // A complete body is rejected only for its size limits.
        prop_assert!(naive.is_none() || bytes.len() > MAX_OVERHEAD, "{}", shown);
    }
    Ok(())
}

#[test]
fn the_corpus_of_heads_holds() {
    testing::replay("heads", holds);
}

testing::property_of_bytes!(any_chunks_are_the_same_in_any_pieces, "chunks", holds);

#[test]
fn extensions_and_trailers_have_a_bound() {
    let decode = |text: &str| {
        let (_, _, chunks) = decode(text.as_bytes(), [usize::MAX])?;
        chunks.is_over().then(|| chunks.trailers()).transpose()
    };
    let fits = "a".repeat(MAX_OVERHEAD - 100);
    let long = "a".repeat(MAX_OVERHEAD);
    for text in ["1;{}\r\nx\r\n0\r\n\r\n", "1\r\nx\r\n0\r\na: {}\r\n\r\n"] {
        assert!(decode(&text.replace("{}", &fits)).is_ok(), "{text}");
        let refused = decode(&text.replace("{}", &long));
        assert_eq!(refused.err(), Some(InvalidChunk), "{text}");
    }
    // Many small extensions count together, and blanks count, too.
    let many = "1;aaaaaaa\r\nx\r\n".repeat(MAX_OVERHEAD / 8 + 1);
    assert_eq!(decode(&many).err(), Some(InvalidChunk));
    let blanks = format!("1{}\r\n", " ".repeat(MAX_OVERHEAD + 1));
    assert_eq!(decode(&blanks).err(), Some(InvalidChunk));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nearly_valid_chunks_are_the_same_in_any_pieces(
        lines in prop::collection::vec("([0-3a]|00|)[ \t;]{0,2}(a|\r)?(\r\n|\r\n|\r\n|\n|\r)(a|ab|a:b|)(\r\n|\r\n|)", 0..6),
    ) {
        holds(format!("{}0\r\n\r\n", lines.concat()).as_bytes())?;
    }
}
