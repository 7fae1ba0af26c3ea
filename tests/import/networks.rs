//! Tests that `allow` and `deny` become networks of a route, if drip sees the same addresses.

use super::imported as of_conf;
use crate::support::assert_contains;

fn imported(http: &str, listen: &str, location: &str) -> (String, Vec<String>) {
    let conf = format!(
        "{http}\nserver {{ listen {listen}; location / {{\n{location}\nproxy_pass http://127.0.0.1:9000; }} location /open/ {{ proxy_pass http://127.0.0.1:9001; }} }}\n"
    );
    of_conf(&conf)
}

#[test]
fn rules_that_drip_cannot_check_refuse_everybody_and_say_why() {
    let staff = "allow 10.0.0.0/8; deny all;";
    let trust = "set_real_ip_from 10.0.0.0/8;";
    let tcp = "8080";
    let socket = "unix:/run/a.sock; listen 8080";
    let real_ip = "real_ip_header X-Forwarded-For;";
    let recursive = format!("{real_ip} real_ip_recursive on;");
    let trusting = format!("{recursive} {trust}");
    let by_name = format!("{recursive} set_real_ip_from proxy.example;");
    let allowed = Ok("allow = [\"10.0.0.0/8\"]");
    let no_address = Err("drip does not find the address of the client");
    let either = "satisfy any; allow 10.0.0.0/8; deny all; auth_basic a;";
    let other = "allow office.example; deny all;";
    let of_server = "8080; set_real_ip_from 10.0.0.0/8";
    for (http, listen, rules, fields) in [
        ("", tcp, staff, allowed),
        (
            "",
            socket,
            staff,
            Err("clients of a socket file have no address"),
        ),
        (
            "",
            tcp,
            "deny unix:; deny 192.0.2.1;",
            Ok("deny = [\"192.0.2.1\"]"),
        ),
        ("", tcp, "deny all;", Err("drip does not check that")),
        ("", tcp, other, Err("\"office.example\" is not a network")),
        (&*trusting, tcp, staff, allowed),
        (trust, tcp, staff, no_address),
        (
            &format!("{real_ip} {trust}"),
            tcp,
            staff,
            Err("as with real_ip_recursive on"),
        ),
        (&by_name, tcp, staff, no_address),
        (&recursive, of_server, staff, Err("for all servers")),
        ("", tcp, either, Err("auth_basic protects")),
    ] {
        let (settings, notes) = imported(http, listen, rules);
        match fields {
            Ok(fields) => {
                let route = format!("origin = \"127-0-0-1-9000\"\n{fields}\n");
                assert!(settings.contains(&route), "{rules}: {settings}");
            }
            Err(why) => {
                let refuses = settings.contains("path = \"/\"\nrefuse = 403\n");
                assert!(refuses, "{rules}: {settings}");
                let note = notes
                    .iter()
                    .find(|note| note.contains(" protects location / in nginx"));
                let note = note.unwrap_or_else(|| panic!("{rules}: {notes:?}"));
                assert_contains!(note, why);
            }
        }
    }
}
