//! The clocks of simulated gateways, which are wrong and drift.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use limit::Moment;

use super::random::Random;
use super::world::World;
use crate::time::simulated::SimulatedTime;

/// Time that a correct clock shows at the beginning.
pub(super) const EPOCH: Moment = Moment::from_nanos(1_800_000_000_000_000_000);

/// Clock of a gateway: wrong from the start, and too fast or too slow.
///
/// Like the machine's monotonic clock it does not jump. A restarted gateway may have another clock.
pub(super) struct SkewedClock {
    world: Rc<World>,
    skew: Skew,
}

/// Error of a clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skew {
    /// Error at the beginning, in nanoseconds. Positive values are ahead.
    pub(super) ahead: i64,
    /// Drift in millionths. Positive values are too fast.
    pub(super) ppm: i32,
}

impl Skew {
    /// Draws the error of a clock: up to ten seconds, and up to 50 millionths of drift.
    pub(super) fn new(random: &mut Random, has_drift: bool) -> Self {
        let ahead = random.number(0..20_000_000_000);
        // 50 is no drift: from -50 to 50 millionths.
        let ppm = if has_drift { random.number(0..101) } else { 50 };
        Self {
            ahead: i64::try_from(ahead).unwrap_or(0) - 10_000_000_000,
            ppm: i32::try_from(ppm).unwrap_or(0) - 50,
        }
    }

    /// Returns the time that the clock shows at a time of the simulation.
    fn shows(self, time: Duration) -> i128 {
        let time = i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        i128::from(EPOCH.as_nanos())
            + i128::from(self.ahead)
            + time
            + (time * i128::from(self.ppm)).div_euclid(1_000_000)
    }

    /// Returns the first time of the simulation at which the clock shows `moment`.
    fn time_of(self, moment: Moment) -> Duration {
        let moment = i128::from(moment.as_nanos());
        let passed = moment - i128::from(EPOCH.as_nanos()) - i128::from(self.ahead);
        // The division may be off by a few nanoseconds: one of the next five times is exact.
        let guess = passed * 1_000_000 / (1_000_000 + i128::from(self.ppm)) - 2;
        let guess = u64::try_from(guess.max(0)).unwrap_or(u64::MAX);
        let times = (0..5).map(|more| Duration::from_nanos(guess.saturating_add(more)));
        let mut reached = times.filter(|time| self.shows(*time) >= moment);
        reached.next().unwrap_or(Duration::from_nanos(guess))
    }
}

impl SkewedClock {
    pub(super) fn new(world: &Rc<World>, skew: Skew) -> Self {
        let world = Rc::clone(world);
        Self { world, skew }
    }
}

impl fmt::Debug for SkewedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.skew.fmt(f)
    }
}

impl SimulatedTime for SkewedClock {
    fn now(&self) -> Moment {
        let shown = self.skew.shows(self.world.now());
        Moment::from_nanos(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, moment: Moment) -> LocalBoxFuture<'static, ()> {
        let due = self.skew.time_of(moment);
        self.world.sleep_until(due).boxed_local()
    }
}
