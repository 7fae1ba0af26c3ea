use std::path::Path;

use super::*;
use crate::config::{Listen, parse};

const EVERYTHING: &str = r#"
[server]
name             = 'Edge "1", \é'
listen           = [
    "127.0.0.1:8080",
    { address = "[::]:8443", tls = true },
    { address = "[::]:81", tls = false },
    { address = "[::]:80", redirect = "https" },
    "unix:run/drip.sock",
    { address = "unix:run/other.sock", mode = "660", redirect = "https:443" },
]
admin            = "[::1]:9090"
admin_hosts      = ["Drip.internal:9090", "drip."]
workers          = 3
trusted_proxies  = ["10.0.0.0/8", "2001:db8::1", "unix:"]
proxy_protocol   = ["unix:", "10.0.0.1"]
forwarded_header = "forwarded"
max_connections  = 1_000
max_concurrent_streams = 16
hold_streams     = false
underscores_in_headers = true
keep_alive       = "0"
tcp_keepalive    = "0s"
header_timeout   = "1500ms"
body_timeout     = "90s"
min_body_rate    = "2048B/60s"
max_header_size  = 2_000
max_body_size    = "1024MB"
shutdown_timeout = "0s"
state            = "/tmp/drip.state"

[server.tls]
cert = ["a.pem", "/run/tls/b.pem"]
key  = ["a.key", "../a.key"]

[origins."b.example"]
servers          = ["http://app", "http://[::1]:9000", "https://10.0.0.2", "https://app:80", 'unix:app "1".sock']
max_header_size  = "128KB"
connect_timeout  = "250us"
response_timeout = "90s"
tunnel_timeout   = "1d"
body_timeout     = "1500ms"
max_fails        = 5
rate             = "0.5r/250ms"
max_in_flight    = 7
share            = "z"
queue            = 1
max_queue        = 2
queue_timeout    = "0s"
host             = "app.internal:80"
fail_timeout     = "1m"
keep_alive       = 0
http2            = "off"

[origins."b.example".classes]
interactive = 8
"a.b" = 1000

[origins."b.example".backoff]
mode      = "shadow"
on        = ["429", "5xx", "timeout"]
slow      = "250ms"
trip      = "2.5%"
floor     = "1%"
max_pause = "1m"

[origins."b.example".health]
path            = "/healthz?a=%22&b={}"
interval        = "1m"
timeout         = "90s"
unhealthy_after = 1
healthy_after   = 2

[origins.a]
servers = ["http://127.0.0.1:9000"]
hold    = "60s"
health  = { path = "/" }
backoff = {}

[zones.z]
key          = '${host}s:$http_x_api_key"\'
rate         = "0.5r/250ms"
algorithm    = "leaky_bucket"
max_keys     = 7
new_keys     = "100r/s"
idle_timeout = "1h"
ipv6_prefix  = 128
exempt       = ["192.0.2.0/24"]
mask_keys    = true
store        = "redis"
on_store_failure = "closed"
lease = "20ms"

[zones.a]
key  = "$remote_addr"
rate = "1r/d"

[zones.a.plans.gold]
keys   = ["192.0.2.1", "192.0.2.2"]
rate   = "9r/d"
burst  = 30
weight = 8
class  = "a.b"

[zones.a.plans."b.c"]
keys   = ["192.0.2.3"]

[zones.b]
key  = "$remote_addr"
rate = "2r/d"

[redis]
url     = "rediss://:secret@cache.internal:6380/3"
timeout = "20ms"
prefix  = "edge:"

[[routes]]
path          = "=/login"
host          = "API.example.com"
methods       = ["POST", "PUT"]
origin        = "a"
cost          = { body_per = "64KB", max = 20 }
refund        = ["2xx", "404"]
limits        = [{ zone = "a", burst = 20, delay = 8 }, { zone = "b", burst = 4294967295, nodelay = true }]
max_wait      = "5s"
dry_run       = true
reject_status = 503
reject_body   = "\u0001\t\r\n\"\\é"
headers       = ["server-timing", "ratelimit"]

[[routes]]
path             = 'regex:^/v1/\d+"$'
origin           = "a"
strip_prefix     = "/v1/"
add_prefix       = "/caf%C3%A9"
request_headers  = { Authorization = "Bearer \u00e9\"", "x!y" = false }
response_headers = { server = false, x-a = "b" }
answer_headers   = { access-control-allow-origin = "*" }

[[routes]]
path   = "/private/"
refuse = 403
answer_headers = { x-a = "c" }

[[routes]]
path   = "/"
origin = "b.example"
class  = "a.b"
cost   = { response_header = "X-Drip-Cost", max = 9 }

[[routes]]
path   = "/three"
origin = "b.example"
cost   = { header = "x-cost", default = 2, max = 9 }

[[routes]]
path   = "/four"
origin = "a"
cost   = 64

[log]
level  = "trace"
format = "json"
access = "logs/access.log"
"#;

const SHOWN: &str = r#"[server]
name = "Edge \"1\", \\é"
listen = ["127.0.0.1:8080", "[::]:8443", { address = "[::]:81", tls = false }, { address = "[::]:80", redirect = "https:8080" }, "unix:/etc/drip/run/drip.sock", { address = "unix:/etc/drip/run/other.sock", redirect = "https:443", mode = "0660" }]
admin = "[::1]:9090"
admin_hosts = ["drip.internal", "drip"]
workers = 3
trusted_proxies = ["10.0.0.0/8", "2001:db8::1/128", "unix:"]
proxy_protocol = ["unix:", "10.0.0.1/32"]
forwarded_header = "forwarded"
max_connections = 1000
max_concurrent_streams = 16
hold_streams = false
underscores_in_headers = true
keep_alive = "0"
tcp_keepalive = "0"
header_timeout = "1500ms"
body_timeout = "90s"
min_body_rate = "2KB/m"
max_header_size = "2000B"
max_body_size = "1GB"
shutdown_timeout = "0"
state = "/tmp/drip.state"

[server.tls]
cert = ["/etc/drip/a.pem", "/run/tls/b.pem"]
key = ["/etc/drip/a.key", "/etc/drip/../a.key"]

[origins."b.example"]
servers = ["http://app:80", "http://[::1]:9000", "https://10.0.0.2:443", "https://app:80", "unix:/etc/drip/app \"1\".sock"]
connect_timeout = "250us"
response_timeout = "90s"
body_timeout = "1500ms"
tunnel_timeout = "1d"
max_header_size = "128KB"
rate = "0.5r/250ms"
store = "memory"
max_in_flight = 7
share = "z"
queue = 1
max_queue = 2
queue_timeout = "0"
hold = "0"
max_fails = 5
fail_timeout = "1m"
keep_alive = 0
host = "app.internal:80"
http2 = "off"

[origins."b.example".classes]
interactive = 8
"a.b" = 1000

[origins."b.example".backoff]
mode = "shadow"
on = ["429", "5xx", "timeout"]
slow = "250ms"
trip = "2.5%"
floor = "1%"
max_pause = "1m"

[origins."b.example".health]
path = "/healthz?a=%22&b={}"
interval = "1m"
timeout = "90s"
unhealthy_after = 1
healthy_after = 2

[origins.a]
servers = ["http://127.0.0.1:9000"]
connect_timeout = "1s"
response_timeout = "1m"
body_timeout = "5m"
tunnel_timeout = "1h"
max_header_size = "64KB"
rate = "none"
store = "memory"
max_in_flight = 0
queue = 100
max_queue = 10000
queue_timeout = "5s"
hold = "1m"
max_fails = 3
fail_timeout = "10s"
keep_alive = 256
host = "preserve"
http2 = "auto"

[origins.a.backoff]
mode = "on"
on = ["503", "timeout", "connect"]
slow = "none"
trip = "10%"
floor = "10%"
max_pause = "30s"

[origins.a.health]
path = "/"
interval = "5s"
timeout = "1s"
unhealthy_after = 3
healthy_after = 1

[zones.z]
key = "${host}s:$http_x_api_key\"\\"
rate = "0.5r/250ms"
algorithm = "leaky_bucket"
max_keys = 7
new_keys = "100r/s"
idle_timeout = "1h"
ipv6_prefix = 128
exempt = ["192.0.2.0/24"]
mask_keys = true
store = "redis"
on_store_failure = "closed"
lease = "20ms"

[zones.a]
key = "$remote_addr"
rate = "1r/d"
algorithm = "leaky_bucket"
max_keys = 100000
new_keys = "none"
idle_timeout = "1m"
ipv6_prefix = 64
exempt = []
mask_keys = false
store = "memory"
on_store_failure = "local"
lease = "0"

[zones.a.plans.gold]
# 2 keys
keys = ["192.0.2.1", "192.0.2.2"]
rate = "9r/d"
burst = 30
weight = 8
class = "a.b"

[zones.a.plans."b.c"]
# 1 key
keys = ["192.0.2.3"]
weight = 1

[zones.b]
key = "$remote_addr"
rate = "2r/d"
algorithm = "leaky_bucket"
max_keys = 100000
new_keys = "none"
idle_timeout = "1m"
ipv6_prefix = 64
exempt = []
mask_keys = false
store = "memory"
on_store_failure = "local"
lease = "0"

[redis]
url = "rediss://:secret@cache.internal:6380/3"
timeout = "20ms"
prefix = "edge:"

[[routes]]
path = "= /login"
host = "api.example.com"
methods = ["POST", "PUT"]
origin = "a"
cost = { body_per = "64KB", max = 20 }
refund = ["2xx", "404"]
limits = [{ zone = "a", burst = 20, delay = 8 }, { zone = "b", burst = 4294967295, nodelay = true }]
max_wait = "5s"
dry_run = true
reject_status = 503
reject_body = "\u0001\t\r\n\"\\é"
headers = ["ratelimit", "server-timing"]

[[routes]]
path = "regex:^/v1/\\d+\"$"
methods = []
origin = "a"
cost = 1
refund = []
limits = []
max_wait = "none"
dry_run = false
reject_status = 429
reject_body = "Too many requests\n"
headers = ["x-ratelimit"]
strip_prefix = "/v1/"
add_prefix = "/caf%C3%A9"
request_headers = { "Authorization" = "Bearer é\"", "x!y" = false }
response_headers = { "server" = false, "x-a" = "b" }
answer_headers = { "access-control-allow-origin" = "*" }

[[routes]]
path = "/private/"
methods = []
refuse = 403
answer_headers = { "x-a" = "c" }

[[routes]]
path = "/"
methods = []
origin = "b.example"
class = "a.b"
cost = { response_header = "x-drip-cost", estimate = 1, max = 9 }
refund = []
limits = []
max_wait = "none"
dry_run = false
reject_status = 429
reject_body = "Too many requests\n"
headers = ["x-ratelimit"]

[[routes]]
path = "/three"
methods = []
origin = "b.example"
class = "interactive"
cost = { header = "x-cost", default = 2, max = 9 }
refund = []
limits = []
max_wait = "none"
dry_run = false
reject_status = 429
reject_body = "Too many requests\n"
headers = ["x-ratelimit"]

[[routes]]
path = "/four"
methods = []
origin = "a"
cost = 64
refund = []
limits = []
max_wait = "none"
dry_run = false
reject_status = 429
reject_body = "Too many requests\n"
headers = ["x-ratelimit"]

[log]
level = "trace"
format = "json"
access = "/etc/drip/logs/access.log"
otlp = "off"
"#;

#[test]
fn what_is_shown_reads_back_as_the_same_settings() {
    let settings = parse(EVERYTHING, Path::new("/etc/drip/gateway.toml"), false).unwrap();
    assert_eq!(show(&settings), SHOWN);
    let again = parse(SHOWN, Path::new("/elsewhere/gateway.toml"), false).unwrap();
    let warnings = settings.warnings.clone();
    assert_eq!(Settings { warnings, ..again }, settings);
}

#[test]
fn an_origin_that_gateways_share_is_shown_and_reads_back() {
    let text = r#"
[origins.app]
servers = ["http://127.0.0.1:9000"]
rate = "200r/s"
store = "redis"
gateways = 3

[[routes]]
path = "/"
origin = "app"
"#;
    let read = |text: &str| parse(text, Path::new("/etc/drip/gateway.toml"), false).unwrap();
    let settings = read(text);
    let shown = show(&settings);
    assert!(
        shown.contains("rate = \"200r/s\"\nstore = \"redis\"\ngateways = 3\n"),
        "{shown}"
    );
    assert_eq!(read(&shown), settings);
}

#[test]
fn defaults_are_shown_and_read_back() {
    let text = include_str!("../../../gateway.toml");
    let settings = parse(text, Path::new("gateway.toml"), false).unwrap();
    let shown = show(&settings);
    assert_eq!(
        parse(&shown, Path::new("gateway.toml"), false),
        Ok(settings.clone())
    );

    let server = &settings.server;
    let cores = std::thread::available_parallelism().unwrap();
    assert_eq!(
        server.listen,
        [Listen {
            address: ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap()),
            service: ListenService::Plain,
        }]
    );
    assert_eq!(server.admin, Some("127.0.0.1:9090".parse().unwrap()));
    assert_eq!(server.workers, cores);
    for line in [
        "forwarded_header = \"x-forwarded-for\"",
        "max_connections = 25000",
        "max_concurrent_streams = 128",
        "hold_streams = true",
        "underscores_in_headers = false",
        "keep_alive = \"75s\"",
        "tcp_keepalive = \"1m\"",
        "header_timeout = \"10s\"",
        "body_timeout = \"30s\"",
        "min_body_rate = \"8KB/30s\"",
        "max_header_size = \"32KB\"",
        "max_body_size = \"0\"",
        "shutdown_timeout = \"30s\"",
        "body_timeout = \"5m\"",
        "tunnel_timeout = \"1h\"",
        "max_header_size = \"64KB\"",
        "level = \"info\"",
        "format = \"text\"",
        "access = \"off\"",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}");
    }
    for absent in ["tls", "health"] {
        assert!(!shown.contains(absent), "{absent}");
    }
}

#[test]
fn one_certificate_is_shown_without_a_list() {
    let text = include_str!("../../../gateway.toml");
    let text = format!("{text}\n[server.tls]\ncert = [\"a.pem\"]\nkey = \"a.key\"\n");
    let settings = parse(&text, Path::new("/etc/drip/gateway.toml"), false).unwrap();
    let shown = show(&settings);
    let tls = "[server.tls]\ncert = \"/etc/drip/a.pem\"\nkey = \"/etc/drip/a.key\"\n";
    assert!(shown.contains(tls), "{shown}");
    let again = parse(&shown, Path::new("/elsewhere/gateway.toml"), false);
    assert_eq!(again, Ok(settings));
}

#[test]
fn routes_are_named_and_matched_byte_by_byte() {
    let settings = parse(SHOWN, Path::new("gateway.toml"), false).unwrap();
    let names = settings.routes.iter().map(Route::name).collect::<Vec<_>>();
    assert_eq!(
        names,
        [
            "api.example.com = /login",
            "regex:^/v1/\\d+\"$",
            "/private/",
            "/",
            "/three",
            "/four"
        ]
    );
    let exact = &settings.routes[0].path;
    assert!(exact.matches(b"/login") && !exact.matches(b"/login/") && !exact.matches(b"/Login"));
    let prefix = crate::config::PathPattern::Prefix("/fast".to_owned());
    assert!(prefix.matches(b"/fast") && prefix.matches(b"/fast.html") && !prefix.matches(b"/fas"));
}
