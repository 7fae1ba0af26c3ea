use std::fmt;
use std::str::FromStr;

use super::series::series;

/// Most figures of an experiment.
pub const MAX_FIGURES: usize = 4;

/// A bound on a figure of the origin's own, in Prometheus' text format: `node_load1 < 8`.
///
/// ```
/// use drip::limit::find::FigureBound;
///
/// let bound: FigureBound = r#"node_load1{instance="a"} < 8"#.parse()?;
/// let text = "# HELP node_load1 1m load average.\nnode_load1{instance=\"a\"} 0.5\n";
/// assert_eq!(bound.worst_of(text), Some(0.5));
/// assert!(bound.holds(0.5) && !bound.holds(8.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FigureBound {
    name: String,
    /// Labels that a series must have; it may have others, too.
    labels: Vec<(String, String)>,
    /// Whether the figure must be below the bound, not above it.
    is_upper: bool,
    bound: f64,
}

impl FigureBound {
    /// Whether a figure is within the bound.
    #[must_use]
    pub fn holds(&self, figure: f64) -> bool {
        if self.is_upper {
            figure < self.bound
        } else {
            figure > self.bound
        }
    }

    /// Of two figures, that nearer to the bound or further beyond it.
    #[must_use]
    pub fn worse(&self, one: f64, other: f64) -> f64 {
        if self.is_upper {
            one.max(other)
        } else {
            one.min(other)
        }
    }

    /// The worst of all series in a text that have this name and these labels; `None` without one.
    #[must_use]
    pub fn worst_of(&self, text: &str) -> Option<f64> {
        let figures = text.lines().filter_map(|line| self.figure(line));
        figures.reduce(|one, other| self.worse(one, other))
    }

    fn figure(&self, line: &str) -> Option<f64> {
        if !line.starts_with(&self.name) {
            return None;
        }
        let series = series(line)?;
        let has = |(name, value): &(String, String)| {
            let mut labels = series.labels.iter();
            labels.any(|(label, of)| label == name && of == value)
        };
        if series.name != self.name || !self.labels.iter().all(has) {
            return None;
        }
        let figure: f64 = series.rest.split_whitespace().next()?.parse().ok()?;
        (!figure.is_nan()).then_some(figure)
    }

    /// The name and the labels, without the bound.
    #[must_use]
    pub fn figure_name(&self) -> String {
        let labels = self.labels.iter();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        if labels.is_empty() {
            return self.name.clone();
        }
        format!("{}{{{}}}", self.name, labels.join(","))
    }

    /// The bound, and whether figures must be below it.
    #[must_use]
    pub fn bound(&self) -> (f64, bool) {
        (self.bound, self.is_upper)
    }
}

impl FromStr for FigureBound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it must be a figure and its bound, such as node_load1 < 8".to_owned();
        let at = text.rfind(['<', '>']).ok_or_else(wrong)?;
        let (figure, bound) = text.split_at(at);
        let is_upper = bound.starts_with('<');
        let bound: f64 = bound[1..].trim().parse().map_err(|_| wrong())?;
        let series = series(figure).filter(|it| it.rest.trim().is_empty());
        let series = series.filter(|_| bound.is_finite()).ok_or_else(wrong)?;
        let labels = series.labels.into_iter();
        Ok(Self {
            name: series.name.to_owned(),
            labels: labels
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            is_upper,
            bound,
        })
    }
}

impl fmt::Display for FigureBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_upper { '<' } else { '>' };
        write!(f, "{}{sign}{}", self.figure_name(), self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE load gauge\n\
        load_5 9\n\
        load{cpu=\"0\"} 1\n\
        load{cpu=\"1\",node=\"a\"} 3.5 1700000000000\n\
        load{cpu=\"2\"} NaN\n\
        free 2e9\n";

    #[test]
    fn the_worst_of_the_series_counts() {
        for (text, figure) in [
            ("load < 8", Some(3.5)),
            ("load > 0.5", Some(1.0)),
            ("load{cpu=\"0\"}<8", Some(1.0)),
            ("load{node=\"a\"} < 8", Some(3.5)),
            ("load{cpu=\"2\"} < 8", None),
            ("free > 1e9", Some(2e9)),
            ("fre < 1", None),
            ("other < 1", None),
        ] {
            let bound: FigureBound = text.parse().unwrap();
            assert_eq!(bound.worst_of(TEXT), figure, "{text}");
        }
    }

    #[test]
    fn a_bound_is_shown_as_it_is_read() {
        let bound: FigureBound = "load{cpu=\"0\"}  <  8".parse().unwrap();
        assert_eq!(bound.to_string(), "load{cpu=\"0\"}<8");
        assert_eq!(bound.to_string().parse(), Ok(bound));
        for wrong in [
            "",
            "load",
            "load < many",
            "< 8",
            "load < inf",
            "load 3 < 8",
            "a = 3",
        ] {
            assert!(wrong.parse::<FigureBound>().is_err(), "{wrong}");
        }
    }
}
