//! Tests that each command of the README and of docs/ runs.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::sandbox::Sandbox;
use crate::programs::redis::Redis;
use crate::support::page::{blocks, commands_in_text, commands_with, is_command, root};
use crate::support::secure::write_pair;
use crate::support::{Origin, eventually, fetch};

/// Part that identifies each block of commands, and the test that runs it.
const BLOCKS: &str = "cargo run -- demo => the_demo_runs
python3 -m http.server => a_backend_and_the_gateway_are_started_and_curl_is_answered
| xargs -P5 => a_backend_and_the_gateway_are_started_and_curl_is_answered
-c two.toml => two_gateways_share_one_limit
keys/192.0.2.1 => a_key_is_forgotten
per_client/override => the_admin_port_is_asked
origins/shop/override => the_admin_port_is_asked
drip find shop => the_admin_port_is_asked
/api/maintenance => the_admin_port_is_asked
rooms/shop/override => the_admin_port_is_asked
per_client/what-if => the_admin_port_is_asked
api/reload => the_admin_port_is_asked
api/headline => the_admin_port_is_asked
api/config => the_admin_port_is_asked
9090/metrics => the_admin_port_is_asked
docker build => the_image_is_built_and_run_as_the_page_says
packaging/build deb => the_package_is_built_where_it_is_installed_from
cargo install => an_installation_is_of_this_folder";

/// Commands that no test here can run, each with a file and a text that prove it right.
///
/// They run the tests themselves, build or measure for minutes, or need an origin and an objective.
const NOT_RUN: &str = r#"
tests/run.sh => tests/run.sh => cargo test --locked --no-fail-fast --test counterparts
cargo test => .ci/run => step cargo test --locked --workspace\n
cargo install --path . --features otlp => tests/run.sh => cargo test --locked --features otlp
DRIP_SOAK_SECONDS=3600 cargo test --release --test plain soak => tests/load/soak/mod.rs => number("DRIP_SOAK_SECONDS").unwrap_or(
ORACLE_CASES=1000000 cargo test --test plain oracle => tests/oracle/mod.rs => variable("ORACLE_CASES").unwrap_or(
drip find => tests/load/find/mod.rs => .args(["find", "app", "--slo"
cargo bench --bench compare -- --only => benches/compare/arguments.rs => pub enum Row {
cargo bench --bench store => Cargo.toml => [[bench]]\nname = "store"
DRIP_SEEDS=5000 cargo test --lib simulation => tests/testing/search.rs => variable("DRIP_SEEDS").unwrap_or(default)
DRIP_SEEDS=350 cargo test --release --lib the_end_of => tests/testing/search.rs => variable("DRIP_SEEDS").unwrap_or(default)
packaging/release vVERSION => tests/counterparts/package/release.rs => fn a_tag_makes_packages_with_checksums
packaging/build tar => tests/counterparts/package/life.rs => build("1.0.0", "tar")
cargo build --profile dist => packaging/build => cargo build --manifest-path "$root/Cargo.toml" --profile dist"#;

/// Returns the lines of a table, and the columns of each.
fn table<const COLUMNS: usize>(text: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    let lines = text.trim().lines();
    lines.map(|line| {
        let columns: Vec<_> = line.split(" => ").collect();
        columns.try_into().expect("as many columns")
    })
}

#[test]
fn no_block_of_commands_is_without_a_test() {
    let here = fs::read_to_string(root().join("tests/counterparts/documents/commands.rs"))
        .expect("this file");
    let blocks = blocks();
    for block in &blocks {
        let commands = block.text.lines().map(|line| line.trim_start_matches("$ "));
        match &*block.kind {
            "sh" | "console" => {
                let tests = table(BLOCKS).filter(|[part, _]| block.text.contains(part));
                let [[_, test]] = tests.collect::<Vec<_>>()[..] else {
                    panic!("not one test runs {}", block.text)
                };
                assert!(here.contains(&format!("#[test]\nfn {test}()")), "{test}");
            }
            "text" | "toml" | "nginx" | "yaml" => {
                // Drawn output is indented.
                for line in commands.filter(|line| !line.starts_with(' ')) {
                    assert!(!is_command(line), "{line}: its block is sh or console");
                }
            }
            other => panic!("```{other}: sh, console, text, toml, nginx and yaml are known"),
        }
    }
    for [part, _] in table(BLOCKS) {
        commands_with(part);
    }
    for [command, file, proof] in table(NOT_RUN) {
        let text = fs::read_to_string(root().join(file)).expect("a file");
        let proof = proof.replace(r"\n", "\n");
        assert!(text.contains(&proof), "{command}: {file} has no {proof}");
    }
}

fn not_run(command: &str) -> bool {
    table(NOT_RUN).any(|[known, _, _]| known == command)
}

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Returns whether the gateway is ready. Its admin port listens before it has its zones.
fn is_ready(admin: u16) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], admin));
    listens(admin) && fetch(address, "/readyz").status == 200
}

#[test]
fn the_demo_runs() {
    let sandbox = Sandbox::new();
    sandbox.set_admin();
    let commands = commands_with("-- demo");
    let commands: Vec<&str> = commands
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|command| !not_run(command))
        .collect();
    let [demo] = commands[..] else {
        panic!("{commands:?}")
    };
    let _running = sandbox.start(demo, "printed");
    eventually("the demo has drawn a second", || {
        let printed = sandbox.read("printed");
        printed.contains("rate = \"10r/s\"") && printed.contains("   1s ")
    });
}

#[test]
fn a_backend_and_the_gateway_are_started_and_curl_is_answered() {
    let sandbox = Sandbox::new();
    sandbox.set_admin();
    let _running = sandbox.start(&commands_with("python3"), "printed");
    eventually("both listen", || {
        listens(sandbox.port(9000)) && listens(sandbox.port(8080))
    });
    let session = commands_with("| xargs");
    let (command, shown) = session.split_once('\n').expect("what it prints");
    let output = sandbox.run(command.strip_prefix("$ ").expect("a command"));
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(printed.lines().count(), shown.lines().count());
    for line in printed.lines().chain(shown.lines()) {
        assert!(line.starts_with("200 after "), "{printed}");
    }
}

#[test]
fn two_gateways_share_one_limit() {
    let redis = Redis::start();
    let sandbox = Sandbox::new();
    let origin = Origin::at(&format!("127.0.0.1:{}", sandbox.port(9000)), |exchange| {
        exchange.reply(b"ok")
    });
    // A long timeout for Redis on a busy machine.
    let redis = format!("\n[redis]\nurl = \"{}\"\ntimeout = \"2s\"\n", redis.url());
    sandbox.write("gateway.toml", &(sandbox.read("gateway.toml") + &redis));
    // Waits for both admin ports. A second may be too short to start.
    let commands = commands_with("-c two.toml");
    let sleep = "#!/bin/sh\nfor port in 9090 9091; do\n\
                 until curl -sfo /dev/null http://127.0.0.1:$port/readyz; do command -p sleep 0.02; done\ndone\n";
    sandbox.program("sleep", &sandbox.moved(sleep));
    let _running = sandbox.start(&commands, "printed");
    eventually("all have an answer", || {
        sandbox.read("printed").lines().count() == 8
    });
    let printed = sandbox.read("printed");
    for port in [8080, 8081] {
        let begin = format!("{}: 200 after ", sandbox.port(port));
        let answered = printed.lines().filter(|line| line.starts_with(&begin));
        assert_eq!(answered.count(), 4, "{printed}");
    }
    // With separate buckets, the last one would leave after 0.3 s.
    let moments = origin.moments("/");
    let (first, last) = (moments.iter().min(), moments.iter().max());
    let span = *last.expect("a request") - *first.expect("a request");
    assert!(span.as_millis() > 500, "{span:?}");
}

#[test]
fn a_key_is_forgotten() {
    let sandbox = Sandbox::new();
    sandbox.set_admin();
    let _origin = Origin::at(&format!("127.0.0.1:{}", sandbox.port(9000)), |exchange| {
        exchange.reply(b"ok")
    });
    let settings = sandbox.read("gateway.toml");
    let trusted = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    sandbox.write("gateway.toml", &settings.replacen("[server]\n", trusted, 1));
    let _running = sandbox.start("drip", "printed");
    eventually("it listens", || listens(sandbox.port(8080)));
    let asked = sandbox.run("curl -sf -H 'X-Forwarded-For: 192.0.2.1' http://127.0.0.1:8080/");
    assert!(asked.status.success(), "{asked:?}");
    let session = commands_with("keys/192.0.2.1");
    let (command, shown) = session.split_once('\n').expect("what it prints");
    let output = sandbox.run(command.strip_prefix("$ ").expect("a command"));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(printed.trim(), shown.trim());
}

/// Expected texts in the responses to the lines of a session: one for all, or one per line.
///
/// At first no requests arrive, so `drip find` ends at once. No override may be in force.
const SESSIONS: &str = r#"
drip find shop => nobody asked for enough
per_client/what-if => "rate":"20r/s"
api/reload => "loaded_at":
api/headline => "cause":
api/config => "changes":
9090/metrics => drip_connections
per_client/override => "pause":true
origins/shop/override => "until":
/api/maintenance => "until":
rooms/shop/override => "until": "until": "word": "called":0 "sent_away":0"#;

#[test]
fn the_admin_port_is_asked() {
    let sandbox = Sandbox::new();
    sandbox.set_admin();
    let settings = sandbox.read("gateway.toml");
    let shop = "[origins.shop]\nservers = [\"http://127.0.0.1:9000\"]\nrate = \"100r/s\"\n\
                room = { sessions = 5, secret = \"0123456789abcdef\" }\n\
                [[routes]]\npath = \"/shop/\"\norigin = \"shop\"\n";
    sandbox.write("gateway.toml", &format!("{settings}\n{shop}"));
    let _running = sandbox.start("drip", "printed");
    let admin = sandbox.port(9090);
    eventually("it is ready", || is_ready(admin));
    for [part, expected] in table(SESSIONS) {
        let session = commands_with(part);
        let commands = session.lines().filter_map(|line| line.strip_prefix("$ "));
        for (nth, command) in commands.enumerate() {
            let command = command.replace("curl", "curl -sf").replace(
                "drip find shop",
                &format!("drip find shop --wait 1s --admin 127.0.0.1:{admin}"),
            );
            let output = sandbox.run(&command);
            let received = String::from_utf8(output.stdout).expect("text");
            let is_each = expected.starts_with('"');
            let texts: Vec<_> = expected.split(if is_each { ' ' } else { '\n' }).collect();
            let expected = texts.get(nth).unwrap_or(&texts[0]);
            assert!(received.contains(expected), "{command}: {received}");
        }
        // The page's output has the fields of the response.
        if part == "per_client/what-if" {
            for field in ["zone", "since", "span_seconds", "arrivals", "now", "then"] {
                assert!(session.contains(&format!("\"{field}\"")), "{field}");
            }
        }
    }
}

/// A program that only prints its arguments.
const ECHO: &str = "#!/bin/sh\necho \"$@\"\n";

/// Returns the output of a block whose programs are replaced by [`ECHO`].
fn said(sandbox: &Sandbox, part: &str) -> Vec<String> {
    let output = sandbox.run(&commands_with(part));
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    said.lines().map(ToOwned::to_owned).collect()
}

/// The image is built and run as the page says.
///
/// No container engine runs here. `tests/package/image.rs` runs the content of the image.
#[test]
fn the_image_is_built_and_run_as_the_page_says() {
    let sandbox = Sandbox::new();
    sandbox.program("docker", ECHO);
    let said = said(&sandbox, "docker build");
    let [build, run] = &said[..] else {
        panic!("{said:?}")
    };
    let file = "packaging/Containerfile";
    assert_eq!(build, &format!("build -f {file} -t drip ."));
    let file = fs::read_to_string(root().join(file)).expect("a file");
    let folder = file
        .lines()
        .find_map(|line| line.strip_prefix("WORKDIR /etc"));
    let mounted = format!("/drip:/etc{}:ro drip", folder.expect("its folder"));
    assert!(run.starts_with("run ") && run.ends_with(&mounted), "{run}");
}

#[test]
fn the_package_is_built_where_it_is_installed_from() {
    let sandbox = Sandbox::new();
    sandbox.program("sudo", ECHO);
    fs::create_dir(sandbox.path().join("packaging")).expect("a folder");
    // The program is built already, and the folder is the sandbox's own.
    let script = format!(
        "#!/bin/sh\nexec {}/packaging/build --binary {} --out target/packages \"$@\" >&2\n",
        root().display(),
        env!("CARGO_BIN_EXE_drip"),
    );
    sandbox.program("build", &script);
    symlink("../bin/build", sandbox.path().join("packaging/build")).expect("a link");
    let said = said(&sandbox, "packaging/build deb");
    let [install] = &said[..] else {
        panic!("{said:?}")
    };
    let package = install.strip_prefix("apt-get install ./").expect("a file");
    assert!(sandbox.path().join(package).is_file(), "{install}");
}

#[test]
fn an_installation_is_of_this_folder() {
    let sandbox = Sandbox::new();
    sandbox.program("cargo", ECHO);
    let commands = said(&sandbox, "cargo install");
    assert_eq!(commands, ["install --locked --path ."]);
    assert!(root().join("Cargo.lock").is_file());
}

/// Blocks that are a part of a file are completed with an origin, a zone and a route.
#[test]
fn each_part_of_a_file_passes_the_check() {
    let parts = [
        ("[origins.app]", "servers = [\"http://127.0.0.1:9000\"]"),
        (
            "[zones.per_client]",
            "key = \"$remote_addr\"\nrate = \"10r/s\"",
        ),
        ("[[routes]]", "path = \"/\"\norigin = \"app\""),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    fs::write(folder.path().join("gold.txt"), "carol\n").expect("a file of keys");
    fs::write(folder.path().join("proxies.txt"), "10.0.0.0/8\n").expect("a file of networks");
    let secret =
        r#"{"keys": [{"kty": "oct", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}"#;
    fs::write(folder.path().join("keys.json"), secret).expect("a key set");
    for name in ["internal-ca", "drip"] {
        write_pair(folder.path(), name, &["app.internal"]);
    }
    let mut checked = 0;
    let files = blocks().into_iter().filter(|block| block.kind == "toml");
    // The certificates of an example are nowhere.
    for block in files.filter(|block| !block.text.contains("[server.tls]")) {
        let missing = parts
            .iter()
            .filter(|(title, _)| !block.text.contains(title));
        let missing = missing.map(|(title, fields)| format!("{title}\n{fields}\n"));
        let text = missing.collect::<String>() + &block.text;
        fs::write(&file, &text).expect("a file");
        let mut check = Command::new(env!("CARGO_BIN_EXE_drip"));
        check.env("ROOM_SECRET", "a secret of the tests");
        let output = check.arg("check").arg("-c").arg(&file).output();
        let output = output.expect("the program");
        assert!(output.status.success(), "{text}\n{output:?}");
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} parts");
}

/// Files with the names used by the commands in the text.
fn fill(folder: &Path) {
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.per_client]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n\
                [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"per_client\", burst = 1 }]\n";
    let log = |time: &str| {
        format!(
            "192.0.2.1 - - [{time} +0000] \"GET /?user=a HTTP/1.1\" 200 6 \"-\" \"curl\" zone=\"per_client\" key=\"192.0.2.1\"\n"
        )
    };
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let oldest = log("01/Nov/2026:09:10:00");
    packer.write_all(oldest.as_bytes()).expect("memory");
    let nginx = "limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;\n\
                 server { location / { limit_req zone=z; proxy_pass http://127.0.0.1:9000; } }\n";
    let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: b}\n\
                   spec: {defaultBackend: {service: {name: app, port: {number: 80}}}}\n";
    // The good hours are in the rotated logs, but not all commands name these.
    let now = log("01/Nov/2026:09:30:00") + &log("02/Nov/2026:03:10:00").repeat(9);
    let shop = "[origins.shop]\nservers = [\"http://127.0.0.1:9000\"]\n\
                [origins.shop.room]\nsessions = 500\nidle = \"1m\"\nsecret = \"0123456789abcdef\"\n\
                [[routes]]\npath = \"/\"\norigin = \"shop\"\n";
    let files = [
        ("gateway.toml", file.into()),
        ("shop.toml", shop.into()),
        ("other.toml", file.replace("1r/s", "2r/s").into_bytes()),
        ("trace.csv", b"0,a\n0,a\n".to_vec()),
        ("nginx.conf", nginx.into()),
        ("ingress.yaml", ingress.into()),
        ("access.log", now.into()),
        ("access.log.1", log("01/Nov/2026:09:20:00").into()),
        ("access.log.2.gz", packer.finish().expect("memory")),
    ];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("a file");
    }
}

#[test]
fn each_command_in_the_text_runs() {
    let live = Sandbox::new();
    live.set_admin();
    let _running = live.start("drip", "printed");
    let admin = SocketAddr::from(([127, 0, 0, 1], live.port(9090)));
    eventually("it is ready", || {
        listens(live.port(9090)) && fetch(admin, "/healthz").status == 200
    });
    let sandbox = Sandbox::new();
    let mut ran = 0;
    for command in commands_in_text() {
        if not_run(&command) {
            continue;
        }
        fill(sandbox.path());
        // Placeholders are replaced; and the default port is another one here.
        let command = command.replace("TRACE", "trace.csv");
        let asking = ["drip top", "drip health"];
        let asking = asking.into_iter().find(|it| command.starts_with(it));
        let command = match asking {
            Some(asking) => {
                let rest = command[asking.len()..].replace("HOST:PORT", "");
                format!("{asking} {admin} {rest}")
            }
            None => command,
        };
        let output = sandbox.run(&command);
        assert!(output.status.success(), "{command}: {output:?}");
        let is_reported = !output.stdout.is_empty() || command.contains(" > ");
        assert!(is_reported, "{command}: {output:?}");
        ran += 1;
    }
    assert!(ran >= 15, "only {ran} commands");
    assert!(sandbox.path().join("flow.svg").exists(), "a plot");
}
