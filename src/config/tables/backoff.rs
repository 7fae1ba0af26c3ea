//! `[origins.NAME.backoff]`: lowers the rate of an origin while many of its responses are errors.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `TIMEOUT`). The algorithm is `limit::backoff`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use limit::{BackoffLimits, Percent};

use super::prelude::*;
use crate::Statuses;

table! {
    /// `[origins.NAME.backoff]`: lowers an origin's rate and permits while it is in trouble.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Backoff {
        mode: BackoffMode = word().with_default("\"on\""), Now,
            "\"shadow\": compute, count and show, but slow nothing down.";
        /// Never empty.
        on: Vec<Trouble> = TROUBLE.with_default("[\"503\", \"timeout\", \"connect\"]"), Now,
            "What counts as trouble: statuses, \"timeout\", \"connect\".";
        /// `None`: no response counts as slow.
        slow: Option<Duration> = TIMEOUT_OR_NONE.with_default("\"none\""), Now,
            "A response whose head takes the origin longer is slow.";
        trip: Percent = PERCENT.with_default("\"10%\""), Now,
            "The share of trouble in a window that cuts the rate.";
        floor: Percent = PERCENT.with_default("\"10%\""), Now,
            "The rate is never below this share of rate, and the permits are never below this share of max_in_flight.";
        max_pause: Duration = TIMEOUT.with_default("\"30s\""), Now,
            "The longest pause; a longer Retry-After of the origin is cut to it.";
        retry_after: bool = BOOLEAN.with_default("false"), Now,
            "Pause at the first 429 or 503 with Retry-After, whatever other responses say.";
    }
}

/// List of what counts as trouble.
const TROUBLE: Kind<Vec<Trouble>> = Kind {
    form: Form::UniqueList(&Form::Regex("[45][0-9][0-9]|[45]xx|timeout|connect"), 1),
    read: |node| {
        const EXAMPLE: &str = "[\"503\", \"timeout\"]";
        const WHAT: &str = "a status such as \"503\", \"5xx\", \"timeout\" or \"connect\"";
        values::non_empty_list(node, EXAMPLE, |item| values::parse(item, WHAT, str::parse))
    },
    show: |it| show_texts(it),
};

/// Percentage such as `"10%"`, above 0 and at most 100.
const PERCENT: Kind<Percent> = Kind {
    form: Form::Regex("[0-9]+([.][0-9]{1,4})?%"),
    read: |node| values::parse_compact(node, "a percentage such as \"10%\""),
    show: show_text,
};

impl Backoff {
    /// Returns the parameters of the back-off algorithm.
    pub fn limits(&self) -> BackoffLimits {
        BackoffLimits {
            slow: self.slow,
            trip: self.trip,
            floor: self.floor,
            max_pause: self.max_pause,
        }
    }
}

words! {
    /// Mode of the back-off.
    pub enum BackoffMode {
        /// The back-off slows requests down.
        On = "on",
        /// The back-off computes, counts and shows its decisions, but slows nothing down.
        Shadow = "shadow",
    }
}

/// A response, or a missing response, that counts as trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `"503"` or `"5xx"`: an error status.
    Status(Statuses),
    /// `"timeout"`: no response head within `response_timeout`.
    Timeout,
    /// `"connect"`: no connection, or one that broke before the response head.
    Connect,
}

impl Trouble {
    /// Returns whether a response with this status is trouble of this kind.
    pub fn has(self, status: u16) -> bool {
        matches!(self, Self::Status(known) if known.has(status))
    }
}

impl FromStr for Trouble {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "timeout" => Ok(Self::Timeout),
            "connect" => Ok(Self::Connect),
            text => {
                let status = text.parse().ok().filter(|it: &Statuses| it.class() >= 4);
                status.map(Self::Status).ok_or(
                    "trouble is a status from 400 to 599, \"4xx\", \"5xx\", \"timeout\" or \"connect\"",
                )
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Timeout => f.write_str("timeout"),
            Self::Connect => f.write_str("connect"),
        }
    }
}
