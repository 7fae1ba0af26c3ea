//! Values over time, in bounded memory.

/// Maximum number of columns. If there are more, pairs of columns are joined.
const MAX_COLUMNS: usize = 2048;

/// Rule for combining two values in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The values are added.
    Sum,
    /// The larger value is kept.
    Peak,
}

/// Values over time, in bounded memory: columns get wider as time goes on.
#[derive(Clone, Debug)]
pub struct Timeline<const N: usize> {
    /// Rule of each row.
    joins: [Join; N],
    /// Width of a column, in nanoseconds.
    width: u64,
    /// Start of the first column, in nanoseconds; `None` without values.
    begin: Option<u64>,
    columns: Vec<[u64; N]>,
}

impl Join {
    /// Combines two values.
    fn of(self, one: u64, other: u64) -> u64 {
        match self {
            Self::Sum => one.saturating_add(other),
            Self::Peak => one.max(other),
        }
    }
}

impl<const N: usize> Timeline<N> {
    /// Creates a timeline. Its columns are `width` nanoseconds wide at first.
    pub fn new(width: u64, joins: [Join; N]) -> Self {
        Self {
            joins,
            width: width.max(1),
            begin: None,
            columns: Vec::new(),
        }
    }

    /// Adds a value to row `row` at time `at`, in nanoseconds.
    ///
    /// A value before the first column goes into the first column.
    pub fn put(&mut self, at: u64, row: usize, value: u64) {
        let begin = *self.begin.get_or_insert(at - at % self.width);
        let ahead = at.saturating_sub(begin);
        while ahead / self.width >= MAX_COLUMNS as u64 {
            self.halve();
        }
        let column = usize::try_from(ahead / self.width).unwrap_or(MAX_COLUMNS);
        if column >= self.columns.len() {
            self.columns.resize(column + 1, [0; N]);
        }
        if let (Some(known), Some(join)) = (self.columns[column].get_mut(row), self.joins.get(row))
        {
            *known = join.of(*known, value);
        }
    }

    /// Joins pairs of columns, which doubles their width.
    fn halve(&mut self) {
        let pairs = self.columns.chunks(2);
        let joined = pairs.map(|pair| {
            let mut both = pair[0];
            if let Some(second) = pair.get(1) {
                for (row, other) in second.iter().enumerate() {
                    both[row] = self.joins[row].of(both[row], *other);
                }
            }
            both
        });
        self.columns = joined.collect();
        self.width = self.width.saturating_mul(2);
    }

    /// Returns the column width for at most `most` columns, in nanoseconds.
    pub fn width_of(&self, most: usize) -> u64 {
        let (mut count, mut width) = (self.columns.len(), self.width);
        while count > most.max(1) {
            count = count.div_ceil(2);
            width = width.saturating_mul(2);
        }
        width
    }

    /// Returns the same timeline in columns of at least `width` nanoseconds.
    pub fn coarser(&self, width: u64) -> Self {
        let mut coarser = self.clone();
        while coarser.width < width {
            coarser.halve();
        }
        coarser
    }

    /// Returns the start of the first column, in nanoseconds.
    pub fn begin(&self) -> u64 {
        self.begin.unwrap_or_default()
    }

    /// Returns the width of a column, in nanoseconds.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Returns the values, column by column.
    pub fn columns(&self) -> &[[u64; N]] {
        &self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_wider_and_lose_nothing() {
        let mut line = Timeline::new(10, [Join::Sum, Join::Sum, Join::Peak]);
        for at in 0..100_000u64 {
            line.put(1_000 + at, 0, 1);
            line.put(1_000 + at, 2, at % 777);
        }
        line.put(1_005, 1, 7);
        // Earlier than the first value.
        line.put(3, 1, 1);
        let sum = |line: &Timeline<3>| line.columns().iter().map(|column| column[0]).sum::<u64>();
        assert_eq!(sum(&line), 100_000);
        assert_eq!((line.columns()[0][1], line.columns()[1][1]), (8, 0));
        let found = line.columns().iter().map(|column| column[2]).max();
        assert_eq!(found, Some(776));
        assert!(line.columns().len() <= MAX_COLUMNS);
        assert_eq!((line.begin(), line.width()), (1_000, 80));
        let coarse = line.coarser(line.width_of(100));
        assert!(coarse.columns().len() <= 100);
        assert_eq!(sum(&coarse), 100_000);
    }

    #[test]
    fn a_gap_of_years_takes_no_time() {
        let mut line = Timeline::new(1, [Join::Sum]);
        line.put(0, 0, 1);
        line.put(u64::MAX, 0, 1);
        let found = line.columns().iter().map(|column| column[0]).sum::<u64>();
        assert_eq!(found, 2);
    }
}
