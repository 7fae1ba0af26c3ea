//! Tests of admin tokens.

use super::*;

/// Returns the tokens of valid values of both variables.
fn tokens(admin: &str, read: &str) -> AdminTokens {
    AdminTokens::parse(admin.as_bytes(), read.as_bytes())
        .unwrap_or_else(|error| panic!("{admin:?}: {error}"))
}

/// Returns the message about the values of both variables.
fn problem(admin: &str, read: &str) -> String {
    match AdminTokens::parse(admin.as_bytes(), read.as_bytes()) {
        Ok(_) => panic!("{admin:?} and {read:?} are accepted"),
        Err(error) => error,
    }
}

/// Returns the role of a token for changes. An empty name: the token has none.
fn admin(name: &str) -> TokenRole {
    TokenRole::Admin(Some(name).filter(|name| !name.is_empty()).map(Arc::from))
}

#[test]
fn each_entry_has_its_name_and_its_secret() {
    for (variable, sent, expected) in [
        ("ops:SECRET1,ci:SECRET2", "SECRET1", admin("ops")),
        ("ops:SECRET1,ci:SECRET2", "SECRET2", admin("ci")),
        ("ops:SECRET1, ci:SECRET2", "ci:SECRET2", admin("ci")),
        ("ops:SECRET1,ci:SECRET2", "ops:SECRET2", TokenRole::Unknown),
        ("ops:SECRET1,ci:SECRET2", "SECRET", TokenRole::Unknown),
        ("a-1_B:SECRET1", "SECRET1", admin("a-1_B")),
        ("ops:SEC:RET,ci:SECRET2", "SEC:RET", admin("ops")),
        ("ops:\"SEC,RET:1\",ci:SECRET2", "SEC,RET:1", admin("ops")),
        ("\"abc:defghi\",ci:SECRET2", "abc:defghi", admin("")),
        ("\"abc:defghi\",ci:SECRET2", "defghi", TokenRole::Unknown),
    ] {
        let role = tokens(variable, "").role(sent.as_bytes());
        assert_eq!(role, expected, "{variable}: {sent}");
    }
}

#[test]
fn a_token_of_an_earlier_version_stays_valid_as_a_whole_only() {
    for text in [
        "abc:def",
        "abc:defghi",
        "long-secret-in-front:1",
        ":abcdefgh",
        "a,b",
        "pass\"word,",
        "ab:cdefgh,ij:klmnop",
    ] {
        assert_eq!(tokens(text, "").role(text.as_bytes()), admin(""), "{text}");
    }
    for (text, part) in [
        ("a,b", "a"),
        ("long-secret-in-front:1", "1"),
        (":abcdefgh", "abcdefgh"),
        ("\"abc:defghi\"", "defghi"),
    ] {
        let role = tokens(text, "").role(part.as_bytes());
        assert_eq!(role, TokenRole::Unknown, "{text}: {part} can be guessed");
    }
}

#[test]
#[rustfmt::skip]
fn problems_are_reported_without_the_secret() {
    for (text, expected) in [
        ("ops:hidden1,hidden2",
         "DRIP_ADMIN_TOKEN: entry 2 has no name; write each as NAME:SECRET, with letters, digits, _ and - in the name, or put what is one token in double quotes"),
        ("ops:hidden1,", "DRIP_ADMIN_TOKEN: entry 2 is empty; write each as NAME:SECRET, with a comma between two"),
        ("hid:den,ci:hidden",
         "DRIP_ADMIN_TOKEN: the secret of entry 1 is too short; take at least 6 characters, or put what is one token in double quotes"),
        ("hidden:hidden1,hidden:hidden2", "DRIP_ADMIN_TOKEN: entries 1 and 2 have the same name; give each its own"),
        ("ops:hidden,\"x\",ci:hidden", "DRIP_ADMIN_TOKEN: entries 1 and 3 have the same secret; give each its own"),
        ("ops:\"hidden", "DRIP_ADMIN_TOKEN: the quote of entry 1 has no end; add one"),
        ("ci:hidden1,\"hidden\"hidden",
         "DRIP_ADMIN_TOKEN: only a comma may follow the quotes of entry 2; put the whole secret in quotes"),
        ("hid\nden", "DRIP_ADMIN_TOKEN: it has a control character, which no request can send; choose another token"),
    ] {
        let found = problem(text, "");
        assert_eq!(found, expected, "{text:?}");
        assert!(!found.contains("hid"), "{found}");
    }
    let same = "DRIP_ADMIN_READ_TOKEN: the same token is in DRIP_ADMIN_TOKEN, which permits changes; choose another token";
    for read in ["hidden1", "ops:hidden1", "ops:hidden1,ci:hidden2"] {
        assert_eq!(problem("ops:hidden1,ci:hidden2", read), same);
    }
    assert!(problem("", "hid\u{7f}den").starts_with("DRIP_ADMIN_READ_TOKEN: it has a control"));
}

#[test]
fn a_client_sends_the_weakest_token_that_suffices() {
    let both = tokens("ops:SECRET1", "a,b:c");
    assert_eq!(both.role(b"a,b:c"), TokenRole::Reader);
    assert!(both.protects_reading() && both.permits_changes() && !both.is_empty());
    assert_eq!(both.token_to_read(), Some(&b"a,b:c"[..]));
    assert_eq!(both.token_to_change(), Some(&b"SECRET1"[..]));

    let reading = tokens("", "r");
    assert!(reading.protects_reading() && !reading.permits_changes());
    assert_eq!(reading.token_to_change(), Some(&b"r"[..]));
    let changing = tokens("abc:def", "");
    assert!(!changing.protects_reading());
    assert_eq!(changing.token_to_read(), Some(&b"abc:def"[..]));
    let none = tokens("", "");
    assert!(none.is_empty() && none.token_to_read().is_none() && none.token_to_change().is_none());
    assert_eq!(none.role(b""), TokenRole::Unknown);
}
