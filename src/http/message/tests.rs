use proptest::prelude::*;

use super::*;

fn head(lines: &str) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).into_bytes()
}

#[test]
fn a_head_ends_at_its_first_empty_line_however_it_comes() {
    for whole in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\n\n",
        "GET /\n\r\n",
        "\n\n",
    ] {
        let bytes = format!("{whole}POST / HTTP/1.1\r\n\r\n").into_bytes();
        for come in 0..bytes.len() {
            for searched in 0..come {
                let expected = (come >= whole.len()).then_some(whole.len());
                if searched < whole.len() {
                    assert_eq!(
                        end_of_head(&bytes[..come], searched),
                        expected,
                        "{whole:?} {come} {searched}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_head_tells_how_its_body_is_framed() {
    let cases = [
        ("GET / HTTP/1.1\nhost: a", Body::Length(0)),
        ("POST / HTTP/1.1\ncontent-length: 5", Body::Length(5)),
        ("POST / HTTP/1.0\nContent-Length:5 ", Body::Length(5)),
        (
            "POST / HTTP/1.1\ncontent-length: 5\ncontent-length: 5",
            Body::Length(5),
        ),
        (
            "POST / HTTP/1.1\ntransfer-encoding: chunked",
            Body::Chunked(Chunks::default()),
        ),
        (
            "POST / HTTP/1.1\nTRANSFER-ENCODING:\tChunked",
            Body::Chunked(Chunks::default()),
        ),
        (
            "POST / HTTP/1.1\nx-content-length: x\nx: content-length: 9",
            Body::Length(0),
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(body_after(&head(lines)), Ok(expected), "{lines}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for lines in [
        "content-length: 5\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\ncontent-length: 5",
        "content-length: 5\ncontent-length: 6",
        "content-length: 5, 5",
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length:",
        "content-length: 18446744073709551616",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\ntransfer-encoding: chunked",
        "transfer-encoding: identity",
        "transfer-encoding:",
        "transfer-encoding : chunked",
        "content-length : 5",
        "a: b\n c: d",
        "a: b\n\tcontent-length: 5",
        "no colon",
        ": no name",
    ] {
        let found = body_after(&head(&format!("POST / HTTP/1.1\nhost: a\n{lines}")));
        assert_eq!(found, Err(Refusal::Malformed), "{lines:?}");
    }
    for value in ["\x0c5", "5\x0c", "5\r", "\x0b5"] {
        let lengths = head(&format!("POST / HTTP/1.1\ncontent-length:{value}"));
        assert_eq!(body_after(&lengths), Err(Refusal::Malformed), "{value:?}");
        let coding = value.replace('5', "chunked");
        let codings = head(&format!("POST / HTTP/1.1\ntransfer-encoding:{coding}"));
        assert_eq!(body_after(&codings), Err(Refusal::Malformed), "{value:?}");
    }
    let old = head("POST / HTTP/1.0\ntransfer-encoding: chunked");
    assert_eq!(body_after(&old), Err(Refusal::Malformed));
    for bare in [
        "GET / HTTP/1.1\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\n",
    ] {
        assert_eq!(
            body_after(bare.as_bytes()),
            Err(Refusal::Malformed),
            "{bare:?}"
        );
    }
}

#[test]
fn ninety_six_fields_are_taken_and_one_more_is_too_large() {
    let fields = |count| head(&format!("GET / HTTP/1.1{}", "\na: b".repeat(count)));
    assert_eq!(body_after(&fields(96)), Ok(Body::Length(0)));
    assert_eq!(body_after(&fields(97)), Err(Refusal::HeadTooLarge));
}

/// How much of `text` belongs to a chunked body, and whether it is over then.
fn chunked(text: &str) -> Result<(usize, bool), Refusal> {
    let mut body = Body::Chunked(Chunks::default());
    let taken = body.take(text.as_bytes())?;
    Ok((taken, body.is_over()))
}

#[test]
fn chunks_are_read_to_their_end() {
    let cases = [
        ("0\r\n\r\n", true),
        ("5\r\nhello\r\n0\r\n\r\n", true),
        ("A;name=\"value\"\r\n0123456789\r\n000\r\n\r\n", true),
        ("1 \r\nx\r\n0\r\nchecksum: 1\r\nx: y\r\n\r\n", true),
        ("5\r\nhel", false),
        ("5\r\nhello\r\n0\r\n", false),
    ];
    for (text, over) in cases {
        assert_eq!(chunked(text), Ok((text.len(), over)), "{text:?}");
        if over {
            assert_eq!(
                chunked(&format!("{text}GET /")),
                Ok((text.len(), true)),
                "{text:?}"
            );
        }
    }
}

#[test]
fn chunks_that_are_none_are_refused() {
    for text in [
        "\r\n",
        ";\r\n",
        " 5\r\n",
        "+5\r\n",
        "0x5\r\n",
        "g\r\n",
        "5\nhello",
        "5\r\nhelloX",
        "5\r\nhello\n",
        "5\r\nhello\r\n\r\n",
        "0\r\n\n",
        "0\r\na: b\n",
        "0\r\n\rX",
        "5;a\n",
        "ffffffffffffffffff\r\n",
    ] {
        assert_eq!(chunked(text), Err(Refusal::Malformed), "{text:?}");
    }
    let long = format!("1;{}\r\n", "a".repeat(20_000));
    assert_eq!(chunked(&long), Err(Refusal::Malformed));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However the bytes are cut into pieces, the same ones belong to the body.
    #[test]
    fn cuts_change_nothing(
        chunks in prop::collection::vec((1..600usize, any::<bool>()), 0..5),
        after in prop::collection::vec(any::<u8>(), 0..20),
        cuts in prop::collection::vec(1..50usize, 1..20),
    ) {
        let mut whole = Vec::new();
        for (size, extended) in chunks {
            whole.extend(format!("{size:x}{}\r\n", if extended { ";a=b" } else { "" }).bytes());
            whole.extend(std::iter::repeat_n(b'\n', size));
            whole.extend(b"\r\n");
        }
        whole.extend(b"0\r\na: b\r\n\r\n");
        let length = whole.len();
        whole.extend(after);
        let (mut body, mut at, mut cuts) = (Body::Chunked(Chunks::default()), 0, cuts.into_iter().cycle());
        while !body.is_over() {
            let piece = cuts.next().unwrap().min(whole.len() - at);
            at += body.take(&whole[at..at + piece]).unwrap();
        }
        prop_assert_eq!(at, length);
    }

    /// No bytes make it panic or take more than there is.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), start in 0..6usize) {
        let mut head = [&b""[..], b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.0\r\ncontent-length: ", b"\r\n\r\n",
            b"POST / HTTP/1.1\r\ntransfer-encoding: ", b"a: b\r\n "][start].to_vec();
        head.extend(&bytes);
        let end = end_of_head(&head, 0);
        prop_assert!(end.is_none_or(|end| end <= head.len()));
        let _ = body_after(&head);
        let mut chunks = Body::Chunked(Chunks::default());
        if let Ok(taken) = chunks.take(&bytes) {
            prop_assert!(taken == bytes.len() || chunks.is_over());
        }
    }
}
