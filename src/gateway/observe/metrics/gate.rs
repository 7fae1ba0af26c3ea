use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Histogram, Unit, counter, describe_counter, describe_histogram, histogram};
use limit::Cuts;

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::class::{ClassMetrics, ORIGIN_CLASS_REQUESTS};
use super::registry::Registry;
use super::tally::Tally;

const ORIGIN_QUEUE_WAIT: &str = "drip_origin_queue_wait_seconds";
const ORIGIN_REJECTIONS: &str = "drip_origin_rejections_total";
const ORIGIN_BACKOFFS: &str = "drip_origin_backoffs_total";
const ORIGIN_ADOPTED_BACKOFFS: &str = "drip_origin_adopted_backoffs_total";
const ORIGIN_LOST_SLOTS: &str = "drip_origin_lost_slots_total";
const ORIGIN_INVALID_RETRY_AFTERS: &str = "drip_origin_invalid_retry_after_total";

/// Registers the help texts.
pub(super) fn describe() {
    describe_histogram!(
        ORIGIN_QUEUE_WAIT,
        Unit::Seconds,
        "How long requests waited at the origin's gate."
    );
    describe_counter!(
        ORIGIN_REJECTIONS,
        "Requests that the origin's gate rejected, by reason."
    );
    describe_counter!(
        ORIGIN_CLASS_REQUESTS,
        "Requests of a class that passed the origin's gate."
    );
    describe_counter!(
        ORIGIN_BACKOFFS,
        "How often the origin's gate cut its rate or places or paused, by reason."
    );
    describe_counter!(
        ORIGIN_ADOPTED_BACKOFFS,
        "How often the origin's gate took over a cut that another gateway made, by reason."
    );
    describe_counter!(
        ORIGIN_LOST_SLOTS,
        "Slots at the origin's gate given to requests whose client had just gone."
    );
    describe_counter!(
        ORIGIN_INVALID_RETRY_AFTERS,
        "Responses of the origin whose Retry-After is neither a delay nor a date, so it was ignored."
    );
}

/// Why an origin's gate rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRejected {
    /// Its key had as many waiters as it may have.
    Queue,
    /// As many requests waited as may wait together.
    MaxQueue,
    /// It waited for `queue_timeout`.
    Timeout,
    /// It would have waited longer than `max_wait`.
    MaxWait,
    /// The gateway was stopping.
    Stopping,
    /// The origin could not be reached for all of `hold`.
    Outage,
}

impl GateRejected {
    /// All reasons.
    pub const ALL: [Self; 6] = [
        Self::Queue,
        Self::MaxQueue,
        Self::Timeout,
        Self::MaxWait,
        Self::Stopping,
        Self::Outage,
    ];

    /// The value of the label `reason`, and of `origin_rejected` in the access log.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::MaxQueue => "max_queue",
            Self::Timeout => "timeout",
            Self::MaxWait => "max_wait",
            Self::Stopping => "stopping",
            Self::Outage => "outage",
        }
    }
}

/// What the back-off of an origin has cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffReason {
    /// The rate: too many answers were trouble.
    Trouble,
    /// The places: too many answers were slow.
    Slow,
    /// All departures, for a time that the origin named.
    RetryAfter,
}

impl BackoffReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Trouble, Self::Slow, Self::RetryAfter];

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

/// Metrics of an origin's gate.
#[derive(Debug)]
pub struct GateMetrics {
    rejections: [Tally; GateRejected::ALL.len()],
    backoffs: [Tally; BackoffReason::ALL.len()],
    /// Cuts that other gateways made.
    adopted: [Tally; BackoffReason::ALL.len()],
    lost_slots: Tally,
    invalid_retry_afters: Tally,
    wait: Histogram,
    /// The same waits as in `wait`, for readers that need their quantiles each second.
    waits: AtomicHistogram,
    /// The waits of requests whose clients left before their turn.
    lefts: AtomicHistogram,
    classes: Registry<ClassMetrics>,
    origin: String,
}

impl GateMetrics {
    /// The metrics of the gate of `origin`; each call returns the same series.
    #[must_use]
    pub fn of(origin: &str) -> Self {
        let origin = origin.to_owned();
        Self {
            rejections: GateRejected::ALL.map(|reason| {
                let labels = [
                    ("origin", origin.clone()),
                    ("reason", reason.label().to_owned()),
                ];
                Tally::into_series(counter!(ORIGIN_REJECTIONS, &labels))
            }),
            backoffs: by_reason(ORIGIN_BACKOFFS, &origin),
            adopted: by_reason(ORIGIN_ADOPTED_BACKOFFS, &origin),
            lost_slots: Tally::into_series(counter!(ORIGIN_LOST_SLOTS, "origin" => origin.clone())),
            invalid_retry_afters: Tally::into_series(
                counter!(ORIGIN_INVALID_RETRY_AFTERS, "origin" => origin.clone()),
            ),
            wait: histogram!(ORIGIN_QUEUE_WAIT, "origin" => origin.clone()),
            waits: AtomicHistogram::default(),
            lefts: AtomicHistogram::default(),
            classes: Registry::default(),
            origin,
        }
    }

    /// The metrics of one of its classes; each call returns the same ones while they are in use.
    #[must_use]
    pub fn class(&self, name: &str) -> Arc<ClassMetrics> {
        self.classes
            .get(name, || ClassMetrics::of(&self.origin, name))
    }

    /// Counts a rejection by its reason.
    pub fn count_rejection(&self, reason: GateRejected) {
        self.rejections[reason as usize].add(1);
    }

    /// How many requests were rejected for this reason.
    #[must_use]
    pub fn rejected(&self, reason: GateRejected) -> u64 {
        self.rejections[reason as usize].get()
    }

    /// Counts what was cut.
    pub fn count_backoffs(&self, cuts: Cuts) {
        count(&self.backoffs, cuts);
    }

    /// Counts what was cut because another gateway did so.
    pub fn count_adopted(&self, cuts: Cuts) {
        count(&self.adopted, cuts);
    }

    /// Counts a slot that was given to a request whose client had gone.
    pub fn count_lost_slot(&self) {
        self.lost_slots.add(1);
    }

    /// Counts a `Retry-After` that cannot be read.
    pub fn count_invalid_retry_after(&self) {
        self.invalid_retry_afters.add(1);
    }

    /// Records how long a request waited.
    pub fn waited(&self, span: Duration) {
        self.wait.record(span);
        self.waits.record(span);
    }

    /// The waits recorded so far.
    #[must_use]
    pub fn waits(&self) -> Counts {
        self.waits.counts()
    }

    /// Records how long a request had waited when its client left.
    pub fn left_after(&self, span: Duration) {
        self.lefts.record(span);
    }

    /// How long requests had waited when their clients left.
    #[must_use]
    pub fn lefts(&self) -> Counts {
        self.lefts.counts()
    }

    /// Reports the counts to Prometheus.
    pub fn show(&self) {
        let tallies = self.rejections.iter().chain(&self.backoffs);
        let tallies = tallies.chain(&self.adopted);
        tallies.for_each(Tally::show);
        self.lost_slots.show();
        self.invalid_retry_afters.show();
        self.classes.all().iter().for_each(|class| class.show());
    }
}

fn by_reason(name: &'static str, origin: &str) -> [Tally; BackoffReason::ALL.len()] {
    BackoffReason::ALL.map(|reason| {
        let reason = reason.label().to_owned();
        let labels = [("origin", origin.to_owned()), ("reason", reason)];
        Tally::into_series(counter!(name, &labels))
    })
}

fn count(tallies: &[Tally; BackoffReason::ALL.len()], cuts: Cuts) {
    let cut = [cuts.trouble, cuts.slow, cuts.retry_after];
    for (tally, is_cut) in tallies.iter().zip(cut) {
        tally.add(u64::from(is_cut));
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for GateMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
