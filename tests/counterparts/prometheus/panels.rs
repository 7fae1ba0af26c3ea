//! Sends the queries of the dashboards to Prometheus.

use serde_json::Value;

use crate::prometheus::board::{Query, items};
use crate::prometheus::server::Prometheus;

/// Values of Grafana's variables, with a scrape each second.
const VARIABLES: [(&str, &str); 4] = [
    ("$__rate_interval", "6s"),
    ("$__interval", "1s"),
    ("$__range", "15s"),
    ("$instance", ".+"),
];

fn with_variables(expression: &str, zone: &str) -> String {
    let mut expression = expression.replace("$zone", zone);
    for (variable, value) in VARIABLES {
        expression = expression.replace(variable, value);
    }
    let is_known = !expression.contains('$');
    assert!(is_known, "an unknown variable in {expression}");
    expression
}

/// Returns the series of the last minute that a dashboard would get for the chosen `zone`.
pub fn ask(prometheus: &Prometheus, query: &Query, zone: &str) -> Result<Vec<Value>, String> {
    let expression = with_variables(&query.expression, zone);
    let answer = if query.instant {
        prometheus.query(&expression)
    } else {
        prometheus.query_range(&expression, 120.0)
    };
    answer.map_err(|error| format!("{}: {error}", query.source))
}

/// Returns the series that a dashboard would show now.
pub fn ask_now(prometheus: &Prometheus, query: &Query, zone: &str) -> Result<Vec<Value>, String> {
    let answer = prometheus.query(&with_variables(&query.expression, zone));
    answer.map_err(|error| format!("{}: {error}", query.source))
}

/// Returns the values of a series.
pub fn values(series: &Value) -> Vec<f64> {
    let samples = items(&series["values"]).chain(series.get("value"));
    samples
        .map(|sample| sample[1].as_str().expect("a value"))
        .map(|value| value.parse().expect("a number, or NaN"))
        .collect()
}

/// Returns whether a series contains a number.
pub fn has_number(series: &Value) -> bool {
    values(series).into_iter().any(f64::is_finite)
}
