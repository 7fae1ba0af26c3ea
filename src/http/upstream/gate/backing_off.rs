/// Why a gate lets less through than the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffReason {
    /// Too many answers were trouble: the rate is lower.
    Trouble,
    /// Too many answers were slow: fewer requests may be at the origin at once.
    Slow,
    /// The origin asked for a pause.
    RetryAfter,
}

impl BackoffReason {
    /// The value of the label `reason`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Slow => "slow",
            Self::RetryAfter => "retry_after",
        }
    }
}

/// What a gate lets through less than the file says, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackingOff {
    /// The kind of reason.
    pub reason: BackoffReason,
    /// The reason as a clause, such as `14 of 120 answers were trouble`.
    pub text: String,
}
