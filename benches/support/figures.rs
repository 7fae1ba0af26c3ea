//! Combines several rounds of a measurement into one figure.

use std::fmt;

/// The median of several rounds, and their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figure {
    /// The figure of some rounds; `None` if there are none.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self {
            median: f64::midpoint(below, above),
            least,
            most,
        })
    }

    /// The ratio of `ours` to `theirs`, round by round.
    ///
    /// A disturbance of the machine that affects both cancels out.
    pub fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let pairs = ours.iter().zip(theirs);
        Self::of(
            &pairs
                .map(|(ours, theirs)| ours / theirs)
                .collect::<Vec<_>>(),
        )
    }
}

/// Formats as `16.4 (15.9–17.0)`, or as `16.4` if all rounds were the same.
///
/// The precision sets the number of decimals: `{:.1}`.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(1);
        let Self {
            median,
            least,
            most,
        } = self;
        if least.total_cmp(most).is_eq() {
            return write!(f, "{median:.decimals$}");
        }
        write!(
            f,
            "{median:.decimals$} ({least:.decimals$}–{most:.decimals$})"
        )
    }
}

/// A cell of a table: a dash if there is no figure.
pub fn cell(figure: Option<Figure>, decimals: usize) -> String {
    figure.map_or_else(|| "—".to_owned(), |figure| format!("{figure:.decimals$}"))
}

/// Mean rate and unevenness of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Evenness {
    /// Events a second.
    pub rate: f64,
    /// Standard deviation of the gaps divided by their mean: 0 is perfectly even, 1 is pure chance.
    pub variation: f64,
}

impl Evenness {
    /// From the times of events in nanoseconds, in order; `None` for fewer than three events.
    pub fn of(moments: &[u64]) -> Option<Self> {
        if moments.len() < 3 {
            return None;
        }
        let gaps: Vec<f64> = moments
            .windows(2)
            .map(|pair| float(pair[1] - pair[0]))
            .collect();
        let count = float(gaps.len() as u64);
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        Some(Self {
            rate: 1e9 / mean,
            variation: variance.sqrt() / mean,
        })
    }
}

/// A whole number as a float. The numbers here are far below 2^52, where floats begin to round.
#[allow(clippy::cast_precision_loss)]
pub fn float(whole: u64) -> f64 {
    whole as f64
}
