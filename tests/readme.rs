//! The README names tests; this keeps its word.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

#[test]
fn each_test_that_the_readme_names_is_where_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let mut named = 0;
    for row in readme.lines().filter(|line| line.contains("](tests/")) {
        let (_, rest) = row.split_once("](").expect("a link");
        let (file, rest) = rest.split_once(')').expect("the end of the link");
        let test = rest.split('`').nth(1).expect("a test");
        let code =
            fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(
            code.contains(&format!("fn {test}()")),
            "{file} has no {test}"
        );
        named += 1;
    }
    assert!(named > 10, "only {named} rows name a test");
}

#[test]
fn each_metric_in_the_code_is_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a file");
    let (code, readme) = (read("src/metrics/mod.rs"), read("README.md"));
    let names = code
        .lines()
        .map(|line| line.trim_start_matches("pub "))
        .filter(|line| line.starts_with("const "))
        .filter_map(|line| line.split('"').nth(1));
    let mut told = 0;
    for name in names.filter(|name| name.starts_with("drip_")) {
        let short = name.rsplit_once("last_reload").map_or(name, |(_, end)| end);
        assert!(
            readme.contains(name) || readme.contains(&format!("…{short}`")),
            "{name}"
        );
        told += 1;
    }
    assert!(told > 10, "only {told} metrics");
}

/// The commands of the section run as they stand, on files of the names that they have.
#[test]
fn each_command_that_tells_beforehand_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let (_, section) = readme
        .split_once("\n## Know before you turn the knob\n")
        .expect("the section");
    let (section, _) = section.split_once("\n## ").expect("its end");
    let folder = tempfile::tempdir().expect("a folder");
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n\
                [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 1 }]\n";
    let log = |time: &str| {
        format!("192.0.2.1 - - [{time} +0000] \"GET /?user=a HTTP/1.1\" 200 6 \"-\" \"curl\"\n")
    };
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let oldest = log("01/Nov/2026:09:10:00");
    packer.write_all(oldest.as_bytes()).expect("memory");
    let nginx = "limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;\n\
                 server { location / { limit_req zone=z; proxy_pass http://127.0.0.1:9000; } }\n";
    let files = [
        ("gateway.toml", file.into()),
        ("other.toml", file.replace("1r/s", "2r/s").into_bytes()),
        ("trace.csv", b"0,a\n0,a\n".to_vec()),
        ("nginx.conf", nginx.into()),
        ("access.log", log("02/Nov/2026:03:10:00").repeat(9).into()),
        ("access.log.1", log("01/Nov/2026:09:20:00").into()),
        (
            "access.json",
            b"{\"time\":\"2026-11-01T09:10:00Z\",\"zone\":\"per_client\",\"key\":\"a\"}\n".to_vec(),
        ),
        ("access.log.2.gz", packer.finish().expect("memory")),
    ];
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_drip"));
    let path = program.parent().expect("a folder").display();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let mut ran = 0;
    for row in section.lines().filter(|line| line.starts_with("| `drip ")) {
        let command = row.split('`').nth(1).expect("a command");
        // The good hours of the log are in the rotated ones.
        let command = if command.contains("--good") {
            format!("{command} access.log.1")
        } else {
            command.to_owned()
        };
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &command]).current_dir(folder.path());
        let output = shell.env("PATH", &path).output().expect("a shell");
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(!output.stdout.is_empty(), "{command}");
        ran += 1;
    }
    assert!(ran >= 9, "only {ran} commands");
    for drawn in ["advice.svg", "flow.svg"] {
        assert!(folder.path().join(drawn).exists(), "{drawn}");
    }
}
