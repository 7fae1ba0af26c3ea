//! Tests of reading and checking files. Each module tests one table of the file, or one subject.
//!
//! [`Case`] is a row of a table of cases: a change of the smallest valid file, and its problems.

mod collapse;
mod environment;
mod gate;
mod in_flight;
mod include;
mod jwt;
mod mistakes;
mod origins;
mod plans;
mod room;
mod routes;
mod schema;
mod server;
mod warnings;

use super::*;
use crate::key::list_variables;

/// Path of the files that the tests parse.
const PATH: &str = "/etc/drip/gateway.toml";

/// A valid file with one origin, one zone and one route.
const SMALLEST: &str = r#"[origins.app]
servers = ["http://127.0.0.1:9000"]

[zones.per_client]
key  = "$remote_addr"
rate = "10r/s"

[[routes]]
path   = "/"
origin = "app"
limits = [{ zone = "per_client", burst = 20 }]
"#;

/// Parses a file at [`PATH`].
fn parse_text(text: &str) -> Result<Settings, Problems> {
    parse(text, Path::new(PATH), false)
}

/// Returns the settings of a valid file.
fn settings_of(text: &str) -> Settings {
    parse_text(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// Returns the settings of the smallest file with `from` replaced by `to`.
fn settings_with(from: &str, to: &str) -> Settings {
    settings_of(&SMALLEST.replacen(from, to, 1))
}

/// Returns the problems of a file, one a line; empty if it is valid.
fn problems(text: &str) -> String {
    parse_text(text).map_or_else(|found| found.to_string(), |_| String::new())
}

/// Returns the problems of a file without its path, which begins each line.
fn problems_without_path(text: &str) -> String {
    problems(text).replace(&format!("{PATH}:"), "")
}

#[test]
fn a_whole_number_may_have_any_form_of_toml() {
    for (written, burst) in [("20", 20), ("-0", 0), ("0x14", 20), ("1_000", 1000)] {
        let settings = settings_with("burst = 20", &format!("burst = {written}"));
        let limit = &settings.routes[0].limits[0];
        assert_eq!(limit.limit.burst, burst, "{written}");
    }
}

/// Limit of the route in the smallest file.
const LIMIT: &str = r#"{ zone = "per_client", burst = 20 }"#;

/// The replaced text, its replacement, and the expected problems of the smallest file.
///
/// If the replaced text is empty, the replacement is put before the file. Without expected problems
/// the file is valid. A problem begins with its line and column.
type Case = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Structure of the file.
    (SMALLEST, "",
     r#"1:1: the file is empty; add at least [origins.app] with servers = ["http://127.0.0.1:9000"], and [[routes]] with path = "/" and origin = "app""#),
    ("", "name = 1\n",
     "1:1: name: this belongs to [server]; move it below that line"),
    ("", "[zone.x]\n",
     r#"1:2: "zone" is not a field of the file, whose fields are include, server, origins, zones, jwt, redis, routes, log; did you mean zones?"#),
    ("", "server = true\n",
     "1:10: server: expected a table; found true"),
    ("rate = \"10r/s\"", "rate = 10r/s",
     "6:8: string values must be quoted, expected literal string"),
    ("path   = \"/\"", "path = \"/\"\npath = \"/a\"",
     "10:1: duplicate key"),
    ("[[routes]]", "[routes]",
     "8:1: routes: expected [[routes]] in double brackets, once for each route; found a table"),
    ("[[routes]]", "[[route]]",
     r#"1:1: there is no route; add [[routes]] with path = "/" and origin = "app"
8:3: "route" is not a field of the file, whose fields are include, server, origins, zones, jwt, redis, routes, log; did you mean routes?"#),
    ("[origins.app]", "[[origins]]",
     r#"1:1: origins: expected a table for each, such as [origins.name]; found a list
1:1: there is no origin; add [origins.app] with servers = ["http://127.0.0.1:9000"]
10:10: origin: there is no [origins.app]; the file has none; add [origins.app]"#),
    ("[zones.per_client]", "[zones.\"per client\"]",
     r#"4:1: per client: a name is made of letters, digits, _, - and .
11:20: zone: there is no [zones.per_client]; did you mean "per client"?"#),
    // [zones]
    ("rate = \"10r/s\"", "",
     r#"4:1: [zones.per_client] has no rate; add one such as rate = "10r/s""#),
    ("$remote_addr", "",
     r#"5:8: key: a key is made of variables such as "$remote_addr", or of a text alone for one bucket for all clients; found """#),
    ("$remote_addr", "$remote_adr",
     r#"5:8: key: $remote_adr is not a variable here; the variables are <ALLOWED>; found "$remote_adr""#),
    ("$remote_addr", "$host:${ZK}",
     r#"5:8: key: $ZK is not a variable here; the variables are <ALLOWED>; a key takes nothing of the environment; found "$host:${ZK}""#),
    ("\"10r/s\"", "\"0r/s\"",
     r#"6:8: rate: a rate of 0 would let nothing through; the smallest rates are written with a long period, such as "1r/d"; found "0r/s""#),
    ("\"10r/s\"", "\"10/s\"",
     r#"6:8: rate: a rate is a count and a period, such as "10r/s", "30r/m" or "5r/250ms"; found "10/s""#),
    ("\"10r/s\"", "10",
     r#"6:8: rate: expected "none", or a rate such as "10r/s"; found 10"#),
    ("\"10r/s\"", "\"16 r/s\"",
     r#"6:8: rate: write "16r/s", without blanks; found "16 r/s""#),
    ("\"10r/s\"", "\" 16r / 5 s \"",
     r#"6:8: rate: write "16r/5s", without blanks; found " 16r / 5 s ""#),
    ("\"10r/s\"", "\"1r/s\"\nidle_timeout = \"5 s\"",
     r#"7:16: idle_timeout: write "5s", without blanks; found "5 s""#),
    ("\"10r/s\"", "\"1r/s\"\nalgorithm = \"token_bukket\"",
     r#"7:13: algorithm: expected "leaky_bucket" or "token_bucket" or "fixed_window" or "sliding_window_log" or "sliding_window_counter"; found "token_bukket"; did you mean "token_bucket"?"#),
    ("\"10r/s\"", "\"10r/s\"\nalgorithm = \"fixed_window\"",
     "12:42: burst: the zone counts by fixed_window, which allows the 10 requests of its rate in each period and no burst; remove burst"),
    ("\"10r/s\"", "\"0.5r/s\"\nalgorithm = \"fixed_window\"",
     r#"6:8: rate: fixed_window counts whole requests in each period; choose a longer one, such as "1r/2s" for "0.5r/s"; found "0.5r/s""#),
    ("\"10r/s\"", "\"100001r/s\"\nalgorithm = \"sliding_window_log\"",
     r#"6:8: rate: sliding_window_log remembers the time of each request of a period, at most 100000; choose a shorter period, or sliding_window_counter; found "100001r/s""#),
    ("\"10r/s\"", "\"1r/s\"\nlease = \"20ms\"",
     r#"7:9: lease: a zone in memory has all its slots here; remove lease, or set store = "redis""#),
    ("\"10r/s\"", "\"1r/s\"\nlease = \"20ms\"\nstore = \"redis\"\nalgorithm = \"sliding_window_log\"",
     "7:9: lease: sliding_window_log counts each request at its own moment, and a slot that is taken ahead would count too early and let more through; remove lease, or choose sliding_window_counter\n14:42: burst: the zone counts by sliding_window_log, which allows the 1 requests of its rate in each period and no burst; remove burst"),
    ("\"10r/s\"", "\"0.123456789r/d\"\nstore = \"redis\"",
     r#"6:8: rate: the count of this rate has too many decimals for a period this long to be kept exactly in Redis; found "0.123456789r/d""#),
    ("\"10r/s\"", "\"1r/1500ns\"\nalgorithm = \"fixed_window\"\nstore = \"redis\"",
     r#"6:8: rate: a window in Redis is a whole number of microseconds long, the resolution of its clock; found "1r/1500ns""#),
    // [redis]
    ("", "redis.url = \"localhost:6379\"\n",
     r#"1:13: url: a Redis is written "redis://host:6379", "rediss://host:6379" (TLS), "redis+unix:///run/redis.sock" or "redis+cluster://one:6379,two:6379"; found "localhost:6379""#),
    ("", "redis = { url = \"rediss://a\", ca = \"none.pem\" }\n",
     "1:36: ca: /etc/drip/none.pem cannot be read: No such file or directory (os error 2)"),
    ("", "redis = { url = \"redis://a\", ca = \"/dev/null\" }\n",
     "1:35: ca: /dev/null cannot be read: it is not a regular file\n1:35: ca: this Redis has no TLS; begin its url with rediss:// or rediss+cluster://, or remove this"),
    // [[routes]]
    ("path   = \"/\"\n", "",
     r#"8:1: this route has no path; add one such as path = "/""#),
    ("origin = \"app\"\n", "",
     r#"8:1: this route has no origin; add one such as origin = "app""#),
    ("\"/\"", "\"login\"",
     r#"9:10: path: a path begins with /, or with = / to match only itself; found "login""#),
    ("\"/\"", "\"/?a=1\"",
     r#"9:10: path: a path has no query or fragment; remove everything from ? or # on; found "/?a=1""#),
    ("\"app\"", "\"ap\"",
     r#"10:10: origin: there is no [origins.ap]; did you mean "app"?"#),
    ("\"app\"", "\"web\"",
     "10:10: origin: there is no [origins.web]; the file has app"),
    ("\"app\"", "\"app\"\nhost = \"a*.example.com\"",
     r#"11:8: host: a * stands for whole labels at the beginning, as in "*.example.com"; found "a*.example.com""#),
    ("\"app\"", "\"app\"\nhost = \"example.com:80\"",
     r#"11:8: host: a host is a name such as "api.example.com", without scheme, port or path; found "example.com:80""#),
    ("\"app\"", "\"app\"\nmethods = [\"post\"]",
     r#"11:12: methods: methods are written in capitals, "POST"; found "post""#),
    ("\"app\"", "\"app\"\nmethods = [\"GET\", \"GET\"]",
     r#"11:19: methods: "GET" is listed twice; remove one"#),
    ("\"app\"", "\"app\"\nreject_body = 1",
     r#"11:15: reject_body: expected a text in quotes; for a file, write pages = { "429" = "busy.html" }; found 1"#),
    ("\"app\"", "\"app\"\n[[routes]]\npath = \"/\"\norigin = \"app\"",
     "11:1: routes: it has the same path, host, methods, match and listen as the route at 8:1, so it would never be used; remove one"),
    ("\"app\"", "\"web\"\n[[routes]]\npath = \"/\"\norigin = \"app\"",
     "10:10: origin: there is no [origins.web]; the file has app\n11:1: routes: it has the same path, host, methods, match and listen as the route at 8:1, so it would never be used; remove one"),
    // limits
    (LIMIT, "{ zone = \"per_client\", burst = \"1\", delay = 2 }, { zone = \"per_client\" }",
     r#"11:42: burst: expected a whole number from 0 to 4294967295; found "1"
11:60: limits: zone per_client limits this route already; remove one"#),
    (LIMIT, "{ zone = \"per_client\", brust = 1 }",
     r#"11:34: "brust" is not a field of this limit, whose fields are zone, burst, delay, nodelay, in_flight; did you mean burst?"#),
    (LIMIT, "{ zone = \"per_client\", burst = 20, delay = 21 }",
     "11:54: delay: delay 21 is above burst 20, so nothing would wait; lower it to at most 20, raise burst, or write nodelay = true instead"),
    (LIMIT, "{ zone = \"per_client\", burst = 9, delay = 8, nodelay = true }",
     "11:53: delay: with nodelay = true nothing waits; remove delay or nodelay"),
    // [log]
    ("", "[log]\naccess = true\n",
     r#"2:10: access: expected "off", "stdout" or the name of a file; found true"#),
];

/// Returns the cases of all tables of cases with problems.
fn problem_cases() -> Vec<Case> {
    let tables = [
        CASES,
        server::CASES,
        origins::CASES,
        gate::CASES,
        in_flight::CASES,
        plans::CASES,
        jwt::CASES,
        room::CASES,
        routes::CASES,
        collapse::CASES,
    ];
    tables.concat()
}

#[test]
fn each_problem_is_reported_with_its_location() {
    for (from, to, expected) in problem_cases() {
        let text = SMALLEST.replacen(from, to, 1);
        assert_ne!(text, SMALLEST, "{from}");
        // `<ALLOWED>` stands for the list of variables.
        let expected = expected.replace("<ALLOWED>", &list_variables());
        assert_eq!(problems_without_path(&text), expected, "{text}");
    }
}

#[test]
fn all_problems_are_reported_at_once_sorted_by_location() {
    let text = r#"[server]
wrokers = 2

[zones.a]
rate = "0r/s"

[zones."é"]
key = { of = "é" }; rate = 1

[[routes]]
path = "/"
limits = [{ zone = "a", burst = "1", delay = 2 }, { zone = "b" }]

[log]
level = "é"; format = "xml"
"#
    .replace("; ", "\n");
    let expected = r#"1:1: there is no origin; add [origins.app] with servers = ["http://127.0.0.1:9000"]
2:1: "wrokers" is not a field of [server], whose fields are name, listen, admin, admin_hosts, metrics, workers, trusted_proxies, proxy_protocol, forwarded_header, max_connections, max_concurrent_streams, hold_streams, underscores_in_headers, keep_alive, keep_alive_time, keep_alive_requests, tcp_keepalive, header_timeout, body_timeout, min_body_rate, max_header_size, max_body_size, shared_answers, buffers, shutdown_timeout, stop_delay, request_id, state, tls; did you mean workers?
4:1: [zones.a] has no key; add one such as key = "$remote_addr"
5:8: rate: a rate of 0 would let nothing through; the smallest rates are written with a long period, such as "1r/d"; found "0r/s"
7:1: é: a name is made of letters, digits, _, - and .
8:7: key: expected variables such as "$remote_addr"; found a table
9:8: rate: expected "none", or a rate such as "10r/s"; found 1
11:1: this route has no origin; add one such as origin = "app"
13:33: burst: expected a whole number from 0 to 4294967295; found "1"
13:60: zone: there is no [zones.b]; the file has a, é
16:9: level: expected "error" or "warn" or "info" or "debug" or "trace"; found "é"
17:10: format: expected "text" or "json"; found "xml""#;
    assert_eq!(problems_without_path(&text), expected);
}

#[test]
fn a_syntax_error_is_reported_alone() {
    // Columns count characters.
    let text = SMALLEST
        .replace("rate = \"10r/s\"", "rate = \"é\" 1\n\"é\" = 1 1")
        .replace("burst = 20", "burst = -20");
    let expected = "6:12: unexpected key or value, expected newline, `#`";
    assert_eq!(problems_without_path(&text), expected);
}

#[test]
fn networks_are_normalized_like_addresses() {
    let text = r#"["10.1.2.3/8", "::1", "::ffff:192.0.2.0/120", "unix:", "2001:db8::1/32"]"#;
    let text = format!("[server]\ntrusted_proxies = {text}\n{SMALLEST}");
    let networks = settings_of(&text).server.trusted_proxies.networks.list;
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let expected = ["10.0.0.0/8", "::1/128", "192.0.2.0/24", "2001:db8::/32"];
    assert_eq!(networks, expected);
}

#[test]
fn an_admin_port_open_to_others_needs_a_token() {
    let text = format!("server.admin = \"0.0.0.0:9090\"\n{SMALLEST}");
    let settings = parse(&text, Path::new("gateway.toml"), true).unwrap();
    assert_eq!(settings.server.admin, Some("0.0.0.0:9090".parse().unwrap()));
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    let shown_path = path.display().to_string();
    let missing = load(&path).unwrap_err().to_string();
    assert!(missing.starts_with(&shown_path), "{missing}");

    fs::write(&path, b"# \xc3\xa9\n# \xff").unwrap();
    let message = "this is not UTF-8; save the file in that encoding";
    let found = load(&path).unwrap_err().to_string();
    assert_eq!(found, format!("{shown_path}:2:3: {message}"));
}

#[test]
fn a_problem_is_one_printable_line_of_limited_length() {
    let found = problems("[zones.\"a\\u001bb\\n\"]\n");
    let message = ": a\\u{1b}b\\n: a name is made of letters";
    assert!(
        found.contains(message) && !found.contains('\u{1b}'),
        "{found}"
    );
    let found = problems(&format!("{}\n{SMALLEST}", "x".repeat(5_000) + " = 1"));
    assert!(found.ends_with("xxx...") && found.len() < 1_100, "{found}");
}

#[test]
fn a_message_about_many_names_lists_the_first_twenty() {
    let zones = (0..500).fold(String::new(), |zones, zone| {
        zones + &format!("[zones.number_{zone}]\nkey = \"$host\"\nrate = \"1r/s\"\n")
    });
    let text = SMALLEST.replace("\"per_client\"", "\"q\"");
    let found = problems(&format!("{zones}{text}"));
    let end = "number_18, number_19 and 481 more";
    assert!(found.ends_with(end), "{found}");
}
