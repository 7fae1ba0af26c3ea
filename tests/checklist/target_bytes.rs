//! Checklist line 7: bytes that a target may have.
//!
//! All except controls and spaces are forwarded unchanged, also those that RFC 3986 does not allow:
//! browsers and Prometheus send them, and origins accept them.

use super::bed::{Testbed, each, nginx_and_drip};
use crate::support::{Message, eventually, whole_lines};

/// Targets, with the text of each in the access log.
const PASS: [(&[u8], &str); 16] = [
    (b"/a\"b", "/a\\x22b"),
    (b"/a<b>c", "/a<b>c"),
    (b"/a`b", "/a`b"),
    (b"/a{b}c", "/a{b}c"),
    (b"/a|b", "/a|b"),
    (b"/a^b", "/a^b"),
    (b"/a\\b", "/a\\\\b"),
    (b"/[a]", "/[a]"),
    (b"/%", "/%"),
    (b"/%zz%2", "/%zz%2"),
    (b"/caf\xc3\xa9", "/caf\u{e9}"),
    (b"/caf\xe9", "/caf\\xE9"),
    (b"/?\x80\xff", "/?\\x80\\xFF"),
    (
        b"/api/v1/query?query=up{job=\"a|b\"}>0",
        "/api/v1/query?query=up{job=\\x22a|b\\x22}>0",
    ),
    (
        b"/\"<>`{}|^\\\xf0\x9f\xa6\x80",
        "/\\x22<>`{}|^\\\\\u{1f980}",
    ),
    (b"/?\"<>`{}|^\\", "/?\\x22<>`{}|^\\\\"),
];

/// Starts drip with an access log in this form.
fn logging(format: &str) -> Testbed {
    let log = format!("[log]\nformat = \"{format}\"\naccess = \"access.log\"\n");
    Testbed::limited_drip("", "", &log, "")
}

/// Waits until the access log `fits`.
fn logged(bed: &mut Testbed, fits: impl Fn(&str) -> bool) {
    let file = bed.gateway().site.folder().join("access.log");
    eventually("the request is logged", || fits(&whole_lines(&file)));
}

fn request(target: &[u8]) -> Vec<u8> {
    [b"GET ", target, b" HTTP/1.1\r\nHost: test\r\n\r\n"].concat()
}

fn bytes(text: &str) -> Vec<u8> {
    let byte = |it| u8::try_from(it).expect("each char of it is a byte");
    text.chars().map(byte).collect()
}

fn check_targets(bed: &Testbed, targets: impl Iterator<Item = Vec<u8>>) {
    for target in targets {
        let seen = bed.seen(request(&target));
        assert_eq!(bytes(seen.target()), target);
    }
}

/// Returns targets with each allowed byte, in the path and in the query.
///
/// `#` begins a fragment, which a request does not have.
fn each_byte() -> impl Iterator<Item = Vec<u8>> {
    let bytes = (0x21..=0xff_u8).filter(|byte| !b"#\x7f".contains(byte));
    bytes.map(|byte| [b"/a", &[byte][..], b"b?c", &[byte], b"d"].concat())
}

#[test]
fn line_07_any_byte_of_a_target_but_controls_and_spaces_passes_as_it_came() {
    let listed = PASS.iter().map(|(target, _)| target.to_vec());
    // nginx refuses an invalid escape.
    let no_escape = listed.clone().filter(|target| !target.contains(&b'%'));
    for nginx in each([|| Testbed::nginx("")]) {
        check_targets(&nginx, no_escape.clone());
    }
    for lenient in each([|| Testbed::haproxy("    option accept-invalid-http-request")]) {
        check_targets(&lenient, listed.clone().chain(each_byte()));
    }
    check_targets(&Testbed::drip("", ""), listed.chain(each_byte()));
}

#[test]
fn line_07_such_targets_are_logged_escaped_on_one_line() {
    let mut bed = logging("text");
    for (target, shown) in PASS {
        bed.seen(request(target));
        let expected = format!("\"GET {shown} HTTP/1.1\" 200 2 ");
        logged(&mut bed, |log| {
            log.lines().any(|line| line.contains(&expected))
        });
    }
}

/// Returns the proxy's own response. The origin must receive nothing.
fn refused(bed: &Testbed, request: &[u8]) -> Message {
    let received = bed.ask(request).answer();
    bed.check_unseen();
    received
}

/// Returns whether the response says what is wrong.
fn says_why(received: &Message) -> bool {
    let body = String::from_utf8_lossy(&received.body).to_lowercase();
    body.contains("target") && received.field("content-type").is_some()
}

#[test]
fn line_07_a_control_a_space_or_del_in_a_target_is_a_400_that_says_why() {
    let controls: Vec<u8> = (0..=0x20_u8).chain([0x7f]).collect();
    // Some parsers take these bytes for a line end: the head is malformed as a whole.
    let of_lines = |byte: u8| byte == b'\r' || byte == b'\n';
    for bed in nginx_and_drip() {
        for byte in controls.iter().copied().filter(|byte| !of_lines(*byte)) {
            for target in [
                [b"/a", &[byte][..], b"b"].concat(),
                [b"/?a", &[byte][..], b"b"].concat(),
                [b"/a", &[byte][..]].concat(),
            ] {
                if bed.who == "nginx" && target == b"/a " {
                    // haproxy treats several spaces as one.
                    continue;
                }
                let received = refused(&bed, &request(&target));
                assert_eq!(received.status(), 400, "{byte:#x}");
                let is_explained = !bed.is_drip() || says_why(&received);
                assert!(is_explained, "{byte:#x}: {received:?}");
            }
        }
    }
}

#[test]
fn line_07_a_target_that_is_refused_is_logged_with_the_status() {
    for format in ["text", "json"] {
        let mut bed = logging(format);
        for (nth, target) in [&b"/a b"[..], b"/a\x01b", b"/a\x7f", b"foo", b"/a#b"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(refused(&bed, &request(target)).status(), 400);
            let status = match format {
                "text" => "\" 400 ",
                _ => "\"status\":400",
            };
            logged(&mut bed, |log| {
                let clean = log.chars().all(|c| c == '\n' || !c.is_control());
                assert!(clean, "{log:?}");
                log.lines().filter(|line| line.contains(status)).count() == nth + 1
            });
        }
    }
}

#[test]
fn line_07_a_target_that_is_neither_a_path_nor_an_absolute_url_nor_an_asterisk_is_a_400() {
    const NEITHER: &str = "foo foo/bar ?x #x :80 : mailto:x test:80 127.0.0.1:80/x @ . .. ./a \\a \
        http:foo http:/foo http %2f";
    for bed in nginx_and_drip() {
        for target in NEITHER.split(' ') {
            let received = refused(&bed, &request(target.as_bytes()));
            assert_eq!(received.status(), 400, "{target}");
            let is_explained = !bed.is_drip() || says_why(&received);
            assert!(is_explained, "{target}: {received:?}");
        }
    }
    let bed = Testbed::drip("", "");
    for target in ["**", "*x", "*/", "*?x", "1http://a/", "://a/", "h_t://a/"] {
        for method in ["GET", "OPTIONS"] {
            let request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n\r\n");
            let received = refused(&bed, request.as_bytes());
            assert_eq!(received.status(), 400, "{method} {target}");
        }
    }
}
