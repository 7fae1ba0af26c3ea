//! Claims of slots of a shared grid: when a gate claims, and its behavior without an answer.
//!
//! A *slot* is an instant at which one request may leave for the origin. The *grid* is the schedule
//! of slots that several gateways share, kept in the store. A *claim* is a query to the store that
//! requests slots and reports the gate's demand. Without an answer the gate *stands alone*: it has
//! its own schedule, at a part of the rate.
//!
//! [`shared`](super::shared) uses the slots. The gateway sends the claims to the store.

#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Gate, KeyNews, Moment, Rate};

/// Longest time between two claims while requests wait.
///
/// Other gateways remove a gate that is silent for several times as long.
const CLAIM_INTERVAL_WAITING: Duration = Duration::from_millis(25);
/// Time between two claims of a gate that gets fewer slots than it requests.
///
/// Unclaimed slots are granted 15 ms ahead, so no slot is lost in between.
const CLAIM_INTERVAL_BUSY: Duration = Duration::from_millis(10);
/// Shortest time between two claims.
const MIN_INTERVAL: Duration = Duration::from_millis(2);
/// Time between two claims without waiters. The claims show other gateways that this one exists.
const CLAIM_INTERVAL_IDLE: Duration = Duration::from_secs(1);
/// Time for which a gate retries at a store that does not answer. Then it stands alone.
///
/// The gateways that reach the store still use the whole rate, and a gate that stands alone uses
/// its part in addition. So it does not stand alone after one late answer.
const STANDALONE_AFTER: Duration = Duration::from_millis(150);
/// Time for which a gate that reaches the store again waits until other gateways reach it, too.
const REJOIN_AFTER: Duration = Duration::from_secs(1);
/// Divisor of the rate for a gate that stands alone and does not know the number of gateways.
const DEFAULT_PARTS: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Answer to a claim, with instants on the gateway's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct GridAnswer {
    /// Number of gateways that share the grid, including this one.
    pub gateways: NonZeroU32,
    /// Part of the rate that this gateway has, above 0 and at most 1.
    pub part: f64,
    /// Effective rate: that of the newest configuration.
    pub rate: Rate,
    /// First free slot.
    pub free: Moment,
    /// Instant from which another claim would be granted more slots.
    pub again: Moment,
    /// Part of each class's weight that counts here, by the hash of the
    /// [class](super::ClassDemand).
    pub classes: Vec<(u32, f64)>,
    /// News of the keys that wait here.
    pub keys: KeyNews,
    /// Granted slots.
    pub slots: Vec<Moment>,
}

/// Source of the slots of a gate that shares its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The shared grid.
    Grid,
    /// A schedule of its own, at an equal part of the rate: the rate divided by this number.
    Alone(NonZeroU32),
}

/// State of a gate. The number is that of [`Sharing::Alone`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The gate takes slots of the grid.
    #[default]
    Grid,
    /// The store is unreachable. The gate has a schedule of its own.
    Out(NonZeroU32),
    /// The store is reachable again since this instant. The gate still has a schedule of its own,
    /// and waits until the other gateways reach the store, too.
    Settling(NonZeroU32, Moment),
}

/// Decides when a gate claims slots of the shared grid.
///
/// At most one claim is in flight. A gate without waiters sends an empty claim once a second, to be
/// counted.
#[derive(Debug, Default)]
pub struct Claims {
    mode: Mode,
    /// Number of gateways that share the grid, as last reported by the store.
    reported: Option<NonZeroU32>,
    /// Number of gateways that share the grid, as configured.
    expected: Option<NonZeroU32>,
    /// Part of the rate that this gateway has, as last reported by the store.
    part: f64,
    /// Whether a claim was sent that has no answer yet.
    is_under_way: bool,
    /// Instant of the first claim without an answer since the last answer.
    silent_since: Option<Moment>,
    /// Instant at which the last claim was sent.
    last_claim: Moment,
    /// Instant from which another claim is granted more slots, as last reported.
    again: Moment,
    /// Whether requests waited at the last claim.
    waited: bool,
    /// Number of slots that the last claim requested.
    requested: u64,
    /// Whether all requested slots were granted.
    is_satisfied: bool,
}

impl Claims {
    /// Creates the claims of a gate that begins to share its rate.
    ///
    /// `expected` is the configured number of gateways. It applies until the store reports the
    /// number.
    pub fn new(expected: Option<NonZeroU32>) -> Self {
        Self {
            expected,
            part: 1.0,
            is_satisfied: true,
            ..Self::default()
        }
    }

    /// Changes the configured number of gateways. It applies until the store reports the number.
    pub fn expect(&mut self, expected: Option<NonZeroU32>) {
        self.expected = expected;
    }

    /// Returns the current source of slots.
    pub fn sharing(&self) -> Sharing {
        match self.mode {
            Mode::Grid => Sharing::Grid,
            Mode::Out(parts) | Mode::Settling(parts, _) => Sharing::Alone(parts),
        }
    }

    /// Returns the number of gateways that share the rate, if it is known.
    pub fn gateways(&self) -> Option<NonZeroU32> {
        self.reported.or(self.expected)
    }

    /// Returns the gate's current part of the rate, above 0 and at most 1.
    pub fn part(&self) -> f64 {
        match self.sharing() {
            Sharing::Grid => self.part,
            Sharing::Alone(parts) => 1.0 / f64::from(parts.get()),
        }
    }

    /// Returns when the next claim is due. `None`: one is in flight, or the store is unreachable.
    pub fn due<K: Hash + Eq + Clone, W>(&self, gate: &Gate<K, W>, now: Moment) -> Option<Moment> {
        if self.is_under_way {
            return None;
        }
        let after = |span| Some(self.last_claim + span);
        match self.mode {
            Mode::Out(_) => return None,
            Mode::Settling(..) => return after(CLAIM_INTERVAL_WAITING),
            Mode::Grid => {}
        }
        if gate.slots_to_request(now) == 0 {
            let is_waiting = self.waited || gate.depth() > 0;
            return after(if is_waiting {
                CLAIM_INTERVAL_WAITING
            } else {
                CLAIM_INTERVAL_IDLE
            });
        }
        let interval = match (self.is_satisfied, gate.granted_slots(now) > 0) {
            // All was granted, so these requests came since the last claim.
            (true, true) => return after(MIN_INTERVAL),
            // The first of them has no slot: it must not wait for the next claim.
            (true, false) => return after(Duration::ZERO),
            (false, true) => CLAIM_INTERVAL_BUSY,
            (false, false) => MIN_INTERVAL,
        };
        let latest = self.last_claim + CLAIM_INTERVAL_WAITING;
        Some(self.again.clamp(self.last_claim + interval, latest))
    }

    /// Records that a claim for `requested` slots is sent. `waits`: it reports waiters.
    pub fn sent(&mut self, requested: u64, waits: bool, now: Moment) {
        (self.is_under_way, self.last_claim) = (true, now);
        (self.requested, self.waited) = (requested, waits);
    }

    /// Applies the store's answer: the gate gets its slots, or joins the grid again.
    pub fn answered<K: Hash + Eq + Clone, W>(
        &mut self,
        gate: &mut Gate<K, W>,
        answer: &GridAnswer,
        now: Moment,
    ) {
        (self.is_under_way, self.silent_since) = (false, None);
        self.reported = Some(answer.gateways);
        (self.part, self.again) = (answer.part, answer.again);
        match self.mode {
            Mode::Out(parts) => self.mode = Mode::Settling(parts, now),
            // A gateway alone on the grid would take the whole rate, while others still have their
            // own schedules.
            Mode::Settling(parts, since) => {
                if answer.gateways >= parts || now.since(since) >= REJOIN_AFTER {
                    self.mode = Mode::Grid;
                }
            }
            Mode::Grid => {}
        }
        if self.mode == Mode::Grid {
            gate.share_grid();
            gate.set_class_parts(&answer.classes);
            gate.receive_key_news(&answer.keys);
            gate.grant(&answer.slots, answer.free, answer.part, now);
        }
        self.is_satisfied = answer.slots.len() as u64 >= self.requested;
    }

    /// Records that a claim failed: the gate tries again, and later stands alone.
    pub fn failed<K: Hash + Eq + Clone, W>(&mut self, gate: &mut Gate<K, W>, now: Moment) {
        self.is_under_way = false;
        let since = *self.silent_since.get_or_insert(self.last_claim);
        if self.mode == Mode::Grid && now.since(since) < STANDALONE_AFTER {
            (self.again, self.is_satisfied) = (now, false);
            gate.keys_unanswered();
            return;
        }
        self.silent_since = None;
        let parts = match self.mode {
            Mode::Grid => self.gateways().unwrap_or(DEFAULT_PARTS),
            Mode::Out(parts) | Mode::Settling(parts, _) => parts,
        };
        self.mode = Mode::Out(parts);
        gate.stand_alone(parts, now);
    }

    /// Records that a probe of the caller reached the store again: the next claim is due at once.
    pub fn found(&mut self, now: Moment) {
        if let Mode::Out(parts) = self.mode {
            self.mode = Mode::Settling(parts, now);
            self.last_claim = Moment::default();
        }
    }
}
