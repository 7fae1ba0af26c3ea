//! Tests of claims of tokens made by `PyJWT`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Command;

use serde_json::Value;

use crate::programs::python::python_with;
use crate::programs::running::source;
use crate::support::{Exchange, Gateway, Origin, Site, eventually, fetch_with};

struct Made {
    keys: String,
    without_rsa: String,
    good: BTreeMap<String, String>,
    bad: BTreeMap<String, String>,
}

/// Makes new tokens: some are about to expire.
fn made() -> Made {
    let python = python_with(&["pyjwt==2.10.1", "cryptography==44.0.0"]);
    let output = Command::new(python).arg(source("tokens.py")).output();
    let output = output.expect("Python");
    assert!(output.status.success(), "{output:?}");
    let made: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    let tokens = |name: &str| {
        let tokens = made[name].as_object().expect("tokens").iter();
        let tokens =
            tokens.map(|(name, it)| (name.clone(), it.as_str().expect("a text").to_owned()));
        tokens.collect()
    };
    Made {
        keys: text("keys"),
        without_rsa: text("without rsa"),
        good: tokens("good"),
        bad: tokens("bad"),
    }
}

/// Starts an origin that answers with the `X-Claims` that it received, or `none`.
fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| -> io::Result<()> {
        let mut fields = exchange.head.fields.iter();
        let claims = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-claims"));
        let claims = claims.map_or("none", |(_, value)| value.as_str());
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            claims.len()
        );
        exchange.send(format!("{head}{claims}").as_bytes())
    })
}

fn gateway(origin: &Origin, keys: &str) -> Gateway {
    let site = Site::new();
    fs::write(site.folder().join("keys.json"), keys).expect("a file");
    site.write(&format!(
        "[jwt.auth]\njwks = \"keys.json\"\naudience = [\"api\", \"other\"]\n\
         issuer = \"https://auth.example.com\"\n\
         [origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$jwt_auth_sub\"\nrate = \"1r/h\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         request_headers = {{ x-claims = \"$jwt_auth_sub\" }}\n\
         [[routes]]\npath = \"/all\"\norigin = \"app\"\nrequest_headers = {{ x-claims = \
         \"$jwt_auth_sub:$jwt_auth_n:$jwt_auth_groups:$jwt_auth_admin:$jwt_auth_nested:$jwt_auth_none\" }}\n\
         [[routes]]\npath = \"/limited\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}]\n",
        origin.address
    ));
    Gateway::start_at(site)
}

/// Returns the claims that the origin receives for this field.
fn received(gateway: &Gateway, target: &str, authorization: &str) -> String {
    let answer = fetch_with(
        gateway.address(),
        target,
        &format!("Authorization: {authorization}\r\n"),
    );
    assert_eq!(answer.status, 200, "{authorization}");
    answer.text()
}

#[test]
fn claims_of_tokens_that_others_make_are_keys() {
    let (origin, made) = (echo_origin(), made());
    let gateway = gateway(&origin, &made.keys);
    for (name, token) in &made.good {
        for scheme in ["Bearer", "bearer"] {
            let found = received(&gateway, "/", &format!("{scheme} {token}"));
            assert_eq!(found, "alice", "{name}");
        }
    }
    let token = &made.good["ES256"];
    let all = received(&gateway, "/all", &format!("Bearer {token}"));
    assert_eq!(all, "alice:7:a,b:true::");
    // One bucket, whichever key signs.
    let limited = |token: &str| {
        let field = format!("Authorization: Bearer {token}\r\n");
        fetch_with(gateway.address(), "/limited", &field).status
    };
    assert_eq!(limited(token), 200);
    assert_eq!(limited(&made.good["RS256"]), 429);
    for (name, token) in &made.bad {
        assert_eq!(limited(token), 200, "{name}: no key, no limit");
    }
    let twice = format!("Authorization: Bearer {token}\r\n").repeat(2);
    let status = fetch_with(gateway.address(), "/limited", &twice).status;
    assert_eq!(status, 400);
    assert_eq!(fetch_with(gateway.address(), "/", &twice).text(), "none");
}

#[test]
fn tokens_that_do_not_verify_have_no_claims() {
    let (origin, made) = (echo_origin(), made());
    let gateway = gateway(&origin, &made.keys);
    assert!(made.bad.len() > 20);
    for (name, token) in &made.bad {
        // Twice: nothing of the first request is remembered.
        for _ in 0..2 {
            let name_of_key = received(&gateway, "/", &format!("Bearer {token}"));
            assert_eq!(name_of_key, "none", "{name}");
        }
    }
    let good = &made.good["EdDSA"];
    for other in [
        good.clone(),
        format!("Basic {good}"),
        format!("Bearer{good}"),
        format!("Token {good}"),
    ] {
        assert_eq!(received(&gateway, "/", &other), "none");
    }
    assert_eq!(received(&gateway, "/", &format!("Bearer {good}")), "alice");
}

#[test]
fn a_key_set_that_changes_counts_at_once_and_a_broken_one_changes_nothing() {
    let (origin, made) = (echo_origin(), made());
    let gateway = gateway(&origin, &made.keys);
    let keys = gateway.site.folder().join("keys.json");
    let token = format!("Bearer {}", made.good["RS256"]);
    let is = |expected: &str| {
        eventually(expected, || received(&gateway, "/", &token) == expected);
    };
    is("alice");
    fs::write(&keys, &made.without_rsa).expect("a file");
    is("none");
    eventually("the log tells of it", || {
        gateway
            .log()
            .contains("key set file keys.json content changed")
    });
    fs::write(&keys, &made.keys).expect("a file");
    is("alice");
    fs::write(&keys, "{\"keys\": [").expect("a file");
    eventually("the log reports it", || {
        gateway
            .log()
            .contains("keys.json: this is not a JSON Web Key Set")
    });
    is("alice");
    fs::remove_file(&keys).expect("a file");
    eventually("the log reports it", || {
        gateway
            .log()
            .contains("keys.json cannot be read: No such file")
    });
    is("alice");
    fs::write(&keys, &made.without_rsa).expect("a file");
    is("none");
}
