//! Gates of origins in a replay, with their waiters.
//!
//! A gate limits the requests to an origin: their rate, and the number that run at the same time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::time::Duration;

use config::{Origin, Settings};
use limit::{Admission, Full, Gate, GatePosition, Moment, Share, WaitLimits, WaitRejection};

use super::WaitingRequest;
use crate::observe::metrics::GateRejected;

/// The gates of all origins, with their waiters.
pub(super) struct OriginGates<'a> {
    origins: &'a [Origin],
    /// `None` for an origin without a gate.
    gates: Vec<Option<Gate<Rc<[u8]>, Waiter>>>,
    /// Origin and position of each waiter, by the waiter's expiry and number.
    timeouts: BTreeMap<(Moment, u64), (usize, GatePosition)>,
    /// Instants at which permits become free, with the origin's index.
    permit_ends: BinaryHeap<Reverse<(Moment, usize)>>,
}

/// A request that waits at a gate.
struct Waiter {
    number: u64,
    /// Instant at which the waiter expires.
    expires: Moment,
    /// Time for which the request will hold its permit.
    permit_time: Duration,
}

impl<'a> OriginGates<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let gate = |origin: &Origin| {
            let mut gate = Gate::new(origin.gate_limits()?);
            gate.set_classes(&origin.classes);
            Some(gate)
        };
        Self {
            origins: &settings.origins,
            gates: settings.origins.iter().map(gate).collect(),
            timeouts: BTreeMap::new(),
            permit_ends: BinaryHeap::new(),
        }
    }

    /// Returns whether the origin has a gate.
    pub(super) fn has_gate(&self, origin: usize) -> bool {
        self.gates[origin].is_some()
    }

    /// Returns the zone whose keys share the gate of an origin.
    pub(super) fn share(&self, origin: usize) -> Option<usize> {
        let share = self.origins[origin].share;
        share.filter(|_| self.has_gate(origin))
    }

    /// Returns whether an origin bounds the requests that run at the same time (`max_in_flight`).
    pub(super) fn limits_in_flight(&self, origin: usize) -> bool {
        self.origins[origin].permits().is_some()
    }

    /// Returns an error if a request that may wait for `max_wait` would not pass the gate in time.
    pub(super) fn predict(
        &self,
        origin: usize,
        share: &Share<Rc<[u8]>>,
        max_wait: Option<Duration>,
        now: Moment,
    ) -> Result<(), GateRejected> {
        let Some(gate) = &self.gates[origin] else {
            return Ok(());
        };
        let limits = WaitLimits {
            queue_timeout: self.origins[origin].queue_timeout,
            hold: Duration::ZERO,
            max_wait,
        };
        let checked = gate.check_wait(share, &limits, now);
        checked.map_err(|rejection| match rejection {
            WaitRejection::Full(full) => full_reason(full),
            WaitRejection::MaxWait(_) => GateRejected::MaxWait,
            WaitRejection::QueueTimeout(_) => GateRejected::Timeout,
        })
    }

    /// Adds a request to a gate. Returns whether it passes at once; without a gate it does.
    pub(super) fn join(
        &mut self,
        origin: usize,
        number: u64,
        request: &WaitingRequest,
        now: Moment,
    ) -> Result<bool, GateRejected> {
        let Some(gate) = &mut self.gates[origin] else {
            return Ok(true);
        };
        let expires = now + self.origins[origin].queue_timeout;
        let permit_time = request.permit_time;
        let waiter = || Waiter {
            number,
            expires,
            permit_time,
        };
        match gate.join(&request.share, request.cost, now, waiter) {
            Admission::Passed => {
                self.hold_permit(origin, permit_time, now);
                Ok(true)
            }
            Admission::Waiting(position) => {
                self.timeouts.insert((expires, number), (origin, position));
                Ok(false)
            }
            Admission::Rejected(full) => Err(full_reason(full)),
        }
    }

    /// Returns the instant of the next event: a free permit, a departure, or an expiry.
    pub(super) fn due(&self) -> Option<Moment> {
        let gates = self.gates.iter().flatten().filter_map(Gate::due);
        let timeout = self.timeouts.first_key_value();
        let timeout = timeout.map(|((expires, _), _)| *expires);
        let permit = self.permit_ends.peek().map(|Reverse((at, _))| *at);
        gates.chain(timeout).chain(permit).min()
    }

    /// Takes the number of the next request that departs by `now`.
    pub(super) fn take(&mut self, now: Moment) -> Option<u64> {
        while let Some(Reverse((at, origin))) = self.permit_ends.peek().copied()
            && at <= now
        {
            self.permit_ends.pop();
            self.return_permit(origin, at);
        }
        let mut gates = self.gates.iter_mut().enumerate();
        let (origin, waiter) = gates.find_map(|(origin, gate)| {
            let release = gate.as_mut()?.take(now)?;
            Some((origin, release.waiter))
        })?;
        self.timeouts.remove(&(waiter.expires, waiter.number));
        self.hold_permit(origin, waiter.permit_time, now);
        Some(waiter.number)
    }

    /// Takes the number of the next request that expires by `now`.
    pub(super) fn take_timeout(&mut self, now: Moment) -> Option<u64> {
        let first = self.timeouts.first_entry()?;
        let (expires, number) = *first.key();
        if expires > now {
            return None;
        }
        let (origin, position) = first.remove();
        if let Some(gate) = &mut self.gates[origin] {
            gate.leave(&position);
        }
        Some(number)
    }

    /// Holds the permit of a departed request for `permit_time`.
    ///
    /// A gate counts each departure as a permit, even without a limit of permits. Then it is
    /// returned at once.
    fn hold_permit(&mut self, origin: usize, permit_time: Duration, now: Moment) {
        if permit_time.is_zero() || !self.limits_in_flight(origin) {
            self.return_permit(origin, now);
        } else {
            self.permit_ends.push(Reverse((now + permit_time, origin)));
        }
    }

    /// Returns a permit to a gate.
    fn return_permit(&mut self, origin: usize, now: Moment) {
        if let Some(gate) = &mut self.gates[origin] {
            gate.give_back(now);
        }
    }
}

/// Returns the reason for a rejection by a full queue.
fn full_reason(full: Full) -> GateRejected {
    // `for_all`: the queue for all keys is full, not only that of the request's key.
    if full.for_all {
        GateRejected::MaxQueue
    } else {
        GateRejected::Queue
    }
}
