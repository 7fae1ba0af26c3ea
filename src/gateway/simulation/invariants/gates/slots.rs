//! Invariant: each departure uses one granted slot.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. A method with the name of an event, such as `claimed`,
//! records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::alone::Mode;
use super::{Checked, GateId, GateRequest, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// Maximum delay of a slot's use, in nanoseconds.
const LATE: i64 = 5_000_000;
/// Time that slots are given out ahead, in nanoseconds. Earlier slots are not used any more.
const AHEAD: i64 = 1_000_000;
/// Precision of times in nanoseconds: the store has microseconds.
const EXACT: i64 = 3000;

/// Invariant: each request leaves in its own slot, granted to its gateway, and on time.
///
/// Clocks may differ by their error. It follows that departures of all gateways never exceed the
/// rate. While nothing fails and no client leaves, no slot expires at a gateway where requests
/// wait.
pub(in crate::simulation) struct Slots {
    scenario: Rc<Scenario>,
    /// Claims whose reply is in flight.
    claims: BTreeMap<ClaimId, Claim>,
    /// Number of the last claim.
    next: u64,
    gates: BTreeMap<GateId, Gate>,
    /// Time of the last jump of the store's clock.
    jumped: Option<Duration>,
    /// Departures in slots: time and cost, by origin.
    departures: BTreeMap<usize, Vec<(Duration, u32)>>,
    /// Largest error of a clock so far, in nanoseconds.
    worst: i64,
    /// Number of departures alone.
    alone: u64,
}

/// Number of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulation) struct ClaimId(u64);

/// A claim whose reply is in flight.
struct Claim {
    gate: GateId,
    /// Time at which the store ran it.
    ran: Duration,
    /// Number of gateways that the reply reports.
    gateways: u32,
    /// Granted slots, in nanoseconds on the simulation's clock.
    slots: Vec<i64>,
}

/// State of a gate.
#[derive(Default)]
struct Gate {
    /// Unused slots.
    slots: Vec<Slot>,
    /// Recent round trips to the store.
    trips: Vec<Trip>,
    /// Number of waiting requests.
    waiting: u64,
    /// Time since which requests wait without a break, in nanoseconds.
    since: i64,
    /// Time of the last reply that was in time, in nanoseconds.
    received: i64,
}

/// An unused slot.
struct Slot {
    /// Time of the slot, in nanoseconds.
    at: i64,
    /// Error of the gateway's clock estimate for this slot, in nanoseconds.
    error: i64,
    /// Whether the slot may be lost, or used in place of one that was lost.
    is_doubtful: bool,
}

/// A round trip to the store.
struct Trip {
    /// Time at which the store ran the claim.
    ran: Duration,
    /// Time at which the gateway received the reply.
    received: Duration,
    /// Duration of the round trip in nanoseconds.
    took: i64,
}

/// Way in which a request has left.
pub(super) enum Departed {
    InSlot,
    Alone,
}

impl Slots {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            claims: BTreeMap::new(),
            next: 0,
            gates: BTreeMap::new(),
            jumped: None,
            departures: BTreeMap::new(),
            worst: 0,
            alone: 0,
        }
    }

    pub(super) fn claimed(&mut self, gateway: usize, call: &ClaimCall, now: Duration) -> ClaimId {
        self.next += 1;
        let id = ClaimId(self.next);
        // Difference of the simulation's clock to the store's.
        let here = nanos(now) - call.now;
        // A granted slot stands for several departures.
        let pieces = |slot: &i64| {
            let first = *slot + here;
            let rate = call.in_force;
            (0..call.pieces).map(move |piece| first + nanos(rate.time_for(piece.into())))
        };
        let claim = Claim {
            gate: (gateway, call.origin),
            ran: now,
            gateways: call.gateways as u32,
            slots: call.slots.iter().flat_map(pieces).collect(),
        };
        self.claims.insert(id, claim);
        id
    }

    /// Records the reply of a claim. Returns the gate, and the number of gateways reported.
    ///
    /// The gateway has waited for it since `sent` at most, and has not given up.
    pub(super) fn received(
        &mut self,
        claim: ClaimId,
        sent: Duration,
        now: Duration,
    ) -> Option<(GateId, u32)> {
        let claim = self.claims.remove(&claim)?;
        // No gateway waits longer than the timeout, and tokio's timers have whole milliseconds.
        let longest = self.scenario.timeout + Duration::from_millis(2);
        let took = now.saturating_sub(sent).min(longest);
        let gate = self.gates.entry(claim.gate).or_default();
        gate.received = nanos(now);
        gate.trips.push(Trip {
            ran: claim.ran,
            received: now,
            took: nanos(took),
        });
        let error = gate.error(self.jumped, now);
        self.worst = self.worst.max(error);
        let slots = claim.slots.into_iter();
        gate.slots.extend(slots.map(|at| Slot {
            at,
            error,
            is_doubtful: nanos(now) + AHEAD > at - error - EXACT,
        }));
        gate.slots.sort_by_key(|slot| slot.at);
        Some((claim.gate, claim.gateways))
    }

    /// Returns the number of a gate's unused slots that are usable now.
    pub(super) fn held(&self, gate: GateId, now: Duration) -> u64 {
        let slots = self.gates.get(&gate).map_or(&[][..], |gate| &gate.slots);
        let held = slots.iter().filter(|slot| slot.at + LATE >= nanos(now));
        held.count() as u64
    }

    /// Returns the time since which a gate with waiters has had no reply, if it is too long.
    ///
    /// A gate claims every 25 ms, and continues alone after 150 ms without a reply.
    pub(super) fn unanswered(&self, gate: GateId, now: Duration) -> Option<Duration> {
        let gate = self.gates.get(&gate).filter(|gate| gate.waiting > 0)?;
        let span = nanos(now) - gate.since.max(gate.received);
        let span = Duration::from_nanos(span.unsigned_abs());
        (span > 3 * self.scenario.timeout + Duration::from_millis(200)).then_some(span)
    }

    pub(super) fn arrives(&mut self, request: &GateRequest) {
        let gate = self.gate(request);
        gate.waiting += 1;
        if gate.waiting == 1 {
            gate.since = nanos(request.since);
        }
    }

    /// Records that a request waits no longer.
    pub(super) fn ends(&mut self, request: &GateRequest, now: Duration) -> Checked {
        // A client that leaves may take a slot with it.
        let has_disconnects = self.scenario.moods[0] > 0;
        let is_checked = self.scenario.is_plain(request.origin) && !has_disconnects;
        let interval = self.scenario.origins[request.origin].rate.interval();
        let interval = nanos(interval);
        let gate = self.gate(request);
        gate.waiting = gate.waiting.saturating_sub(1);
        let expired = gate.expire(nanos(now), interval);
        if is_checked && let Some(slot) = expired {
            let ago = nanos(now) - slot;
            return Err(format!(
                "a slot of {ago} ns ago lapses at gateway {}, where requests wait",
                request.gateway
            ));
        }
        Ok(())
    }

    fn gate(&mut self, request: &GateRequest) -> &mut Gate {
        let gate = (request.gateway, request.origin);
        self.gates.entry(gate).or_default()
    }

    pub(in crate::simulation) fn jumped(&mut self, now: Duration) {
        self.jumped = Some(now);
    }

    pub(super) fn died(&mut self, gateway: usize) {
        self.gates.retain(|(number, _), _| *number != gateway);
    }

    /// Returns the number of departures in slots, and of departures alone.
    pub(super) fn counts(&self) -> (u64, u64) {
        let in_slots = self.departures.values();
        let in_slots = in_slots.map(|departures| departures.len() as u64);
        (in_slots.sum(), self.alone)
    }

    /// Records a departure. Returns the way in which the request left.
    pub(super) fn departs(
        &mut self,
        request: &GateRequest,
        mode: Mode,
        now: Duration,
    ) -> Result<Departed, String> {
        let gate = self.gate(request);
        if mode != Mode::Alone && gate.take(nanos(now)) {
            let departures = self.departures.entry(request.origin).or_default();
            departures.push((now, request.cost.get()));
            self.check_windows(request.origin)?;
            return Ok(Departed::InSlot);
        }
        if mode == Mode::Grid {
            return Err(format!("request {} leaves without a slot", request.id));
        }
        self.alone += 1;
        Ok(Departed::Alone)
    }

    /// Checks all windows of time that end now.
    fn check_windows(&self, origin: usize) -> Checked {
        if !self.scenario.is_calm() {
            return Ok(());
        }
        let rates = self.scenario.origin_rates(origin);
        let interval = rates.map(limit::Rate::interval).min();
        let interval = interval.unwrap_or_default().as_secs_f64();
        let departures = &self.departures[&origin];
        let slack = Duration::from_nanos((LATE + 2 * self.worst).unsigned_abs());
        let Some((last, _)) = departures.last() else {
            return Ok(());
        };
        // Cost of a request beyond the first slot, which its gateway may owe.
        let costly = departures.iter().map(|(_, cost)| cost - 1).max();
        let owed = self.scenario.clocks.len() as f64 * f64::from(costly.unwrap_or(0));
        // Whether responses report other costs.
        let is_settled = self.scenario.moods[3] > 0;
        let (mut count, mut costs) = (0.0, 0.0);
        for (first, cost) in departures.iter().rev() {
            let span = last.saturating_sub(*first);
            let most = (span + slack).as_secs_f64() / interval + 1.0 + 1e-6;
            count += 1.0;
            costs += f64::from(*cost);
            // A lower cost in a response reduces the debt.
            if count > most || (!is_settled && costs > most + owed) {
                return Err(format!(
                    "{count} left in {span:?} and cost {costs}, more than {most:.2}"
                ));
            }
        }
        Ok(())
    }
}

impl Gate {
    /// Removes the slot of a request that leaves now. Returns whether there is one.
    ///
    /// A gateway uses its slots in order, and so does this function. If the gateway had lost the
    /// slot that is removed here, it has used the next one that it had. That slot is then doubtful,
    /// if it fits at all.
    fn take(&mut self, now: i64) -> bool {
        let fits = |slot: &Slot| {
            let error = slot.error + EXACT;
            (slot.at - error..=slot.at + LATE + error).contains(&now)
        };
        let Some(found) = self.slots.iter().position(fits) else {
            return false;
        };
        let taken = self.slots.remove(found);
        let is_late = now > taken.at + LATE - taken.error - EXACT;
        if taken.is_doubtful || is_late {
            let mut others = self.slots[found..].iter_mut();
            let next = others.find(|slot| !slot.is_doubtful && fits(slot));
            if let Some(next) = next {
                next.is_doubtful = true;
            }
        }
        true
    }

    /// Removes expired slots. Returns one for which requests have waited all the time.
    ///
    /// If the clocks' error exceeds the distance of slots, it is unknown which slot was used.
    fn expire(&mut self, now: i64, interval: i64) -> Option<i64> {
        let is_old = |slot: &Slot| slot.at + LATE + slot.error + EXACT < now;
        let old = self.slots.iter().take_while(|slot| is_old(slot)).count();
        let is_awaited = |slot: &Slot| {
            let at = slot.at - slot.error - EXACT;
            let is_known = 2 * (slot.error + EXACT) < interval;
            is_known && self.since <= at && !slot.is_doubtful
        };
        let mut old: Vec<Slot> = self.slots.drain(..old).collect();
        old.retain(is_awaited);
        old.first().map(|slot| slot.at)
    }

    /// Returns the maximum error of the gateway's estimate of the store's clock.
    ///
    /// The estimate uses the fastest round trip of at least the last ten seconds. Its error is at
    /// most half of that (RFC 5905, section 8), plus the drift of up to twenty seconds. A jump that
    /// is shorter than the round trips may not be noticed.
    fn error(&self, jumped: Option<Duration>, now: Duration) -> i64 {
        let kept = now.saturating_sub(Duration::from_secs(10));
        let recent = self.trips.iter().filter(|trip| trip.received >= kept);
        let fastest = recent.map(|trip| trip.took).min().unwrap_or(0);
        let drifts = nanos(now.min(Duration::from_secs(20))) / 20_000;
        let jumped = jumped.filter(|at| now.saturating_sub(*at) < Duration::from_secs(20));
        let unnoticed = jumped.map_or(0, |at| {
            let since = self.trips.iter().filter(|trip| trip.ran >= at);
            since.map(|trip| trip.took).min().unwrap_or(0) + 1_000_000
        });
        fastest / 2 + drifts + unnoticed
    }
}
