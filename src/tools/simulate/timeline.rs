//! Counts of requests over time, in bounded memory.

/// Maximum number of columns. If there are more, pairs of columns are joined.
const MAX_COLUMNS: usize = 2048;

/// Counts of requests in a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) arrived: u64,
    pub(super) departed: u64,
    pub(super) rejected: u64,
    /// Requests that began to wait.
    pub(super) joined: u64,
    /// Requests that ended their wait.
    pub(super) drained: u64,
    /// Highest number of requests that waited at once.
    pub(super) deepest: u64,
}

impl Column {
    /// Adds the next column to this one.
    fn join(&mut self, next: &Self) {
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
            self.halve();
        }
        let index = usize::try_from(elapsed / self.width).unwrap_or(MAX_COLUMNS);
        if index >= self.columns.len() {
            self.columns.resize(index + 1, Column::default());
        }
        &mut self.columns[index]
    }

    /// Joins pairs of columns, which doubles their width.
    fn halve(&mut self) {
        let pairs = self.columns.chunks(2);
        let joined = pairs.map(|pair| {
            let mut both = pair[0];
            pair[1..].iter().for_each(|next| both.join(next));
            both
        });
        self.columns = joined.collect();
        self.width = self.width.saturating_mul(2);
    }

    /// Returns the same timeline in at most `max_columns` columns.
    pub(super) fn coarser(&self, max_columns: usize) -> Self {
        let mut coarser = self.clone();
        while coarser.columns.len() > max_columns.max(1) {
            coarser.halve();
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
        let mut line = Timeline::new(10);
        for time in 0..100_000u64 {
            let column = line.column(1_000 + time);
            column.arrived += 1;
            column.deepest = column.deepest.max(time % 777);
        }
        line.column(1_005).departed += 7;
        // Earlier than the first value.
        line.column(3).departed += 1;
        let sum = |line: &Timeline| line.columns.iter().map(|it| it.arrived).sum::<u64>();
        assert_eq!(sum(&line), 100_000);
        let departed = [line.columns[0].departed, line.columns[1].departed];
        assert_eq!(departed, [8, 0]);
        let deepest = line.columns.iter().map(|column| column.deepest).max();
        assert_eq!(deepest, Some(776));
        assert!(line.columns.len() <= MAX_COLUMNS);
        assert_eq!((line.begin(), line.width), (1_000, 80));
        let coarse = line.coarser(100);
        assert!(coarse.columns.len() <= 100);
        assert_eq!(sum(&coarse), 100_000);
    }

    #[test]
    fn a_gap_of_years_takes_no_time() {
        let mut line = Timeline::new(1);
        line.column(0).arrived += 1;
        line.column(u64::MAX).arrived += 1;
        let found = line.columns.iter().map(|it| it.arrived).sum::<u64>();
        assert_eq!(found, 2);
    }
}
