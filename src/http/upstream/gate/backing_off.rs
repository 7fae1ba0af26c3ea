use crate::limit::{Cut, Lowered, Moment};
use crate::observe::metrics::BackoffReason;

/// What a gate lets through less than the file says, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackingOff {
    /// The kind of reason.
    pub reason: BackoffReason,
    /// The reason as a clause, such as `14 of 120 answers were trouble`.
    pub text: String,
}

impl BackingOff {
    /// The most urgent reason; `None` if nothing is lowered.
    pub(super) fn of(lowered: &Lowered, now: Moment) -> Option<Self> {
        let clause = |cut: Cut, what| {
            let Cut { bad, answers, .. } = cut;
            format!("{bad} of {answers} answers were {what}")
        };
        if let Some(until) = lowered.paused_until {
            let seconds = until.since(now).as_secs_f64();
            let text = format!("the origin asked for a pause, {seconds:.0} s more of it");
            return Some(Self {
                reason: BackoffReason::RetryAfter,
                text,
            });
        }
        let rate = lowered
            .rate
            .map(|(_, cut)| (BackoffReason::Trouble, cut, "trouble"));
        let places = lowered
            .max_in_flight
            .map(|cut| (BackoffReason::Slow, cut, "slow"));
        let (reason, cut, what) = rate.or(places)?;
        Some(Self {
            reason,
            text: clause(cut, what),
        })
    }
}
