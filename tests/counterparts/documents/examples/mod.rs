//! Tests that each file of docs/examples does what its page says, with the page's commands.

mod edge;
mod limits;
mod page;
mod permits;

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::documents::examples::page::Page;
use crate::support::{Gateway, Origin, Site, drip};

/// Addresses in the files.
const ADDRESSES: [&str; 3] = ["127.0.0.1:8080", "0.0.0.0:8080", "0.0.0.0:443"];
const ADMIN: &str = "0.0.0.0:9090";
const ORIGIN: &str = "127.0.0.1:9000";

/// An example with its own addresses, and the gateway that runs on it.
struct Example {
    page: Page,
    gateway: Gateway,
}

impl Example {
    /// Starts the gateway on the file of the page `name`, in front of `origin`.
    ///
    /// `replaced`: texts that must be in the file, with their replacements.
    fn start(name: &str, origin: &Origin, replaced: &[(&str, &str)]) -> Self {
        Self::start_in(Site::new(), name, origin, replaced)
    }

    fn start_in(site: Site, name: &str, origin: &Origin, replaced: &[(&str, &str)]) -> Self {
        let page = Page::read(name);
        let mut text = page.file().to_owned();
        for (from, to) in replaced {
            assert!(text.contains(from), "{name} has no {from}");
            text = text.replace(from, to);
        }
        let gateway = run(site, &text, origin);
        Self { page, gateway }
    }

    /// Runs the commands of the page against this gateway, and compares the output.
    fn try_it(&self) -> Result<(), String> {
        let addresses = [
            ("127.0.0.1:8080", self.gateway.address()),
            ("127.0.0.1:443", self.gateway.address()),
            ("127.0.0.1:9090", self.gateway.site.admin),
        ];
        self.page.try_it(&addresses)
    }

    /// Runs the commands of the page, and fails unless their output is as the page says.
    fn works(&self) {
        if let Err(failure) = self.try_it() {
            panic!("{failure}");
        }
    }
}

/// Starts the gateway on the text of an example, moved to the addresses of `site`.
fn run(site: Site, text: &str, origin: &Origin) -> Gateway {
    let mut moved = text.replace(ORIGIN, &origin.address.to_string());
    let address = site.address.to_string();
    for known in ADDRESSES {
        moved = moved.replace(&format!("\"{known}\""), &format!("\"{address}\""));
    }
    assert!(moved.contains(&address), "no known address in {text}");
    let admin = format!("admin = \"{}\"", site.admin);
    moved = if moved.contains("\nadmin = ") {
        moved.replace(&format!("admin = \"{ADMIN}\""), &admin)
    } else {
        moved.replacen("[server]\n", &format!("[server]\n{admin}\n"), 1)
    };
    assert!(moved.contains(&admin), "no line for the admin port");
    fs::write(site.file(), moved).expect("a file");
    let mut command = drip();
    command.env("DRIP_ADMIN_TOKEN", "a token of the tests");
    command.arg("-c").arg(site.file());
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    gateway
}

/// Returns the status of a request by curl, with further arguments.
fn curl(to: SocketAddr, target: &str, arguments: &[&str]) -> u16 {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}"]);
    curl.args(arguments).arg(format!("http://{to}{target}"));
    let output = curl.env("NO_PROXY", "*").stdin(Stdio::null()).output();
    let status = String::from_utf8(output.expect("curl").stdout).expect("text");
    status.parse().unwrap_or_else(|_| panic!("{status:?}"))
}

/// Tries three times, each with a new gateway: on a busy machine a bucket may drain meanwhile.
fn best_of_three(mut start: impl FnMut() -> Example) {
    let mut failures = Vec::new();
    for _ in 0..3 {
        match start().try_it() {
            Ok(()) => return,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("{}", failures.join("\n"));
}

#[test]
fn each_example_passes_the_check_and_is_on_its_page() {
    let names = page::names();
    assert_eq!(names.len(), 17, "{names:?}");
    let index = fs::read_to_string(page::folder().join("README.md")).expect("a page");
    for name in names {
        for file in [format!("({name}.md)"), format!("({name}.toml)")] {
            assert!(index.contains(&file), "the index has no {file}");
        }
        let page = Page::read(&name);
        let file = fs::read_to_string(page::folder().join(format!("{name}.toml")));
        assert_eq!(page.file(), file.expect("a file"), "{name}");
        page.check_blocks_and_metrics();
        // certbot's certificate is not on this machine. The test of the example has one.
        if name == "tls-certbot" {
            continue;
        }
        let mut check = drip();
        let check = check.env("DRIP_ADMIN_TOKEN", "x").args(["check", "-c"]);
        let output = check.arg(page::folder().join(format!("{name}.toml")));
        let output = output.output().expect("the program");
        assert!(output.status.success(), "{name}: {output:?}");
    }
}

/// The text in each manifest is that of the file, and the page shows the manifest.
#[test]
fn the_manifest_has_the_file_in_it() {
    for name in ["kubernetes-sidecar", "ingress-nginx-cluster"] {
        check_manifest(name);
    }
}

fn check_manifest(name: &str) {
    let page = Page::read(name);
    let manifest = fs::read_to_string(page::folder().join(format!("{name}.yaml")));
    let manifest = manifest.expect("a file");
    assert_eq!(page.block("yaml"), manifest);
    let (_, rest) = manifest.split_once("gateway.toml: |\n").expect("a file");
    let (text, _) = rest.split_once("---\n").expect("an end");
    let lines = text
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert_eq!(text, page.file());
    for part in [
        "containerPort: 8080",
        "containerPort: 9090",
        "mountPath: /etc/drip",
    ] {
        assert!(manifest.contains(part), "{part}");
    }
}
