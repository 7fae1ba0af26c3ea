//! Tests of `Vary` (RFC 9111, section 4.1).
//!
//! `collapse(60, 0)` keeps an answer for 60 s and serves none that is stale. `cookies` has the
//! names of cookies with which a request is not collapsed, while other cookies are ignored. If it
//! is `None`, a request with any cookie is not collapsed. A request with `Authorization` never is.

use super::*;

/// Returns whether a route with these names in the key, and `cookies`, shares a response.
fn shares(names: &[&str], cookies: Option<&[&str]>, lines: &[&str]) -> bool {
    let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let collapse = Collapse {
        vary: owned(names),
        cookies: cookies.map(owned),
        ..collapse(60, 0)
    };
    matches!(judge_with(&collapse, 200, lines), Verdict::Shared(_))
}

const NAMES: &[&str] = &["accept-encoding", "accept-language"];

#[test]
fn names_of_the_key_do_not_matter() {
    let values = "Accept-Encoding|ACCEPT-ENCODING|accept-encoding,Accept-Language|\
        Accept-Encoding ,\tAccept-Language||,, Accept-Encoding,|Host";
    for value in values.split('|') {
        let line = format!("vary: {value}");
        assert!(shares(NAMES, None, &[&line]), "{line}");
    }
    let two = ["Vary: Accept-Encoding", "Vary: Accept-Language"];
    assert!(shares(NAMES, None, &[]) && shares(NAMES, None, &two));
}

#[test]
fn a_star_or_a_name_outside_the_key_prevents_sharing() {
    let values = "User-Agent|Accept|Accept-Encoding, User-Agent|User-Agent, Accept-Encoding|\
        Origin,|\"accept-encoding\"|accept-encoding x|*|*, *|, *|*, Accept-Encoding|\
        Accept-Encoding, *";
    for value in values.split('|') {
        let line = format!("Vary: {value}");
        assert!(!shares(NAMES, None, &[&line]), "{line}");
    }
    for (first, second) in [
        ("Accept-Encoding", "User-Agent"),
        ("", "User-Agent"),
        ("*", "*"),
        ("", "*"),
        ("Accept-Encoding", "*"),
    ] {
        let lines = [first, second].map(|value| format!("Vary: {value}"));
        assert!(!shares(NAMES, None, &[&lines[0], &lines[1]]), "{lines:?}");
    }
    assert!(!shares(&[], None, &["Vary: Accept-Encoding"]));
    assert!(shares(&["user-agent"], None, &["Vary: User-Agent"]));
}

// A *kind* is all requests with the same key. They are collapsed, so none has `Authorization`, and
// without `cookies` none has a cookie.
#[test]
fn fields_that_no_request_of_the_kind_has_do_not_matter() {
    assert!(shares(NAMES, None, &["Vary: Authorization"]));
    assert!(shares(NAMES, Some(&["session"]), &["Vary: authorization"]));
    assert!(shares(NAMES, None, &["Vary: Cookie, Accept-Encoding"]));
    // Some requests here have cookies that are not in the key.
    assert!(!shares(NAMES, Some(&["session"]), &["Vary: Cookie"]));
    assert!(!shares(NAMES, Some(&[]), &["Vary: Cookie"]));
}
