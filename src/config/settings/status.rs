//! Response statuses in the configuration: one, such as `"503"`, or a class, such as `"5xx"`.

use std::fmt;
use std::str::FromStr;

/// One status of a response, or all statuses with the same first digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statuses {
    /// `"503"`: this status, 200 to 599.
    One(u16),
    /// `"5xx"`: all statuses that begin with this digit, 2 to 5.
    Class(u16),
}

impl Statuses {
    /// Returns whether this is `status`, or the class of `status`.
    pub fn has(self, status: u16) -> bool {
        match self {
            Self::One(known) => known == status,
            Self::Class(class) => status / 100 == class,
        }
    }

    /// Returns the first digit of the statuses.
    pub fn class(self) -> u16 {
        match self {
            Self::One(status) => status / 100,
            Self::Class(class) => class,
        }
    }
}

impl FromStr for Statuses {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "a status is from 200 to 599, or one of \"2xx\", \"3xx\", \"4xx\", \"5xx\"";
        // Rejects a sign, which `parse` would accept.
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| is_number)
        };
        if let Some(class) = text.strip_suffix("xx") {
            let class = number(class).filter(|class| (2..=5).contains(class));
            return class.map(Self::Class).ok_or(FORM);
        }
        let status = number(text).filter(|status| (200..=599).contains(status));
        status.map(Self::One).ok_or(FORM)
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}
