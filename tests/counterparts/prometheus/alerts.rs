//! Tests of the alert rules with promtool: valid, and firing exactly when they should.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::prometheus::provided;
use crate::prometheus::server::missing;

/// Runs promtool with these arguments and this input. Fails if it reports a problem.
pub fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = command
        .spawn()
        .unwrap_or_else(|error| missing("promtool", &error));
    let mut to = promtool.stdin.take().expect("its input");
    to.write_all(input.as_bytes()).expect("promtool reads");
    drop(to);
    let output = promtool.wait_with_output().expect("promtool ends");
    let received = [output.stdout, output.stderr].concat();
    let received = String::from_utf8_lossy(&received);
    assert!(output.status.success(), "{arguments:?}:\n{received}");
    assert!(input.is_empty() || received.is_empty(), "{received}");
}

/// Returns the path of a provided file.
fn path(file: &str) -> String {
    provided(file).display().to_string()
}

#[test]
fn promtool_takes_the_scrape_configuration_and_the_rules() {
    promtool(&["check", "config", &path("prometheus.yml")], "");
    promtool(&["check", "rules", &path("alerts.yml")], "");
}

#[test]
fn each_alert_fires_in_its_condition_and_not_before() {
    promtool(&["test", "rules", &path("alerts_test.yml")], "");
    let (rules, tests) = (
        crate::prometheus::read("alerts.yml"),
        crate::prometheus::read("alerts_test.yml"),
    );
    // Some alerts exist twice, as a warning and as critical.
    let mut tested = 0;
    for rule in rules.split("- alert: ").skip(1) {
        let alert = rule.lines().next().expect("a name");
        let mut lines = rule.lines().map(str::trim);
        let severity = lines.find_map(|line| line.strip_prefix("severity: "));
        let severity = format!("severity=\"{}\"", severity.expect("a severity"));
        let name = format!("alertname=\"{alert}\"");
        let fires = |line: &str| line.contains(&name) && line.contains(&severity);
        let is_tested = tests.lines().any(fires);
        assert!(is_tested, "{alert}, {severity} is not tested");
        tested += 1;
    }
    assert!(tested > 5, "only {tested}");
}
