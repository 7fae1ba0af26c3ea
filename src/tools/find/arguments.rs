use std::path::PathBuf;

use clap::{Args, ValueEnum};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::until::Until;
use crate::config::AdminAddress;
use crate::limit::find::Only;

/// The arguments of `drip find`.
#[derive(Debug, Args)]
pub struct FindArguments {
    /// The origin whose end is looked for; it needs a gate, and requests that wait there
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// What its answers must keep, such as "p95<400ms, errors<0.5%": percentiles of the time until the
    /// head ("p95 whole": until the last byte), and shares of errors, 4xx and 5xx
    #[arg(long, value_name = "OBJECTIVE")]
    slo: String,
    /// The first and lowest rate or number of places
    #[arg(long, value_name = "RATE")]
    from: String,
    /// The highest rate or number of places that is tried
    #[arg(long, value_name = "RATE")]
    to: String,
    /// With --find both: the first and lowest number of places
    #[arg(long, value_name = "PLACES", requires = "places_to")]
    places_from: Option<u32>,
    /// With --find both: the highest number of places that is tried
    #[arg(long, value_name = "PLACES", requires = "places_from")]
    places_to: Option<u32>,
    /// What to find
    #[arg(long, value_enum, default_value = "rate")]
    find: What,
    /// How much each step is above the one before: 1% to 50%
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    step: String,
    /// The shortest time of a step that holds: 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "20s")]
    min_step: String,
    /// How long what was found must hold: 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s")]
    confirm: String,
    /// How long nobody may wait at the gate until the search ends: 1s to 10m [default: 1m]
    #[arg(long, value_name = "TIME")]
    wait: Option<String>,
    /// Wait for more requests until this time of the day, such as 18:00, in the time zone here
    #[arg(long, value_name = "HH:MM", conflicts_with = "wait")]
    pub(super) until: Option<Until>,
    /// Measure only answers to these requests: class=NAME, of a class at the gate, or route=NAME
    #[arg(long, value_name = "KIND=NAME")]
    only: Option<Only>,
    /// A figure of the origin's own with its bound, as "URL NAME < NUMBER", which the gateway reads each
    /// second in Prometheus' text format. Up to four
    #[arg(long, value_name = "FIGURE")]
    watch: Vec<String>,
    /// Say which levels would be tried and how long it may take, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the result as JSON, with all steps
    #[arg(long)]
    pub(super) json: bool,
    /// Write a page with a plot, the steps and the result to this file
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(super) report: Option<PathBuf>,
    /// The address of the gateway's admin port
    #[arg(long, value_name = "ADMIN_ADDRESS", default_value = "127.0.0.1:9090")]
    pub(super) admin: AdminAddress,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// The highest rate
    Rate,
    /// The highest number of requests at the origin at once
    Places,
    /// The rate, and then the number at once while the rate is at its upper bound
    Both,
}

impl FindArguments {
    /// The body that starts it.
    pub(super) fn body(&self) -> String {
        let mut body = Map::new();
        let mut put = |name: &str, value: &str| {
            body.insert(name.to_owned(), Value::from(value));
        };
        put("origin", &self.origin);
        put("slo", &self.slo);
        put("from", &self.from);
        put("to", &self.to);
        put("step", &self.step);
        put("min_step", &self.min_step);
        put("confirm", &self.confirm);
        let find = match self.find {
            What::Rate => "rate",
            What::Places => "places",
            What::Both => "both",
        };
        put("find", find);
        let more = [
            ("places_from", self.places_from.map(|it| it.to_string())),
            ("places_to", self.places_to.map(|it| it.to_string())),
            ("wait", self.wait.clone()),
            ("only", self.only.as_ref().map(ToString::to_string)),
            ("until", self.until.map(|it| it.to_string())),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                put(name, &value);
            }
        }
        if !self.watch.is_empty() {
            body.insert("watch".to_owned(), Value::from(self.watch.clone()));
        }
        body.insert("dry_run".to_owned(), Value::from(self.dry_run));
        Value::from(body).to_string()
    }

    /// Where it is renewed and ended.
    pub(super) fn path(&self) -> String {
        let origin = utf8_percent_encode(&self.origin, NON_ALPHANUMERIC);
        format!("/api/find/{origin}")
    }
}
