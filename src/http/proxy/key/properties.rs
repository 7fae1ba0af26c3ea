//! Properties for any bytes in `Cookie`.

use proptest::prelude::*;

use super::*;
use crate::testing::{bytes, config, replay};

/// Finds the cookie at the first possible place: at the start, or after a separator and blanks.
fn naive<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let blanks = |from: usize| {
        line[from..]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count()
    };
    (0..line.len()).find_map(|at| {
        let before = line[..at].iter().rev().find(|byte| **byte != b' ');
        let end = at + name.len();
        if before.is_some_and(|byte| !b";,".contains(byte))
            || !line.get(at..end)?.eq_ignore_ascii_case(name.as_bytes())
        {
            return None;
        }
        let sign = end + blanks(end);
        if line.get(sign) != Some(&b'=') {
            return None;
        }
        let from = sign + 1 + blanks(sign + 1);
        line[from..].split(|byte| *byte == b';').next()
    })
}

fn holds(line: &[u8]) -> Result<(), TestCaseError> {
    let found = cookie(line, "session");
    prop_assert_eq!(found, naive(line, "session"));
    prop_assert!(found.is_none_or(|value| !value.contains(&b';') && !value.starts_with(b" ")));
    // The first cookie counts, and later ones do not.
    let longer = [line, b"; session=last"].concat();
    prop_assert_eq!(cookie(&longer, "SESSION"), Some(found.unwrap_or(b"last")));
    let first = [b"session = first;", line].concat();
    prop_assert_eq!(cookie(&first, "session"), Some(&b"first"[..]));
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay("cookies", holds);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_cookies_are_read_as_a_naive_reader_reads_them(line in bytes("cookies")) {
        holds(&line)?;
    }

    #[test]
    fn so_are_such_as_nearly_match(line in "((session|SESSION|x|sess)?[ =;,]{0,3}){0,6}") {
        holds(line.as_bytes())?;
    }
}
