//! Tests of `drip import`, run as a user runs it.

mod ingress;
mod networks;
mod openings;
mod protection;

use crate::support::assert_contains;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use config::{RouteAction, RouteIndex};
use tempfile::TempDir;

/// Runs the program in a folder.
fn drip(folder: &Path, args: &[&str]) -> Output {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.current_dir(folder).args(args).output().unwrap()
}

/// Returns the result of importing a file of the corpus: exit code, settings and notes.
fn corpus(name: &str) -> (Option<i32>, String, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/nginx");
    outcome_of(&drip(&folder, &["import", name]))
}

fn outcome_of(output: &Output) -> (Option<i32>, String, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let notes = text(&output.stderr).lines().map(str::to_owned).collect();
    (output.status.code(), text(&output.stdout), notes)
}

/// Compares settings with a file of `tests/import`, or writes that file.
fn check_golden(name: &str, settings: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let path = path.join(name);
    if std::env::var_os("DRIP_UPDATE_GOLDENS").is_some() {
        fs::write(&path, settings).unwrap();
    }
    assert_eq!(settings, fs::read_to_string(path).unwrap());
}

/// Imports an `nginx.conf`. Returns the settings and the notes.
fn imported(conf: &str) -> (String, Vec<String>) {
    let folder = written(&[("nginx.conf", conf)]);
    let (code, settings, notes) = outcome_of(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{conf}: {notes:#?}");
    (settings, notes)
}

/// Returns the status with which the imported routes refuse a path of a host.
///
/// 404 without a route, and `None` if the request goes to an origin.
fn refused(settings: &str, host: &str, path: &str) -> Option<u16> {
    let parsed = config::parse(settings, Path::new("gateway.toml"), false).unwrap();
    let index = RouteIndex::new(&parsed.routes);
    let found = index.find(&parsed.routes, path.as_bytes(), Some(host), None, |_| false);
    match found.map(|route| &parsed.routes[route].action) {
        None => Some(404),
        Some(RouteAction::Refuse(status)) => Some(*status),
        Some(_) => None,
    }
}

fn written(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Each file of nginx becomes its golden file, and each note also appears in the file.
#[test]
fn each_file_of_nginx_becomes_its_golden_file() {
    let names = "balancing connections keep-alive protection response-fields tidy vhosts";
    for name in names.split(' ') {
        let (code, settings, notes) = corpus(&format!("{name}.conf"));
        assert_eq!(code, Some(0), "{name}");
        // The last line counts the others.
        for note in notes.iter().filter(|note| note.contains(".conf:")) {
            assert!(settings.contains(note.as_str()), "{name}: {note}");
        }
        check_golden(&format!("{name}.toml"), &settings);
    }
}

#[test]
fn windows_line_ends_are_blanks() {
    let (code, settings, notes) = corpus("windows.conf");
    assert_eq!((code, notes.len()), (Some(0), 0), "{notes:?}");
    let limits = "limits = [{ zone = \"z\", burst = 3 }]\nreject_status = 503\n";
    assert!(settings.ends_with(limits), "{settings}");
    assert_contains!(settings, "listen = [\"0.0.0.0:80\"]");
}

#[test]
fn untranslated_directives_are_noted_by_line() {
    let (code, settings, notes) = corpus("maps.conf");
    assert_eq!(code, Some(0));
    let lines = [
        "5: zone site ",
        "11: ",
        "12: there is no limit_req_zone nowhere",
        "13: limit_conn perserver is translated to max_in_flight",
    ];
    for (note, line) in notes.iter().zip(lines) {
        assert!(note.starts_with(&format!("maps.conf:{line}")), "{note}");
    }
    assert_eq!(notes.last().unwrap(), "4 notes to check: 2 limits are lost");
    // Each also appears in the file: at its table, or above the first one.
    for note in &notes[..4] {
        let is_there = settings.contains(&format!("# {note}\n"));
        assert!(is_there, "{note}\n{settings}");
    }
    let begin = "# Check these lines, too: ";
    assert!(settings.starts_with(begin), "{settings}");
    assert_contains!(settings, "max_in_flight = 100\n");
    assert_contains!(settings, "{ zone = \"perip\", burst = 0, in_flight = 10 }]");
    // The usual way to exempt some clients.
    let exempt = "exempt = [\"10.0.0.0/8\", \"192.0.2.0/24\"]";
    let zone = format!(
        "[zones.mapped]\nkey = \"$remote_addr\"\nrate = \"5r/s\"\nmax_keys = 80000\nipv6_prefix = 128\n{exempt}\n"
    );
    let limits = "limits = [{ zone = \"mapped\", burst = 10 }, ";
    assert_contains!(settings, &zone, limits);
    assert!(settings.contains(
        "\n# maps.conf:12: there is no limit_req_zone nowhere; this limit is left out\n"
    ));
}

/// Returns the `exempt` of a zone with key `$key`; `None` if the zone is left out.
///
/// `lines`: definition of `$key`.
fn exempt(lines: &str) -> Option<String> {
    let conf = format!(
        "http {{\n{lines}\nlimit_req_zone $key zone=z:1m rate=1r/s;\n\
         server {{ location / {{ limit_req zone=z; proxy_pass http://127.0.0.1:9000; }} }}\n}}\n"
    );
    let (settings, notes) = imported(&conf);
    if !settings.contains("[zones.z]") {
        for part in ["zone z is left out", "is not translated"] {
            let is_noted = notes.iter().any(|note| note.contains(part));
            assert!(is_noted, "{notes:?}");
        }
        return None;
    }
    assert_contains!(settings, "key = \"$remote_addr\"\n");
    assert_eq!(notes, [""; 0], "{conf}");
    let line = settings
        .lines()
        .find_map(|line| line.strip_prefix("exempt = "));
    Some(line.unwrap_or_default().to_owned())
}

#[test]
fn whom_a_geo_or_a_map_lets_pass_is_exempt() {
    let map = "map $limit $key { 0 \"\"; 1 $binary_remote_addr; }";
    let default = "map $limit $key { default $binary_remote_addr; 0 ''; }";
    let cases = [
        (
            format!(
                "geo $limit {{ default 1; 10.0.0.0/8 0; 2001:db8::/32 0; 192.0.2.7 0; }} {map}"
            ),
            "[\"10.0.0.0/8\", \"2001:db8::/32\", \"192.0.2.7/32\"]",
        ),
        (
            format!("geo $remote_addr $limit {{ 10.0.0.0/8 0; 192.0.2.0/24 1; }} {default}"),
            "[\"10.0.0.0/8\"]",
        ),
        // If a network is named twice, the last entry applies.
        (
            format!("geo $limit {{ default yes; 10.0.0.0/8 1; 10.0.0.0/8 0; }} {default}"),
            "[\"10.0.0.0/8\"]",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(exempt(&lines).as_deref(), Some(expected), "{lines}");
    }
}

#[test]
fn keys_that_exempt_cannot_express_are_noted() {
    let map = "map $limit $key { 0 \"\"; 1 $binary_remote_addr; 2 $http_x_key; }";
    for lines in [
        // Some clients within an exempt network are limited.
        &format!("geo $limit {{ default 1; 10.0.0.0/8 0; 10.1.0.0/16 1; }} {map}"),
        // Only the named clients are limited.
        &format!("geo $limit {{ default 0; 10.0.0.0/8 1; }} {map}"),
        &format!("geo $limit {{ 10.0.0.0/8 1; }} {map}"),
        // Some clients have another key.
        &format!("geo $limit {{ default 1; 10.0.0.0/8 0; 192.0.2.0/24 2; }} {map}"),
        &format!("geo $limit {{ ranges; default 1; 10.0.0.0-10.9.9.9 0; }} {map}"),
        &format!("geo $limit {{ proxy 10.0.0.0/8; default 1; 10.0.0.0/8 0; }} {map}"),
        &format!("geo $http_x_real_ip $limit {{ default 1; 10.0.0.0/8 0; }} {map}"),
        &format!("geo $limit {{ default 1; nonsense 0; }} {map}"),
        "map $http_user_agent $key { default $binary_remote_addr; friend \"\"; }",
        "map $remote_addr $key { default $binary_remote_addr; 192.0.2.7 \"\"; }",
        "map $limit $key { 0 \"\"; 1 $binary_remote_addr; }",
    ] {
        assert_eq!(exempt(lines), None, "{lines}");
    }
}

#[test]
fn a_missing_redirect_is_noted_for_each_location() {
    let forward = "proxy_pass http://127.0.0.1:9000;";
    let conf = format!(
        "server {{\nlocation / {{ {forward} }}\nlocation /api/ {{ {forward} }}\nlocation = /api/one/ {{ {forward} }}\n\
         location /app/ {{ {forward} }}\nlocation = /app {{ {forward} }}\nlocation ^~ /deep/er/ {{ {forward} }}\n\
         location /files/ {{ root /srv; }}\n}}\n"
    );
    let (settings, notes) = imported(&conf);
    let redirects: Vec<&str> = notes
        .iter()
        .filter_map(|note| note.split_once(" with a redirect").map(|(begin, _)| begin))
        .collect();
    let expected = [
        "nginx.conf:3: nginx answers /api",
        "nginx.conf:7: nginx answers /deep/er",
    ];
    assert_eq!(redirects, expected, "{notes:?}");
    assert_contains!(settings, "# nginx.conf:3: nginx answers /api");
}

#[test]
fn includes_are_read_where_they_are_and_named_in_notes() {
    let folder = written(&[
        (
            "nginx.conf",
            "http {\n include conf.d/*.conf;\n include gone.conf;\n}\n",
        ),
        (
            "conf.d/10-zones.conf",
            "limit_req_zone $binary_remote_addr zone=z:1m rate=2r/s;\n",
        ),
        (
            "conf.d/20-site.conf",
            "server {\n location / {\n  gzip on;\n  limit_req zone=z;\n  proxy_pass http://127.0.0.1:9000;\n }\n}\n",
        ),
        ("conf.d/readme.txt", "}"),
    ]);
    let (code, settings, notes) = outcome_of(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0));
    assert_contains!(settings, "limits = [{ zone = \"z\", burst = 0 }]");
    let begin = "nginx.conf:3: gone.conf is not included";
    assert!(notes[0].starts_with(begin), "{notes:?}");
    assert_eq!(notes[1], "conf.d/20-site.conf:3: gzip is not translated");
    assert_eq!(notes.len(), 3);
}

#[test]
fn the_target_as_sent_is_no_variable_to_leave_a_location_out_for() {
    let server = |pass: &str| {
        let conf = format!(
            "upstream app {{ server 127.0.0.1:9000; }}\nserver {{\n client_max_body_size 5q;\n location / {{ proxy_pass {pass}; }}\n}}\n"
        );
        outcome_of(&drip(
            written(&[("nginx.conf", &conf)]).path(),
            &["import", "nginx.conf"],
        ))
    };
    let (code, settings, notes) = server("http://app$request_uri");
    assert_eq!((code, notes.len()), (Some(0), 2), "{notes:?}");
    let begin = "nginx.conf:3: client_max_body_size: \"5q\"";
    assert!(notes[0].starts_with(begin), "{notes:?}");
    assert_eq!(settings, server("http://app").1);
    for pass in [
        "http://app/x$request_uri",
        "http://$request_uri",
        "http://$host$request_uri",
    ] {
        assert_eq!(server(pass).0, Some(1), "{pass}");
    }
}

#[test]
fn only_where_nothing_can_be_forwarded_it_fails() {
    let folder = written(&[(
        "rest.conf",
        "} ; { location / { proxy_pass http://a; } }\nserver { location / { proxy_pass http://a; } }",
    )]);
    for (file, code) in [("rest.conf", 0), ("none.conf", 1), (".", 1)] {
        let output = drip(folder.path(), &["import", file]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(output.stdout.is_empty(), code == 1);
        assert!(!output.stderr.is_empty());
    }
    for file in ["empty.conf", "bytes.conf", "deep.conf"] {
        let (code, settings, notes) = corpus(file);
        assert_eq!((code, &*settings), (Some(1), ""));
        assert!(notes.last().unwrap().starts_with(file), "{notes:?}");
    }
}

/// The page shows an nginx file, the resulting settings, and the notes.
#[test]
fn the_page_shows_what_happens() {
    let page = "docs/coming-from/nginx.md";
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let (_, rest) = page.split_once("```nginx\n").expect("a file of nginx");
    let (conf, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```toml\n").unwrap();
    let (toml, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```text\n").unwrap();
    let (said, _) = rest.split_once("```").unwrap();
    let folder = written(&[("nginx.conf", conf)]);
    let (code, settings, notes) = outcome_of(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!((code, &*settings), (Some(0), toml));
    assert_eq!(notes.join("\n") + "\n", said);
}

#[test]
fn a_picture_is_refused_in_a_few_lines() {
    let mut bytes: Vec<u8> = (0..60_000_u32).map(|nth| (nth * nth % 251) as u8).collect();
    bytes[100..103].copy_from_slice(b"\0;\n");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), bytes).unwrap();
    for args in [&["import", "a.png"][..], &["init", "--from", "a.png", "-"]] {
        let (code, settings, notes) = outcome_of(&drip(folder.path(), args));
        assert_eq!((code, &*settings), (Some(1), ""), "{notes:?}");
        assert!(notes.len() <= 13, "{} lines", notes.len());
        let counted = notes.iter().any(|note| note.ends_with("notes to check"));
        assert!(counted, "{notes:?}");
    }
}

#[test]
fn lost_limits_come_first_and_are_summed_up() {
    let conf = "events {}\nhttp {\nlimit_req_zone $binary_remote_addr zone=ip:1m rate=5r/s;\nlimit_req_zone $jwt_claim_sub zone=user:1m rate=5r/s;\n\
                server { listen 80; location / { proxy_pass http://127.0.0.1:9000; limit_req zone=ip; add_header X y; }\n\
                location /api/ { proxy_pass http://127.0.0.1:9000; limit_req zone=user; }\n\
                location /both/ { proxy_pass http://127.0.0.1:9000; limit_req zone=ip; limit_conn gone 5; } } }\n";
    let (settings, notes) = imported(conf);
    let expected = [
        "nginx.conf:4: zone user is left out, and so are its limits",
        "nginx.conf:6: zone user is not translated, so this limit is left out",
        "nginx.conf:7: there is no limit_conn_zone gone",
        "nginx.conf:5: ",
    ];
    for (note, expected) in notes.iter().zip(expected) {
        assert!(note.starts_with(expected), "{notes:#?}");
    }
    let last = notes.last().unwrap();
    let end = " notes to check: 2 limits are lost, /api/ is unlimited";
    assert!(last.ends_with(end), "{notes:#?}");
    assert_contains!(settings, "path = \"/api/\"\n");
}

#[test]
fn an_unlimited_location_is_named_with_its_host_if_there_are_several_servers() {
    let location = |path: &str| {
        format!("location {path} {{ proxy_pass http://127.0.0.1:9000; limit_req zone=user; }}\n")
    };
    let conf = format!(
        "events {{}}\nhttp {{\nlimit_req_zone $jwt_claim_sub zone=user:1m rate=5r/s;\n\
         server {{ listen 80; server_name a.test b.test; {} {} }}\nserver {{ listen 80; server_name c.test; {} }}\n\
         server {{ listen 80 default_server; {} }} }}\n",
        location("/"),
        location("= /api"),
        location("/"),
        location("/"),
    );
    let (_, notes) = imported(&conf);
    let last = notes.last().unwrap();
    let says = ": 4 limits are lost, a.test/, a.test = /api, c.test/, / are unlimited";
    assert!(last.ends_with(says), "{notes:#?}");
}
