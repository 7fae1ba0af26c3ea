//! Checklist lines 7 and 8: the target and the host.

use super::bed::{
    GET, LAST, Testbed, each, everybody, haproxy_and_drip, nginx_and_drip, post_with,
};

/// Returns the request line's target as the origin receives it, if the proxy forwards it.
fn passed_on(bed: &Testbed, target: &[u8]) -> Option<String> {
    let mut client = bed.ask([b"GET ", target, b" HTTP/1.1\r\nHost: test\r\n\r\n"].concat());
    let mut origin = match bed
        .origin
        .accept_within(std::time::Duration::from_millis(30))
    {
        Some(origin) => origin,
        // Either the proxy refused the request, or the machine is slow.
        None => match client.try_answer_to("GET", std::time::Duration::from_millis(300)) {
            Ok(answer) => {
                assert_eq!(answer.status(), 400, "{target:?}");
                return None;
            }
            Err(_) => bed.origin.accept(),
        },
    };
    let seen = origin.head();
    origin.send(LAST);
    assert_eq!(client.answer().status(), 200);
    Some(seen.target().to_owned())
}

#[test]
fn line_07_a_target_passes_byte_for_byte() {
    #[rustfmt::skip]
    const TARGETS: [&str; 20] = [
        "/", "/?", "/a?", "/a??b=c?&&=/../?", "/a%2Fb%2fc", "//", "//a//b///", "/a/../b",
        "/a/./b/.", "/a%2e%2E/b", "/%7Eu/%41", "/caf%C3%A9?q=%C3%A9+%20", "/a;b=c,d;e",
        "/~u/!$&'()*+,;=:@", "/:80/@x", "/http://other/x", "/a?http://other/x", "/*", "/a%20b%09c",
        "/%25%32%46",
    ];
    // Targets that nginx refuses: they leave the root, or have an invalid escape.
    const NOT_NGINX: [&str; 4] = ["/../a", "/..", "/%2e%2e/a", "/?%zz%"];
    for bed in everybody() {
        for target in TARGETS {
            let seen = passed_on(&bed, target.as_bytes());
            assert_eq!(seen.as_deref(), Some(target));
        }
        let long = format!("/{}?{}", "x%2F/".repeat(800), "y=".repeat(1000));
        let seen = passed_on(&bed, long.as_bytes());
        assert_eq!(seen, Some(long));
    }
    for bed in haproxy_and_drip() {
        for target in NOT_NGINX {
            let seen = passed_on(&bed, target.as_bytes());
            assert_eq!(seen.as_deref(), Some(target));
        }
    }
}

// A path with a zero byte is refused.
//
// Programs that take the path for a file name read it up to the zero byte. The rest hides the file
// from routes that compare the end of the path. haproxy forwards such paths.
#[test]
fn line_07_a_path_with_a_zero_byte_is_refused() {
    for bed in nginx_and_drip() {
        for target in ["/a%00b", "/%00", "/a%00/../b", "/a%2F%00?c", "/%2500%00"] {
            assert_eq!(passed_on(&bed, target.as_bytes()), None);
        }
        for target in ["/a?b=%00", "/%2500", "/%0a0"] {
            let seen = passed_on(&bed, target.as_bytes());
            assert_eq!(seen.as_deref(), Some(target));
        }
    }
}

// nginx takes Host, not the authority, for $http_host, and haproxy leaves the target in absolute
// form.
#[test]
fn line_08_the_authority_of_an_absolute_target_is_the_host() {
    let bed = Testbed::drip("", "");
    for (target, host, path) in [
        ("http://a.example/x?y", "a.example", "/x?y"),
        ("http://a.example", "a.example", "/"),
        ("http://a.example?x=1", "a.example", "/?x=1"),
        (
            "HTTP://A.Example:8080//x/../%2F",
            "A.Example:8080",
            "//x/../%2F",
        ),
        ("http://[::1]:80/", "[::1]:80", "/"),
    ] {
        // RFC 9112, section 3.2.2: a proxy ignores the Host field of the request.
        for field in ["a.example", "other.example", ""] {
            let seen = bed.seen(format!("GET {target} HTTP/1.1\r\nHost: {field}\r\n\r\n"));
            assert_eq!(seen.target(), path, "{target}");
            assert_eq!(seen.field("host"), Some(host), "{target}");
            assert_eq!(seen.field("x-forwarded-host"), Some(host), "{target}");
        }
    }
}

#[test]
fn line_08_an_absolute_target_without_a_proper_authority_is_refused() {
    let bed = Testbed::drip("", "");
    for target in "http:///x http:// http://u@h/ http://u:p@h/ http://h:port/ test/x".split(' ') {
        let status = bed.own_status(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        assert_eq!(status, 400, "{target}");
    }
    // The field is missing, whatever the target contains (section 3.2).
    let status = bed.own_status("GET http://a.example/ HTTP/1.1\r\n\r\n");
    assert_eq!(status, 400);
}

#[test]
fn line_08_a_missing_or_second_host_is_refused() {
    for bed in everybody() {
        for lines in [
            "",
            "X-Host: test\r\n",
            "Host: test\r\nX-A: 1\r\nHost: other\r\n",
            "Host: test\r\nX-A: 1\r\nHost: test\r\n",
            "Host: test\r\nX-A: 1\r\nHost: \r\n",
        ] {
            // haproxy accepts a missing Host, and two equal ones.
            if bed.who == "haproxy"
                && !lines.ends_with("Host: other\r\n")
                && !lines.ends_with("Host: \r\n")
            {
                continue;
            }
            let status = bed.own_status(format!("GET / HTTP/1.1\r\n{lines}\r\n"));
            assert_eq!(status, 400, "{lines:?}");
        }
    }
}

#[test]
fn line_08_an_invalid_host_is_refused() {
    const INVALID: [&str; 22] = [
        "a b", "a/b", "u@h", "a?b", "a#b", "a\\b", "a:b", "a:80:80", "[::1", "::1", "[::1]x",
        "[g]", "a\tb", "a<b", "\"a\"", "http://a", "a%zz", "a..b", "a..", "[]", "a[b]", "a,b",
    ];
    let bed = Testbed::drip("", "");
    for host in INVALID {
        let status = bed.own_status(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(status, 400, "{host}");
    }
    // nginx and haproxy are less strict. nginx refuses these too.
    for bed in each([|| Testbed::nginx("")]) {
        for host in ["a b", "a/b", "a\tb", "http://a"] {
            let status = bed.own_status(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(status, 400, "{host}");
        }
    }
}

#[test]
fn line_08_a_valid_host_passes_byte_for_byte() {
    const HOSTS: &str = "a.example A.Example:8080 a.example. [::1] [2001:db8::1]:80 a_b-c.xn--p1ai \
        127.0.0.1:1";
    for bed in everybody() {
        for host in HOSTS.split(' ') {
            let seen = bed.seen(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(seen.field("host"), Some(host));
        }
    }
}

/// An empty Host uses the routes without a host.
///
/// RFC 9112, section 3.2, requires an empty Host if the target URI has no authority. Section 3.3
/// lets a server with a default for the connection use it; drip's routes without a host are that
/// default.
#[test]
fn line_08_an_empty_host_is_a_host() {
    // nginx refuses it.
    for bed in haproxy_and_drip() {
        let seen = bed.seen("GET /x HTTP/1.1\r\nHost:\r\n\r\n");
        assert_eq!(seen.field("host"), Some(""));
    }
}

#[test]
fn line_08_the_asterisk_of_options_stays_one() {
    // nginx refuses it.
    for bed in haproxy_and_drip() {
        let seen = bed.seen("OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(seen.line, "OPTIONS * HTTP/1.1");
        assert_eq!(seen.field("host"), Some("test"));
    }
    let bed = Testbed::drip("", "");
    let seen = bed.seen("OPTIONS http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(seen.line, "OPTIONS / HTTP/1.1");
}

#[test]
fn line_08_the_asterisk_is_for_options_alone() {
    for bed in nginx_and_drip() {
        let status = bed.own_status("GET * HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(status, 400);
    }
}

#[test]
fn line_08_what_follows_a_refused_connect_is_no_tunnel() {
    let bed = Testbed::drip("", "");
    let mut client =
        bed.ask("CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n\x16\x03\x01 no HTTP\r\n\r\n");
    assert_eq!(client.answer().status(), 405);
    bed.check_unseen();
    // The gateway and its other clients continue.
    assert_eq!(bed.seen(GET).target(), "/");
    assert_eq!(bed.seen(post_with("Content-Length: 1\r\n", "x")).body, b"x");
}
