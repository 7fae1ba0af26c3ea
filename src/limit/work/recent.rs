//! Ring buffer of recent durations, with exact quantiles.

/// Number of durations that are kept.
const KEPT: usize = 32;

/// Recent durations in microseconds: at most [`KEPT`].
///
/// A quantile of them is exact, follows a change within [`KEPT`] durations, and needs no step size.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    times: [u32; KEPT],
    /// Number of durations.
    len: usize,
    /// Index of the next one.
    next: usize,
}

impl Recent {
    pub(super) fn push(&mut self, micros: u32) {
        if let Some(oldest) = self.times.get_mut(self.next) {
            *oldest = micros;
        }
        self.next = (self.next + 1) % KEPT;
        self.len = (self.len + 1).min(KEPT);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        (self.len, self.next) = (0, 0);
    }

    /// Returns the durations, the oldest first.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let first = (self.next + KEPT - self.len) % KEPT;
        let indexes = (first..first + self.len).map(|nth| nth % KEPT);
        indexes
            .filter_map(|nth| self.times.get(nth).copied())
            .collect()
    }

    /// Returns the shortest duration that at least `percent` of them do not exceed; `None`: empty.
    ///
    /// It is one of the durations: the nearest rank (Hyndman and Fan 1996, type 1).
    pub(super) fn quantile(&self, percent: usize) -> Option<u32> {
        let mut times = self.times;
        let times = times.get_mut(..self.len())?;
        let rank = (times.len() * percent).div_ceil(100).max(1);
        if times.is_empty() {
            return None;
        }
        let (_, found, _) = times.select_nth_unstable((rank - 1).min(times.len() - 1));
        Some(*found)
    }
}
