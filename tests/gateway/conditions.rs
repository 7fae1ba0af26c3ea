//! Tests of routes with conditions beyond the path: `match`, `listen`, groups of an expression.

use std::fs;
use std::net::SocketAddr;

use crate::support::{Exchange, Gateway, Origin, Site, exchange, free_address, start_drip, zone};

/// Starts an origin that answers with the field `x-route_of`, which its route sets.
fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let route_of = exchange.field("x-place").unwrap_or("-").to_owned();
        exchange.reply(route_of.as_bytes())
    })
}

fn route_of(to: SocketAddr, target: &str, fields: &str) -> String {
    let fields = format!("Host: a.test\r\n{fields}");
    exchange(to, format!("GET {target} HTTP/1.1\r\n{fields}\r\n")).text()
}

fn routes(origin: &Origin, routes: &[(&str, &str)]) -> String {
    let mut text = format!("[origins.app]\nservers = [\"http://{}\"]\n", origin.address);
    for (nth, (path, fields)) in routes.iter().enumerate() {
        let route = format!(
            "[[routes]]\npath = '{path}'\norigin = \"app\"\nrequest_headers = {{ x-place = \"{nth}\" }}\n{fields}\n"
        );
        text.push_str(&route);
    }
    text
}

#[test]
fn all_conditions_must_hold_and_more_of_them_go_before_the_order_of_the_file() {
    let origin = echo_origin();
    let both = "match = { \"header:x-version\" = \"2\", \"cookie:beta\" = \"regex:^on\" }";
    let host = "host = \"a.test\"\nmatch = { \"query:host\" = \"1\" }";
    let gateway = Gateway::start(&routes(
        &origin,
        &[
            ("/", ""),
            ("/", "match = { \"header:X-Version\" = \"2\" }"),
            ("/", "match = { \"query:debug\" = \"\" }"),
            ("/", "match = { \"cookie:beta\" = \"regex:^on\" }"),
            ("/", both),
            ("/", host),
            ("/long/", ""),
        ],
    ));
    let to = gateway.address();
    let all = "X-Version: 2\r\nCookie: beta=on\r\n";
    for (target, fields, expected) in [
        ("/", "", "0"),
        ("/", "X-Version: 2\r\n", "1"),
        ("/", "x-version: 20\r\n", "0"),
        ("/?debug", "", "2"),
        ("/?debug=", "", "2"),
        ("/?a=b&%64ebug=", "", "2"),
        ("/?debug=1", "", "0"),
        ("/", "Cookie: a=b; beta=only\r\n", "3"),
        ("/", "Cookie: a=b; beta=off\r\n", "0"),
        // Equal numbers of conditions: the first route in the file wins.
        ("/?debug", "X-Version: 2\r\n", "1"),
        ("/?debug", all, "4"),
        // The host has priority over conditions, and the path over the host.
        ("/?host=1", all, "5"),
        ("/long/x?host=1", all, "6"),
    ] {
        assert_eq!(route_of(to, target, fields), expected, "{target} {fields}");
    }
    assert_eq!(gateway.requests("/ header:x-version=2", "200"), 2);
}

#[test]
fn what_an_untrusted_client_says_of_its_origin_meets_no_condition() {
    let origin = echo_origin();
    let conditions = [
        ("/for", "header:x-forwarded-for", "10.0.0.1"),
        ("/address", "header:x-forwarded-for", "127.0.0.1"),
        ("/proto", "header:x-forwarded-proto", "https"),
        ("/scheme", "header:x-forwarded-proto", "http"),
        ("/host", "header:x-forwarded-host", "internal"),
        ("/name", "header:x-forwarded-host", "a.test"),
        ("/real", "header:x-real-ip", "10.0.0.1"),
        ("/standard", "header:forwarded", "for=10.0.0.1"),
        ("/certificate", "header:x-forwarded-client-cert", "CN=a"),
    ];
    let matches =
        conditions.map(|(_, name, value)| format!("match = {{ \"{name}\" = \"{value}\" }}"));
    let mut of_routes = vec![("/", "")];
    let with_conditions = conditions.iter().zip(&matches);
    of_routes.extend(with_conditions.map(|((path, ..), condition)| (*path, condition.as_str())));
    let routes = routes(&origin, &of_routes);
    let untrusted = Gateway::start(&routes);
    let trusted = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{routes}"));
    let says = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: internal\r\n\
                X-Real-IP: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\nX-Forwarded-Client-Cert: CN=a\r\n";
    for (nth, (path, ..)) in conditions.iter().enumerate() {
        let is_of_gateway = ["/address", "/scheme", "/name"].contains(path);
        let route_if = |is_met: bool| if is_met { nth + 1 } else { 0 }.to_string();
        let found = route_of(untrusted.address(), path, says);
        assert_eq!(found, route_if(is_of_gateway), "untrusted {path}");
        let found = route_of(trusted.address(), path, says);
        assert_eq!(found, route_if(!is_of_gateway), "trusted {path}");
    }
}

#[test]
fn a_route_can_be_of_one_address() {
    let origin = echo_origin();
    let internal = free_address();
    let listen = "listen = \"internal\"";
    let text = routes(&origin, &[("/", ""), ("/", listen), ("/admin/", listen)]);
    let site = Site::new();
    let second = format!("listen = [{{ address = \"{internal}\", name = \"internal\" }}, ");
    let file = site.text(&text).replacen("listen = [", &second, 1);
    fs::write(site.file(), file).expect("a file");
    let gateway = Gateway::start_at(site);
    let public = gateway.address();
    for (to, target, expected) in [
        (public, "/", "0"),
        (internal, "/", "1"),
        (public, "/admin/", "0"),
        (internal, "/admin/", "2"),
    ] {
        assert_eq!(route_of(to, target, ""), expected, "{to} {target}");
    }
}

#[test]
fn groups_of_the_path_are_keys_and_values_of_fields() {
    let origin = echo_origin();
    let zones = zone("user", "$path_user", "1r/h") + &zone("second", "$path_2", "1r/h");
    let groups = "limits = [{ zone = \"user\", burst = 0 }, { zone = \"second\", burst = 1, nodelay = true }]\n\
         request_headers = { x-place = \"$path_user-$path_2-$path_none\" }";
    let others = "limits = [{ zone = \"user\", burst = 0 }]\n\
         request_headers = { x-place = \"$path_user\" }";
    let path = "regex:^/u/(?<user>[0-9]+)(/x)?";
    let gateway = start_drip(&origin, &zones, &[(path, groups), ("/", others)]);
    let to = gateway.address();
    assert_eq!(route_of(to, "/u/12/x", ""), "12-/x-");
    assert_eq!(route_of(to, "/u/%31%32/x", ""), "Too many requests\n");
    assert_eq!(route_of(to, "/u/13", ""), "13--");
    assert_eq!(route_of(to, "/u/14", ""), "14--");
    // A route without such a group: no key, no limit, and no field.
    assert_eq!(route_of(to, "/other", "X-Place: mine\r\n"), "-");
    assert_eq!(route_of(to, "/other", ""), "-");
}

#[test]
fn fields_for_the_origin_may_have_variables_and_never_a_line_of_the_client() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let names = ["x-real-ip", "x-mixed", "x-cookie", "x-dollar", "x-gone"];
        let received = names.map(|name| exchange.field(name).unwrap_or("-").to_owned());
        exchange.reply(received.join("|").as_bytes())
    });
    let text = format!(
        "trusted_proxies = [\"127.0.0.1\"]\n[origins.app]\nservers = [\"http://{}\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         request_headers = {{ x-real-ip = \"$remote_addr\", x-mixed = \"$scheme://$host$request_uri of ${{DRIP_TEST_NAME}}\", \
         x-cookie = \"$cookie_a $arg_b\", x-dollar = \"US$$5\", x-gone = \"$http_none\" }}\n",
        origin.address
    );
    let variables = [("DRIP_TEST_NAME", std::path::Path::new("$host"))];
    let gateway = Gateway::start_with(&text, &variables);
    let fields =
        "X-Forwarded-For: 192.0.2.7\r\nCookie: a=\"x\\015\\012Evil: 1\"\r\nX-Gone: mine\r\n";
    let received = route_of(gateway.address(), "/p?b=%0d%0aevil:2", fields);
    let expected = "192.0.2.7|http://a.test/p?b=%0d%0aevil:2 of $host|x  Evil: 1   evil:2|US$5|-";
    assert_eq!(received, expected);
}
