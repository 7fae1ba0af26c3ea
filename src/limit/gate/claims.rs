//! When a gate claims slots of the grid that it shares, and what it does while nobody answers.

#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Gate, KeyNews, Moment, Rate};

/// Longest time between two claims while requests wait. Others count a gate that is silent for
/// several times as long as gone.
const WAITING: Duration = Duration::from_millis(25);
/// Time between two claims of a gate that cannot get all it wants. What others leave is granted
/// 15 ms ahead, so nothing is lost between them.
const CLAIM_INTERVAL_BUSY: Duration = Duration::from_millis(10);
/// Least time between two claims.
const MIN_INTERVAL: Duration = Duration::from_millis(2);
/// Time between two claims while nothing waits, so that others know how many share the grid.
const IDLE: Duration = Duration::from_secs(1);
/// How long a gate goes on asking a store that does not answer.
///
/// A gate that goes on alone sends its part on top of what others send that reach the store. So one
/// late answer is no reason to.
const STANDALONE_AFTER: Duration = Duration::from_millis(150);
/// How long a gate that is back waits until the others are back, too.
const REJOIN_AFTER: Duration = Duration::from_secs(1);
/// The part that a gate takes alone if nobody has told how many share the rate: a tenth.
const UNKNOWN: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The answer to a claim, with times on the gateway's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct GridAnswer {
    /// Gateways that share the grid, with this one.
    pub gateways: NonZeroU32,
    /// This gateway's part of the rate, above 0 and at most 1.
    pub part: f64,
    /// The rate in force: that of the newest file.
    pub rate: Rate,
    /// The first slot that nobody has.
    pub free: Moment,
    /// When another claim would be granted more.
    pub again: Moment,
    /// Which part of each of its classes waits here, by the [class](super::ClassDemand)'s hash.
    pub classes: Vec<(u32, f64)>,
    /// What it tells of the keys that wait here.
    pub keys: KeyNews,
    /// The slots that were granted.
    pub slots: Vec<Moment>,
}

/// How a gate that shares its rate gets slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// From the shared grid.
    Grid,
    /// From a schedule of its own, at an equal part of the rate.
    Alone(NonZeroU32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It takes slots of the grid.
    Grid,
    /// It cannot reach the store.
    Out(NonZeroU32),
    /// It reaches the store again, and waits until the others do.
    Settling(NonZeroU32, Moment),
}

/// When a gate claims slots of the shared grid.
///
/// One claim is under way at a time. A gate without waiters claims nothing, and tells once a
/// second that it is there.
#[derive(Debug)]
pub struct Claims {
    mode: Mode,
    /// How many share the grid, as last told.
    told: Option<NonZeroU32>,
    /// The same, as the file says.
    expected: Option<NonZeroU32>,
    part: f64,
    is_under_way: bool,
    /// Since when the store has not answered.
    silent: Option<Moment>,
    /// When the last claim was sent.
    last: Moment,
    /// When another one is granted more.
    again: Moment,
    /// Whether something waited at the last claim, and how many slots it was for.
    waited: bool,
    wanted: u64,
    /// Whether it was granted all of them.
    is_satisfied: bool,
}

impl Claims {
    /// For a gate that has just begun to share its rate. `expected`: how many gateways share it,
    /// until the store has told.
    pub fn new(expected: Option<NonZeroU32>) -> Self {
        Self {
            mode: Mode::Grid,
            told: None,
            expected,
            part: 1.0,
            is_under_way: false,
            silent: None,
            last: Moment::default(),
            again: Moment::default(),
            waited: false,
            wanted: 0,
            is_satisfied: true,
        }
    }

    /// Changes how many gateways share the rate, until the store has told.
    pub fn expect(&mut self, expected: Option<NonZeroU32>) {
        self.expected = expected;
    }

    /// How the gate gets its slots now.
    pub fn sharing(&self) -> Sharing {
        match self.mode {
            Mode::Grid => Sharing::Grid,
            Mode::Out(parts) | Mode::Settling(parts, _) => Sharing::Alone(parts),
        }
    }

    /// How many gateways share the rate, as far as is known.
    pub fn gateways(&self) -> Option<NonZeroU32> {
        self.told.or(self.expected)
    }

    /// The gate's part of the rate now, above 0 and at most 1.
    pub fn part(&self) -> f64 {
        match self.sharing() {
            Sharing::Grid => self.part,
            Sharing::Alone(parts) => 1.0 / f64::from(parts.get()),
        }
    }

    /// When the next claim is due; `None` while one is under way, or the store cannot be reached.
    pub fn due<K: Hash + Eq + Clone, W>(&self, gate: &Gate<K, W>, now: Moment) -> Option<Moment> {
        if self.is_under_way {
            return None;
        }
        let after = |span| Some(self.last + span);
        match self.mode {
            Mode::Out(_) => return None,
            Mode::Settling(..) => return after(WAITING),
            Mode::Grid => {}
        }
        if gate.wanted_slots(now) == 0 {
            let is_waiting = self.waited || gate.depth() > 0;
            return after(if is_waiting { WAITING } else { IDLE });
        }
        let (soon, least) = if gate.granted_slots(now) > 0 {
            (MIN_INTERVAL, CLAIM_INTERVAL_BUSY)
        } else {
            (Duration::ZERO, MIN_INTERVAL)
        };
        if self.is_satisfied {
            // Who came since then; the first one does not wait for others.
            return after(soon);
        }
        Some(self.again.clamp(self.last + least, self.last + WAITING))
    }

    /// Notes that a claim is sent for so many slots.
    ///
    /// `waits`: whether it tells that something waits.
    pub fn sent(&mut self, wanted: u64, waits: bool, now: Moment) {
        (self.is_under_way, self.last) = (true, now);
        (self.wanted, self.waited) = (wanted, waits);
    }

    /// The store answered: the gate gets its slots, or joins the grid again.
    pub fn answered<K: Hash + Eq + Clone, W>(
        &mut self,
        gate: &mut Gate<K, W>,
        answer: &GridAnswer,
        now: Moment,
    ) {
        (self.is_under_way, self.silent) = (false, None);
        self.told = Some(answer.gateways);
        (self.part, self.again) = (answer.part, answer.again);
        match self.mode {
            Mode::Out(parts) => self.mode = Mode::Settling(parts, now),
            // So that nobody takes the whole rate while others still send alone.
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
            gate.hear_keys(&answer.keys);
            gate.grant(&answer.slots, answer.free, answer.part, now);
        }
        self.is_satisfied = answer.slots.len() as u64 >= self.wanted;
    }

    /// The store did not answer a claim: the gate tries again, and then goes on alone.
    pub fn failed<K: Hash + Eq + Clone, W>(&mut self, gate: &mut Gate<K, W>, now: Moment) {
        self.is_under_way = false;
        let since = *self.silent.get_or_insert(self.last);
        if self.mode == Mode::Grid && now.since(since) < STANDALONE_AFTER {
            (self.again, self.is_satisfied) = (now, false);
            gate.keys_unanswered();
            return;
        }
        self.silent = None;
        let parts = match self.mode {
            Mode::Grid => self.gateways().unwrap_or(UNKNOWN),
            Mode::Out(parts) | Mode::Settling(parts, _) => parts,
        };
        self.mode = Mode::Out(parts);
        gate.stand_alone(parts, now);
    }

    /// The store can be reached again, as a probe has found: the next claim is due at once.
    pub fn found(&mut self, now: Moment) {
        if let Mode::Out(parts) = self.mode {
            self.mode = Mode::Settling(parts, now);
            self.last = Moment::default();
        }
    }
}
