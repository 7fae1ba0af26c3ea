//! `[origins.NAME.backoff]`.

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
        mode: BackoffMode = word().or("\"on\""), Now,
            "\"shadow\": compute, count and show, but slow nothing down.";
        /// Never empty.
        on: Vec<Trouble> = TROUBLE.or("[\"503\", \"timeout\", \"connect\"]"), Now,
            "What counts as trouble: statuses, \"timeout\", \"connect\".";
        /// `None`: no response counts as slow.
        slow: Option<Duration> = TIMEOUT_OR_NONE.or("\"none\""), Now,
            "A response whose head takes the origin longer is slow.";
        trip: Percent = PERCENT.or("\"10%\""), Now,
            "The share of trouble in a window that cuts the rate.";
        floor: Percent = PERCENT.or("\"10%\""), Now,
            "The rate is never below this share of rate, and the permits are never below this share of max_in_flight.";
        max_pause: Duration = TIMEOUT.or("\"30s\""), Now,
            "The longest pause; a longer Retry-After of the origin is cut to it.";
        retry_after: bool = BOOLEAN.or("false"), Now,
            "Pause at the first 429 or 503 with Retry-After, whatever other responses say.";
    }
}

const TROUBLE: Kind<Vec<Trouble>> = kind(
    Form::UniqueList(&Form::Like("[45][0-9][0-9]|[45]xx|timeout|connect"), 1),
    |node| {
        const EXAMPLE: &str = "[\"503\", \"timeout\"]";
        const WHAT: &str = "a status such as \"503\", \"5xx\", \"timeout\" or \"connect\"";
        values::filled_list(node, EXAMPLE, |item| values::parsed(item, WHAT, str::parse))
    },
    |it| texts(it),
);

const PERCENT: Kind<Percent> = kind(
    PERCENT_FORM,
    |node| values::compact(node, "a percentage such as \"10%\""),
    shown,
);

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
    /// Returns whether a response of this status is this trouble.
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
