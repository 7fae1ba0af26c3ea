//! Tests that an imported file opens nothing that nginx protects.
//!
//! The ways around are other addresses, other hosts, rewritten paths, and conditions.

use std::fs;

use super::{drip, outcome_of, refused, written};
use crate::support::assert_contains;

const APP: &str = "proxy_pass http://127.0.0.1:9000;";

fn imported(conf: &str) -> (String, Vec<String>) {
    super::imported(&conf.replace("APP", APP))
}

#[test]
fn an_address_that_would_open_what_another_protects_is_left_out() {
    let closed = "location / { APP } location /admin/ { deny all; APP }";
    let open = "location / { APP }";
    for (first, second, listen) in [
        // The first server protects nothing, and would take the requests of the second.
        (("8080", "", open), ("8081", "", closed), "0.0.0.0:8080"),
        (
            ("8080", "a.example", open),
            ("8081", "a.example", closed),
            "0.0.0.0:8080",
        ),
        (
            ("8080", "a.example", open),
            ("8081", "b.example", closed),
            "0.0.0.0:8080",
        ),
        // The second server would take requests of the first by its name.
        (
            ("8080", "a.example", closed),
            ("127.0.0.1:8081", "b.example", open),
            "0.0.0.0:8080",
        ),
    ] {
        let server = |(listen, name, locations): (&str, &str, &str)| {
            format!("server {{ listen {listen}; server_name \"{name}\"; {locations} }}\n")
        };
        let conf = server(first) + &server(second);
        let (settings, notes) = imported(&conf);
        let line = format!("\nlisten = [\"{listen}\"]\n");
        assert!(settings.contains(&line), "{conf}{settings}");
        let says = |what: &str| notes.iter().any(|note| note.contains(what));
        assert!(says("this server is left out"), "{conf}{notes:?}");
        let says_why = says("is left out: import writes no routes by listen address");
        assert!(says_why, "{conf}{notes:?}");
        // A server that is left out refuses nothing.
        let refuses = notes
            .iter()
            .filter(|note| note.contains(" protects location "))
            .count();
        let all = settings.matches("path = \"/admin/\"").count();
        assert_eq!(refuses, all, "{conf}{notes:?}");
    }
    // The first server listens where the second does, and would expose what the second protects.
    // Only the second is kept, for this machine.
    let (settings, _) = imported(
        "server { listen 8080; server_name a.example; location / { APP } }
         server { listen 127.0.0.1:8080; server_name a.example; location / { APP } location /b/ { deny all; } }",
    );
    assert_contains!(settings, "path = \"/b/\"\nrefuse = 403");
    // Nothing is protected, or all addresses have the same servers.
    for conf in [
        "server { listen 8080; location / { APP } } server { listen 8081; location /b/ { APP } }",
        "server { listen 8080; listen 8081; location / { APP } location /a/ { deny all; } }",
        "server { listen 8080; listen 8081; return 444; }
         server { listen 8080; listen 8081; server_name a.example; location / { APP } }",
    ] {
        let (settings, _) = imported(conf);
        let both = "listen = [\"0.0.0.0:8080\", \"0.0.0.0:8081\"]";
        assert!(settings.contains(both), "{conf}\n{settings}");
    }
}

#[test]
fn a_server_that_only_this_machine_reaches_is_not_opened_to_others() {
    let server = |listen: &str, name: &str, port: u16| {
        format!(
            "server {{ {listen} server_name \"{name}\"; location / {{ proxy_pass http://127.0.0.1:{port}; }} }}\n"
        )
    };
    let public = server("listen 80;", "a.example", 9000);
    for local in [
        "listen 127.0.0.1:8081;",
        "listen localhost:8081;",
        "listen 127.1.2.3:80;",
        "listen [::1]:8081; listen 127.0.0.1:8081;",
        "listen unix:/run/local.sock;",
    ] {
        for name in ["a.example", "b.example", ""] {
            let private = server(local, name, 9001);
            for conf in [format!("{public}{private}"), format!("{private}{public}")] {
                let (settings, notes) = imported(&conf);
                let listens = settings.contains("\nlisten = [\"0.0.0.0:80\"]\n");
                assert!(listens, "{conf}{settings}");
                let has_one = settings.contains(":9000") && !settings.contains(":9001");
                assert!(has_one, "{conf}{settings}");
                let says = |what: &str| notes.iter().any(|note| note.contains(what));
                assert!(says("this server is left out: "), "{notes:?}");
                assert!(says("would be open there"), "{notes:?}");
            }
        }
    }
    // A server on both addresses needs no protection, nor do servers for this machine alone, nor
    // one that forwards nothing, such as nginx's status page.
    let status = "server { listen 127.0.0.1:8081; location /status { stub_status; } }";
    for (conf, port) in [
        (
            public.clone() + &server("listen 80; listen 127.0.0.1:8081;", "b.example", 9001),
            ":9001",
        ),
        (
            server("listen 127.0.0.1:80;", "a.example", 9000)
                + &server("listen [::1]:8081;", "b.example", 9001),
            ":9001",
        ),
        (public.clone() + status, ":8081"),
    ] {
        let (settings, notes) = imported(&conf);
        let has_both = settings.contains(":9000") && settings.contains(port);
        assert!(has_both, "{conf}{settings}");
        let left_out = |it: &String| it.contains("this server is left out");
        assert!(!notes.iter().any(left_out), "{notes:?}");
    }
}

#[test]
fn hosts_of_a_protected_server_whose_name_drip_does_not_have_are_no_others() {
    for name in ["~^x.*", "www.*"] {
        let conf = format!(
            "server {{ listen 80; server_name b.example; location / {{ APP }} }}
             server {{ listen 80; server_name {name}; location / {{ APP }} location /admin/ {{ deny all; }} }}"
        );
        let (settings, notes) = imported(&conf);
        let opens = settings.contains("path = \"/\"\norigin = ");
        let is_closed = !opens && settings.contains("host = \"b.example\"\norigin");
        assert!(is_closed, "{settings}");
        let says = |note: &String| note.contains("requests for other hosts get 404");
        assert!(notes.iter().any(says), "{notes:?}");
    }
}

/// Checks which paths are refused with which status.
///
/// The server has these locations besides an open `/`.
fn answers(locations: &str, asked: &[(&str, u16)]) {
    let (settings, _) = imported(&format!(
        "server {{ listen 80; {locations} location / {{ APP }} }}
         server {{ listen 80; server_name b.example; location / {{ APP }} }}\n"
    ));
    for (path, status) in asked {
        let found = refused(&settings, "a", path).unwrap_or(200);
        assert_eq!(found, *status, "{path}\n{settings}");
    }
}

#[test]
fn a_rewrite_that_may_lead_to_a_protected_location_is_refused() {
    let private = "location /private/ { deny all; APP }";
    answers(
        &format!(
            "{private}
             location /last/ {{ rewrite ^/last/(.*)$ /private/$1 last; APP }}
             location /bare/ {{ rewrite ^/bare/(.*)$ /$1; APP }}
             location /if/ {{ if ($arg_a) {{ rewrite ^ /private/x last; }} APP }}
             location /break/ {{ rewrite ^/break/(.*)$ /private/$1 break; APP }}"
        ),
        &[
            ("/private/a", 403),
            ("/last/a", 403),
            ("/bare/a", 403),
            ("/if/a", 403),
            ("/break/a", 200),
            ("/", 200),
        ],
    );
    for (rewrite, status) in [
        ("rewrite ^/p/(.*)$ /private/$1 last;", 403),
        ("rewrite ^/p/(.*)$ /private/$1 break;", 403),
        ("if ($arg_a) { rewrite ^/p/(.*)$ /$1; }", 403),
        ("rewrite ^/old$ https://b.example/ permanent;", 200),
    ] {
        answers(&format!("{rewrite} {private}"), &[("/p/a", status)]);
    }
    // Nothing is protected.
    answers("rewrite ^/p/(.*)$ /q/$1 last;", &[("/p/a", 200)]);
}

#[test]
fn a_condition_that_answers_is_refused_unless_it_redirects_to_https() {
    let redirect = "return 301 https://$host$request_uri;";
    for (condition, then, status) in [
        ("$cookie_a = \"\"", "return 302 /login;", 403),
        ("$cookie_a = \"\"", "return https://login.example;", 403),
        ("$cookie_a = \"\"", "rewrite ^ /login redirect;", 403),
        ("$cookie_a = \"\"", "rewrite ^ https://login.example;", 403),
        ("$arg_a", "return 410;", 410),
        ("$arg_a", "return $code;", 403),
        ("$host = b.example", "return 302 /login;", 403),
        ("$scheme = http", redirect, 200),
        (
            "$host = b.example",
            "return 301 $scheme://a.example$request_uri;",
            200,
        ),
        (
            "$http_x_forwarded_proto = http",
            "return 301 https://a.example;",
            200,
        ),
        (
            "$server_port = 80",
            "rewrite ^ https://$host$request_uri permanent;",
            200,
        ),
        ("$request_method = OPTIONS", "return 204;", 200),
    ] {
        let inside = format!("if ({condition}) {{ {then} }}");
        let location = format!("location /a/ {{ {inside} APP }}");
        answers(&location, &[("/a/b", status), ("/", 200)]);
        answers(&inside, &[("/a/b", status)]);
    }
}

#[test]
fn a_protected_path_that_is_not_utf_8_is_refused_from_its_readable_beginning() {
    for location in [
        &b"location /caf\xe9/ { deny all; }"[..],
        b"location = /caf\xe9 { deny all; }",
        b"location ^~ /caf\xe9 { auth_basic a; }",
        b"location ~ ^/caf\xe9 { deny all; }",
    ] {
        let rest = b" location /caf { proxy_pass http://a; } location ~ php$ { proxy_pass http://a; } location / { proxy_pass http://a; } }";
        let conf = [b"server { listen 80; ", location, rest].concat();
        let folder = written(&[]);
        fs::write(folder.path().join("nginx.conf"), conf).expect("a file");
        let (code, settings, notes) = outcome_of(&drip(folder.path(), &["import", "nginx.conf"]));
        assert_eq!(code, Some(0), "{notes:?}");
        let first = settings.split("[[routes]]").nth(1).expect("a route");
        assert!(first.contains("path = \"regex:^/"), "{settings}");
        assert!(first.contains("refuse = 403"), "{settings}");
    }
}

#[test]
fn an_address_whose_certificate_is_missing_is_not_listened_on() {
    let (settings, notes) = imported(
        "server { listen 443 ssl; server_name a.example; ssl_certificate gone.pem;
         ssl_certificate_key gone.key; location / { APP } }",
    );
    assert_contains!(settings, "\nlisten = [\"127.0.0.1:8080\"]\n");
    let left_out = "0.0.0.0:443 is left out: it needs TLS";
    let is_noted = notes.iter().any(|note| note.contains(left_out));
    assert!(is_noted, "{notes:?}");
}
