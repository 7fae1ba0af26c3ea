//! Reduces a line of millions of points to the points that can be seen.

/// Maximum number of points of a line. Lines with more points are reduced.
///
/// It is four for each column, with about as many columns as a chart has pixels.
pub(super) const DRAWN: usize = 4 * COLUMNS;

const COLUMNS: usize = 1200;

/// `points`, or if there are too many, the points that give the same picture.
///
/// These are the first, the lowest, the highest and the last of each column. Points are divided
/// into columns by their index, so they need not be in order.
pub(super) fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= DRAWN {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(DRAWN);
    for column in points.chunks(points.len().div_ceil(COLUMNS)) {
        let by_height = |one: &(usize, f64), other: &(usize, f64)| one.1.total_cmp(&other.1);
        let heights = || column.iter().map(|(_, height)| *height).enumerate();
        let lowest = heights().min_by(by_height).map_or(0, |(at, _)| at);
        let highest = heights().max_by(by_height).map_or(0, |(at, _)| at);
        let mut seen = vec![0, lowest, highest, column.len() - 1];
        seen.sort_unstable();
        seen.dedup();
        kept.extend(seen.into_iter().map(|index| column[index]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_stay_and_the_rest_is_bounded() {
        let mut points: Vec<(f64, f64)> = (0..1_000_000).map(|x| (f64::from(x), 1.0)).collect();
        points[123_456].1 = 99.0;
        points[654_321].1 = -99.0;
        let thin = thinned(&points);
        assert!(thin.len() <= DRAWN);
        assert!(thin.contains(&(123_456.0, 99.0)) && thin.contains(&(654_321.0, -99.0)));
        assert_eq!(thin.first(), points.first());
        assert_eq!(thin.last(), points.last());
        assert!(thin.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(thinned(&points[..10]), points[..10]);
    }
}
