//! Parts of generated messages.

/// Methods.
pub const METHODS: [&str; 12] = [
    "GET", "GET", "GET", "POST", "POST", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH",
    "CONNECT",
];
/// Methods that are seldom valid.
pub const ODD_METHODS: [&str; 4] = ["get", "M-SEARCH", "X!#$%&'*+.^_`|~0", "G\u{e9}T"];
/// Targets. The last ones are accepted by few parsers or none.
#[rustfmt::skip]
pub const TARGETS: [&str; 31] = [
    "/", "/", "/a?b=c", "/a//b/../%2F?", "//a/b", "*", "http://a", "http://a/", "http://a?x",
    "http://A.b:80/c?d", "HTTPS://[::1]:8/", "ws+x://a/", "http://u@a/", "/\"<>", "/`{}|\\^[]",
    "/\u{e9}", "/#x", "a", "a:80", "", "http://", "http:///", "http:/a", "?x", "://a", "/a b",
    "http://a b/", "/\u{7f}", "http://a#b", "http://a\"b/", "http://a:b:c/",
];
/// Versions. The last ones are not HTTP/1.
pub const VERSIONS: [&str; 14] = [
    "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1",
    "HTTP/1.0", "HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1",
];
/// Statuses with their reasons. The last ones have extra text.
#[rustfmt::skip]
pub const STATUSES: [&str; 22] = [
    "200 OK", "200 OK", "200 OK", "200 OK", "404 Not Found", "500 Internal Server Error", "204 No",
    "304 Not Modified", "200", "200 ", "206 Some  of it", "299 \t", "999 X", "000 Null", "099 X",
    "100 Continue", "101 Switching Protocols", "205 Reset Content", "20 Short", "2000 Long",
    "200 caf\u{e9}", " 200 OK",
];
/// Fields that frame no body. The last ones are malformed or repeated illegally.
#[rustfmt::skip]
pub const OTHERS: [(&str, &str); 34] = [
    ("Connection", "close"), ("Connection", "keep-alive"), ("connection", "Keep-Alive, x"),
    ("CONNECTION", "x, Close ,y"), ("Connection", ""), ("Connection", "closed"),
    ("Connection", "close"), ("Connection", "keep-alive"), ("Connection", "upgrade"),
    ("Upgrade", "websocket"), ("Expect", "100-continue"), ("TE", "trailers"), ("Trailer", "x"),
    ("Cookie", "a=b"), ("Set-Cookie", "a=b, c"), ("X", ""), ("x", " \t"), ("X", "\u{e9}"),
    ("Date", "now"), ("Accept", "*/*"), ("x-y", "a:b"), ("Keep-Alive", "5"), ("a_b", "c"),
    ("X!#$%&'*+.^_`|~0", "1"), ("X", "\u{0}"), ("X", "a\u{b}b"), ("X", "\u{7f}"), ("", "x"),
    ("X ", "y"), ("X\u{e9}", "y"), (" X", "y"), ("Host", "b"), ("Content-Type", "text/html"),
    ("X", "a\r\n b"),
];
/// Fields that frame a body, or look as if they did.
#[rustfmt::skip]
pub const AWKWARD: [(&str, &str); 22] = [
    ("Content-Length", "+5"), ("Content-Length", "5, 5"), ("Content-Length", "5,6"),
    ("Content-Length", ""), ("Content-Length", "05"), ("Content-Length", "5 5"),
    ("Content-Length", "18446744073709551615"), ("Content-Length", "18446744073709551614"),
    ("Content-Length", "18446744073709551613"), ("Content-Length", "18446744073709551616"),
    ("Content-Length", "0x5"), ("Content-Length", "5"), ("Content-Length", "0"),
    ("Transfer-Encoding", "gzip, chunked"), ("Transfer-Encoding", "identity"),
    ("Transfer-Encoding", "chunked, chunked"), ("Transfer-Encoding", "CHUNKED"),
    ("Transfer-Encoding", "chunked"), ("Transfer-Encoding", ""),
    ("Transfer-Encoding", "\u{b}chunked"), ("Transfer_Encoding", "chunked"),
    ("Transfer-Encoding", "chunked,"),
];
