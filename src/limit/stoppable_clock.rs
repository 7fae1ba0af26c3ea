//! Clock that can be stopped, for queues that can be paused.

use std::time::Duration;

use super::Moment;

/// Clock that can be stopped, and then lags behind the real one.
///
/// A queue on such a clock is paused exactly. While the clock stands, nothing becomes due and
/// nothing leaks. Afterwards everything continues as if no time had passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoppableClock {
    /// Duration by which the clock lags behind the real one while it runs.
    behind: Duration,
    /// Instant that the clock shows while it stands.
    stopped: Option<Moment>,
}

impl StoppableClock {
    /// Returns the instant that this clock shows at the real instant `real`.
    pub fn at(&self, real: Moment) -> Moment {
        self.stopped.unwrap_or_else(|| real.before(self.behind))
    }

    /// Returns whether the clock stands.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Returns the real instant at which the clock will show `shown`; `None` while it stands.
    pub fn real(&self, shown: Moment) -> Option<Moment> {
        (!self.is_stopped()).then(|| shown + self.behind)
    }

    /// Stops the clock. A clock that stands stays as it is.
    pub fn stop(&mut self, real: Moment) {
        self.stopped = Some(self.at(real));
    }

    /// Starts the clock again, at the instant at which it stands.
    pub fn go_on(&mut self, real: Moment) {
        if let Some(shown) = self.stopped.take() {
            self.behind = real.since(shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;

    #[test]
    fn a_clock_continues_from_the_instant_at_which_it_stood() {
        let mut clock = StoppableClock::default();
        assert_eq!(clock.at(at(5)), at(5));
        assert_eq!(clock.real(at(7)), Some(at(7)));
        clock.stop(at(10));
        clock.stop(at(12));
        assert!(clock.is_stopped());
        assert_eq!((clock.at(at(15)), clock.real(at(11))), (at(10), None));
        clock.go_on(at(15));
        clock.go_on(at(16));
        assert_eq!(clock.at(at(16)), at(11));
        assert_eq!(clock.real(at(11)), Some(at(16)));
        clock.stop(at(20));
        clock.go_on(at(21));
        assert_eq!(clock.at(at(21)), at(15));
    }
}
