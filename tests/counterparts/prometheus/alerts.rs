//! The rules as promtool checks them: whether they are valid, and when each fires and when not.

use std::process::{Command, Stdio};

use crate::prometheus::provided;
use crate::prometheus::server::missing;

fn promtool(arguments: &[&str], file: &str) {
    let mut command = Command::new("promtool");
    command
        .args(arguments)
        .arg(provided(file))
        .stdin(Stdio::null());
    let output = command
        .output()
        .unwrap_or_else(|error| missing("promtool", &error));
    assert!(
        output.status.success(),
        "{file}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn promtool_takes_the_scrape_configuration() {
    promtool(&["check", "config"], "prometheus.yml");
}

#[test]
fn promtool_takes_the_rules() {
    promtool(&["check", "rules"], "alerts.yml");
}

#[test]
fn each_alert_fires_in_its_condition_and_not_before() {
    promtool(&["test", "rules"], "alerts_test.yml");
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
        assert!(
            tests.lines().any(fires),
            "{alert}, {severity} is not tested"
        );
        tested += 1;
    }
    assert!(tested > 5, "only {tested}");
}
