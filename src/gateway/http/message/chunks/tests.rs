use super::*;

/// Decodes a chunked body: its data, its length in `text`, and whether it is complete.
fn decode(text: &str) -> Result<(String, usize, bool), InvalidChunk> {
    let mut chunks = Chunks::default();
    let mut bytes = text.as_bytes().to_vec();
    let (data, used) = chunks.decode(&mut bytes)?;
    let is_over = chunks.is_over();
    if is_over {
        chunks.trailers()?;
    }
    bytes.truncate(data);
    Ok((String::from_utf8(bytes).unwrap(), used, is_over))
}

#[test]
fn chunks_are_read_to_their_end() {
    let cases = [
        ("0\r\n\r\n", "", true),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", true),
        ("5\r\nhello\r\n3\r\n, w\r\n0\r\n\r\n", "hello, w", true),
        (
            "A;name=\"value\"\r\n0123456789\r\n000\r\n\r\n",
            "0123456789",
            true,
        ),
        ("a ; b\r\n0123456789\r\n0;c\r\n\r\n", "0123456789", true),
        ("1 \r\nx\r\n0\r\nchecksum: 1\r\nx: y\r\n\r\n", "x", true),
        ("000000000000001\r\nx\r\n0\t\r\n\r\n", "x", true),
        ("1;\r\nx\r\n0;;\r\n\r\n", "x", true),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", true),
        ("5\r\nhel", "hel", false),
        ("5\r\nhello\r\n0\r\n", "hello", false),
        ("5\r\nhello\r\n0\r\na: b\r\n", "hello", false),
        ("", "", false),
    ];
    for (text, data, over) in cases {
        let expected = (data.to_owned(), text.len(), over);
        assert_eq!(decode(text), Ok(expected.clone()), "{text:?}");
        if over {
            assert_eq!(decode(&format!("{text}GET /")), Ok(expected), "{text:?}");
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
        "-5\r\n",
        "0x5\r\n",
        "g\r\n",
        "5g\r\n",
        "5,5\r\n",
        "5\nhello",
        "5\rhello",
        "5\r\nhelloX",
        "5\r\nhello\n",
        "5\r\nhello\rX",
        "5\r\nhello\r\n\r\n",
        "0\r\n\n",
        "0\r\na: b\n",
        "0\r\n\rX",
        "0\r\na: b\rX",
        "5;a\n",
        "5;a\rb\r\n",
        "5;a\0\r\n",
        "5;a\x7f\r\n",
        // Blanks may come before an extension, but not within a size or before anything else.
        "5 5\r\n",
        "5 x\r\n",
        "5 \n",
        "ffffffffffffffffff\r\n",
        "0000000000000001\r\n",
        // Trailers must be fields.
        "0\r\nno colon\r\n\r\n",
        "0\r\n: no name\r\n\r\n",
        "0\r\na : b\r\n\r\n",
        "0\r\n a: b\r\n\r\n",
        "0\r\na: b\r\n c\r\n\r\n",
        "0\r\na: \u{1}\r\n\r\n",
    ] {
        assert_eq!(decode(text), Err(InvalidChunk), "{text:?}");
    }
}

#[test]
fn extensions_and_trailers_have_a_bound() {
    let fits = "a".repeat(MAX_OVERHEAD - 100);
    let long = "a".repeat(MAX_OVERHEAD);
    for text in ["1;{}\r\nx\r\n0\r\n\r\n", "1\r\nx\r\n0\r\na: {}\r\n\r\n"] {
        assert!(decode(&text.replace("{}", &fits)).is_ok(), "{text}");
        let refused = decode(&text.replace("{}", &long));
        assert_eq!(refused, Err(InvalidChunk), "{text}");
    }
    // Many small extensions count together, and blanks count, too.
    let many = "1;aaaaaaa\r\nx\r\n".repeat(MAX_OVERHEAD / 8 + 1);
    assert_eq!(decode(&many), Err(InvalidChunk));
    let blanks = format!("1{}\r\n", " ".repeat(MAX_OVERHEAD + 1));
    assert_eq!(decode(&blanks), Err(InvalidChunk));
}

#[test]
fn so_many_trailers_are_taken() {
    let trailers = |count| format!("0\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(decode(&trailers(128)).is_ok());
    assert_eq!(decode(&trailers(129)), Err(InvalidChunk));
}
