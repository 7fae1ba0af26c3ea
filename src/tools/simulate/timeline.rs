//! Counts of requests over time, in bounded memory.
//!
//! A column holds the counts of one part of the time. All columns are equally wide.

/// Maximum number of columns. If there are more, pairs of columns are merged.
const MAX_COLUMNS: usize = 2048;

/// Counts of requests in one part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) arrived: u64,
    /// Requests that were let through.
    pub(super) departed: u64,
    pub(super) rejected: u64,
    /// Requests that began to wait.
    pub(super) joined: u64,
    /// Requests whose wait ended.
    pub(super) drained: u64,
    /// Highest number of requests that waited at once.
    pub(super) deepest: u64,
}

impl Column {
    /// Adds the next column to this one.
    fn merge(&mut self, next: &Self) {
        self.arrived += next.arrived;
        self.departed += next.departed;
        self.rejected += next.rejected;
        self.joined += next.joined;
        self.drained += next.drained;
        self.deepest = self.deepest.max(next.deepest);
    }
}

/// Counts over time, in bounded memory: columns get wider as time goes on.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// Width of a column, in nanoseconds.
    pub(super) width: u64,
    /// Start of the first column, in nanoseconds; `None` without columns.
    begin: Option<u64>,
    pub(super) columns: Vec<Column>,
}

impl Timeline {
    /// Creates a timeline. Its columns are `width` nanoseconds wide at first.
    pub(super) fn new(width: u64) -> Self {
        Self {
            width: width.max(1),
            begin: None,
            columns: Vec::new(),
        }
    }

    /// Returns the column at `time`, in nanoseconds; the first one for any time before it.
    pub(super) fn column(&mut self, time: u64) -> &mut Column {
        let begin = *self.begin.get_or_insert(time - time % self.width);
        let elapsed = time.saturating_sub(begin);
        while elapsed / self.width >= MAX_COLUMNS as u64 {
            self.merge_pairs();
        }
        let index = usize::try_from(elapsed / self.width).unwrap_or(MAX_COLUMNS);
        if index >= self.columns.len() {
            self.columns.resize(index + 1, Column::default());
        }
        &mut self.columns[index]
    }

    /// Merges pairs of columns, which doubles their width.
    fn merge_pairs(&mut self) {
        let pairs = self.columns.chunks(2);
        let merged = pairs.map(|pair| {
            let mut both = pair[0];
            pair[1..].iter().for_each(|next| both.merge(next));
            both
        });
        self.columns = merged.collect();
        self.width = self.width.saturating_mul(2);
    }

    /// Returns the same timeline in at most `max_columns` columns.
    pub(super) fn coarser(&self, max_columns: usize) -> Self {
        let mut coarser = self.clone();
        while coarser.columns.len() > max_columns.max(1) {
            coarser.merge_pairs();
        }
        coarser
    }

    /// Returns the start of the first column, in nanoseconds.
    pub(super) fn begin(&self) -> u64 {
        self.begin.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_wider_and_lose_nothing() {
        let mut timeline = Timeline::new(10);
        for time in 0..100_000u64 {
            let column = timeline.column(1_000 + time);
            column.arrived += 1;
            column.deepest = column.deepest.max(time % 777);
        }
        timeline.column(1_005).departed += 7;
        // Earlier than the first value.
        timeline.column(3).departed += 1;
        let sum = |timeline: &Timeline| timeline.columns.iter().map(|it| it.arrived).sum::<u64>();
        assert_eq!(sum(&timeline), 100_000);
        let departed = [timeline.columns[0].departed, timeline.columns[1].departed];
        assert_eq!(departed, [8, 0]);
        let deepest = timeline.columns.iter().map(|column| column.deepest).max();
        assert_eq!(deepest, Some(776));
        assert!(timeline.columns.len() <= MAX_COLUMNS);
        assert_eq!((timeline.begin(), timeline.width), (1_000, 80));
        let coarse = timeline.coarser(100);
        assert!(coarse.columns.len() <= 100);
        assert_eq!(sum(&coarse), 100_000);
    }

    #[test]
    fn a_gap_of_years_takes_no_time() {
        let mut timeline = Timeline::new(1);
        timeline.column(0).arrived += 1;
        timeline.column(u64::MAX).arrived += 1;
        let found = timeline.columns.iter().map(|it| it.arrived).sum::<u64>();
        assert_eq!(found, 2);
    }
}
