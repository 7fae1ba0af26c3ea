use std::fmt;
use std::str::FromStr;

use super::Statuses;
use crate::limit::BackoffLimits;

/// `[origins.NAME.backoff]`: lowers an origin's rate and places while it is in trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Whether it acts or only shows what it would do.
    pub mode: BackoffMode,
    /// What counts as trouble; at least one.
    pub on: Vec<Trouble>,
    /// The numbers.
    pub limits: BackoffLimits,
}

/// Whether the back-off acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackoffMode {
    /// It acts.
    #[default]
    On,
    /// It computes, counts and shows, and slows nothing down.
    Shadow,
}

impl BackoffMode {
    /// The modes by their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [("on", Self::On), ("shadow", Self::Shadow)];

    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Shadow => "shadow",
        }
    }
}

/// An answer, or the lack of one, that counts as trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `"503"` or `"5xx"`: an error status.
    Status(Statuses),
    /// `"timeout"`: no head of an answer within `response_timeout`.
    Timeout,
    /// `"connect"`: no connection, or one that broke before the head of an answer.
    Connect,
}

impl Trouble {
    /// Whether an answer of this status is this trouble.
    #[must_use]
    pub fn has(self, status: u16) -> bool {
        match self {
            Self::Status(known) => known.has(status),
            Self::Timeout | Self::Connect => false,
        }
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
