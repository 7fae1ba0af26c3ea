//! The arguments of `drip find`, and the request that they make.
//!
//! A *level* is a rate or a number of concurrent requests. In a *step*, the experiment tries one
//! level: `step` is the difference between the levels of two steps, and `min_step` the minimum
//! duration of a step whose level meets the objective.

use clap::Args;
use config::AdminAddress;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;

/// The arguments of `drip find`. Serialized, they are the request that starts the experiment.
#[derive(Debug, Args, Serialize)]
pub struct FindArguments {
    /// The origin to measure; it needs a gate, and requests that wait there
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// The objective of its responses, such as "p95<400ms, errors<0.5%": percentiles of the time to
    /// the response head ("p95 whole": to the last byte), and shares of errors, 4xx and 5xx
    #[arg(long, value_name = "OBJECTIVE")]
    slo: String,
    /// The first and lowest level: a rate such as 50r/s, or a number of concurrent requests such as
    /// 4
    #[arg(long, value_name = "LEVEL")]
    from: String,
    /// The highest level
    #[arg(long, value_name = "LEVEL")]
    to: String,
    /// The difference between two steps: 1% to 50%
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    step: String,
    /// The minimum duration of a good step: 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "20s")]
    min_step: String,
    /// The duration for which the found level must hold: 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s")]
    confirm: String,
    /// The duration without waiting requests after which the search ends: 1s to 10m [default: 1m]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<String>,
    /// Print the result as JSON, with all steps
    #[arg(long)]
    #[serde(skip)]
    pub(super) json: bool,
    /// The address of the gateway's admin port
    #[arg(long, value_name = "ADMIN_ADDRESS", default_value = "127.0.0.1:9090")]
    #[serde(skip)]
    pub(super) admin: AdminAddress,
}

impl FindArguments {
    /// Returns the body of the request that starts the experiment.
    pub(super) fn body(&self) -> String {
        json!(self).to_string()
    }

    /// Returns the path to renew or end the experiment.
    pub(super) fn path(&self) -> String {
        let origin = utf8_percent_encode(&self.origin, NON_ALPHANUMERIC);
        format!("/api/find/{origin}")
    }
}
