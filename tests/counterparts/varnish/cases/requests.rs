//! Statuses, and what requests say.

use super::{Case, may, no};

pub(super) fn statuses() -> Vec<Case> {
    const HOUR: &str = "Cache-Control: max-age=3600";
    const OVER: &str = "Cache-Control: max-age=1";
    vec![
        may("203", HOUR).status(203),
        may("204", HOUR).status(204),
        may("299", HOUR).status(299),
        may("301", HOUR).status(301),
        may("302", HOUR).status(302),
        may("303", HOUR).status(303),
        may("307", HOUR).status(307),
        may("308", HOUR).status(308),
        may("400", HOUR).status(400),
        may("404", HOUR).status(404),
        may("410", HOUR).status(410),
        may("499", HOUR).status(499),
        may("500", HOUR).status(500),
        may("501", HOUR).status(501),
        may("503", HOUR).status(503),
        may("599", HOUR).status(599),
        no("404 is over", OVER).status(404),
        no("301 is over", OVER).status(301),
        no("503 is over", OVER).status(503),
        no("201 without a lifetime", "").status(201),
        no("302 without a lifetime", "").status(302),
        no("307 without a lifetime", "").status(307),
        no("403 without a lifetime", "").status(403),
        no("429 without a lifetime", "").status(429),
        no("500 without a lifetime", "").status(500),
        no("503 without a lifetime", "").status(503),
        no(
            "599 with no-store",
            "Cache-Control: max-age=3600, no-store, must-understand",
        )
        .status(599),
        no(
            "a part",
            "Cache-Control: max-age=3600\nContent-Range: bytes 0-9/100",
        )
        .status(206)
        .asks("Range: bytes=0-9\r\n", ""),
    ]
}

pub(super) fn vary() -> Vec<Case> {
    const ONE: &str = "Foo: 1\r\n";
    const TWO: &str = "Foo: 1\r\nBar: a\r\n";
    const FOO: &str = "Cache-Control: max-age=3600\nVary: Foo";
    const BOTH: &str = "Cache-Control: max-age=3600\nVary: Foo, Bar";
    vec![
        may("Vary, and the same", FOO).asks(ONE, ONE),
        no("Vary, and another", FOO).asks(ONE, "Foo: 2\r\n"),
        no("Vary, and the first without", FOO).asks("", ONE),
        no("Vary, and the second without", FOO).asks(ONE, ""),
        no("Vary, and the second empty", FOO).asks("", "Foo: \r\n"),
        may("Vary, and both without", FOO),
        may("Vary, and another field differs", FOO).asks(ONE, "Foo: 1\r\nOther: 2\r\n"),
        may("Vary on two, and the same", BOTH).asks(TWO, TWO),
        no("Vary on two, and one without", BOTH).asks(TWO, ONE),
        no("Vary on two, and one differs", BOTH).asks(TWO, "Foo: 1\r\nBar: b\r\n"),
        no(
            "Vary on two lines",
            "Cache-Control: max-age=3600\nVary: Foo\nVary: Bar",
        )
        .asks(TWO, "Foo: 1\r\nBar: b\r\n"),
        may(
            "Vary on a field in no key",
            "Cache-Control: max-age=3600\nVary: Other",
        )
        .asks("Other: 1\r\n", "Other: 1\r\n"),
        no(
            "Vary on a field in no key that differs",
            "Cache-Control: max-age=3600\nVary: Other",
        )
        .asks("Other: 1\r\n", "Other: 2\r\n"),
        may(
            "Vary with two lines in the request",
            "Cache-Control: max-age=3600\nVary: Accept-Language",
        )
        .asks(
            "Accept-Language: en\r\nAccept-Language: de\r\n",
            "Accept-Language: en, de\r\n",
        ),
        may(
            "Vary with another case",
            "Cache-Control: max-age=3600\nVary: Accept-Language",
        )
        .asks("Accept-Language: en\r\n", "Accept-Language: EN\r\n"),
        no("Vary: *", "Cache-Control: max-age=3600\nVary: *").asks(ONE, ONE),
        no("Vary: *, *", "Cache-Control: max-age=3600\nVary: *, *").asks(ONE, ONE),
        no(
            "two lines of Vary: *",
            "Cache-Control: max-age=3600\nVary: *\nVary: *",
        )
        .asks(ONE, ONE),
        no("Vary: , *", "Cache-Control: max-age=3600\nVary: , *").asks(ONE, ONE),
        no(
            "an empty Vary, then Vary: *",
            "Cache-Control: max-age=3600\nVary:\nVary: *",
        )
        .asks(ONE, ONE),
        no("Vary: *, Foo", "Cache-Control: max-age=3600\nVary: *, Foo").asks(ONE, ONE),
        no("Vary: Foo, *", "Cache-Control: max-age=3600\nVary: Foo, *").asks(ONE, ONE),
    ]
}

pub(super) fn requests() -> Vec<Case> {
    const HOUR: &str = "Cache-Control: max-age=3600";
    const LOGIN: &str = "Authorization: Basic YTpi\r\n";
    vec![
        no("Authorization, then without", HOUR).asks(LOGIN, ""),
        no("Authorization in both", HOUR).asks(LOGIN, LOGIN),
        no("Authorization, then another", HOUR).asks(LOGIN, "Authorization: Basic YTpj\r\n"),
        may(
            "Authorization with public",
            "Cache-Control: max-age=3600, public",
        )
        .asks(LOGIN, LOGIN),
        may(
            "Authorization with s-maxage",
            "Cache-Control: s-maxage=3600",
        )
        .asks(LOGIN, LOGIN),
        may("without, then Authorization", HOUR).asks("", LOGIN),
        may("a cookie", HOUR).asks("Cookie: a=1\r\n", "Cookie: a=1\r\n"),
        no("no-store in the first request", HOUR).asks("Cache-Control: no-store\r\n", ""),
        may("no-store in the second request", HOUR).asks("", "Cache-Control: no-store\r\n"),
        may("no-cache in the second request", HOUR).asks("", "Cache-Control: no-cache\r\n"),
        may("Pragma in the second request", HOUR).asks("", "Pragma: no-cache\r\n"),
        may("max-age=0 in the second request", HOUR).asks("", "Cache-Control: max-age=0\r\n"),
        may("min-fresh in the second request", HOUR).asks("", "Cache-Control: min-fresh=7200\r\n"),
        may("only-if-cached", HOUR).asks("", "Cache-Control: only-if-cached\r\n"),
        may("GET, then HEAD", HOUR).methods("GET", "HEAD"),
        no("HEAD, then GET", HOUR).methods("HEAD", "GET"),
        no("GET, then POST", HOUR).methods("GET", "POST"),
        no("POST, then GET", HOUR).methods("POST", "GET"),
        no("GET, then OPTIONS", HOUR).methods("GET", "OPTIONS"),
        Case {
            between: Some("POST"),
            ..no("a POST that succeeds comes between", HOUR)
        },
        may(
            "a part of the whole",
            "Cache-Control: max-age=3600\nETag: \"a\"",
        )
        .asks("", "Range: bytes=0-1\r\n"),
        may(
            "a condition that fits",
            "Cache-Control: max-age=3600\nETag: \"a\"",
        )
        .asks("", "If-None-Match: \"a\"\r\n"),
    ]
}
