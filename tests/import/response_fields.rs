//! `add_header` becomes `response_headers` of a route.

use super::imported;

const FILE: &str = r#"http {
    add_header X-Frame-Options DENY always;
    server {
        listen 8080;
        location / { proxy_pass http://127.0.0.1:9000; }
        location /own/ {
            proxy_pass http://127.0.0.1:9000;
            add_header X-Served "$host at ${request_uri}" always;
            add_header X-Client $remote_addr always;
            add_header X-Cache $upstream_cache_status always;
            add_header X-Sometimes yes;
            add_header Set-Cookie "a=b" always;
            add_header X-Served again always;
            add_header Date now always;
            add_header X-Empty "" always;
        }
        location /none/ { proxy_pass http://127.0.0.1:9000; add_header X-Empty ""; }
    }
}
"#;

const LEFT_OUT: [(u32, &str); 5] = [
    (
        10,
        "X-Cache is not translated: drip does not know its variables",
    ),
    (
        11,
        "X-Sometimes is not translated: without always, nginx adds it to responses with some statuses only",
    ),
    (
        12,
        "Set-Cookie is not translated: drip would replace the cookies of the origin",
    ),
    (
        13,
        "X-Served is not translated: response_headers cannot have it",
    ),
    (
        14,
        "Date is not translated: response_headers cannot have it",
    ),
];

#[test]
fn fields_of_responses_have_their_variables_and_others_are_named_by_line() {
    let (settings, notes) = imported(FILE);
    for wanted in [
        "path = \"/\"\norigin = \"127-0-0-1-9000\"\nresponse_headers = { \"x-frame-options\" = \"DENY\" }\n",
        "path = \"/own/\"\norigin = \"127-0-0-1-9000\"\nresponse_headers = { \
         \"x-served\" = \"$host at $request_uri\", \"x-client\" = \"$remote_addr\" }\n",
        "path = \"/none/\"\norigin = \"127-0-0-1-9000\"\n",
    ] {
        assert!(settings.contains(wanted), "{wanted}\n{settings}");
    }
    assert_eq!(settings.matches("response_headers = ").count(), 2);
    for (line, expected) in LEFT_OUT {
        let expected = format!("nginx.conf:{line}: add_header {expected}");
        let is_told = notes.iter().any(|note| note.starts_with(&expected));
        assert!(is_told, "{expected}\n{notes:#?}");
    }
    for (line, name) in [(2, "X-Frame-Options"), (8, "X-Served"), (9, "X-Client")] {
        let expected =
            format!("nginx.conf:{line}: add_header {name}: drip replaces a field of this name");
        let told = notes.iter().filter(|note| note.starts_with(&expected));
        assert_eq!(told.count(), 1, "{expected}\n{notes:#?}");
    }
}
