//! `fail_on` of `[origins.NAME]`: responses that count as failures of their server.
//!
//! A server with too many failures in a row gets no requests for a while. `kinds` explains kinds of
//! values such as `FAIL_ON`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use limit::{parse_duration, show_duration};

use super::prelude::*;
use crate::Statuses;

/// A response that counts as a failure of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// `"503"` or `"5xx"`: an error status.
    Status(Statuses),
    /// `"slow:2s"`: a response head that takes longer.
    Slow(Duration),
}

/// A list for messages.
const EXAMPLE: &str = "[\"502\", \"503\", \"slow:2s\"]";

/// List of responses that count as failures.
pub(super) const FAIL_ON: Kind<Vec<FailOn>> = Kind {
    form: Form::UniqueList(
        &Form::Regex("[45][0-9][0-9]|[45]xx|slow:[0-9]+(d|h|m|s|ms|us|ns)"),
        0,
    ),
    read: |node| {
        const WHAT: &str =
            "a status such as \"503\", \"5xx\", or \"slow:\" and a time such as \"slow:2s\"";
        values::list(node, EXAMPLE, |item| values::parse(item, WHAT, str::parse))
    },
    show: |it| show_texts(it),
};

/// Text before the duration, for [`FailOn::Slow`].
const SLOW: &str = "slow:";

impl FailOn {
    /// Returns whether a response counts as a failure because of this entry.
    ///
    /// `took`: time until the head of the response.
    pub fn has(self, status: u16, took: Duration) -> bool {
        match self {
            Self::Status(known) => known.has(status),
            Self::Slow(max) => took > max,
        }
    }
}

impl FromStr for FailOn {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(duration) = text.strip_prefix(SLOW) else {
            let status = text.parse().ok().filter(|it: &Statuses| it.class() >= 4);
            return status.map(Self::Status).ok_or(
                "an answer that counts is a status from 400 to 599, \"4xx\", \"5xx\" or \"slow:2s\"",
            );
        };
        let max = parse_duration(duration).filter(|max| !max.is_zero());
        let max = max.filter(|max| *max <= values::MAX_DURATION);
        max.map(Self::Slow)
            .ok_or("slow: has a time above 0 and up to 366d behind it, such as \"slow:2s\"")
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Slow(max) => write!(f, "{SLOW}{}", show_duration(*max)),
        }
    }
}
