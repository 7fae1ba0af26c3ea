//! Permits of a key that several gateways share, as one gateway knows them.
//!
//! A *permit* is the right to run one request of the key. A *call* reports the gateway's permits to
//! the store, and its *reply* grants permits: see `call`. A *grant* is valid for a few seconds from
//! the instant at which the call was sent. Each later reply renews it.

mod call;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Moment, nanos};
pub use call::{KeyPermitsCall, KeyPermitsReply};

/// Duration for which a gateway may start requests on granted permits, by the clock of the store.
///
/// It starts anew with each reply.
pub const KEY_PERMITS_LEASE: Duration = Duration::from_secs(3);
/// [`KEY_PERMITS_LEASE`] by the clock of a gateway, which may be slower than that of the store.
const LEASE_BY_OWN_CLOCK: Duration = Duration::from_millis(2940);
/// Grants are renewed at multiples of this since the Unix epoch, so that all keys are sent
/// together.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Minimum duration between the last call and a renewal.
const MIN_RENEWAL: Duration = Duration::from_millis(250);
/// Duration between a call that failed and the next attempt.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Lower bound of the duration between two calls of a gateway that lacks permits.
///
/// The duration is the time for which it has lacked them, divided by [`POLL_DIVISOR`], but from
/// [`MIN_POLL`] to [`MAX_POLL`].
const MIN_POLL: Duration = Duration::from_millis(3);
const POLL_DIVISOR: u32 = 16;
const MAX_POLL: Duration = Duration::from_millis(50);
/// Upper bound of the calls under way for a key. After that many, the next call waits for a reply.
const MAX_CALLS: usize = 16;

/// Permits of one key that a gateway has from the store.
///
/// The store ensures that all gateways together have no more than a maximum. A request starts only
/// on a permit that the store has granted, so the store counts at least the running requests.
///
/// Each call reports the number of permits that the gateway [uses and requests](KeyPermitNeeds), as
/// totals and not as changes. So a call that is lost or repeated does no harm. Several calls may be
/// under way. The gateway uses at most the smallest number that any of them requested, because the
/// store may have taken back the rest.
///
/// While other gateways wait, a permit that becomes free goes back to the store, and this gateway
/// queues there again. Otherwise the next waiter here gets it.
#[derive(Debug)]
pub struct KeyPermits {
    /// Number of permits held, whether in use or free.
    granted: usize,
    /// Upper bound of what the store counts for this gateway.
    stored: usize,
    /// Number of permits that the last call requested; `None`: it failed, so call again.
    last_requested: Option<usize>,
    /// Whether the last call queued this gateway at the store.
    stands_in_line: bool,
    /// Number of permits to give back with the next call.
    yields: usize,
    /// Calls without a reply, the oldest first.
    under_way: VecDeque<UnderWay>,
    /// Maximum of all gateways together that the last call named.
    maximum: NonZeroU32,
    /// Whether requests that began under another maximum may still run.
    ///
    /// Then a permit that becomes free goes back to the store.
    is_mixed: bool,
    /// Last reply, which counts the permits of other gateways.
    reply: KeyPermitsReply,
    /// Whether the last call failed.
    is_lost: bool,
    /// Instant until which requests may start on the permits.
    used_until: Moment,
    /// Instant from which the store counts no permits for this gateway, if it makes no further
    /// call.
    forgotten_at: Moment,
    /// Instant of the last call.
    last_call: Moment,
    /// Instant since which the gateway needs more permits than it holds.
    lacks_since: Option<Moment>,
}

/// Call without a reply yet: some values of its [`KeyPermitsCall`].
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    requested: usize,
    yields: usize,
    /// Instant at which it was sent.
    sent: Moment,
}

/// Permits of a key that a gateway needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPermitNeeds {
    /// Number of running requests.
    pub running: usize,
    /// Number of requests that wait for nothing but a permit.
    pub waiting: usize,
    /// Number of requests that may run soon, or are still decided on.
    pub coming: usize,
    /// Maximum of all gateways together, as configured for these requests.
    pub maximum: NonZeroU32,
}

impl KeyPermitNeeds {
    fn requested(&self) -> usize {
        self.running + self.waiting + self.coming
    }
}

impl KeyPermits {
    /// Returns a gateway without permits, under this maximum.
    pub fn new(maximum: NonZeroU32) -> Self {
        Self {
            granted: 0,
            stored: 0,
            last_requested: Some(0),
            stands_in_line: false,
            yields: 0,
            under_way: VecDeque::new(),
            maximum,
            is_mixed: false,
            reply: KeyPermitsReply::default(),
            is_lost: false,
            used_until: Moment::default(),
            forgotten_at: Moment::default(),
            last_call: Moment::default(),
            lacks_since: None,
        }
    }

    /// Returns whether one more request may run under this maximum.
    ///
    /// `running` requests already run here. The permits were granted under the maximum of the last
    /// call. A request under a lower one must not use them: all gateways together may have more of
    /// them than its maximum.
    pub fn is_free(&self, maximum: NonZeroU32, running: usize, now: Moment) -> bool {
        running < self.granted
            && running < maximum.get() as usize
            && maximum >= self.maximum
            && now < self.used_until
    }

    /// Returns the number of permits at other gateways, as of the last reply.
    pub fn elsewhere(&self) -> usize {
        self.reply.others
    }

    /// Returns the permits of vanished gateways that are not granted yet, as of the last reply.
    pub fn withheld(&self) -> usize {
        self.reply.withheld
    }

    /// Returns whether the last call failed: the store does not reply, or refuses this key.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns whether the last call requested enough for `needs`, or failed.
    pub fn has_requested(&self, needs: KeyPermitNeeds) -> bool {
        let requested = self.last_requested.map(|last| last.max(self.granted));
        requested.is_some_and(|requested| requested >= needs.requested()) || self.is_lost
    }

    /// Returns the maximum that the last call named.
    pub fn maximum(&self) -> NonZeroU32 {
        self.maximum
    }

    /// Returns whether the store counts nothing for this gateway, and no reply is missing.
    pub fn is_settled(&self, now: Moment) -> bool {
        self.under_way.is_empty() && (self.stored == 0 || now >= self.forgotten_at)
    }

    /// Records that a request has ended. Its permit goes back to the store if it may not be kept.
    ///
    /// `running` requests still run here.
    pub fn freed(&mut self, running: usize) {
        // Without the store, or after it has lost its counts, more permits may be in use than
        // exist.
        let are_too_many = self.reply.others + self.granted > self.maximum.get() as usize;
        let goes_back = self.reply.others_wait || self.is_mixed || are_too_many;
        if goes_back && self.granted > running {
            self.granted -= 1;
            self.yields += 1;
        }
    }

    /// Returns the call that is due, to be sent now; `None`: none is due.
    ///
    /// `number` must be above all earlier numbers. `kept` is the duration for which the store
    /// counts the permits of a gateway that makes no further call.
    pub fn call(
        &mut self,
        needs: KeyPermitNeeds,
        number: u64,
        kept: Duration,
        now: Moment,
    ) -> Option<KeyPermitsCall> {
        if now >= self.used_until {
            self.granted = self.granted.min(needs.running);
        }
        let requested = needs.requested();
        let lacks = requested > self.granted;
        self.lacks_since = lacks.then(|| self.lacks_since.unwrap_or(now));
        if !self.is_due(needs, now) {
            return None;
        }
        if needs.maximum != self.maximum {
            self.yields += self.granted.saturating_sub(needs.running);
            self.granted = self.granted.min(needs.running);
            self.is_mixed = needs.running > 0;
            self.maximum = needs.maximum;
        } else if needs.running == 0 {
            self.is_mixed = false;
        }
        self.granted = self.granted.min(requested);
        // Running requests have a permit, even if its grant has expired. The gateway waits at the
        // store if more requests could run now than have one.
        let waits = needs.running + needs.waiting > self.granted.max(needs.running);
        self.stands_in_line = waits;
        let yields = std::mem::take(&mut self.yields);
        self.last_requested = Some(requested);
        self.last_call = now;
        self.forgotten_at = now + kept;
        self.under_way.push_back(UnderWay {
            number,
            requested,
            yields,
            sent: now,
        });
        Some(KeyPermitsCall {
            number,
            has: self.granted.max(needs.running),
            requested,
            yields,
            waits,
            maximum: needs.maximum,
        })
    }

    /// Returns whether a call is due now.
    fn is_due(&self, needs: KeyPermitNeeds, now: Moment) -> bool {
        let has_other_maximum = needs.maximum != self.maximum;
        let is_under_way = !self.under_way.is_empty();
        if self.under_way.len() >= MAX_CALLS || (has_other_maximum && is_under_way) {
            return false;
        }
        let requested = needs.requested();
        let have_needs_changed = self.last_requested.is_some_and(|last| {
            let lacks_more = requested > last.max(self.granted);
            let has_too_many = requested < last.min(self.stored);
            let leaves_line = self.stands_in_line && requested <= self.granted;
            let gives_back = self.yields > 0 && self.stored > 0;
            lacks_more || has_too_many || leaves_line || gives_back
        });
        have_needs_changed || self.calls_at(needs).is_some_and(|at| at <= now)
    }

    /// Returns the instant at which a call is due if nothing happens; `None`: never.
    pub fn calls_at(&self, needs: KeyPermitNeeds) -> Option<Moment> {
        if !self.under_way.is_empty() {
            return None;
        }
        if self.is_lost || self.last_requested.is_none() {
            let is_idle = needs.requested() == 0 && self.stored == 0;
            return (!is_idle).then(|| self.last_call + RETRY_AFTER);
        }
        if needs.requested() > self.granted || needs.maximum != self.maximum {
            let lacks_since = self.lacks_since.unwrap_or(self.last_call);
            let waited = self.last_call.since(lacks_since);
            return Some(self.last_call + (waited / POLL_DIVISOR).clamp(MIN_POLL, MAX_POLL));
        }
        (self.stored > 0 || needs.running > 0).then(|| {
            let earliest = (self.last_call + MIN_RENEWAL).as_nanos();
            let period = nanos(RENEW_EVERY);
            Moment::from_nanos(earliest.div_ceil(period).saturating_mul(period))
        })
    }

    /// Processes the reply to the call with this number.
    pub fn answer(&mut self, number: u64, reply: KeyPermitsReply) {
        let call = self.under_way.iter().find(|call| call.number == number);
        let Some(sent) = call.map(|call| call.sent) else {
            // A later call has a reply already, or has failed.
            return;
        };
        self.under_way.retain(|call| call.number > number);
        let later_calls = self.under_way.iter();
        let requested = later_calls.clone().map(|call| call.requested);
        let least_requested = requested.clone().min().unwrap_or(usize::MAX);
        let yields: usize = later_calls.map(|call| call.yields).sum();
        let granted = reply.granted.saturating_sub(yields + self.yields);
        if granted > self.granted {
            // If it still lacks permits, it waits anew for the next one, at short intervals.
            self.lacks_since = None;
        }
        self.granted = granted.min(least_requested);
        self.stored = requested.max().unwrap_or(0).max(reply.granted);
        self.used_until = sent + LEASE_BY_OWN_CLOCK;
        self.reply = reply;
        self.is_lost = false;
    }

    /// Records that the call with this number failed.
    ///
    /// The store may have received it, or receive it later.
    pub fn fail(&mut self, number: u64) {
        let mut calls = self.under_way.iter();
        let Some(index) = calls.position(|call| call.number == number) else {
            return;
        };
        // The call may have given back permits that the reply to an earlier call grants. So replies
        // to earlier calls are ignored.
        let failed = self.under_way.drain(..=index);
        let requested = failed.map(|call| call.requested).max();
        self.stored = self.stored.max(requested.unwrap_or(0));
        self.last_requested = None;
        self.is_lost = true;
        // Other gateways may still wait, but the store cannot grant them a returned permit now. So
        // a permit that becomes free stays here.
        self.reply.others_wait = false;
    }
}
