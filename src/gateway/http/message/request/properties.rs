//! Property tests of the request parser with any bytes.

use proptest::prelude::*;
use testing::config;

use super::super::framing::{empty_lines, end_of_head};
use super::*;

/// Head as parsed line by line by a simple second implementation.
#[derive(Debug, PartialEq, Eq)]
struct Naive {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    /// Length of the body; `None` for chunks.
    length: Option<u64>,
}

/// Parses `head`, each byte as one character. All rejections are the same error.
fn naive(head: &[u8]) -> Result<Naive, ()> {
    let text: String = head.iter().map(|byte| char::from(*byte)).collect();
    let mut lines = text.split_inclusive('\n');
    let mut line = || match lines.next() {
        Some(line) if line.ends_with('\n') => line.strip_suffix("\r\n").ok_or(()).map(Some),
        _ => Ok(None),
    };
    let first = line()?.ok_or(())?;
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(());
    };
    let is_method = is_token(method) && !method.contains(|c: char| c.is_ascii_lowercase());
    if !is_method || !is_target(method, target) {
        return Err(());
    }
    let is_old = match version {
        "HTTP/1.0" => true,
        "HTTP/1.1" => false,
        _ => return Err(()),
    };
    let mut fields = Vec::new();
    while let Some(field) = line()?.filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once(':').ok_or(())?;
        let is_text = |c: char| c == '\t' || c >= ' ' && c != '\x7f';
        if !is_token(name) || !value.chars().all(is_text) {
            return Err(());
        }
        let value = value.trim_matches([' ', '\t']);
        fields.push((name.to_owned(), value.to_owned()));
    }
    if fields.len() > MAX_REQUEST_FIELDS {
        return Err(());
    }
    Ok(Naive {
        length: naive_length(&fields, is_old)?,
        method: method.to_owned(),
        target: target.to_owned(),
        fields,
    })
}

fn is_token(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_letter)
}

fn is_target(method: &str, target: &str) -> bool {
    if target.is_empty() || target.contains(|c| c <= ' ' || c == '\x7f') {
        return false;
    }
    if method == "CONNECT" || target == "*" {
        return true;
    }
    let is_absolute = || {
        let (scheme, rest) = target.split_once("://")?;
        let mut scheme = scheme.chars();
        let is_scheme = scheme.next()?.is_ascii_alphabetic()
            && scheme.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        Some(is_scheme && rest.starts_with(|c| c != '/' && c != '?'))
    };
    !target.contains('#') && (target.starts_with('/') || is_absolute().unwrap_or(false))
}

fn naive_length(fields: &[(String, String)], is_old: bool) -> Result<Option<u64>, ()> {
    let all = |expected: &str| {
        let is_named = |(name, _): &&(String, _)| name.eq_ignore_ascii_case(expected);
        let named = fields.iter().filter(is_named);
        named.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let mut lengths = all("content-length");
    lengths.dedup();
    match (&lengths[..], &all("transfer-encoding")[..]) {
        ([], []) => Ok(Some(0)),
        ([length], []) if length.chars().all(|c| c.is_ascii_digit()) => {
            Ok(Some(length.parse().map_err(|_| ())?))
        }
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") && !is_old => Ok(None),
        _ => Err(()),
    }
}

/// Converts a parsed head to the form of the second implementation.
fn summary(head: &RequestHead) -> Naive {
    let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    let fields = head.fields().iter();
    let fields = fields.map(|(_, name, value)| (text(name), text(value)));
    Naive {
        method: text(head.method()),
        target: text(head.target()),
        fields: fields.collect(),
        length: head.length().exact(),
    }
}

fn head_holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let end = end_of_head(bytes, 0);
    for searched in 0..end.unwrap_or(bytes.len()).min(300) {
        prop_assert_eq!(end_of_head(bytes, searched), end, "{}", searched);
    }
    let (empty, rest) = bytes.split_at(empty_lines(bytes));
    prop_assert!(empty.chunks(2).all(|two| two == b"\r\n") && !rest.starts_with(b"\r\n"));
    let Some(head) = end.map(|end| &bytes[..end]) else {
        prop_assert!(!matches!(RequestHead::parse(bytes), Ok(Some(_))));
        return Ok(());
    };
    let shown = String::from_utf8_lossy(head);
    let parsed = RequestHead::parse(head);
    let read = parsed.as_ref().map_err(|_| ()).map(|parsed| {
        let (head, end) = parsed.as_ref().expect("a head with its end is whole");
        (summary(head), *end)
    });
    let expected = naive(head).map(|summary| (summary, head.len()));
    prop_assert_eq!(read, expected, "{}", shown);
    if let Ok(Some((parsed, _))) = &parsed {
        // Each line feed has a carriage return before it.
        let bare = |at: usize| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r');
        prop_assert!(!(0..head.len()).any(bare));
        // Bytes after the head do not change its result.
        let longer = [head, b"Content-Length: 7\r\n\r\n"].concat();
        let (again, end) = RequestHead::parse(&longer).unwrap().unwrap();
        prop_assert_eq!((summary(&again), end), (summary(parsed), head.len()));
        // An incomplete head is not an error.
        for end in (0..head.len()).step_by(1 + head.len() / 100) {
            prop_assert!(matches!(RequestHead::parse(&head[..end]), Ok(None)));
        }
    }
    Ok(())
}

testing::property_of_bytes!(
    any_head_is_read_as_a_naive_reader_reads_it,
    "heads",
    head_holds
);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_head_with_framing_fields_is_read_as_a_naive_reader_reads_it(
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
    fn any_first_line_is_read_as_a_naive_reader_reads_it(line in "(GET|CONNECT|G\u{e9}T|) ?(/|\\*|http:|//|a|#|\\?|\u{e9}|\\.| ){0,5} ?HTTP/1.[012]") {
        head_holds(format!("{line}\r\nhost: a\r\n\r\n").as_bytes())?;
    }

    /// No bytes make the parser panic, or consume more bytes than there are.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), start in 0..6usize) {
        let mut head = [&b""[..], b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.0\r\ncontent-length: ", b"\r\n\r\n",
            b"POST / HTTP/1.1\r\ntransfer-encoding: ", b"POST / HTTP/1.1\r\na: b\r\n "][start].to_vec();
        head.extend(&bytes);
        let end = end_of_head(&head, 0);
        prop_assert!(end.is_none_or(|end| end <= head.len()));
        if let Ok(Some((_, taken))) = RequestHead::parse(&head) {
            prop_assert_eq!(Some(taken), end);
        }
    }
}
