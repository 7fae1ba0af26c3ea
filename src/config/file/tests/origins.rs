//! Tests of `[origins.NAME]`.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::num::NonZeroUsize;

use super::{Case, SMALLEST, problems, settings_with};
use crate::ServerUrl;

/// Text in the smallest file that cases replace.
const SERVERS: &str = r#"["http://127.0.0.1:9000"]"#;

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    (SERVERS, "[\"http://a\"]\nca = \"ca.pem\"\nserver_name = \"a\"",
     "3:6: ca: no server of this origin has TLS; begin its URL with https://, or remove this\n4:15: server_name: no server of this origin has TLS; begin its URL with https://, or remove this"),
    (SERVERS, "[\"https://a\"]\nclient_cert = \"client.pem\"",
     "3:15: client_cert: a certificate needs its key; add client_key = \"client.key\""),
    (SERVERS, "[\"https://a\"]\nclient_key = \"client.key\"",
     "3:14: client_key: a key needs its certificate; add client_cert = \"client.pem\""),
    (SERVERS, "[\"srv+http://_app._tcp.example.internal\"]",
     r#"2:12: servers: a service record (SRV) cannot be looked up, because the system's resolver returns addresses only; write http://host:port, and resolve = "each" if the name has several addresses; found "srv+http://_app._tcp.example.internal""#),
    (SERVERS, "[\"http://10.0.0.1\"]\nresolve = \"each\"",
     "3:11: resolve: no server of this origin has a name for a host; remove resolve"),
    (SERVERS, "[\"http://app.internal\", \"http://10.0.0.1\"]\nresolve = \"each\"", ""),
    (SERVERS, "[\"127.0.0.1:9000\"]",
     r#"2:12: servers: a server is written "http://host:port", "https://host:port", "h2c://host:port" or "unix:/path"; found "127.0.0.1:9000""#),
    (SERVERS, "[\"unix:\"]",
     r#"2:12: servers: a socket file is written "unix:/run/app.sock"; found "unix:""#),
    (SERVERS, "[\"http://unix:/run/app.sock\"]",
     r#"2:12: servers: a socket file is written "unix:/run/app.sock", without http://; found "http://unix:/run/app.sock""#),
    (SERVERS, "[\"http://a\"]\nbackoff = { floor = \"101%\", trip = \"0%\", slow = \"0s\" }",
     "3:21: floor: a percentage is above 0% and at most 100%; found \"101%\"\n3:36: trip: a percentage is above 0% and at most 100%; found \"0%\"\n3:49: slow: expected a duration above 0; found \"0s\""),
    (SERVERS, "[\"http://a\"]\nbackoff = { on = [\"503\", \"200\"], mode = \"shadows\" }",
     r#"3:26: on: trouble is a status from 400 to 599, "4xx", "5xx", "timeout" or "connect"; found "200"
3:41: mode: expected "on" or "shadow"; found "shadows"; did you mean "shadow"?"#),
    (SERVERS, "[{ url = \"http://a\", weight = 0, max_in_flight = -1 }]",
     "2:41: weight: expected a whole number from 1 to 65535; found 0\n2:60: max_in_flight: expected a whole number from 0 to 1000000000; found -1"),
    (SERVERS, "[{ url = \"http://a\", backup = true }]",
     "2:11: servers: each of them is a backup; a backup needs a server that it stands in for, so remove backup from one"),
    (SERVERS, "[\"http://a\"]\nbalance = \"round_robin\"",
     r#"3:11: balance: expected "least_in_flight", or "hash:" with a key behind it, such as "hash:$cookie_session"; found "round_robin""#),
    (SERVERS, "[\"http://a\"]\nbalance = \"hash:all\"",
     r#"3:11: balance: without a variable all requests have one key, and go to one server; name one such as "hash:$cookie_session"; found "hash:all""#),
    (SERVERS, "[\"http://a\"]\nbalance = \"hash:${HOST}x$binary_remote_addr\"",
     r#"3:11: balance: $binary_remote_addr is written $remote_addr here; found "hash:${HOST}x$binary_remote_addr""#),
    (SERVERS, "[\"http://a\"]\nfail_on = [503, \"200\", \"5xx\", \"5xx\"]",
     r#"3:12: fail_on: expected a status such as "503", "5xx", or "slow:" and a time such as "slow:2s"; found 503
3:17: fail_on: an answer that counts is a status from 400 to 599, "4xx", "5xx" or "slow:2s"; found "200"
3:31: fail_on: "5xx" is listed twice; remove one"#),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"",
     r#"3:9: store: gateways share rate and max_in_flight of an origin; give it one of them, such as rate = "200r/s", or remove store"#),
    (SERVERS, "[\"http://a\", \"http://A:80\"]",
     r#"2:24: servers: "http://A:80" is listed twice; remove one"#),
    (SERVERS, "[\"http://a\"]\nhealth.path = \"/\\r\\nHost: b\"",
     r#"3:15: path: a path begins with /, and is written as in a request: no blanks, quotes or #; found "/\r\nHost: b""#),
    // One mistake is reported once.
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nrate = \"10r/s\"\nlease = \"20ms\"",
     "5:1: lease: this belongs to zones; the gate of an origin takes its slots ahead by itself; remove lease"),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nrate = \"0.123456789r/d\"",
     "3:9: store: the count of this rate has too many decimals for a period this long to be kept exactly in Redis"),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nrate = \"10r/s\"\nqueue_timeout = \"0\"",
     r#"3:9: store: a request waits until Redis has given it a slot; raise queue_timeout above "0", or remove store"#),
    (SERVERS, "[\"http://a\"]\nrate = \"10r/s\"\ngateways = 2",
     r#"4:12: gateways: only gateways that share the gate are counted; add store = "redis", or remove gateways"#),
    (SERVERS, "[\"http://a\"]\nhold = \"5s\"\nqueue_timeout = \"0\"",
     r#"3:8: hold: no request waits while queue_timeout is "0"; raise it, or remove hold"#),
    // [origins.NAME.health]
    (SERVERS, "[\"http://a\"]\nhealth = {}",
     r#"3:10: health: the check has no path; add path = "/healthz", or grpc = "" for servers of gRPC"#),
    (SERVERS, "[\"h2c://a\", \"https://b\"]\nhealth.grpc = \"shop.Cart\"", ""),
    (SERVERS, "[\"h2c://a\"]\nhealth.grpc = \"\"", ""),
    (SERVERS, "[\"h2c://a\"]\nhealth = { grpc = \"\", path = \"/\" }",
     "3:19: grpc: a check uses path or grpc; remove one"),
    (SERVERS, "[\"h2c://a\", \"http://b\"]\nhealth.grpc = \"\"",
     "3:15: grpc: gRPC needs HTTP/2, and http://b:80 is checked over HTTP/1; write it as h2c:// or https://, or give path instead of grpc"),
];

#[test]
fn invalid_servers_are_refused_and_no_password_is_shown() {
    for wrong in [
        "https://[::1]443",
        "https://[127.0.0.1]",
        "http://[::1:9000",
        "https://app/v1",
        "http://app:0",
        "ftp://127.0.0.1:9000",
        "http://app..internal",
        "http://app:+80",
        "http://me@app",
        "htp://me:word@app",
        "http://me:w@rd/w@app:9000",
    ] {
        let found = problems(&SMALLEST.replace(SERVERS, &format!("[\"{wrong}\"]")));
        assert!(found.contains(":2:12: servers: "), "{wrong}: {found}");
        let has_user = found.contains("me@") || found.contains("me:");
        assert!(!has_user, "{wrong}: {found}");
    }
}

/// Returns the URL of a server that the file writes so.
fn server(written: &str) -> ServerUrl {
    let origins = settings_with(SERVERS, &format!("[{written:?}]")).origins;
    origins[0].servers[0].url.clone()
}

#[test]
#[rustfmt::skip]
fn a_server_is_shown_with_its_port_and_named_as_browsers_do() {
    for (written, shown, authority) in [
        ("http://app", "http://app:80", "app"),
        ("http://App.Internal.:80", "http://app.internal.:80", "app.internal."),
        ("https://app:443", "https://app:443", "app"),
        ("https://my_app-1:8443", "https://my_app-1:8443", "my_app-1:8443"),
        ("https://[2001:DB8:0::1]", "https://[2001:db8::1]:443", "[2001:db8::1]"),
        ("unix:/run/app.sock", "unix:/run/app.sock", "localhost"),
        ("unix:run/app.sock", "unix:/etc/drip/run/app.sock", "localhost"),
    ] {
        let server = server(written);
        assert_eq!(server.to_string(), shown, "{written}");
        assert_eq!(server.authority(), authority, "{written}");
    }
}

#[test]
fn permits_of_servers_bound_those_of_their_origin() {
    let with =
        |a: &str, b: &str| format!("[{{ url = \"http://a\"{a} }}, {{ url = \"http://b\"{b} }}]");
    let both = with(", max_in_flight = 2", ", max_in_flight = 3");
    let less = format!("{both}\nmax_in_flight = 4");
    // `gate`: `None` without a gate, else `max_in_flight` of its limits.
    for (servers, permits, gate) in [
        (with("", ", weight = 3"), None, None),
        (both, Some(5), Some(Some(5))),
        (less, Some(4), Some(Some(4))),
        // The gate applies while only the first server can be used.
        (with(", max_in_flight = 2", ""), None, Some(None)),
    ] {
        let origin = &settings_with(SERVERS, &servers).origins[0];
        assert_eq!(
            origin.permits().map(NonZeroUsize::get),
            permits,
            "{servers}"
        );
        let limits = origin.gate().map(|limits| limits.max_in_flight);
        assert_eq!(limits, gate, "{servers}");
    }
}

#[test]
fn a_socket_file_that_the_kernel_cannot_take_is_refused() {
    let problems_of =
        |name: &str| problems(&SMALLEST.replace(SERVERS, &format!("[\"unix:{name}\"]")));
    // Relative to /etc/drip.
    assert_eq!(problems_of(&"a".repeat(107 - "/etc/drip/".len())), "");
    for bad in ["a".repeat(108 - "/etc/drip/".len()), "a\\u0000".to_owned()] {
        let found = problems_of(&bad);
        let message = "2:12: servers: a socket file's absolute name has at most 107 bytes, none of them 0; found";
        assert!(found.contains(message), "{found}");
    }
}
