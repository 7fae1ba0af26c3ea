//! What must hold of any bytes that may be a request.

use proptest::prelude::*;

use super::*;
use crate::testing::{bytes, config, corpus, replay};

/// How a head frames its body: a length, or `None` for chunks; an error where it is refused, without the reason.
fn naive(head: &[u8]) -> Result<Option<u64>, ()> {
    // Told by text, of which each byte is a letter.
    let text = head
        .iter()
        .map(|byte| char::from(*byte))
        .collect::<String>();
    let mut lines = text.split_inclusive('\n');
    let mut line = || match lines.next() {
        Some(line) if line.ends_with('\n') => line.strip_suffix("\r\n").ok_or(()).map(Some),
        _ => Ok(None),
    };
    let first = line()?.filter(|first| !first.contains('#')).ok_or(())?;
    let (mut lengths, mut codings, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(field) = line()?.filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once(':').ok_or(())?;
        if name.trim_matches([' ', '\t', '\r', '\x0c']) != name || name.is_empty() {
            return Err(());
        }
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "content-length" => lengths.push(value.to_owned()),
            "transfer-encoding" => codings.push(value.to_ascii_lowercase()),
            _ => {}
        }
        count += 1;
    }
    if count > MOST_FIELDS {
        return Err(());
    }
    let mut numbers = Vec::new();
    for length in lengths {
        if length.is_empty() || length.contains(|c: char| !c.is_ascii_digit()) {
            return Err(());
        }
        numbers.push(length.parse::<u64>().map_err(|_| ())?);
    }
    numbers.dedup();
    match (numbers.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Some(0)),
        ([length], []) => Ok(Some(*length)),
        ([], [coding]) if coding == "chunked" && !first.ends_with("HTTP/1.0") => Ok(None),
        _ => Err(()),
    }
}

fn head_holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let end = end_of_head(bytes, 0);
    for searched in 0..end.unwrap_or(bytes.len()).min(300) {
        prop_assert_eq!(end_of_head(bytes, searched), end, "{}", searched);
    }
    let empty = empty_lines(bytes);
    prop_assert!(
        bytes[..empty].chunks(2).all(|two| two == b"\r\n") && !bytes[empty..].starts_with(b"\r\n")
    );
    let Some(head) = end.map(|end| &bytes[..end]) else {
        let _ = body_after(bytes);
        return Ok(());
    };
    let read = body_after(head);
    let told = match &read {
        Ok(Body::Length(length)) => Ok(Some(*length)),
        Ok(Body::Chunked(_)) => Ok(None),
        Err(_) => Err(()),
    };
    prop_assert_eq!(told, naive(head), "{:?}", String::from_utf8_lossy(head));
    if read.is_ok() {
        let bare = |at: usize| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r');
        prop_assert!(!(0..head.len()).any(bare));
        // What follows the head does not change what it says.
        prop_assert_eq!(
            body_after(&[head, b"Content-Length: 7\r\n\r\n"].concat()),
            read
        );
    }
    Ok(())
}

fn chunks_hold(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut whole = Chunks::default();
    let taken = whole.take(bytes);
    let mut cut = Chunks::default();
    let mut count = 0;
    let failed = bytes.iter().find_map(|byte| match cut.take(&[*byte]) {
        Ok(taken) => {
            count += taken;
            None
        }
        Err(refusal) => Some(refusal),
    });
    match taken {
        Ok(taken) => {
            prop_assert_eq!(failed, None);
            prop_assert_eq!(taken, count);
            prop_assert_eq!(&whole, &cut);
            prop_assert!(taken == bytes.len() || whole.is_over());
            // A chunked body ends with an empty line, and with no byte before.
            prop_assert!(!whole.is_over() || bytes[..taken].ends_with(b"\r\n\r\n"));
        }
        Err(refusal) => prop_assert_eq!(failed, Some(refusal)),
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay("heads", head_holds);
    replay("chunks", chunks_hold);
    for (name, head) in corpus("heads") {
        chunks_hold(&head).unwrap_or_else(|error| panic!("heads/{name}: {error}"));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_head_is_framed_as_a_naive_reader_frames_it(bytes in bytes("heads")) {
        head_holds(&bytes)?;
    }

    #[test]
    fn so_is_one_of_fields_that_frame(
        fields in prop::collection::vec(
            "(content-length|Transfer-Encoding|x)[ \t\x0b\x0c\r\n]?:[ \t\x0b\x0c\r]?(5|6|05|chunked|Chunked|)[ \t\x0b\x0c\r,]?(\r\n|\r\n|\r\n|\n)",
            0..4,
        ),
        old: bool,
    ) {
        let version = if old { "0" } else { "1" };
        head_holds(format!("POST / HTTP/1.{version}\r\n{}\r\n", fields.concat()).as_bytes())?;
    }

    #[test]
    fn any_chunks_are_the_same_in_any_pieces(bytes in bytes("chunks")) {
        chunks_hold(&bytes)?;
    }
}
