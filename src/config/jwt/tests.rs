//! Tests of JSON Web Tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;

const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

/// A Unix time in the far future.
const LATER: u64 = 30_000_000_000;

/// Encodes bytes as the parts of a token are (base64url).
fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Makes a token of a header and claims in JSON. `sign` signs them.
fn token(header: &str, claims: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let signed = format!("{}.{}", encode(header), encode(claims));
    let signature = encode(sign(signed.as_bytes()));
    format!("{signed}.{signature}").into_bytes()
}

/// Makes a token that is signed by [`SECRET`].
fn token_by_secret(header: &Value, claims: &Value) -> Vec<u8> {
    token(&header.to_string(), &claims.to_string(), |signed| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        hmac::sign(&key, signed).as_ref().to_vec()
    })
}

/// Returns the Ed25519 key of the key set, with its private part.
fn key_pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

/// Makes a token with the name of its key, which is signed by [`key_pair`].
fn token_by_pair(claims: &Value) -> Vec<u8> {
    let header = r#"{"alg":"EdDSA","kid":"ed"}"#;
    token(header, &claims.to_string(), sign_by_pair)
}

fn sign_by_pair(signed: &[u8]) -> Vec<u8> {
    key_pair().sign(signed).as_ref().to_vec()
}

/// Returns a key set with a secret without a name, and an Ed25519 key with a name.
fn key_set() -> KeySet {
    let keys = json!({ "keys": [
        { "kty": "oct", "k": encode(SECRET) },
        { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(key_pair().public_key()) },
        { "kty": "RSA", "use": "enc", "n": "AQ", "e": "AQAB" },
        { "kty": "new", "anything": [1] },
    ] });
    KeySet::parse(keys.to_string().as_bytes()).unwrap()
}

/// Returns a verifier that reads some claims.
fn verifier(expected: TokenRequirements) -> Verifier {
    let claims = ["sub", "n", "list", "deep"].map(str::to_owned);
    Verifier::new(key_set(), expected, claims.to_vec())
}

/// Returns the text of a claim at a Unix time; empty if the token does not verify.
fn claim(verifier: &Verifier, token: &[u8], claim: &str, now: u64) -> String {
    let mut out = Vec::new();
    verifier.add_claim(token, claim, now, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn claims_are_texts() {
    let claims = json!({
        "exp": LATER, "sub": "café", "n": 7, "list": ["a", 1, true], "deep": { "a": 1 }, "unread": "x",
    });
    let verifier = verifier(TokenRequirements::default());
    let by_secret = token_by_secret(&json!({ "alg": "HS256" }), &claims);
    for token in [token_by_pair(&claims), by_secret] {
        for (name, text) in [
            ("sub", "café"),
            ("n", "7"),
            ("list", "a,1,true"),
            ("deep", ""),
            ("missing", ""),
            ("unread", ""),
        ] {
            assert_eq!(claim(&verifier, &token, name, 0), text, "{name}");
        }
    }
}

#[test]
fn a_token_verifies_only_with_a_key_that_may_have_signed_it() {
    let claims = json!({ "exp": LATER, "sub": "a" });
    let verifier = verifier(TokenRequirements::default());
    let is_verified = |token: &[u8]| claim(&verifier, token, "sub", 0) == "a";
    let good = token_by_pair(&claims);
    assert!(is_verified(&good));
    // The secret has no name, so a token may use any `kid`.
    for header in [
        json!({ "alg": "HS256" }),
        json!({ "alg": "HS256", "kid": "any" }),
    ] {
        assert!(is_verified(&token_by_secret(&header, &claims)), "{header}");
    }
    // Attack: the public key is used as the secret.
    let header = r#"{"alg":"HS256","kid":"ed"}"#;
    let confused = token(header, &claims.to_string(), |signed| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key_pair().public_key().as_ref());
        hmac::sign(&key, signed).as_ref().to_vec()
    });
    assert!(!is_verified(&confused));
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "EdDSA" }),
        json!({ "alg": "RS256" }),
        json!({ "alg": "HS256", "crit": ["exp"] }),
    ] {
        assert!(!is_verified(&token_by_secret(&header, &claims)), "{header}");
        let unsigned = token(&header.to_string(), &claims.to_string(), |_| Vec::new());
        assert!(!is_verified(&unsigned), "{header}");
    }
    for index in 0..good.len() {
        let mut other = good.clone();
        other[index] = if other[index] == b'A' { b'B' } else { b'A' };
        assert!(!is_verified(&other), "{index}");
    }
    for end in 0..good.len() {
        assert!(!is_verified(&good[..end]), "{end}");
    }
    assert!(!is_verified(&[&good[..], b".x"].concat()));
    assert!(!is_verified(b""));
    assert!(!is_verified(b"\xff.\x00."));
}

#[test]
fn inexact_numbers_have_no_text() {
    let verifier = verifier(TokenRequirements::default());
    for (number, expected) in [
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", ""),
        ("1e30", ""),
        ("-1e16", ""),
        ("0.5", "0.5"),
    ] {
        let claims = format!("{{\"exp\": {LATER}, \"n\": {number}}}");
        let token = token(r#"{"alg":"EdDSA"}"#, &claims, sign_by_pair);
        assert_eq!(claim(&verifier, &token, "n", 0), expected, "{number}");
    }
}

#[test]
fn a_token_must_meet_the_requirements_of_the_file() {
    let list = |items: &[&str]| items.iter().map(|it| (*it).to_owned()).collect();
    let verifier = verifier(TokenRequirements {
        audience: list(&["api", "web"]),
        issuer: list(&["me"]),
        ..TokenRequirements::default()
    });
    let good = json!({ "exp": LATER, "sub": "a", "aud": ["x", "web"], "iss": "me" });
    assert_eq!(claim(&verifier, &token_by_pair(&good), "sub", 0), "a");
    for (name, value) in [
        ("exp", Value::Null),
        ("exp", "30000000000".into()),
        ("exp", 1.into()),
        ("nbf", LATER.into()),
        ("aud", Value::Null),
        ("aud", "x".into()),
        ("iss", "you".into()),
    ] {
        let mut claims = good.clone();
        claims[name] = value.clone();
        let found = claim(&verifier, &token_by_pair(&claims), "sub", 0);
        assert_eq!(found, "", "{name} {value}");
    }
}

#[test]
fn a_token_is_remembered_until_it_expires() {
    let verifier = verifier(TokenRequirements {
        leeway: std::time::Duration::from_secs(5),
        ..TokenRequirements::default()
    });
    let token = token_by_pair(&json!({ "exp": LATER, "sub": "a" }));
    for now in [0, LATER, LATER + 4] {
        assert_eq!(claim(&verifier, &token, "sub", now), "a", "{now}");
        assert_eq!(verifier.cached_count(), 1);
    }
    assert_eq!(claim(&verifier, &token, "sub", LATER + 5), "");
    assert_eq!(verifier.cached_count(), 0);
    // A token that fails verification is not stored.
    assert_eq!(claim(&verifier, &token[..token.len() - 4], "sub", 0), "");
    assert_eq!(verifier.cached_count(), 0);
}

#[test]
#[rustfmt::skip]
fn a_wrong_key_set_says_what_is_wrong() {
    let wrong = |text: &str| KeySet::parse(text.as_bytes()).unwrap_err();
    for (keys, expected) in [
        ("[]", "none of its 0 keys verifies tokens"),
        (r#"[{ "kty": "EC", "crv": "secp256k1", "x": "AQ", "y": "AQ" }]"#, "none of its 1 keys"),
        (r#"[{ "kty": "RSA", "alg": "ES256", "n": "AQ", "e": "AQAB" }]"#, "none of its 1 keys"),
        (r#"[{ "kty": "RSA", "kid": "a", "n": "AQ", "e": "AQAB" }]"#,
         "key 1 (kid \"a\"): an RSA key has at least 2048 bits"),
        (r#"[{ "kty": "oct", "k": "AQ" }]"#, "key 1: a secret (oct) has at least 32 bytes"),
        (r#"[{ "kty": "oct", "k": "+" }]"#, "key 1: its numbers are not base64url"),
    ] {
        let message = wrong(&format!("{{ \"keys\": {keys} }}"));
        assert!(message.starts_with(expected), "{keys}: {message}");
    }
    for text in ["", "{}", "[]", "{\"keys\": 1}", "\"\"", "\u{0}"] {
        let message = wrong(text);
        assert!(
            message.starts_with("this is not a JSON Web Key Set such as {\"keys\": [...]}: "),
            "{message}"
        );
    }
}
