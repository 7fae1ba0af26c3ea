//! A Prometheus with the provided configuration.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::running::Running;
use crate::prometheus::read;
use crate::support::{Gateway, fetch, free_address, now};

/// Time until an alert of the adapted rules fires once its condition holds.
pub const FOR: &str = "2s";

/// A real Prometheus with the provided configuration and rules, adapted for tests.
///
/// It scrapes one gateway each second, and an alert's condition must hold only for a short time.
pub struct Prometheus {
    pub address: SocketAddr,
    folder: TempDir,
    _process: Running,
}

/// Fails a test for which a program is missing.
pub fn missing(program: &str, error: &io::Error) -> ! {
    panic!("{program}: {error}: tests/run.sh installs what the tests need")
}

impl Prometheus {
    pub fn start(gateway: &Gateway) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut config = read("prometheus.yml");
        for (provided, adapted) in [
            ("scrape_interval: 5s", "scrape_interval: 1s"),
            ("evaluation_interval: 5s", "evaluation_interval: 1s"),
            ("gateway:9090", &gateway.site.admin.to_string()),
        ] {
            assert_eq!(config.matches(provided).count(), 1, "{provided}");
            config = config.replace(provided, adapted);
        }
        let rules: Vec<_> = read("alerts.yml").lines().map(hasten).collect();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text);
        write("prometheus.yml", &config).expect("a file");
        write("alerts.yml", &rules.join("\n")).expect("a file");

        let address = free_address();
        let log = File::create(folder.path().join("log")).expect("a file");
        let mut command = Command::new("prometheus");
        command
            .arg(format!(
                "--config.file={}",
                folder.path().join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = Running::start(&mut command);
        let mut prometheus = Self {
            address,
            folder,
            _process: process,
        };
        prometheus.wait(
            "Prometheus is ready and has asked the gateway",
            |prometheus| {
                TcpStream::connect(address).is_ok()
                    && fetch(address, "/-/ready").status == 200
                    && prometheus.value("up") == Some(1.0)
            },
        );
        prometheus
    }

    /// Waits for a condition, longer than anything here may take.
    pub fn wait(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        const PATIENCE: Duration = Duration::from_secs(60);
        let deadline = now() + PATIENCE;
        while !is_so(self) {
            let is_late = now() >= deadline;
            assert!(!is_late, "waited {PATIENCE:?} in vain for this: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the `data` of a response of the HTTP API, or its error.
    fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let pairs = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", escape(value)));
        let answer = fetch(
            self.address,
            &format!("/api/v1/{path}?{}", pairs.collect::<Vec<_>>().join("&")),
        );
        let mut answer: Value =
            serde_json::from_str(&answer.text()).map_err(|error| error.to_string())?;
        if answer["status"] == "success" {
            Ok(answer["data"].take())
        } else {
            Err(answer.to_string())
        }
    }

    /// Returns the current series of `expression`.
    pub fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        series(&self.api("query", &[("query", expression)])?)
    }

    /// Returns the series of `expression` over the last seconds.
    pub fn query_range(&self, expression: &str, seconds: f64) -> Result<Vec<Value>, String> {
        let end = self.now();
        let (start, end) = ((end - seconds).to_string(), end.to_string());
        let parameters = [
            ("query", expression),
            ("start", &start),
            ("end", &end),
            ("step", "1"),
        ];
        series(&self.api("query_range", &parameters)?)
    }

    /// Returns the only current value of `expression`.
    pub fn value(&self, expression: &str) -> Option<f64> {
        let series = self.query(expression).ok()?;
        series.first()?["value"][1].as_str()?.parse().ok()
    }

    fn now(&self) -> f64 {
        self.value("time()").expect("the time")
    }

    /// Returns all alerting rules, with their state.
    pub fn rules(&self) -> Vec<Value> {
        let rules = self.api("rules", &[("type", "alert")]).expect("the rules");
        let groups = rules["groups"].as_array().expect("groups");
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().expect("rules").clone())
            .collect()
    }

    /// Returns the state of an alert: `inactive`, `pending` or `firing`.
    pub fn state(&self, alert: &str) -> String {
        let rules = self.rules();
        let rule = rules.iter().find(|rule| rule["name"] == alert);
        rule.unwrap_or_else(|| panic!("no {alert}"))["state"]
            .as_str()
            .expect("a state")
            .to_owned()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("log"));
            eprintln!("the log of Prometheus:\n{}", log.unwrap_or_default());
        }
    }
}

/// Shortens a rule's `for`, and the time for which a server must be healthy again.
fn hasten(line: &str) -> String {
    match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: {FOR}"),
        _ => line.replace("drip_origin_healthy[30s]", "drip_origin_healthy[3s]"),
    }
}

fn series(data: &Value) -> Result<Vec<Value>, String> {
    if data["resultType"] == "scalar" {
        // As a series without labels.
        return Ok(vec![
            serde_json::json!({"metric": {}, "value": data["result"]}),
        ]);
    }
    data["result"]
        .as_array()
        .cloned()
        .ok_or_else(|| data.to_string())
}

fn escape(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
