//! Tests that conditions read a request as its origin does.
//!
//! A request that programs may read in two ways meets no condition, neither one that opens a route
//! nor one that closes it.

use std::fmt::Write as _;

use crate::gateway::one_key::{seen, status};
use crate::support::{Gateway, Message, Raw, RawOrigin};

/// Starts a gateway where `/` rejects guests and admits staff, by each kind of input.
///
/// `/free` has no conditions.
fn start(server: &str) -> (RawOrigin, Gateway) {
    let origin = RawOrigin::start();
    let mut text = format!(
        "{server}\n[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 0 }}]\n\
         [[routes]]\npath = \"/free\"\norigin = \"app\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nmatch = {{ \"query:a\" = \"1\", \"query:b\" = \"1\" }}\n",
        origin.address
    );
    for input in ["header:x-role", "query:role", "cookie:role"] {
        write!(
            text,
            "[[routes]]\npath = \"/\"\nrefuse = 403\nmatch = {{ \"{input}\" = \"guest\" }}\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\nmatch = {{ \"{input}\" = \"staff\" }}\n"
        )
        .expect("a string takes it");
    }
    let gateway = Gateway::start(&text);
    (origin, gateway)
}

/// Returns the names and values of the fields and cookies that may contain the role.
fn roles(request: &Message) -> Vec<(&str, &str)> {
    let fields = request.fields.iter();
    let fields = fields.filter(|(name, _)| name.contains("role") || name == "cookie");
    fields
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn what_is_there_twice_or_hidden_neither_opens_nor_closes() {
    let (_origin, gateway) = start("");
    // A plain role is refused.
    for (target, fields) in [
        ("/", "X-Role: guest\r\n"),
        ("/", "X-Role: \u{a0}guest\u{a0}\r\n"),
        ("/?role=guest", ""),
        ("/?%72OLE[]=g%75est", ""),
        ("/", "Cookie: a=b; ROLE=\"guest\"\r\n"),
    ] {
        assert_eq!(status(&gateway, target, fields), 403, "{target} {fields}");
    }
    for (target, fields) in [
        ("/", "X-Role: guest\r\nX-Role: staff\r\n"),
        ("/", "X-Role: staff\r\nX-Role: guest\r\n"),
        ("/", "X-Role: staff\r\nx-role: staff\r\n"),
        ("/", "X-Role: other\r\nX-Role: another\r\n"),
        ("/?role=guest&role=staff", ""),
        ("/?role=staff&role=guest", ""),
        ("/?role=staff&x=1;%72ole[]=guest", ""),
        ("/", "Cookie: x=1,role=guest\r\n"),
        ("/", "Cookie: role=staff role=guest\r\n"),
    ] {
        assert_eq!(status(&gateway, target, fields), 400, "{target} {fields}");
    }
}

#[test]
fn the_origin_reads_what_the_condition_read() {
    let (origin, gateway) = start("");
    let seen = |fields: &str| seen(&origin, &gateway, "/", fields);
    let staff = ("x-role", "staff");
    let odd = "X_Role: guest\r\nx-Role: staff\r\nX.Role: guest\r\n";
    assert_eq!(roles(&seen(odd)), [staff]);
    let named = seen("Connection: x-role\r\nX-Role: staff\r\n");
    assert_eq!(roles(&named), [staff]);
    let cookies = "Cookie: role=staff; b=1; role=guest\r\nCookie: ROLE=guest\r\n";
    assert_eq!(roles(&seen(cookies)), [("cookie", "role=staff; b=1")]);
    // A request without a role goes to the limited route, and the origin sees no role, either.
    assert_eq!(roles(&seen("X_Role: guest\r\nX.Role: staff\r\n")), []);
    assert_eq!(status(&gateway, "/", "X_Role: staff\r\n"), 429);

    let mut client = Raw::connect(gateway.address());
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nX-Role: staff\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\nX-Role: guest\r\nX_Role: guest\r\nX-Own: 1\r\n\r\n",
    );
    let request = origin.accept().request();
    assert_eq!(request.trailers, [("x-own".to_owned(), "1".to_owned())]);
}

#[test]
fn with_underscores_both_spellings_meet_a_condition() {
    let (_origin, gateway) = start("underscores_in_headers = true");
    assert_eq!(status(&gateway, "/", "X_Role: guest\r\n"), 403);
    let both = "X-Role: staff\r\nX_Role: guest\r\n";
    assert_eq!(status(&gateway, "/", both), 400);
}

#[test]
fn a_request_is_ambiguous_only_where_the_condition_decides() {
    let (origin, gateway) = start("");
    let twice = "X-Role: staff\r\nX-Role: guest\r\n";
    let request = seen(&origin, &gateway, "/free?role=a&role=b", twice);
    assert_eq!(roles(&request), [("x-role", "staff"), ("x-role", "guest")]);
    assert_eq!(request.line, "GET /free?role=a&role=b HTTP/1.1");
    // Whatever `a` is, the condition on `b` is not met.
    seen(&origin, &gateway, "/?a=1&a=2", "");
    assert_eq!(status(&gateway, "/?a=1&a=2&b=1", ""), 400);
    // The 400 counts for the route that would take the request.
    assert_eq!(gateway.requests("/ query:a=1 query:b=1", "400"), 1);
}
