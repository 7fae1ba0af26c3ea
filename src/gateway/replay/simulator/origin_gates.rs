//! Gates of origins in a replay, with their waiters.
//!
//! A gate limits the requests to an origin: their rate, and the number that run at the same time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::time::Duration;

use config::{Origin, Settings};
use limit::{Admission, Full, Gate, GatePosition, Moment, Share, WaitLimits, WaitRejection};

use super::Waiting;
use crate::observe::metrics::GateRejected;

/// The gates of all origins, with their waiters.
pub(super) struct OriginGates<'a> {
    origins: &'a [Origin],
    /// `None` for an origin without a gate.
    gates: Vec<Option<Gate<Rc<[u8]>, Waiter>>>,
    /// Instants at which waiters expire, with their numbers. The values are their locations.
    timeouts: BTreeMap<(Moment, u64), (usize, GatePosition)>,
    /// Instants at which permits become free, with the origin's index.
    returns: BinaryHeap<Reverse<(Moment, usize)>>,
}

/// A request that waits at a gate. `holds`: time for which it will hold its permit.
struct Waiter {
    number: u64,
    /// Instant at which the waiter expires.
    gives_up: Moment,
    holds: Duration,
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
            returns: BinaryHeap::new(),
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

    /// Returns whether an origin has a limit of concurrent requests.
    pub(super) fn limits_in_flight(&self, origin: usize) -> bool {
        self.origins[origin].permits().is_some()
    }

    /// Returns an error if a request that may wait for `most` would not pass the gate in time.
    pub(super) fn predict(
        &self,
        origin: usize,
        share: &Share<Rc<[u8]>>,
        most: Option<Duration>,
        now: Moment,
    ) -> Result<(), GateRejected> {
        let Some(gate) = &self.gates[origin] else {
            return Ok(());
        };
        let limits = WaitLimits {
            queue_timeout: self.origins[origin].queue_timeout,
            hold: Duration::ZERO,
            max_wait: most,
        };
        let checked = gate.check_wait(share, &limits, now);
        checked.map_err(|in_vain| match in_vain {
            WaitRejection::Full(full) => reason(full),
            WaitRejection::MaxWait(_) => GateRejected::MaxWait,
            WaitRejection::QueueTimeout(_) => GateRejected::Timeout,
        })
    }

    /// Adds a request to a gate. Returns whether it passes at once, as without a gate.
    pub(super) fn join(
        &mut self,
        origin: usize,
        number: u64,
        request: &Waiting,
        now: Moment,
    ) -> Result<bool, GateRejected> {
        let Some(gate) = &mut self.gates[origin] else {
            return Ok(true);
        };
        let (gives_up, holds) = (now + self.origins[origin].queue_timeout, request.holds);
        let waiter = || Waiter {
            number,
            gives_up,
            holds,
        };
        match gate.join(&request.share, request.cost, now, waiter) {
            Admission::Passed => {
                self.hold(origin, holds, now);
                Ok(true)
            }
            Admission::Waiting(position) => {
                self.timeouts.insert((gives_up, number), (origin, position));
                Ok(false)
            }
            Admission::Rejected(full) => Err(reason(full)),
        }
    }

    /// Returns the instant of the next event: a free permit, a departure, or an expiry.
    pub(super) fn due(&self) -> Option<Moment> {
        let gates = self.gates.iter().flatten().filter_map(Gate::due);
        let timeout = self.timeouts.first_key_value();
        let timeout = timeout.map(|((gives_up, _), _)| *gives_up);
        let permit = self.returns.peek().map(|Reverse((at, _))| *at);
        gates.chain(timeout).chain(permit).min()
    }

    /// Takes the number of the next request that departs by `now`.
    pub(super) fn take(&mut self, now: Moment) -> Option<u64> {
        while let Some(Reverse((at, origin))) = self.returns.peek().copied()
            && at <= now
        {
            self.returns.pop();
            self.give_back(origin, at);
        }
        let mut gates = self.gates.iter_mut().enumerate();
        let (origin, waiter) = gates.find_map(|(origin, gate)| {
            let release = gate.as_mut()?.take(now)?;
            Some((origin, release.waiter))
        })?;
        self.timeouts.remove(&(waiter.gives_up, waiter.number));
        self.hold(origin, waiter.holds, now);
        Some(waiter.number)
    }

    /// Takes the number of the next request that expires by `now`.
    pub(super) fn take_timeout(&mut self, now: Moment) -> Option<u64> {
        let first = self.timeouts.first_entry()?;
        let (gives_up, number) = *first.key();
        if gives_up > now {
            return None;
        }
        let (origin, position) = first.remove();
        if let Some(gate) = &mut self.gates[origin] {
            gate.leave(&position);
        }
        Some(number)
    }

    /// Holds the permit of a departed request for the duration `holds`.
    fn hold(&mut self, origin: usize, holds: Duration, now: Moment) {
        if holds.is_zero() || !self.limits_in_flight(origin) {
            self.give_back(origin, now);
        } else {
            self.returns.push(Reverse((now + holds, origin)));
        }
    }

    /// Returns a permit to a gate.
    fn give_back(&mut self, origin: usize, now: Moment) {
        if let Some(gate) = &mut self.gates[origin] {
            gate.give_back(now);
        }
    }
}

/// Converts the reason of a full queue.
fn reason(full: Full) -> GateRejected {
    if full.for_all {
        GateRejected::MaxQueue
    } else {
        GateRejected::Queue
    }
}
