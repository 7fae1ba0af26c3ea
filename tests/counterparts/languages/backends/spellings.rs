//! Tests of requests with oddly written keys, before real programs.

use crate::languages::backends::programs::{ALL, Language, Program};
use crate::support::{Gateway, Raw};

/// Returns a file with limits by field, cookie, argument, host, and method.
///
/// Each limit admits a request per hour.
fn file(origin: &Program) -> String {
    let mut file = format!("[origins.app]\nservers = [\"http://{}\"]\n", origin.address);
    for (path, key, more) in [
        ("/field", "$http_x_api_key", ""),
        ("/cookie", "$cookie_my_key", ""),
        ("/argument", "$arg_my_key", ""),
        ("/host", "$http_host", ""),
        ("/method", "all", "methods = [\"POST\"]"),
    ] {
        let zone = path.trim_start_matches('/');
        let route = format!(
            "[zones.{zone}]\nkey = \"{key}\"\nrate = \"1r/h\"\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\n{more}\n\
             limits = [{{ zone = \"{zone}\", burst = 0 }}]\n"
        );
        file.push_str(&route);
    }
    file + "[[routes]]\npath = \"/\"\norigin = \"app\"\n"
}

/// Returns the response to a request with these fields. ` | ` separates two fields.
fn ask(gateway: &Gateway, line: &str, fields: &str) -> (u16, String) {
    let host = if fields.starts_with("Host:") {
        ""
    } else {
        "Host: a"
    };
    let line = format!("{line} HTTP/1.1");
    let lines = [&*line, host, "Connection: close"]
        .into_iter()
        .chain(fields.split(" | "));
    let lines = lines.filter(|line| !line.is_empty());
    let request = lines.flat_map(|line| [line, "\r\n"]).collect::<String>() + "\r\n";
    let mut client = Raw::connect(gateway.address());
    // Each char is one byte.
    let bytes = request.chars().map(|c| u8::try_from(c).expect("Latin-1"));
    client.send(bytes.collect::<Vec<_>>());
    let received = client.answer();
    let text = String::from_utf8_lossy(&received.body).into_owned();
    (received.status(), text)
}

/// Returns the value that the origin reads for this property.
fn read<'a>(text: &'a str, property: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .find(|(name, _)| *name == property)
        .map(|(_, value)| value)
}

/// Ways to write `real` in a field, a cookie and an argument that some program understands.
#[rustfmt::skip]
const FIELDS: [&str; 13] = [
    "x-api-key: real", "X_Api_Key: real", "X-Api_Key: real", "X.Api.Key: real",
    "X-Api.Key: real | X-Api-Key: other1", "X-Api-Key: other2 | X_Api_Key: real",
    "X-Api-Key: other3 | X-Api-Key: real", "X-Api-Key: real | X-Api-Key: other4",
    "X-Api-Key: real | X-Api-Key: real", "X-Api-Key:real", "X-Api-Key: real\u{a0}",
    "X-Api-Key: \u{85} real", "X-Api-Key:  \treal \t",
];

#[rustfmt::skip]
const COOKIES: [&str; 18] = [
    "Cookie: a=b; my_key=real", "Cookie: my_key=other1; my_key=real",
    "Cookie: my_key=real; my_key=other2", "Cookie: MY_KEY=other3; my_key=real",
    "Cookie: my_key=other4 | Cookie: my_key=real", "Cookie: my.key=real", "Cookie: my key=real",
    "Cookie: my[key=real", "Cookie: my_key[]=real", "Cookie: my_key=re%61l",
    "Cookie: my_key=\"real\"", "Cookie: my_key=\"re\\141l\"", "Cookie: my_key=real   ;a=b",
    "Cookie: my_key=real x=1", "Cookie: x=1 my_key=real", "Cookie: my_key=other5 my_key=real",
    "Cookie: x=1,my_key=other6; my_key=real", "Cookie: ;;my_key = real",
];

const ARGUMENTS: &str = "my_key=real my_key=other1&my_key=real my_key=real&my_key=other2 my_key&my_key=real \
    %6Dy%5fkey=real my.key=real my+key=real my[key=real my_key[]=real my_key%00=real \
    +my_key=real my_key=re%61l my_key=other3&MY%5fkey=real&my%5Fkey=real";

/// Odd ways to write the host and the method.
const OTHERS: [(&str, &str, &str); 4] = [
    ("host", "GET /host", "Host: real"),
    ("host", "GET http://real/host", "Host: other1"),
    ("host", "GET http://real/host", "Host: other2"),
    ("method", "post /method", ""),
];

#[test]
fn who_is_known_to_a_program_is_limited_however_the_request_is_written() {
    for language in ALL {
        let origin = Program::start(language);
        let gateway = Gateway::start(&file(&origin));
        for (property, line, fields) in [
            ("field", "GET /field", "X-Api-Key: real"),
            ("cookie", "GET /cookie", "Cookie: my_key=real"),
            ("argument", "GET /argument?my_key=real", ""),
            ("host", "GET /host", "Host: real"),
        ] {
            let (status, text) = ask(&gateway, line, fields);
            let received = (status, read(&text, property));
            assert_eq!(received, (200, Some("real")), "{language:?}");
        }
        assert_eq!(ask(&gateway, "POST /method", "Content-Length: 0").0, 200);
        let in_line =
            |property, fields: &'static str| (property, format!("GET /{property}"), fields);
        let fields = FIELDS.map(|it| in_line("field", it));
        let cookies = COOKIES.map(|it| in_line("cookie", it));
        let arguments = ARGUMENTS
            .split(' ')
            .map(|it| ("argument", format!("GET /argument?{it}"), ""));
        let others = OTHERS.map(|(property, line, fields)| (property, line.to_owned(), fields));
        let ways = fields
            .into_iter()
            .chain(cookies)
            .chain(arguments)
            .chain(others);
        for (property, line, fields) in ways {
            let (status, text) = ask(&gateway, &line, fields);
            let known = read(&text, property);
            assert!(
                matches!(status, 400 | 429) || status == 200 && known != Some("real"),
                "{language:?} reads {known:?} of {line} {fields:?}: {status} {text}"
            );
            assert_ne!(known, Some("POST"), "{language:?}: {line}");
        }
    }
}

#[test]
fn a_client_cannot_write_the_fields_of_its_proxy_for_any_program() {
    for language in ALL {
        let origin = Program::start(language);
        for server in ["", "trusted_proxies = [\"127.0.0.1\"]"] {
            let gateway = Gateway::start(&format!("{server}\n{}", file(&origin)));
            for name in "X_Forwarded_For X.Forwarded.For X-Forwarded.For x-forwarded_for".split(' ')
            {
                let (status, text) = ask(&gateway, "GET /", &format!("{name}: 6.6.6.6"));
                let received = (status, read(&text, "client"));
                assert_eq!(received, (200, Some("127.0.0.1")), "{language:?} {name}");
            }
        }
    }
}

/// Programs read ambiguous fields and cookies differently, so the gateway forwards none.
#[test]
fn programs_differ_in_what_they_read_of_a_field_and_a_cookie_that_are_there_twice() {
    let twice = |language| {
        let program = Program::start(language);
        let ask = |line: &str, field: &str| {
            let mut client = Raw::connect(program.address);
            client.send(format!(
                "GET {line} HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n"
            ));
            String::from_utf8_lossy(&client.answer().body).into_owned()
        };
        let field = ask("/", "X-Api-Key: a\r\nX-Api-Key: b\r\n");
        let cookie = ask("/", "Cookie: my_key=a; my_key=b\r\n");
        let argument = ask("/?my_key=a&my_key=b", "");
        [
            (&field, "field"),
            (&cookie, "cookie"),
            (&argument, "argument"),
        ]
        .map(|(text, property)| read(text, property).expect("it tells").to_owned())
    };
    for (language, expected) in [
        (Language::Php, ["a, b", "a", "b"]),
        (Language::Wsgi, ["a,b", "b", "b"]),
        (Language::Node, ["a, b", "a", "b"]),
        (Language::Go, ["a", "a", "a"]),
    ] {
        assert_eq!(twice(language), expected, "{language:?}");
    }
}
