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
