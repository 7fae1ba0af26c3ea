//! Tests of `[routes.collapse]`.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use super::*;
use crate::{Collapse, Route};

/// Text in the smallest file that cases replace.
const LIMITS: &str = "limits = [{ zone = \"per_client\", burst = 20 }]\n";

/// Limits of the route, and its `collapse` table with these lines.
macro_rules! collapse {
    ($lines:literal) => {
        concat!(
            "limits = [{ zone = \"per_client\", burst = 20 }]\n[routes.collapse]\n",
            $lines
        )
    };
}

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    (LIMITS, collapse!(""), ""),
    (LIMITS, "[routes.cors]\norigins = [\"https://app.example\", \"http://localhost:3000\"]\ncredentials = true\n", ""),
    (LIMITS, "[routes.cors]\norigins = [\"*\"]\nmax_age = \"1d\"\n", ""),
    (LIMITS, "[routes.cors]\norigins = [\"https://app.example/\", \"app.example\"]\n",
     r#"12:12: origins: expected a site as browsers write it, such as "https://app.example", or "*"; found "https://app.example/"
12:36: origins: expected a site as browsers write it, such as "https://app.example", or "*"; found "app.example""#),
    (LIMITS, "[routes.cors]\norigins = [\"http://localhost:8080\", \"https://[2001:db8::1]\", \"http://[::1]:3000\", \"capacitor://localhost\", \"https://a.example:80\"]\n", ""),
    (LIMITS, "[routes.cors]\norigins = [\"https://*.example\", \"https://a.example:443\", \"http://[::1]:80\"]\n",
     r#"12:12: origins: sites are compared as a whole: name each, or write ["*"] for all; found "https://*.example"
12:33: origins: browsers leave out the default port of a scheme: remove it; found "https://a.example:443"
12:58: origins: browsers leave out the default port of a scheme: remove it; found "http://[::1]:80""#),
    (LIMITS, "[routes.cors]\norigins = [\"*\", \"https://app.example\"]\n",
     r#"12:11: origins: "*" means all sites; remove it, or the others"#),
    (LIMITS, "[routes.cors]\norigins = [\"*\"]\ncredentials = true\n",
     r#"12:11: origins: browsers show no response with credentials where "*" is allowed; name the sites, or remove credentials"#),
    // Each field.
    (LIMITS, collapse!("key = \"all\""),
     r#"13:7: key: without a variable all requests of the route would get one answer; name one such as "$request_uri", or remove key; found "all""#),
    (LIMITS, collapse!("key = \"${host}$uri$arg_page$ssl_client_serial\""), ""),
    (LIMITS, collapse!("vary = [\"*\", \"Cookie\", \"authorization\", \"a b\", 1]"),
     r#"13:9: vary: "*" means that no two requests are equal, so nothing would be shared; name the fields, or remove [routes.collapse]
13:14: vary: the whole Cookie differs for nearly every client; remove it, and name in cookies those without which a request may share
13:24: vary: requests with credentials are never shared; remove it
13:41: vary: expected the name of a header field such as "accept-encoding"; found "a b"
13:48: vary: expected the name of a header field such as "accept-encoding"; found 1"#),
    (LIMITS, collapse!("keep = \"1h\"\nstale = \"168h\""), ""),
    (LIMITS, collapse!("cookies = [\"a=b\", \"s\", \"s\"]"),
     r#"13:12: cookies: expected the name of a cookie such as "session"; found "a=b"
13:24: cookies: "s" is listed twice; remove one"#),
    (LIMITS, collapse!("cookies = []"), ""),
    (LIMITS, collapse!("cookies = [\"s\", \"S\"]"), ""),
    // Fields that the route lacks.
    ("origin = \"app\"\nlimits = [{ zone = \"per_client\", burst = 20 }]\n", "refuse = 403\n[routes.collapse]\n",
     "11:1: collapse: a route with refuse answers all its requests itself; remove this field or refuse"),
    (LIMITS, "methods = [\"POST\", \"HEAD\"]\n[routes.collapse]\n",
     "12:1: collapse: only GET and HEAD are shared, and methods of this route has no GET; add \"GET\" to methods, or remove this table"),
    (LIMITS, "methods = [\"POST\", \"GET\"]\n[routes.collapse]\n", ""),
    // Memory for the answers of all routes.
    ("", "server.shared_answers = \"1GB\"\n", ""),
];

/// Returns the route of the smallest file with these lines after its limits.
fn route(lines: &str) -> Route {
    settings_with(LIMITS, &format!("{LIMITS}{lines}"))
        .routes
        .remove(0)
}

/// Returns the settings of `[routes.collapse]` with these lines.
fn collapse_of(lines: &str) -> Collapse {
    let route = route(&format!("[routes.collapse]\n{lines}"));
    Collapse::clone(&route.collapse.unwrap())
}

#[test]
fn names_of_fields_have_no_case_and_those_of_cookies_have() {
    let found = collapse_of("vary = [\"Accept\", \"X_Tenant\"]\ncookies = [\"Session\"]");
    assert_eq!(found.vary, ["accept", "x_tenant"]);
    assert_eq!(found.cookies, Some(vec!["Session".to_owned()]));
    assert_eq!(collapse_of("cookies = []").cookies, Some(Vec::new()));
}

#[test]
fn fields_of_key_and_vary_may_occur_only_once() {
    let single = |lines: &str| -> Vec<String> {
        let inputs = route(&format!("[routes.collapse]\n{lines}")).inputs;
        inputs.single_fields().map(str::to_owned).collect()
    };
    // Fields that are lists by their definition. Their lines are joined.
    assert_eq!(single(""), [""; 0]);
    assert_eq!(single("vary = [\"accept\", \"x-tenant\"]"), ["x-tenant"]);
    assert_eq!(single("key = \"$uri$http_x_user\""), ["x-user"]);
    let found = route("[routes.collapse]\nkey = \"$uri$cookie_a$arg_b\"").inputs;
    assert_eq!(found.cookies(), ["a"]);
    assert_eq!(found.arguments(), ["b"]);
    assert!(found.reads(b"accept-encoding", false));
    assert!(!route("").inputs.reads(b"accept-encoding", false));
}

/// A file with routes that share answers, with a placeholder for each value that matters.
const SHARING: &str = r#"
[origins.app]
servers = ["http://127.0.0.1:9000"]
host = "preserve"

[origins.other]
servers = ["http://127.0.0.1:9000"]

[[routes]]
path = "/news/"
origin = "app"
strip_prefix = "/news"
request_headers = { x-version = "1" }

[routes.collapse]
key = "$host$request_uri"
vary = ["accept"]
keep = "1s"
cookies = ["session"]
"#;

#[test]
#[rustfmt::skip]
fn the_stamp_changes_with_the_answer_and_with_nothing_else() {
    let stamp = |from: &str, to: &str| {
        let text = SHARING.replacen(from, to, 1);
        let [stamp, again] = [&text, &text].map(|text| settings_of(text).routes[0].collapse_stamp);
        assert_eq!(again, stamp);
        stamp
    };
    let unchanged = stamp("", "");
    assert_ne!(unchanged, 0);
    for (from, to) in [
        ("127.0.0.1:9000", "127.0.0.1:9001"),
        ("\"preserve\"", "\"origin\""),
        ("path = \"/news/\"", "path = \"/news/\"\nmethods = [\"GET\"]"),
        ("origin = \"app\"", "origin = \"other\""),
        ("strip_prefix = \"/news\"", "strip_prefix = \"/news\"\nadd_prefix = \"/a\""),
        ("x-version = \"1\"", "x-version = \"2\""),
        ("$request_uri", "$uri"),
        ("[\"accept\"]", "[\"accept\", \"x-tenant\"]"),
        ("cookies = [\"session\"]", "cookies = []"),
        ("cookies = [\"session\"]", ""),
    ] {
        assert_ne!(stamp(from, to), unchanged, "{to}");
    }
    for (from, to) in [
        ("keep = \"1s\"", "keep = \"2s\"\nstale = \"1m\"\nmax_size = \"2MB\""),
        ("origin = \"app\"", "origin = \"app\"\nmax_wait = \"5s\""),
        ("host = \"preserve\"", "host = \"preserve\"\nrate = \"9r/s\""),
    ] {
        assert_eq!(stamp(from, to), unchanged, "{to}");
    }
}
