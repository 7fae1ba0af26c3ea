//! `drip import`, run as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the program in a folder.
fn drip(folder: &Path, args: &[&str]) -> Output {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.current_dir(folder).args(args).output().unwrap()
}

/// What comes out of a file of the corpus, and what is said of it.
fn corpus(name: &str) -> (Option<i32>, String, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/nginx");
    told(&drip(&folder, &["import", name]))
}

fn told(output: &Output) -> (Option<i32>, String, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let notes = text(&output.stderr).lines().map(str::to_owned).collect();
    (output.status.code(), text(&output.stdout), notes)
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

const TIDY: &str = r#"[server]
listen = ["127.0.0.1:8081"]
max_body_size = "1MB"

[origins.app]
servers = ["http://10.0.0.1:9000", "http://10.0.0.2:9000"]
max_fails = 2
fail_timeout = "5s"
keep_alive = 32

[origins.app-2]
servers = ["http://10.0.0.1:9000", "http://10.0.0.2:9000"]
response_timeout = "90s"
max_fails = 2
fail_timeout = "5s"
keep_alive = 32

[zones.per_client]
key = "$remote_addr"
rate = "10r/s"
max_keys = 80000
ipv6_prefix = 128

[zones.per_key]
key = "$http_x_api_key"
rate = "30r/m"
max_keys = 8000
ipv6_prefix = 128

# tidy.conf:18: the server for all hosts that have none of their own (example.com)
[[routes]]
path = "/"
origin = "app"
limits = [{ zone = "per_client", burst = 20 }]
reject_status = 429

[[routes]]
path = "/api/"
origin = "app-2"
limits = [{ zone = "per_client", burst = 20, delay = 8 }, { zone = "per_key", burst = 5, nodelay = true }]
reject_status = 503
"#;

#[test]
fn a_tidy_file_comes_out_whole() {
    let (code, settings, notes) = corpus("tidy.conf");
    assert_eq!(
        (code, &*settings, notes.len()),
        (Some(0), TIDY, 0),
        "{notes:?}"
    );
}

#[test]
fn windows_line_ends_are_blanks() {
    let (code, settings, notes) = corpus("windows.conf");
    assert_eq!((code, notes.len()), (Some(0), 0), "{notes:?}");
    let limits = "limits = [{ zone = \"z\", burst = 3 }]\nreject_status = 503\n";
    assert!(settings.ends_with(limits), "{settings}");
    assert!(settings.contains("listen = [\"0.0.0.0:80\"]"), "{settings}");
}

#[test]
fn what_is_not_translated_is_told_by_its_line() {
    let (code, settings, notes) = corpus("maps.conf");
    assert_eq!(code, Some(0));
    let lines = [
        "2: geo ",
        "3: map ",
        "4: zone mapped ",
        "5: zone site ",
        "10: ",
        "11: ",
        "12: there is no limit_req_zone nowhere",
        "13: limit_conn perserver became max_in_flight",
        "14: limit_conn perip",
    ];
    for (note, line) in notes.iter().zip(lines) {
        assert!(note.starts_with(&format!("maps.conf:{line}")), "{note}");
    }
    assert_eq!(notes.last().unwrap(), "9 things need a look");
    assert!(settings.contains("max_in_flight = 100\n"), "{settings}");
    assert!(settings.contains(
        "\n# maps.conf:12: there is no limit_req_zone nowhere; this limit is left out\n"
    ));
}

#[test]
fn hosts_have_their_own_routes_and_no_other_servers() {
    let (_, settings, _) = corpus("vhosts.conf");
    for host in ["a.example", "b.example", "e.example"] {
        for path in ["/", "= /health", "/shared/"] {
            let route = format!(
                "path = \"{path}\"\nhost = \"{host}\"\norigin = \"127-0-0-1-9002\"\nlimits = [{{ zone = \"z\", burst = 1, nodelay = true }}]"
            );
            assert!(settings.contains(&route), "{route}\n{settings}");
        }
    }
    assert_eq!(settings.matches("[[routes]]").count(), 2 + 3 * 3);
}

#[test]
fn includes_are_read_in_their_place_and_named_in_notes() {
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
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0));
    assert!(
        settings.contains("limits = [{ zone = \"z\", burst = 0 }]"),
        "{settings}"
    );
    assert!(
        notes[0].starts_with("nginx.conf:3: gone.conf is not included"),
        "{notes:?}"
    );
    assert_eq!(
        notes[1],
        "conf.d/20-site.conf:3: gzip is not translated: drip does not compress"
    );
    assert_eq!(notes.len(), 3);
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

#[test]
fn whatever_comes_out_passes_the_check() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/nginx");
    let mut passed = 0;
    for file in fs::read_dir(&corpus).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let output = drip(&corpus, &["import", &name]);
        if output.status.success() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("gateway.toml"), &output.stdout).unwrap();
            let check = drip(folder.path(), &["check"]);
            assert!(check.status.success(), "{name}: {check:?}");
            passed += 1;
        } else {
            assert!(output.stdout.is_empty(), "{name}");
        }
    }
    assert!(passed >= 12, "only {passed} files came to something");
}

/// The README shows a file, what it becomes, and what is said of it.
#[test]
fn the_readme_shows_what_happens() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```nginx\n").expect("a file of nginx");
    let (conf, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```toml\n").unwrap();
    let (toml, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```\n").unwrap();
    let (said, _) = rest.split_once("```").unwrap();
    let folder = written(&[("nginx.conf", conf)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!((code, &*settings), (Some(0), toml));
    assert_eq!(notes.join("\n") + "\n", said);
}
