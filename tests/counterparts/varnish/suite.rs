//! What may be reused by RFC 9111: drip beside nginx and Varnish.
//!
//! The cases are those of the cache tests at <https://github.com/http-tests/cache-tests> that apply
//! to a shared cache which revalidates nothing, written anew. Each is one request, a pause, and
//! another one: the second is answered from memory, or reaches the origin.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::cases::{Case, Rule, cases};
use crate::programs::nginx::Nginx;
use crate::programs::varnish::Varnish;
use crate::support::collapse::{file, request};
use crate::support::scripted::{Script, Scripted};
use crate::support::{Client, Gateway};

/// Longer than the lifetime of the answers that become stale between two requests.
const PAUSE: Duration = Duration::from_secs(3);

/// Cases whose answer drip reuses although RFC 9111 forbids it. `docs/configuration.md` says so.
const DRIP_REUSES: [&str; 1] = ["a POST that succeeds comes between"];

/// Cases whose answer drip does not reuse although RFC 9111 allows it.
const DRIP_DECLINES: [&str; 28] = [
    "two max-age, the first is short",
    "two max-age, the second is short",
    "two lines of max-age, the first is short",
    "two lines of max-age, the second is short",
    "max-age with a fraction",
    "max-age with a letter before",
    "max-age with a letter behind",
    "private for a field",
    "no-cache for a field",
    "must-understand with no-store",
    "Set-Cookie",
    "299",
    "302",
    "303",
    "307",
    "400",
    "499",
    "500",
    "503",
    "599",
    "Vary on a field in no key",
    "Vary with two lines in the request",
    "Vary with another case",
    "Authorization with public",
    "Authorization with s-maxage",
    "without, then Authorization",
    "a cookie",
    "no-store in the second request",
];

/// The same of nginx. It asks the origin for the whole and with GET, whatever the client asks for: so "HEAD, then GET" is
/// no fault, and "a part" is one of this origin.
const NGINX_REUSES: [&str; 27] = [
    "Expires before a Date that is fast",
    "Expires in UTC",
    "Expires in another zone",
    "Expires in a zone of numbers",
    "Expires with a comment",
    "two Expires",
    "Age above Expires, slow Date",
    "Age above Expires, fast Date",
    "Age above max-age",
    "a Date above max-age ago",
    "Age of 31 bits",
    "Age of 32 bits",
    "Age of 37 bits",
    "Age: old, 0",
    "Age: old, then Age: 0",
    "a part",
    "Vary, and the second empty",
    "Vary: *, *",
    "Vary: , *",
    "Vary: *, Foo",
    "Vary: Foo, *",
    "Authorization, then without",
    "Authorization in both",
    "Authorization, then another",
    "no-store in the first request",
    "HEAD, then GET",
    "a POST that succeeds comes between",
];
const NGINX_DECLINES: [&str; 13] = [
    "stale-while-revalidate within",
    "quoted max-age",
    "two max-age, the first is short",
    "two lines of max-age, the second is short",
    "max-age with a blank after =",
    "max-age with a fraction",
    "max-age with a letter before",
    "max-age with a letter behind",
    "private for a field",
    "no-cache for a field",
    "must-understand with no-store",
    "Set-Cookie",
    "Vary with another case",
];

/// The same of Varnish, which asks the origin with GET, too. What it takes for no date has the lifetime of all answers
/// that say none.
const VARNISH_REUSES: [&str; 24] = [
    "Expires: 0",
    "Expires in UTC",
    "Expires in another zone",
    "Expires in a zone of numbers",
    "Expires with two digits of the year",
    "Expires without its comma",
    "Expires without a weekday",
    "Expires with blanks",
    "Expires with hyphens",
    "Expires with periods",
    "Expires with one digit of the hour",
    "Expires without seconds",
    "Expires with a comment",
    "two Expires",
    "a Date above max-age ago",
    "Vary: *, *",
    "two lines of Vary: *",
    "Vary: , *",
    "an empty Vary, then Vary: *",
    "Vary: *, Foo",
    "Vary: Foo, *",
    "no-store in the first request",
    "HEAD, then GET",
    "a POST that succeeds comes between",
];
const VARNISH_DECLINES: [&str; 25] = [
    "quoted max-age",
    "two max-age, the first is short",
    "two lines of max-age, the first is short",
    "max-age with a letter before",
    "max-age with a letter behind",
    "private for a field",
    "no-cache for a field",
    "must-understand with no-store",
    "Set-Cookie",
    "Age is a fraction",
    "299",
    "303",
    "308",
    "400",
    "499",
    "500",
    "501",
    "503",
    "599",
    "Vary with two lines in the request",
    "Vary with another case",
    "Authorization with public",
    "Authorization with s-maxage",
    "without, then Authorization",
    "a cookie",
];

/// Statuses that a cache may reuse without being told how long.
const STATUSES: &str = "200 203 204 300 301 308 404 405 410 414 501";

#[test]
fn no_answer_is_reused_that_rfc_9111_forbids_and_nginx_and_varnish_differ_where_this_says() {
    let all = cases();
    let scripts: Vec<_> = all.iter().map(|it| it.script).collect();
    let origin = Scripted::start(move |target| {
        let nth = target.split('/').nth(2).expect("a number");
        let nth: usize = nth.parse().expect("a number");
        scripts.get(nth).copied().unwrap_or(Script {
            status: 200,
            fields: "Cache-Control: no-store",
        })
    });
    let to = origin.origin.address;
    let drip = Gateway::start(&file(
        to,
        "keep = \"1h\"\nvary = [\"foo\", \"bar\", \"accept-language\"]",
    ));
    let cache = "proxy_cache_path cache keys_zone=c:1m; proxy_cache c; proxy_cache_lock on;";
    let location = format!("proxy_cache_valid {STATUSES} 1h;");
    let nginx = Nginx::before(to, cache, &[("/", &location)]);
    let varnish = Varnish::start(to, 3600);
    let programs = [
        ("drip", drip.address()),
        ("nginx", nginx.address),
        ("varnish", varnish.address),
    ];
    for (name, at) in programs {
        each(&all, |nth, case| {
            send(at, case.first.0, &target(name, nth), case.first.1);
            if let Some(method) = case.between {
                send(at, method, &target(name, nth), "");
            }
        });
    }
    thread::sleep(PAUSE);
    let outcomes = programs.map(|(name, at)| {
        let mut reused = Vec::new();
        let mut declined = Vec::new();
        each(&all, |nth, case| {
            let target = target(name, nth);
            let before = origin.asked(&target);
            assert!(before > 0, "{name} {}", case.name);
            let nth = send(at, case.second.0, &target, case.second.1);
            // It may be fetched anew behind the answer. 304 has few fields.
            let is_reused = match nth {
                Some(nth) => nth <= before,
                None => origin.asked(&target) == before,
            };
            match case.rule {
                Rule::Forbidden if is_reused => reused.push(case.name),
                Rule::Allowed if !is_reused => declined.push(case.name),
                Rule::Forbidden | Rule::Allowed => {}
            }
        });
        (name, reused, declined)
    });
    let listed: [(&[&str], &[&str]); 3] = [
        (&DRIP_REUSES, &DRIP_DECLINES),
        (&NGINX_REUSES, &NGINX_DECLINES),
        (&VARNISH_REUSES, &VARNISH_DECLINES),
    ];
    let mut wrong = Vec::new();
    for ((name, reused, declined), (reuses, declines)) in outcomes.iter().zip(listed) {
        println!("{name} reuses against the rules: {reused:#?}\ndeclines: {declined:#?}");
        if reused != reuses {
            wrong.push(format!("{name} reuses {reused:#?}"));
        }
        if declined != declines {
            wrong.push(format!("{name} declines {declined:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn target(program: &str, nth: usize) -> String {
    format!("/{program}/{nth}")
}

fn each(cases: &[Case], mut run: impl FnMut(usize, &Case)) {
    for (nth, case) in cases.iter().enumerate() {
        run(nth, case);
    }
}

/// Sends a request, and waits for its answer: the number that the origin gave it.
fn send(at: SocketAddr, method: &str, target: &str, fields: &str) -> Option<usize> {
    let mut client = Client::connect(at);
    let fields = format!("{fields}Connection: close\r\n");
    client.send(request(method, target, &fields).as_bytes());
    let head = client.head();
    assert!(head.first_line.starts_with("HTTP/1.1 "), "{head:?}");
    client.rest();
    head.field("x-nth").and_then(|nth| nth.parse().ok())
}
