//! Tests of warnings about legal values that are probably mistakes.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::fs;

use super::*;

/// Text in the smallest file that cases replace.
const KEY: &str = "\"$remote_addr\"";
/// Text in the smallest file that cases replace.
const RATE: &str = "\"10r/s\"\n";
/// Text in the smallest file that cases replace.
const SERVERS: &str = "[\"http://127.0.0.1:9000\"]";

/// Returns the warnings of the smallest file with `from` replaced by `to`.
fn warnings(from: &str, to: &str) -> String {
    let text = SMALLEST.replacen(from, to, 1);
    let parsed = parse(&text, Path::new("gateway.toml"), true);
    warning_lines(&parsed.unwrap_or_else(|problems| panic!("{problems}\n{text}")))
}

/// Returns the warnings, one a line: the location and the message, without the file.
fn warning_lines(settings: &Settings) -> String {
    let as_line = |warning: &Problem| warning.as_warning(Path::new(""))[1..].to_owned();
    let lines: Vec<String> = settings.warnings.iter().map(as_line).collect();
    lines.join("\n")
}

/// A zone with a lease and this algorithm, and a route with this limit.
macro_rules! leased {
    ($algorithm:literal, $limit:literal) => {
        concat!(
            "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.z]\nkey = \"$host\"\nrate = \"10r/s\"\nalgorithm = \"",
            $algorithm,
            "\"\nstore = \"redis\"\nlease = \"20ms\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\"",
            $limit,
            " }]\n",
        )
    };
}

/// A zone with this key, and a route with this line.
macro_rules! shared {
    ($key:literal, $line:literal) => {
        concat!(
            "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.z]\nkey = \"",
            $key,
            "\"\nmask_keys = true\nrate = \"10r/s\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\" }]\n",
            $line,
            "\n",
        )
    };
}

/// Rows of replaced text, replacement and expected warnings, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    // A load balancer keeps idle connections longer than the gateway.
    ("", "[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"35.191.0.0/16\"]\n",
     r#"2:19: warning: trusted_proxies: Google's load balancers keep idle connections for 10m, and keep_alive = "75s" closes them no later, so requests meet closed connections; set keep_alive = "620s""#),
    // Fields without an effect.
    ("", "[server]\nkeep_alive = \"0\"\nkeep_alive_requests = 5\nkeep_alive_time = \"1m\"\n",
     r#"3:23: warning: keep_alive_requests: has no effect: keep_alive = "0" closes each connection after one response; remove one of the two
4:19: warning: keep_alive_time: has no effect: keep_alive = "0" closes each connection after one response; remove one of the two"#),
    ("", "[server]\nkeep_alive = \"0\"\nkeep_alive_time = \"0\"\n", ""),
    ("servers = [", "keep_alive = 0\nkeep_alive_timeout = \"60s\"\nservers = [", ""),
    ("path   = \"/\"\n", "path = \"/\"\nmax_wait = \"2s\"\ncollapse = { follow_timeout = \"5s\" }\n", ""),
    ("servers = [", "keep_alive = 0\nkeep_alive_timeout = \"5s\"\nservers = [",
     "3:22: warning: keep_alive_timeout: has no effect: keep_alive = 0 keeps no idle connection; remove one of the two"),
    ("servers = [", "rate = \"1r/s\"\nbackoff = { retry_after = true, mode = \"shadow\" }\nservers = [",
     r#"3:27: warning: retry_after: has no effect: mode = "shadow" pauses nothing; remove one of the two"#),
    ("path   = \"/\"\n", "path = \"/\"\nmax_wait = \"2s\"\ncollapse = { follow_timeout = \"3s\" }\n",
     "11:31: warning: follow_timeout: has no effect: max_wait of the route is shorter; remove one of the two"),
    ("path   = \"/\"\n", "path = \"/\"\nmax_wait = \"2s\"\ncollapse = { follow_timeout = \"2s\" }\n", ""),
    ("[origins.app]\n", "[server]\nmax_body_size = \"1MB\"\n[origins.app]\nrequest_buffer = \"2MB\"\n",
     "4:18: warning: request_buffer: max_body_size of [server] is smaller: no body fills this buffer; lower it, or raise that"),
    ("", "[server]\ntrusted_proxies = [\"130.211.0.0/22\"]\nkeep_alive = \"620s\"\n", ""),
    ("", "[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\nkeep_alive = \"60s\"\n",
     r#"2:19: warning: trusted_proxies: most load balancers, such as AWS's, keep idle connections for 1m, and keep_alive = "1m" closes them no later, so requests meet closed connections; set keep_alive = "75s""#),
    ("", "[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\n", ""),
    ("", "[server]\ntrusted_proxies = [\"35.191.0.0/16\"]\nkeep_alive = \"0\"\n", ""),
    ("", "[server]\ntrusted_proxies = [\"unix:\"]\nkeep_alive = \"1s\"\n", ""),
    // A key that was meant to be a variable.
    (KEY, "\"remote_addr\"",
     r#"5:8: warning: key: "remote_addr" has no variable, so all requests share one bucket; write "$remote_addr", or another text if that is what you want"#),
    (KEY, "\"{http_x-api-key}\"",
     r#"5:8: warning: key: "{http_x-api-key}" has no variable, so all requests share one bucket; write "$http_x_api_key", or another text if that is what you want"#),
    // A key that is a secret.
    (KEY, "\"$http_authorization\"",
     "5:8: warning: key: $http_authorization is a secret of the client, and stands in logs, in metrics and on the page; write mask_keys = true in the zone"),
    (KEY, "\"$host:$cookie_session\"",
     "5:8: warning: key: $cookie_session is a secret of the client, and stands in logs, in metrics and on the page; write mask_keys = true in the zone"),
    (KEY, "\"$http_x_api_key\"\nmask_keys = true", ""),
    (KEY, "\"$http_x_tenant$arg_page\"", ""),
    (KEY, "\"$host:$http_x-api-key\"",
     r#"5:8: warning: key: the variable ends before "-api-key": - is written _ in the name of a variable; write "$http_x_api_key", or "${http_x}-api-key" if the text is meant"#),
    (KEY, "\"$http_x-$host\"", ""),
    (KEY, "\"${http_x}-a\"", ""),
    (KEY, "\"all\"", ""),
    // A room without `draw` has a limit of its own.
    (SERVERS, concat!("[\"http://127.0.0.1:9000\"]\n", "room = { sessions = 1, secret = \"0123456789abcdef\" }"), ""),
    // A room that does not exist.
    ("origin = \"app\"", "origin = \"app\"\nroom = true",
     "11:8: warning: room: origin app has no waiting room, so this does nothing; add [origins.app.room], or remove it"),
    ("origin = \"app\"", "origin = \"app\"\nroom = false", ""),
    // Answers shared between clients that a limit separates.
    (SMALLEST, shared!("$http_x_api_key", "collapse = {}"),
     r#"11:12: warning: collapse: answers are shared between clients that differ in $http_x_api_key, by which a limit of this route separates them; if the responses of the origin depend on it, add "x-api-key" to vary"#),
    (SMALLEST, shared!("$host$http_x_tenant", "collapse = { vary = [\"accept-encoding\"] }"),
     r#"11:21: warning: vary: answers are shared between clients that differ in $http_x_tenant, by which a limit of this route separates them; if the responses of the origin depend on it, add "x-tenant" to vary"#),
    (SMALLEST, shared!("$http_x_api_key", "collapse = { vary = [\"X-API-Key\"] }"), ""),
    (SMALLEST, shared!("$http_x_api_key", "collapse = { key = \"$uri$http_x_api_key\" }"), ""),
    (SMALLEST, shared!("$http_x_api_key", "collapse = {}\nrequest_headers = { \"x-api-key\" = false }"), ""),
    (SMALLEST, shared!("$http_authorization$http_user_agent$remote_addr$arg_a", "collapse = {}"), ""),
    (SMALLEST, shared!("$cookie_id", "collapse = { cookies = [\"session\"] }"),
     r#"11:24: warning: cookies: answers are shared between clients that differ in $cookie_id, by which a limit of this route separates them; if the responses of the origin depend on it, add "id" to cookies"#),
    (SMALLEST, shared!("$cookie_id", "collapse = { cookies = [\"id\"] }"), ""),
    (SMALLEST, shared!("$cookie_id", "collapse = { cookies = [], key = \"$uri$cookie_id\" }"), ""),
    (SMALLEST, shared!("$cookie_id", "collapse = {}"), ""),
    // An answer larger than the memory for answers.
    (SMALLEST, shared!("$host", "collapse = { max_size = \"2MB\" }\n[server]\nshared_answers = \"1MB\""),
     "11:25: warning: max_size: an answer of 2MB does not fit into shared_answers of [server], which is 1MB; raise that, or lower max_size"),
    (SMALLEST, shared!("$host", "collapse = {}\n[server]\nshared_answers = \"1MB\""), ""),
    // A buffer larger than the memory for buffers.
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\nresponse_buffer = \"65MB\"",
     "3:19: warning: response_buffer: a buffer of 65MB does not fit into buffers of [server], which is 64MB; raise that, or lower response_buffer"),
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\nresponse_buffer = \"64MB\"", ""),
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\nrequest_buffer = \"1GB\"",
     "3:18: warning: request_buffer: a buffer of 1GB does not fit into buffers of [server], which is 64MB; raise that, or lower request_buffer"),
    ("[origins.app]\n", "server.buffers = \"15KB\"\n[origins.app]\nresponse_buffer = \"1KB\"\n",
     "3:19: warning: response_buffer: a buffer of 16KB does not fit into buffers of [server], which is 15KB; raise that, or lower response_buffer"),
    // An unbounded number of requests that go on without their clients.
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\non_client_gone = \"finish\"",
     "3:18: warning: on_client_gone: clients that disconnect leave any number of requests at the origin; add max_in_flight, or write \"abort\""),
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\non_client_gone = \"finish\"\nmax_in_flight = 2", ""),
    ("servers = [\"http://127.0.0.1:9000\"]", "servers = [\"http://127.0.0.1:9000\"]\non_client_gone = \"abort\"", ""),
    // A star that was meant to be a wildcard.
    ("path   = \"/\"", "path   = \"/api/*\"",
     r#"9:10: warning: path: * is no wildcard in "/api/*", so only a path that has a * matches; write "/api/", which takes every path that begins with it"#),
    ("path   = \"/\"", "path   = \"= /u/*/x.json\"",
     r#"9:10: warning: path: * is no wildcard in "= /u/*/x.json", so only a path that has a * matches; write 'regex:^/u/[^/]*/x\.json'"#),
    ("path   = \"/\"", "path   = 'regex:^/api/.*'", ""),
    // Permits that are lent again too early.
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 2\non_store_failure = \"closed\"\norphan = \"59s\"",
     "6:10: warning: orphan: if a gateway vanishes, its requests may run at the origin for response_timeout, which is 1m, and other gateways get its permits after orphan, which is 59s; set orphan to more than 1m, or lower response_timeout"),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 2\nresponse_timeout = \"2m\"",
     "5:20: warning: response_timeout: if a gateway vanishes, its requests may run at the origin for response_timeout, which is 2m, and other gateways get its permits after orphan, which is 75s; set orphan to more than 2m, or lower response_timeout"),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 2\nresponse_timeout = \"2s\"\norphan = \"2s\"", ""),
    // More gateways than permits: without Redis, each takes one.
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 2\ngateways = 3",
     "5:12: warning: gateways: while Redis does not answer, each of 3 gateways uses a permit of its own, and max_in_flight is 2, so the origin may get more requests; set on_store_failure = \"closed\" if it must not"),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 3\ngateways = 3", ""),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nmax_in_flight = 2\ngateways = 3\non_store_failure = \"closed\"", ""),
    (SERVERS, "[\"http://a\"]\nstore = \"redis\"\nrate = \"9r/s\"\ngateways = 3", ""),
    // A zone that nothing uses.
    (LIMIT, "",
     "4:1: warning: per_client: no route and no origin uses this zone; name it in the limits of a route, or remove it"),
    (SMALLEST, "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\nrate = \"9r/s\"\nshare = \"z\"\n[zones.z]\nkey = \"$host\"\nrate = \"none\"\n[[routes]]\npath = \"/\"\norigin = \"app\"", ""),
    // A key that each client chooses.
    ("\"$remote_addr\"", "\"$http_x_forwarded_for\"",
     "5:8: warning: key: each client chooses $http_x_forwarded_for, and so its bucket; write \"$remote_addr\", and the proxies in trusted_proxies"),
    // A lease that cannot take slots ahead.
    (RATE, "\"10r/s\"\nstore = \"redis\"\nlease = \"0\"\n", ""),
    (SMALLEST, leased!("leaky_bucket", ""),
     "8:9: warning: lease: without burst no slots can be leased ahead, so the lease has no effect; raise the burst of a limit of this zone at least to what its rate allows in the duration of the lease, or remove lease"),
    (SMALLEST, leased!("leaky_bucket", ", burst = 1"), ""),
    (SMALLEST, leased!("token_bucket", ", burst = 1"),
     "8:9: warning: lease: with a burst of 1 no slots can be leased ahead, so the lease has no effect; raise the burst of a limit of this zone at least to what its rate allows in the duration of the lease, or remove lease"),
    (SMALLEST, leased!("token_bucket", ", burst = 2"), ""),
    (SMALLEST, leased!("fixed_window", ""), ""),
    (LIMIT, "{ zone = \"per_client\", burst = 20 }]\nmax_wait = \"1999ms\"\nheaders = [",
     "11:42: warning: burst: of burst 20 at most 19 can be used: further requests would wait longer than max_wait; lower burst to 19, or raise max_wait or the rate of zone per_client"),
    (LIMIT, "{ zone = \"per_client\", burst = 20 }]\nmax_wait = \"2s\"\nheaders = [", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 20, delay = 8 }]\nmax_wait = \"1s\"\nheaders = [",
     "11:42: warning: burst: of burst 20 at most 18 can be used: further requests would wait longer than max_wait; lower burst to 18, or raise max_wait or the rate of zone per_client"),
    (LIMIT, "{ zone = \"per_client\", burst = 20, nodelay = true }]\nmax_wait = \"1s\"\nheaders = [", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 20, in_flight = 2 }]\nmax_wait = \"1s\"\nheaders = [", ""),
    // The keys of a plan can use the whole burst.
    (LIMIT, "{ zone = \"per_client\", burst = 20 }]\nmax_wait = \"1s\"\n[zones.per_client.plans.gold]\nrate = \"20r/s\"\nkeys = [\"a\"", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 20 }]\nmax_wait = \"1s\"\n[zones.per_client.plans.gold]\nburst = 9\nrate = \"20r/s\"\nkeys = [\"a\"",
     "11:42: warning: burst: of burst 20 at most 10 can be used: further requests would wait longer than max_wait; lower burst to 10, or raise max_wait or the rate of zone per_client"),
    // Limits that never reject.
    ("burst = 20", "burst = 25000",
     "11:42: warning: burst: 25000 is not below max_connections, which is 25000, so the queue is never full and the limit never rejects; lower it"),
    ("burst = 20", "burst = 24999", ""),
    // A request of cost 2 counts as two requests in the queue.
    (LIMIT, "{ zone = \"per_client\", burst = 49999 }]\ncost = 2\nheaders = [", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 49999 }]\ncost = { header = \"x-cost\", default = 1, max = 2 }\nheaders = [", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 50000 }]\ncost = 2\nheaders = [",
     "11:42: warning: burst: 50000 is not below 2 times max_connections, which is 25000, so the queue is never full and the limit never rejects; lower it"),
    ("burst = 20", "in_flight = 25000",
     "11:46: warning: in_flight: 25000 is not below max_connections, which is 25000, so as many requests never run at once; lower it"),
    ("[zones", "[server]\nmax_connections = 20\n[zones",
     "13:42: warning: burst: 20 is not below max_connections, which is 20, so the queue is never full and the limit never rejects; lower it"),
    ("[zones", "[server]\nmax_connections = 20\ntls = { cert = \"a\", key = \"b\" }\n[zones", ""),
    // A limit that rejects a part of the requests that a browser sends at once.
    ("[zones", "[server]\nhold_streams = false\ntls = { cert = \"a\", key = \"b\" }\n[zones",
     "14:42: warning: burst: a browser sends up to 128 requests at once over HTTP/2, and zone per_client on route / accepts 21 of them and rejects the rest; write hold_streams = true in [server], or lower max_concurrent_streams to 21"),
    (RATE, "\"10r/s\"\nalgorithm = \"token_bucket\"\n[server]\nmax_concurrent_streams = 21\ntls = { cert = \"a\", key = \"b\" }\n",
     "15:20: warning: zone: a browser sends up to 21 requests at once over HTTP/2, and zone per_client on route / accepts 20 of them and rejects the rest; write algorithm = \"leaky_bucket\" in the zone, which holds them, or lower max_concurrent_streams to 20"),
    ("burst = 20 }]", "burst = 20, nodelay = true }]\n[server]\ntls = { cert = \"a\", key = \"b\" }\n",
     "11:56: warning: nodelay: a browser sends up to 128 requests at once over HTTP/2, and zone per_client on route / accepts 21 of them and rejects the rest; remove nodelay, so that the rest waits, or lower max_concurrent_streams to 21"),
    ("burst = 20 }]", "burst = 4, nodelay = true }]\nmethods = [\"POST\"]\n[server]\ntls = { cert = \"a\", key = \"b\" }\n", ""),
    ("[zones.per_client]\nkey  = \"$remote_addr\"", "[server]\nhold_streams = false\ntls = { cert = \"a\", key = \"b\" }\n[zones.per_client]\nkey = \"$http_x_api_key\"\nmask_keys = true", ""),
    (LIMIT, "{ zone = \"per_client\", burst = 20 }]\nmethods = [\"POST\"]\n[server]\nhold_streams = false\ntls = { cert = \"a\", key = \"b\" }\ntrusted_proxies = [", ""),
    (RATE, "\"10r/s\"\nexempt = [\"10.0.0.0/8\", \"0.0.0.0/0\"]\n",
     "7:10: warning: exempt: it has every address of 0.0.0.0/0, so the zone never limits these clients; name fewer"),
    // Clients that choose their own address.
    ("", "server.listen = [\"0.0.0.0:80\"]\nserver.trusted_proxies = [\"10.0.0.0/8\", \"::/0\"]\n",
     "2:26: warning: trusted_proxies: it has every address of ::/0, so each client chooses the address that it is known by; name the proxies only"),
    ("", "server.listen = [\"0.0.0.0:80\"]\nserver.trusted_proxies = [\"128.0.0.0/1\", \"unix:\", \"0.0.0.0/1\"]\n",
     "2:26: warning: trusted_proxies: it has every address of 0.0.0.0/0, so each client chooses the address that it is known by; name the proxies only"),
    // Certificates without use.
    ("", "server.listen = [\"unix:a.sock\"]\nserver.tls = { cert = \"a\", key = \"b\" }\n",
     "2:14: warning: tls: no address of listen has TLS, so nothing uses the certificates; write tls = true for one, or remove this table"),
    ("", "server.listen = [\"127.0.0.1:80\", \"unix:a.sock\"]\nserver.trusted_proxies = [\"0.0.0.0/0\"]\n", ""),
    // An admin port with a token, reachable from the network.
    ("", "server.admin = \"0.0.0.0:9090\"\n",
     "1:16: warning: admin: 0.0.0.0:9090 is reachable from other hosts without TLS, so the token can be read on its way; use 127.0.0.1:9090 behind a tunnel or a TLS proxy, unless the network is trusted"),
    // A state file in a missing folder.
    ("", "server.state = \"/missing/drip.state\"\n",
     "1:16: warning: state: no file can be written in /missing: No such file or directory (os error 2); name one in a folder that this user can write, or a restart forgets all levels"),
    ("", "server.state = \"/tmp/drip-of-no-gateway.state\"\n", ""),
    // A state file that would replace another file.
    ("", "server.state = \"/tmp\"\n",
     "1:16: warning: state: the state cannot be written to /tmp: it is not a regular file; name another file, or a restart forgets all levels"),
    ("", "server.state = \"/etc/passwd\"\n",
     "1:16: warning: state: the state cannot be written to /etc/passwd: it has other content, which drip does not overwrite; name another file, or a restart forgets all levels"),
];

#[test]
fn each_warning_has_a_location_and_its_counterpart_gives_none() {
    for (from, to, expected) in CASES {
        assert_eq!(warnings(from, to), *expected, "{to}");
    }
    assert_eq!(warnings("", ""), "");
}

#[test]
fn files_to_start_from_have_no_warning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = load(&root.join("gateway.toml")).unwrap();
    assert_eq!(warning_lines(&example), "");
    let mut valid = 0;
    for folder in ["docs/examples", "tests/corpus/gateways"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if let Ok(settings) = load(&file) {
                assert_eq!(warning_lines(&settings), "", "{}", file.display());
                valid += 1;
            }
        }
    }
    assert!(valid >= 8, "{valid}");
}
