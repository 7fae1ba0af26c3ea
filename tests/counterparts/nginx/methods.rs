//! Compares which methods and which spellings of a key nginx and drip accept.

use std::net::SocketAddr;

use crate::programs::curl::curl;
use crate::programs::nginx::Nginx;
use crate::support::{Client, Gateway, Origin, one_origin};
use crate::support::{file, zone};

fn status(to: SocketAddr, line: &str) -> u16 {
    let mut client = Client::connect(to);
    client.send(format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes());
    client.answer().status
}

#[test]
fn a_method_in_small_letters_is_400_at_both() {
    let origin = Origin::start();
    let nginx = Nginx::start(&origin, "", &[("/", "")]);
    let gateway = Gateway::start(&one_origin(origin.address, "", ""));
    for (methods, expected) in [
        ("post Post POSt gET head m-search", [400, 400]),
        ("POST PROPFIND M-SEARCH RPC_IN_DATA", [200, 200]),
        // nginx accepts no other characters, either. No known server reads one of them as another
        // method.
        ("POST2", [400, 200]),
    ] {
        for method in methods.split(' ') {
            let line = format!("{method} /");
            let both = [nginx.address, gateway.address()].map(|to| status(to, &line));
            assert_eq!(both, expected, "{method}");
        }
    }
    assert_eq!(origin.arrivals().len(), 9);

    let url = format!("http://{}/", gateway.address());
    let written = [
        "--write-out",
        "%{http_version} %{http_code}",
        "--output",
        "/dev/null",
    ];
    let arguments = ["--http2-prior-knowledge", "--request", "post", &*url];
    let received = curl(&[&written[..], &arguments].concat());
    assert_eq!(received.as_deref(), Ok("2 400"));
    assert_eq!(origin.arrivals().len(), 9);
}

#[test]
fn a_key_with_an_underscore_is_no_key_at_both_unless_both_allow_it() {
    for (theirs, ours, expected) in [
        ("", "", [200, 200]),
        (
            "underscores_in_headers on;",
            "underscores_in_headers = true",
            [200, 429],
        ),
    ] {
        let origin = Origin::answering(|exchange| {
            let received = ["x_api_key", "x-api-key"].map(|name| exchange.field(name).is_some());
            exchange.reply(format!("{received:?}").as_bytes())
        });
        let http = format!(
            "{theirs} limit_req_zone $http_x_api_key zone=z:1m rate=1r/m; limit_req_status 429;"
        );
        let nginx = Nginx::start(&origin, &http, &[("/", "limit_req zone=z;")]);
        let limits = "limits = [{ zone = \"z\", burst = 0 }]";
        let zones = zone("z", "$http_x_api_key", "1r/m");
        let gateway = Gateway::start(&format!(
            "{ours}\n{}",
            file(&origin, &zones, &[("/", limits)])
        ));
        for to in [nginx.address, gateway.address()] {
            let found = [0, 1].map(|_| {
                let mut client = Client::connect(to);
                client.send(
                    b"GET / HTTP/1.1\r\nHost: a\r\nX_Api_Key: k\r\nConnection: close\r\n\r\n",
                );
                let answer = client.answer();
                let passed = answer.text() == "[true, false]";
                let may_pass = answer.status == 200 && !ours.is_empty();
                assert_eq!(passed, may_pass, "{}", answer.text());
                answer.status
            });
            assert_eq!(found, expected, "{theirs}");
        }
    }
}
