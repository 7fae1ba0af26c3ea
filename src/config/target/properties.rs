//! Property tests of paths and queries.
//!
//! The crate `testing` has the inputs: `replay` and `replay_text` check each file of a folder in
//! `tests/corpus`, and `bytes` and `text` make variations of these files.

use proptest::prelude::*;
use testing::{bytes, config, replay, text};

use super::*;
use crate::is_same_variable;

/// Reference: decodes the escapes of a path byte by byte.
fn decode_naively(raw: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = raw;
    while let [first, behind @ ..] = rest {
        let escaped = match behind {
            [high, low, ..]
                if *first == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digits = String::from_utf8(vec![*high, *low]).unwrap();
                Some(u8::from_str_radix(&digits, 16).unwrap())
            }
            _ => None,
        };
        rest = &behind[if escaped.is_some() { 2 } else { 0 }..];
        decoded.push(escaped.unwrap_or(*first));
    }
    decoded
}

/// Reference: normalizes a path byte by byte with one stack.
fn normalize_naively(raw: &[u8]) -> Vec<u8> {
    let mut decoded = decode_naively(raw);
    let mut stack = vec![b'/'];
    // A final slash also ends the last segment. It is removed again if the path had none.
    let has_final_slash = decoded.ends_with(b"/");
    decoded.push(b'/');
    let (mut segment, mut is_special) = (Vec::new(), false);
    for byte in &decoded[1..] {
        if *byte != b'/' {
            segment.push(*byte);
            continue;
        }
        is_special = matches!(segment.as_slice(), b"" | b"." | b"..");
        if segment == b".." && stack.len() > 1 {
            stack.pop();
            while stack.last() != Some(&b'/') {
                stack.pop();
            }
        } else if !is_special {
            stack.append(&mut segment);
            stack.push(b'/');
        }
        segment.clear();
    }
    if !has_final_slash && !is_special && stack.len() > 1 {
        stack.pop();
    }
    stack
}

/// Checks the form in which a path is compared.
fn check_path(raw: &[u8]) -> Result<(), TestCaseError> {
    let raw = &[b"/", raw].concat();
    let compared = path(raw);
    prop_assert_eq!(&*compared, normalize_naively(raw));
    prop_assert!(compared.starts_with(b"/"));
    prop_assert!(!compared.windows(2).any(|two| two == b"//"));
    let mut segments = compared.split(|byte| *byte == b'/');
    prop_assert!(!segments.any(|segment| segment == b"." || segment == b".."));
    prop_assert!(compared.len() <= raw.len());
    prop_assert_eq!(resolve(&compared), compared.to_vec());
    // A remaining `%` was escaped twice, so a second call would decode it once more.
    if !compared.contains(&b'%') {
        prop_assert_eq!(&path(&compared), &compared);
    }
    Ok(())
}

/// Checks that a compared path, once escaped, is compared as equal and has only plain characters.
fn check_escaped_path(raw: &[u8]) -> Result<(), TestCaseError> {
    let raw = &[b"/", raw].concat();
    let compared = path(raw);
    let mut sent = Vec::new();
    encode(&compared, &mut |piece| sent.extend_from_slice(piece));
    prop_assert_eq!(&*path(&sent), &*compared);
    prop_assert!(is_sendable(&sent));
    Ok(())
}

/// Checks the value of one argument of a query, also beside further arguments of its name.
fn check_query(query: &[u8]) -> Result<(), TestCaseError> {
    let name = "token";
    let found = argument(query, name);
    let plain = |raw: &[u8]| {
        let blank = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
        unescape(&raw.iter().map(blank).collect::<Vec<_>>()).into_owned()
    };
    let mut pairs = query.split(|byte| b"&;".contains(byte));
    let naive = pairs.find_map(|pair| {
        let sign = pair.iter().position(|byte| *byte == b'=')?;
        let (found, value) = (plain(&pair[..sign]), plain(&pair[sign + 1..]));
        is_same_variable(name, &found).then_some(value)
    });
    prop_assert_eq!(&*found, naive.as_deref().unwrap_or_default());
    let longer = [query, b"&token=more"].concat();
    let expected = naive.as_deref().unwrap_or(b"more");
    prop_assert_eq!(&*argument(&longer, name), expected);
    let first = [b"ToKeN=first&", query].concat();
    prop_assert_eq!(&*argument(&first, name), b"first");
    let is_given = naive.is_some() || has_several(&longer, name);
    prop_assert_eq!(has_several(&first, name), is_given);
    Ok(())
}

#[test]
fn each_path_and_query_of_the_corpus_is_read_as_a_naive_reader_reads_it() {
    replay("paths", check_path);
    replay("paths", check_escaped_path);
    replay("queries", check_query);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_path_is_compared_as_a_naive_reader_compares_it(raw in bytes("paths")) {
        check_path(&raw)?;
    }

    #[test]
    fn any_path_that_is_sent_anew_is_compared_alike(raw in bytes("paths")) {
        check_escaped_path(&raw)?;
    }

    #[test]
    fn a_path_of_dots_and_slashes_is_compared_as_a_naive_reader_compares_it(raw in "(/|\\.|%2[eEfF]|a|%){0,12}") {
        check_path(raw.as_bytes())?;
    }

    /// A client cannot bypass a limit by escaping letters.
    #[test]
    fn escaping_letters_changes_nothing(raw in text("paths"), escaped in prop::collection::vec(0..3u8, 1..40)) {
        let raw = format!("/{}", raw.replace('%', "p"));
        let mut written = String::new();
        for (c, how) in raw.chars().zip(escaped.into_iter().cycle()) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let digits = match how {
                    0 => break,
                    1 => format!("%{byte:02X}"),
                    _ => format!("%{byte:02x}"),
                };
                written.push_str(&digits);
            }
            if how == 0 {
                written.push(c);
            }
        }
        prop_assert_eq!(path(written.as_bytes()), path(raw.as_bytes()), "{}", written);
    }

    /// Segments such as `/x/..` that lead back to their start cannot bypass a limit, either.
    #[test]
    fn detours_change_nothing(before in text("paths"), after in text("paths"), detour in "(/\\.|/x/\\.\\.|/%2e|/x/%2E\\.|/){1,4}") {
        let before = before.replace('%', "p");
        let straight = format!("/{before}/{after}");
        let around = format!("/{before}{detour}/{after}");
        prop_assert_eq!(path(around.as_bytes()), path(straight.as_bytes()), "{}", around);
    }

    #[test]
    fn any_query_is_read_as_a_naive_reader_reads_it(query in bytes("queries")) {
        check_query(&query)?;
    }
}
