use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::alone::Mode;
use super::{Checked, GateId, GateRequest, nanos};
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::scenario::Scenario;

/// How late a slot may be used.
const LATE: i64 = 5_000_000;
/// Turns are given out so much ahead. A slot before one that was given out is not used any more.
const AHEAD: i64 = 1_000_000;
/// How exact times are: those of the store are microseconds.
const EXACT: i64 = 3000;

/// Each request leaves in a slot of its own, which the store has granted to its gateway, and at its
/// time, as far as clocks agree. So over all gateways departures are no more than the rate.
///
/// While nothing fails and nobody leaves, no slot lapses at a gateway where requests wait.
pub(in crate::simulation) struct Slots {
    scenario: Rc<Scenario>,
    claims: BTreeMap<ClaimId, Claim>,
    next: u64,
    gates: BTreeMap<GateId, Gate>,
    /// When the store's clock last jumped.
    jumped: Option<Duration>,
    /// When requests left in slots, and what they cost, by origin.
    departures: BTreeMap<usize, Vec<(Duration, u32)>>,
    /// The largest error of a clock so far, in nanoseconds.
    worst: i64,
    alone: u64,
}

/// The number of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulation) struct ClaimId(u64);

/// A claim whose answer is on its way.
struct Claim {
    gate: GateId,
    ran: Duration,
    gateways: u32,
    /// In nanoseconds on the simulation's clock.
    slots: Vec<i64>,
}

/// What a gate has.
#[derive(Default)]
struct Gate {
    /// Slots that are not used.
    slots: Vec<Slot>,
    trips: Vec<Trip>,
    /// How many requests wait, and since when some do.
    waiting: u64,
    since: i64,
    /// When it was last told something in time.
    told: i64,
}

struct Slot {
    at: i64,
    /// By how much the gateway may take it to be earlier or later.
    error: i64,
    /// Whether the gateway may have lost it, or used it in place of one that it had lost.
    is_doubtful: bool,
}

/// A round trip to the store.
struct Trip {
    ran: Duration,
    received: Duration,
    took: i64,
}

/// How a request has left.
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
        let here = nanos(now) - call.now;
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

    /// The answer has arrived: returns whose claim it was, and how many gateways it tells of.
    ///
    /// The gateway has waited for it since `sent` at most, and has not given up.
    pub(super) fn told(
        &mut self,
        claim: ClaimId,
        sent: Duration,
        now: Duration,
    ) -> Option<(GateId, u32)> {
        let claim = self.claims.remove(&claim)?;
        // Nobody waits longer than the timeout, and tokio's timers have whole milliseconds.
        let longest = self.scenario.timeout + Duration::from_millis(2);
        let took = now.saturating_sub(sent).min(longest);
        let gate = self.gates.entry(claim.gate).or_default();
        gate.told = nanos(now);
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

    /// How many slots a gate has that are not used and of use now.
    pub(super) fn held(&self, gate: GateId, now: Duration) -> u64 {
        let slots = self.gates.get(&gate).map_or(&[][..], |gate| &gate.slots);
        let held = slots.iter().filter(|slot| slot.at + LATE >= nanos(now));
        held.count() as u64
    }

    /// Since when a gate where requests wait has no answer, if that is longer than it may be.
    ///
    /// It claims every 25 ms, and goes on alone when it has asked for 150 ms in vain.
    pub(super) fn unanswered(&self, gate: GateId, now: Duration) -> Option<Duration> {
        let gate = self.gates.get(&gate).filter(|gate| gate.waiting > 0)?;
        let span = nanos(now) - gate.since.max(gate.told);
        let span = Duration::from_nanos(span.unsigned_abs());
        (span > 3 * self.scenario.timeout + Duration::from_millis(200)).then_some(span)
    }

    pub(super) fn comes(&mut self, request: &GateRequest) {
        let gate = self.gate(request);
        gate.waiting += 1;
        if gate.waiting == 1 {
            gate.since = nanos(request.since);
        }
    }

    /// It waits no longer.
    pub(super) fn ends(&mut self, request: &GateRequest, now: Duration) -> Checked {
        // The slot of one who leaves with a turn to come is lost.
        let has_leavers = self.scenario.moods[0] > 0;
        let is_checked = self.scenario.is_plain(request.origin) && !has_leavers;
        let interval = self.scenario.origins[request.origin].rate.interval();
        let interval = nanos(interval);
        let gate = self.gate(request);
        gate.waiting = gate.waiting.saturating_sub(1);
        let lapsed = gate.lapse(nanos(now), interval);
        if is_checked && let Some(slot) = lapsed {
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
        self.gates.retain(|(of, _), _| *of != gateway);
    }

    /// How many have left in slots, and how many alone.
    pub(super) fn counts(&self) -> (u64, u64) {
        let all = self.departures.values();
        (all.map(|all| all.len() as u64).sum(), self.alone)
    }

    /// A request leaves. Returns in which way.
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
        // What a request costs beyond the first slot its gateway may owe.
        let costly = departures.iter().map(|(_, cost)| cost - 1).max();
        let owed = self.scenario.clocks.len() as f64 * f64::from(costly.unwrap_or(0));
        let is_settled = self.scenario.moods[3] > 0;
        let (mut many, mut costs) = (0.0, 0.0);
        for (first, cost) in departures.iter().rev() {
            let span = last.saturating_sub(*first);
            let most = (span + slack).as_secs_f64() / interval + 1.0 + 1e-6;
            many += 1.0;
            costs += f64::from(*cost);
            // What an answer costs less is not owed any more.
            if many > most || (!is_settled && costs > most + owed) {
                return Err(format!(
                    "{many} left in {span:?} and cost {costs}, more than {most:.2}"
                ));
            }
        }
        Ok(())
    }
}

impl Gate {
    /// Takes a slot for a request that leaves now. Returns whether there is one.
    ///
    /// A gateway uses its slots in order, and so does this. If it had lost the slot that is taken
    /// here, it used the next one that it had not: which is in doubt then, if it fits at all.
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

    /// Forgets slots that are too old. Returns one that requests have waited for all the time.
    ///
    /// Where clocks are less exact than slots are apart, nobody can say which one was used.
    fn lapse(&mut self, now: i64, interval: i64) -> Option<i64> {
        let is_old = |slot: &Slot| slot.at + LATE + slot.error + EXACT < now;
        let old = self.slots.iter().take_while(|slot| is_old(slot)).count();
        let wanted = |slot: &Slot| {
            let at = slot.at - slot.error - EXACT;
            let is_known = 2 * (slot.error + EXACT) < interval;
            is_known && self.since <= at && !slot.is_doubtful
        };
        let mut old: Vec<Slot> = self.slots.drain(..old).collect();
        old.retain(wanted);
        old.first().map(|slot| slot.at)
    }

    /// How far the gateway's estimate of the store's clock may be off.
    ///
    /// It goes by the fastest round trip of the last ten seconds at least, and is off by half of
    /// that at most (RFC 5905, section 8), and by the drift of up to twenty seconds. A jump that is
    /// less than what round trips take may not be noticed.
    fn error(&self, jumped: Option<Duration>, now: Duration) -> i64 {
        let kept = now.saturating_sub(Duration::from_secs(10));
        let lately = self.trips.iter().filter(|trip| trip.received >= kept);
        let fastest = lately.map(|trip| trip.took).min().unwrap_or(0);
        let drifts = nanos(now.min(Duration::from_secs(20))) / 20_000;
        let jumped = jumped.filter(|at| now.saturating_sub(*at) < Duration::from_secs(20));
        let unnoticed = jumped.map_or(0, |at| {
            let since = self.trips.iter().filter(|trip| trip.ran >= at);
            since.map(|trip| trip.took).min().unwrap_or(0) + 1_000_000
        });
        fastest / 2 + drifts + unnoticed
    }
}
