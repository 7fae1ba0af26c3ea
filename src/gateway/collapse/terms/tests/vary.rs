//! `Vary` (RFC 9111, section 4.1).

use super::*;

/// Whether a route with these names in the key, and perhaps `cookies`, shares a response.
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
    for lines in [
        &[][..],
        &["Vary: Accept-Encoding"],
        &["vary: ACCEPT-ENCODING"],
        &["Vary: accept-encoding,Accept-Language"],
        &["Vary: Accept-Encoding ,\tAccept-Language"],
        &["Vary: Accept-Encoding", "Vary: Accept-Language"],
        &["Vary: "],
        &["Vary: ,, Accept-Encoding,"],
        &["Vary: Host"],
    ] {
        assert!(shares(NAMES, None, lines), "{lines:?}");
    }
}

#[test]
fn a_name_that_is_not_in_the_key_counts_wherever_it_stands() {
    for lines in [
        &["Vary: User-Agent"][..],
        &["Vary: Accept"],
        &["Vary: Accept-Encoding, User-Agent"],
        &["Vary: User-Agent, Accept-Encoding"],
        &["Vary: Accept-Encoding", "Vary: User-Agent"],
        &["Vary: ", "Vary: User-Agent"],
        &["Vary: Origin,"],
        &["Vary: \"accept-encoding\""],
        &["Vary: accept-encoding x"],
    ] {
        assert!(!shares(NAMES, None, lines), "{lines:?}");
    }
    assert!(!shares(&[], None, &["Vary: Accept-Encoding"]));
    assert!(shares(&["user-agent"], None, &["Vary: User-Agent"]));
}

#[test]
fn a_star_counts_wherever_it_stands() {
    for lines in [
        &["Vary: *"][..],
        &["Vary: *, *"],
        &["Vary: *", "Vary: *"],
        &["Vary: , *"],
        &["Vary: ", "Vary: *"],
        &["Vary: *, Accept-Encoding"],
        &["Vary: Accept-Encoding, *"],
        &["Vary: Accept-Encoding", "Vary: *"],
    ] {
        assert!(!shares(NAMES, None, lines), "{lines:?}");
    }
}

#[test]
fn fields_that_no_request_of_the_kind_has_do_not_matter() {
    assert!(shares(NAMES, None, &["Vary: Authorization"]));
    assert!(shares(NAMES, Some(&["session"]), &["Vary: authorization"]));
    assert!(shares(NAMES, None, &["Vary: Cookie, Accept-Encoding"]));
    // Here some have cookies, which the key does not have.
    assert!(!shares(NAMES, Some(&["session"]), &["Vary: Cookie"]));
    assert!(!shares(NAMES, Some(&[]), &["Vary: Cookie"]));
}
