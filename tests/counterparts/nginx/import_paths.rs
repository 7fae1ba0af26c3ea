//! Compares which requests nginx and drip on the imported file admit, and with which path.

use std::net::SocketAddr;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::{Client, Exchange, Origin};

const SERVER: &str = r#"
    location / { proxy_pass http://origin; }

    location /deny/ { deny all; proxy_pass http://origin; }
    location /deny/open/ { allow all; deny all; proxy_pass http://origin; }
    location /some/ { allow 127.0.0.1; deny all; proxy_pass http://origin; }
    location /listed/ { deny 192.0.2.1; proxy_pass http://origin; }
    location /others/ {
        allow 10.0.0.0/8;
        deny all;
        proxy_pass http://origin;
        location /others/ours/ { deny 127.0.0.2; allow 127.0.0.0/8; deny all; proxy_pass http://origin; }
    }
    location /tried/ { allow 127.0.0.1; deny all; try_files /none @tried; }
    location @tried { allow 10.0.0.0/8; deny all; proxy_pass http://origin; }
    location /basic/ {
        auth_basic "staff";
        auth_basic_user_file none;
        proxy_pass http://origin;
        location /basic/deeper/ { proxy_pass http://origin; }
        location /basic/off/ { auth_basic off; proxy_pass http://origin; }
    }
    location /asked/ { auth_request /auth; proxy_pass http://origin; }
    location = /auth { internal; proxy_pass http://origin; }
    location /internal/ {
        internal;
        proxy_pass http://origin;
        location /internal/deeper/ { proxy_pass http://origin; }
    }
    location /gone/ { return 404; }
    location /closed/ {
        return 403 "no";
        proxy_pass http://origin;
        location /closed/deeper/ { proxy_pass http://origin; }
    }
    location /dropped/ { return 503; }
    location /if/ { if ($http_x_token = "") { return 401; } proxy_pass http://origin; }
    location /get/ { limit_except GET { deny all; } proxy_pass http://origin; }
    location /either/ { satisfy any; allow 127.0.0.1; deny all; auth_basic "staff"; proxy_pass http://origin; }
    location = /one { deny all; }
    location = /slash/ { deny all; proxy_pass http://origin; }
    location /rewritten/ { rewrite ^/rewritten/(.*)$ /deny/$1 last; proxy_pass http://origin; }
    location /login/ { if ($cookie_a = "") { return 302 /; } proxy_pass http://origin; }
    location /self/ { return 200 fine; }
    location "/a b?c" { deny all; }

    location ~ /\.ht { deny all; }
    location ~ ^/hidden/\.(?!well-known) { deny all; }
    location ~* \.(sql|bak)$ { return 404; }
    location ~ ^/u/[0-9]+$ { proxy_pass http://origin; }
    location ~ ^/deny/x[0-9] { proxy_pass http://origin; }

    location ^~ /kept/ { proxy_pass http://origin; }
    location ^~ /kept/secret/ { deny all; }
    location /kept/deeper/ { proxy_pass http://origin; }
    location /php/ {
        proxy_pass http://origin;
        location ~ \.php$ { deny all; }
        location /php/open/ { proxy_pass http://origin; }
    }
    location /parts/ {
        deny all;
        location ~ ^/parts/[a-c]$ { allow all; proxy_pass http://origin; }
    }

    location /v1/ { proxy_pass http://origin/; }
    location /v2/ { proxy_pass http://origin/app/; }
    location = /v3 { proxy_pass http://origin/three; }
    location ^~ /v4/ { proxy_pass http://origin/x; }
"#;

/// Requests, and whether nginx and drip both admit them.
const ASKED: [(&str, &str, bool); 59] = [
    ("GET", "/", true),
    ("GET", "/a", true),
    ("GET", "/deny/x", false),
    ("GET", "/%64eny/x", false),
    ("GET", "/a/../deny/x", false),
    ("GET", "/deny/open/x", true),
    ("GET", "/deny/open/../x", false),
    ("GET", "/deny/x1", true),
    ("GET", "/some/x", true),
    ("GET", "/listed/x", true),
    ("GET", "/others/x", false),
    ("GET", "/others/ours/x", true),
    ("GET", "/tried/x", false),
    ("GET", "/basic/x", false),
    ("GET", "/basic/deeper/x", false),
    ("GET", "/basic/off/x", true),
    ("GET", "/auth", false),
    ("GET", "/auth/x", true),
    ("GET", "/internal/x", false),
    ("GET", "/internal/deeper/x", false),
    ("GET", "/gone/x", false),
    ("GET", "/closed/x", false),
    ("GET", "/closed/deeper/x", true),
    ("GET", "/dropped/x", false),
    ("GET", "/if/x", false),
    ("POST", "/get/x", false),
    ("DELETE", "/get/x", false),
    ("GET", "/one", false),
    ("GET", "/slash/", false),
    ("GET", "/rewritten/x", false),
    ("GET", "/one/x", true),
    ("GET", "/a%20b%3fc", false),
    ("GET", "/a%20b?c", true),
    ("GET", "/.htaccess", false),
    ("GET", "/x/.htaccess", false),
    ("GET", "/x/%2ehtaccess", false),
    ("GET", "/v1/.htaccess", false),
    ("GET", "/hidden/.git", false),
    ("GET", "/hidden/a", true),
    ("GET", "/x/dump.SQL", false),
    ("GET", "/x/dump.sql?a", false),
    ("GET", "/x/dump.sql%0a", false),
    ("GET", "/x/dump.sqlx", true),
    ("GET", "/u/12", true),
    ("GET", "/u/x", true),
    ("GET", "/kept/a", true),
    ("GET", "/kept/secret/a", false),
    ("GET", "/kept/secret/../a", true),
    ("GET", "/kept/deeper/a", true),
    ("GET", "/kept/deeper/a.sql", false),
    ("GET", "/php/a.php", false),
    ("GET", "/php/a.php%0A", false),
    ("GET", "/php/open/a.php", false),
    ("GET", "/x/a.php", true),
    ("GET", "/parts/d", false),
    ("GET", "/v1/x%20y?z", true),
    ("GET", "/v2/x/../y", true),
    ("GET", "/v3", true),
    ("GET", "/v4/x", true),
];

/// Requests that only drip refuses, because it cannot check who is allowed.
const REFUSED_BY_DRIP: [&str; 13] = [
    // nginx redirects to the location with a slash, which is protected.
    "/deny",
    "/slash",
    // nginx answers these itself.
    "/login/x",
    "/self/x",
    // These depend on the client.
    "/asked/x",
    "/either/x",
    // Look-around is left out of the expression.
    "/hidden/.well-known",
    // drip has no methods of limit_except, and no regular expressions within a location.
    "/get/x",
    "/php/a",
    "/php/open/a",
    "/parts/a",
    // Regular expressions that refuse precede a prefix within one with ^~.
    "/kept/a.sql",
    "/kept/.htaccess",
];

fn answer(address: SocketAddr, method: &str, target: &str) -> (u16, Vec<u8>) {
    let mut client = Client::connect(address);
    let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    client.send(head.as_bytes());
    let answer = client.answer();
    let text = answer.text();
    let path = text.split('?').next().unwrap_or_default();
    let path = percent_encoding::percent_decode_str(path).collect();
    (answer.status, path)
}

#[test]
fn drip_on_the_imported_file_lets_through_what_nginx_does_with_the_same_path_or_less() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        exchange.reply(target.as_bytes())
    });
    let within = format!("}} {SERVER} location = /unused-2 {{");
    let nginx = Nginx::start(&origin, "", &[("= /unused", &within)]);
    let gateway = drip_on_the_file_of(&nginx);
    for (method, target, passes) in ASKED {
        let [theirs, ours] =
            [nginx.address, gateway.address()].map(|address| answer(address, method, target));
        if passes {
            assert_eq!(theirs, ours, "{method} {target}");
            assert_eq!(ours.0, 200, "{method} {target}");
        } else {
            assert!(theirs.0 >= 400, "{method} {target}: {theirs:?}");
            assert!(ours.0 >= 400, "{method} {target}: {ours:?}");
            assert_eq!(theirs.0 / 100, ours.0 / 100, "{method} {target}");
        }
    }
    for target in REFUSED_BY_DRIP {
        let [theirs, ours] =
            [nginx.address, gateway.address()].map(|address| answer(address, "GET", target).0);
        assert!(theirs < 400, "{target}: {theirs}");
        assert!(ours >= 400, "{target}: {ours}");
    }
}
