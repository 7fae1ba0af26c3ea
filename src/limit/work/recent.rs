//! Recent durations, with exact quantiles.

/// Number of durations that are kept.
const KEPT: usize = 32;

/// Recent durations in microseconds: at most [`KEPT`].
///
/// A quantile of them is exact, follows a change within [`KEPT`] durations, and needs no step size.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    /// The last `len` elements are the durations, the oldest first.
    times: [u32; KEPT],
    len: usize,
}

impl Recent {
    pub(super) fn push(&mut self, micros: u32) {
        self.times.rotate_left(1);
        self.times[KEPT - 1] = micros;
        self.len = (self.len + 1).min(KEPT);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the durations, the oldest first.
    pub(super) fn in_order(&self) -> &[u32] {
        &self.times[KEPT - self.len..]
    }

    /// Returns the shortest duration that at least `percent` of all do not exceed; `None`: empty.
    ///
    /// It is one of the durations: the nearest rank (Hyndman and Fan 1996, type 1).
    pub(super) fn quantile(&self, percent: usize) -> Option<u32> {
        let mut times = self.times;
        let times = &mut times[KEPT - self.len..];
        times.sort_unstable();
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied()
    }
}
