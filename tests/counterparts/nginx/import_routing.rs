//! What the origin gets of nginx, which origin it is, and which pages clients get, and of drip on what `drip import`
//! makes of the file.

use std::fs;
use std::net::SocketAddr;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::{Client, Exchange, Origin};

/// The status and the text that a request with these lines in its head gets.
fn answer(to: SocketAddr, target: &str, lines: &str) -> (u16, String) {
    let mut client = Client::connect(to);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n").as_bytes());
    let answer = client.answer();
    (answer.status, answer.text())
}

#[test]
fn the_origin_gets_the_fields_that_nginx_sets() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let names = [
            "x-real-ip",
            "x-from",
            "x-key",
            "x-both",
            "accept",
            "x-fixed",
        ];
        let fields = names.map(|name| format!("{name}={:?}\n", exchange.field(name)));
        exchange.reply(fields.concat().as_bytes())
    });
    let set = "proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-From \"$scheme://$host$request_uri\";
        proxy_set_header X-Key $http_x_api_key;
        proxy_set_header X-Both ${request_method}-$uri;
        proxy_set_header Accept \"\";
        proxy_set_header X-Fixed \"a b\";";
    let nginx = Nginx::start(
        &origin,
        set,
        &[("/", ""), ("/own/", "proxy_set_header X-Key own;")],
    );
    let gateway = drip_on_the_file_of(&nginx);
    for (target, lines) in [
        (
            "/a/b?c=d",
            "X-Api-Key: one\r\nAccept: text/html\r\nX-Real-IP: 192.0.2.1\r\n",
        ),
        (
            "/a/../b%20c",
            "Accept: text/html\r\nX-Fixed: c\r\nX-Both: d\r\n",
        ),
        ("/own/x", "X-Api-Key: one\r\nAccept: text/html\r\n"),
    ] {
        let [theirs, ours] = [nginx.address, gateway.address()].map(|to| answer(to, target, lines));
        assert_eq!(theirs, ours, "{target}");
        assert_eq!(theirs.0, 200, "{target}");
    }
}

#[test]
fn a_map_chooses_the_origin_that_nginx_takes() {
    let named = |name: &'static str| {
        Origin::answering(move |exchange: &mut Exchange| exchange.reply(name.as_bytes()))
    };
    let (stable, next, old) = (named("stable"), named("next"), named("old"));
    let http = format!(
        "upstream next {{ server {}; }}
        upstream old {{ server {}; }}
        map $http_x_version $app {{ default origin; 2 next; Beta next; 1.0 old; }}
        map $cookie_app $by_cookie {{ default http://origin; next http://next; \"\" http://old; }}
        map $arg_app $by_arg {{ default origin; next next; }}",
        next.address, old.address
    );
    // The last proxy_pass that the helper adds is of a location that nobody asks for.
    let own = "/unused/ { return 404; } location";
    let locations = format!(
        "{own} / {{ proxy_pass http://$app; }}
         location /cookie/ {{ proxy_pass $by_cookie; }}
         location /arg/ {{ proxy_pass http://$by_arg$request_uri; }}
         location /last/"
    );
    let nginx = Nginx::start(&stable, &http, &[(&locations, "")]);
    let gateway = drip_on_the_file_of(&nginx);
    for (target, lines, expected) in [
        ("/", "", "stable"),
        ("/", "X-Version: 2\r\n", "next"),
        ("/", "X-Version: bETA\r\n", "next"),
        ("/", "X-Version: beta2\r\n", "stable"),
        ("/", "X-Version: 1.0\r\n", "old"),
        ("/", "X-Version: 1x0\r\n", "stable"),
        ("/", "X-Version:\r\n", "stable"),
        ("/cookie/", "", "old"),
        ("/cookie/", "Cookie: app=next\r\n", "next"),
        ("/cookie/", "Cookie: app=other\r\n", "stable"),
        ("/arg/?app=NEXT", "", "next"),
        ("/arg/?app=nex", "", "stable"),
        ("/arg/", "", "stable"),
        ("/last/", "X-Version: 2\r\n", "stable"),
    ] {
        for to in [nginx.address, gateway.address()] {
            let found = answer(to, target, lines);
            assert_eq!(found, (200, expected.to_owned()), "{to} {target} {lines}");
        }
    }
}

#[test]
fn clients_get_the_pages_that_nginx_sends() {
    let origin = Origin::answering(|exchange: &mut Exchange| match exchange.target() {
        "/503" => {
            exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nown")
        }
        _ => exchange.reply(b"ok"),
    });
    let site = tempfile::tempdir().expect("a folder");
    let folder = site.path().display();
    for name in ["busy.html", "down.html", "denied.html"] {
        fs::write(site.path().join(name), format!("<p>{name}</p>\n")).expect("a file");
    }
    let server = format!(
        "/unused/ {{ return 404; }}
        root {folder};
        error_page 502 503 504 /down.html;
        error_page 403 /denied.html;
        location / {{ proxy_pass http://origin; }}
        location /503 {{ proxy_intercept_errors on; proxy_pass http://origin; }}
        location /dead {{ proxy_pass http://127.0.0.1:1; }}
        location /own/ {{ error_page 503 =503 /pages/busy.html; limit_req zone=z; proxy_pass http://origin; }}
        location /closed/ {{ deny all; proxy_pass http://origin; }}
        location /others/ {{ allow 192.0.2.0/24; deny all; proxy_pass http://origin; }}
        location ^~ /pages/ {{ internal; alias {folder}/; }}
        location = /down.html {{ internal; }}
        location = /denied.html {{ internal; }}
        location /last/"
    );
    let http = "limit_req_zone all zone=z:1m rate=1r/m;";
    let nginx = Nginx::start(&origin, http, &[(&server, "")]);
    let gateway = drip_on_the_file_of(&nginx);
    for (target, status, text) in [
        ("/a", 200, "ok"),
        ("/503", 503, "<p>down.html</p>\n"),
        ("/dead", 502, "<p>down.html</p>\n"),
        ("/own/a", 200, "ok"),
        ("/own/a", 503, "<p>busy.html</p>\n"),
        ("/closed/a", 403, "<p>denied.html</p>\n"),
        ("/others/a", 403, "<p>denied.html</p>\n"),
    ] {
        for to in [nginx.address, gateway.address()] {
            let found = answer(to, target, "");
            assert_eq!(found, (status, text.to_owned()), "{to} {target}");
        }
    }
}
