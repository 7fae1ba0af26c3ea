use super::Plain;

/// What other rates of a zone would have done to its last arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateAdvice {
    /// How many seconds the arrivals are about.
    pub span: f64,
    /// How many keys had requests, and how many of them were delayed or rejected.
    pub keys: u64,
    pub limited_keys: u64,
    /// The rate in force.
    pub now: TriedRate,
    /// Faster rates, the slowest first. The last of them rejects and delays nobody for long, unless
    /// none of those that were tried does.
    pub faster: Vec<TriedRate>,
}

/// One rate, and what it does to the arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriedRate {
    pub rate: Plain,
    /// From 0 to 1.
    pub share_rejected: f64,
    /// In seconds; `None` if nothing waits.
    pub wait_p99: Option<f64>,
}
