//! Tests of path rewrites and fields of routes, and of routes that refuse.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use super::*;
use crate::{Media, PageChoice, RouteAction, changes, show};

/// Text in the smallest file that cases replace.
const APP: &str = "\"app\"";

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    // Regular expressions.
    ("\"/\"", "\"regex:^/u/[0-9]+$\"", ""),
    ("\"/\"", "\"regex:(\"",
     r#"9:10: path: this is not a regular expression of drip: unclosed group; found "regex:(""#),
    ("\"/\"", "\"regex:a[ab]{50}c\"",
     r#"9:10: path: the automaton of this regular expression takes more than 1024 KB; begin it with ^, lower the counts in {} or write several routes; found "regex:a[ab]{50}c""#),
    (APP, "\"app\"\n[[routes]]\npath = \"regex:a\"\norigin = \"app\"\n[[routes]]\npath = \"regex:a\"\norigin = \"app\"",
     "14:1: routes: it has the same path, host, methods, match and listen as the route at 11:1, so it would never be used; remove one"),
    // Networks of clients.
    (APP, "\"app\"\nallow = [\"10.0.0.0/8\", \"2001:db8::1\"]\ndeny = [\"10.9.0.0/16\"]", ""),
    // Conditions of requests.
    (APP, "\"app\"\nhost = [\"a.test\", \"*.B.test\"]", ""),
    (APP, "\"app\"\nhost = \"\u{202e}\u{2028}a\"",
     r#"11:8: host: a host is a name such as "api.example.com", without scheme, port or path; found "\u202E\u2028a""#),
    (APP, "\"app\"\nhost = [\"a.test\", \"A.test\"]", "11:19: host: \"A.test\" is listed twice; remove one"),
    (APP, "\"app\"\nmatch = { \"header:X-Version\" = \"2\", \"query:debug\" = \"\", \"cookie:beta\" = \"regex:^on\" }", ""),
    (APP, "\"app\"\nmatch = { \"x-version\" = \"2\" }",
     r#"11:25: x-version: a condition is on "header:NAME", "query:NAME" or "cookie:NAME", such as "header:x-version""#),
    (APP, "\"app\"\nmatch = { \"header:a\" = \"1\", \"header:A\" = \"1\" }",
     "11:9: match: header:a is there twice; remove one"),
    (APP, "\"app\"\nlisten = \"internal\"",
     "11:10: listen: no entry of listen in [server] has the name \"internal\"; none has a name; write listen = [{ address = \"...\", name = \"internal\" }] in [server]"),
    (APP, "\"app\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\nmatch = { \"query:a\" = \"1\" }", ""),
    // Refusing.
    ("origin = \"app\"\nlimits = [{ zone = \"per_client\", burst = 20 }]", "refuse = 403", ""),
    ("origin = \"app\"\nlimits", "refuse = 200\nlimits",
     "10:10: refuse: expected a whole number from 400 to 599; found 200\n11:10: limits: a route with refuse answers all its requests itself; remove this field or refuse"),
    (APP, "\"app\"\nrefuse = 403\nlimits = []\n[[routes]]\npath = \"/a\"\norigin = \"app\"",
     "10:10: origin: a route with refuse answers all its requests itself; remove this field or refuse\n12:10: limits: a route with refuse answers all its requests itself; remove this field or refuse"),
    // Rewriting.
    ("path   = \"/\"", "path = \"/v1/\"\nstrip_prefix = \"/v1\"\nadd_prefix = \"/app\"", ""),
    ("path   = \"/\"", "path = \"= /v1/x\"\nstrip_prefix = \"/v1\"", ""),
    ("path   = \"/\"", "path = \"regex:^/v1/[a-z]\"\nstrip_prefix = \"/v1\"", ""),
    ("path   = \"/\"", "path = \"/v2/\"\nstrip_prefix = \"/v1\"",
     r#"10:16: strip_prefix: the path of the route does not begin with it; change one; found "/v1""#),
    ("path   = \"/\"", "path = \"regex:/v1/[a-z]\"\nstrip_prefix = \"/v1\"",
     r#"10:16: strip_prefix: the regular expression must begin with ^ and this text, so that each path does; found "/v1""#),
    (APP, "\"app\"\nadd_prefix = \"/a?b\"",
     r#"11:14: add_prefix: a prefix has no query or fragment; remove everything from ? or # on; found "/a?b""#),
    (APP, "\"app\"\nadd_prefix = \"/a b\"",
     r#"11:14: add_prefix: what is added is sent as it is written; escape other characters than those of a URL's path, such as %20 for a blank; found "/a b""#),
    (APP, "\"app\"\nadd_prefix = \"/a/%2e%2E/b\"",
     r#"11:14: add_prefix: what is added has no empty segments, and none that is . or ..; remove them; found "/a/%2e%2E/b""#),
    // Pages.
    (APP, "\"app\"\npages = {}", ""),
    (APP, "\"app\"\npages = { \"200\" = \"/none\" }",
     r#"11:19: 200: a page is for a status from 400 to 599, or for all of "4xx" or "5xx""#),
    (APP, "\"app\"\npages = { \"503\" = { html = \"/none\" } }",
     "11:19: the table 503 has no json; add one such as json = \"busy.json\"\n11:28: html: /none cannot be read: No such file or directory (os error 2); name a file of UTF-8 text of at most 256KB"),
    (APP, "\"app\"\norigin_pages = false", ""),
    (APP, "\"app\"\norigin_pages = true",
     r#"11:16: origin_pages: pages has none for 502 to 504; add one such as "5xx" = "down.html" there, or remove origin_pages"#),
    // Fields.
    (APP, "\"app\"\nrequest_headers = { x-real-ip = \"$remote_addr\", x-price = \"US$$5\", x-user = \"$path_user\" }", ""),
    (APP, "\"app\"\nrequest_headers = { x-price = \"US$5\" }",
     "11:31: x-price: $5 is not a variable here; the variables are <ALLOWED>; write $$ for a $ itself"),
    (APP, "\"app\"\nrequest_headers = { \"x-version\" = \"2\", Cookie = false }", ""),
    (APP, "\"app\"\nresponse_headers = { server = false }\nanswer_headers = { \"x-a\" = \"b\tc \u{e9}\" }", ""),
    (APP, "\"app\"\nrequest_headers = { Host = \"a\" }",
     r#"11:28: Host: the Host that the origin gets is the host of [origins.NAME]: "preserve", "origin" or a name; set it there"#),
    (APP, "\"app\"\nresponse_headers = { Content-Length = \"1\" }",
     "11:39: Content-Length: drip writes this field itself, or it belongs to one connection; remove it here"),
    (APP, "\"app\"\nanswer_headers = { x-a = \"1\", X-A = false }",
     "11:37: X-A: this field is set twice, because case, - and _ make no difference; remove one"),
    ("\"/\"", "\"regex: ^/x\"",
     r#"9:10: path: a regular expression begins right behind regex:; remove the blank, or write [ ] for one; found "regex: ^/x""#),
    ("\"/\"", "\"regex:[ ]^/x\"", ""),
    (APP, "\"app\"\nanswer_headers = { x-a = \"1\\r\\nb: c\" }",
     "11:26: x-a: a value has no line breaks or other control characters, and no blanks around it"),
    (APP, "\"app\"\nanswer_headers = { x-a = \"\" }",
     "11:26: x-a: an empty value; write false to remove the field"),
];

#[test]
fn what_is_shown_reads_back() {
    for (from, to, _) in schema::all_cases().iter().filter(|case| case.2.is_empty()) {
        let settings = settings_with(from, to);
        let shown = show(&settings);
        let again = settings_of(&shown);
        let without_warnings = |settings: Settings| Settings {
            warnings: Vec::new(),
            ..settings
        };
        assert_eq!(
            without_warnings(again),
            without_warnings(settings),
            "{shown}"
        );
    }
    let refuse = |(_, to, _): &&Case| to.ends_with("refuse = 403");
    let (from, to, _) = CASES.iter().find(refuse).unwrap();
    let settings = settings_with(from, to);
    assert_eq!(settings.routes[0].action, RouteAction::Refuse(403));
}

#[test]
fn pages_are_files_of_at_most_256_kb_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let fields =
        "pages = { \"5xx\" = \"a.html\", \"429\" = { html = \"a.html\", json = \"a.html\" } }\n";
    let file = SMALLEST.to_owned() + fields;
    let read = |content: &[u8]| {
        std::fs::write(folder.path().join("a.html"), content).unwrap();
        parse(&file, &folder.path().join("gateway.toml"), false).map_err(|it| it.to_string())
    };
    let settings = read(&vec![b'x'; 256 * 1024]).unwrap();
    assert_eq!(parse_text(&show(&settings)), Ok(settings.clone()));
    assert_eq!(settings.named.len(), 3);
    let route = &settings.routes[0];
    let page = |status: u16| route.pages.get(status).unwrap();
    assert!(matches!(page(502), PageChoice::One(_)));
    let PageChoice::ByAccept { html, json } = page(429) else {
        panic!("{:?}", page(429));
    };
    // The field name decides the media type, not the file name.
    assert_eq!(html.content.media, Media::Html);
    assert_eq!(json.content.media, Media::Json);
    let changed = read(b"\xef\xbb\xbfbusy").unwrap();
    let found = changes(&settings, &changed, &settings);
    assert_eq!(found, ["page file a.html content changed"]);
    let too_large = "a.html cannot be read: it is larger than 256KB; name a file";
    for (content, wrong) in [
        (&vec![b'x'; 256 * 1024 + 1][..], too_large),
        (b"\xff", "a.html is not UTF-8; name a file"),
    ] {
        let problems = read(content).unwrap_err();
        assert_eq!(problems.matches(wrong).count(), 3, "{problems}");
    }
}
