//! Tests of `[jwt.NAME]`, and of variables that read claims.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::fs;

use super::*;
use crate::{changes, show};

/// Any valid key set.
const KEYS: &str =
    r#"{"keys": [{"kty": "oct", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}"#;

const JWT: &str = "[jwt.auth]\njwks = \"keys.json\"\n";

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    ("", "[jwt.auth]\n",
     r#"1:1: [jwt.auth] has no jwks; add one such as jwks = "keys.json""#),
    ("", "[jwt.auth]\njwks = \"\"\n",
     r#"2:8: jwks: expected the name of a file such as "keys.json"; found """#),
    ("", "[jwt.auth]\njwks = \"none.json\"\n",
     "2:8: jwks: /etc/drip/none.json cannot be read: No such file or directory (os error 2); name a key set of at most 1MB"),
    ("", "[jwt.my_auth]\njwks = \"\"\n",
     "1:1: my_auth: the name of a [jwt] is made of letters and digits, because an _ ends it in $jwt_NAME_CLAIM\n2:8: jwks: expected the name of a file such as \"keys.json\"; found \"\""),
    ("", "[jwt.auth]\njwks = \"\"\naudience = []\nissuer = [\"a\", \"\"]\nleeway = \"2h\"\n",
     "2:8: jwks: expected the name of a file such as \"keys.json\"; found \"\"\n3:12: audience: the list is empty; write one such as [\"https://auth.example.com\"]\n4:16: issuer: expected a text that is not empty; found \"\"\n5:10: leeway: expected a duration from 0 to 1h; found \"2h\""),
    ("", "[jwt.auth]\njwks = \"\"\nurl = \"https://auth.example.com\"\n",
     "2:8: jwks: expected the name of a file such as \"keys.json\"; found \"\"\n3:1: \"url\" is not a field of [jwt.auth], whose fields are jwks, audience, issuer, leeway"),
    ("$remote_addr", "$jwt_auth_sub",
     "5:8: key: $jwt_auth_sub needs [jwt.auth], which does not exist; the file has none; add [jwt.auth] with jwks = \"keys.json\""),
    ("servers = [", "balance = \"hash:$jwt_auth_sub\"\nservers = [",
     "2:11: balance: $jwt_auth_sub needs [jwt.auth], which does not exist; the file has none; add [jwt.auth] with jwks = \"keys.json\""),
];

#[test]
fn a_jwt_table_is_shown_reads_back_and_its_changes_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.json");
    fs::write(&keys, KEYS).unwrap();
    let read = |text: &str| parse(text, &folder.path().join("gateway.toml"), false);
    let text = format!("{JWT}{}", SMALLEST.replace("$remote_addr", "$jwt_auth_sub"));
    let all = "audience = \"api\"\nissuer = [\"a\", \"b\"]\nleeway = \"10s\"\n";
    let with_all = text.replace("json\"\n", &format!("json\"\n{all}"));
    let settings = read(&text).unwrap();
    let with_all = read(&with_all).unwrap();
    for settings in [&settings, &with_all] {
        let again = read(&show(settings)).unwrap();
        let named = settings.named.clone();
        assert_eq!(Settings { named, ..again }, *settings);
    }
    assert!(show(&with_all).contains(all));
    let expected = [
        "jwt.auth.audience none -> api",
        "jwt.auth.issuer none -> [\"a\", \"b\"]",
        "jwt.auth.leeway 1m -> 10s",
    ];
    assert_eq!(changes(&settings, &with_all, &settings), expected);
    fs::write(&keys, KEYS.replace("MDE", "MDM")).unwrap();
    let other_keys = read(&text).unwrap();
    let found = changes(&settings, &other_keys, &settings);
    assert_eq!(found, ["key set file keys.json content changed"]);

    fs::write(&keys, "{\"keys\": []}").unwrap();
    let found = read(&text).unwrap_err().to_string();
    let reason = "none of its 0 keys verifies tokens; drip knows RSA, EC with P-256 or P-384, OKP with Ed25519, and oct";
    let expected = format!("jwks: {}: {reason}", keys.display());
    assert!(found.ends_with(&expected), "{found}");
}
