//! A panel of a chart: axes and data.

use super::scale::{Range, count};
use super::thin::thinned;

/// One panel of a chart: a pair of axes, and the data between them.
#[derive(Clone, Debug)]
pub struct Panel {
    pub(super) y_label: String,
    pub(super) x_label: Option<String>,
    pub(super) series: Vec<Series>,
    pub(super) marks: Vec<Mark>,
    pub(super) names: Vec<String>,
    pub(super) log_y: bool,
    pub(super) height: f64,
    /// Range that the horizontal axis covers at least.
    pub(super) min_x_range: Range,
}

/// A data series and the way it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Step,
    Bars,
}

/// A value marked by a dotted line.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) text: String,
    pub(super) at: f64,
    pub(super) is_vertical: bool,
}

impl Panel {
    /// An empty panel. `y_label` names the vertical axis and its unit.
    #[must_use]
    pub fn new(y_label: impl Into<String>) -> Self {
        Self {
            y_label: y_label.into(),
            x_label: None,
            series: Vec::new(),
            marks: Vec::new(),
            names: Vec::new(),
            log_y: false,
            height: 180.0,
            min_x_range: Range::NONE,
        }
    }

    /// Adds points joined by straight lines, in the given order.
    ///
    /// Points that are not finite are left out.
    #[must_use]
    pub fn line(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add_series(name, Kind::Line, points)
    }

    /// Adds a value that holds from its point to the next, such as a count or a depth.
    #[must_use]
    pub fn step(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add_series(name, Kind::Step, points)
    }

    /// Adds bars from zero, each centred on its point. Bars of several series stand side by side.
    #[must_use]
    pub fn bars(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add_series(name, Kind::Bars, points)
    }

    fn add_series(mut self, name: impl Into<String>, kind: Kind, points: &[(f64, f64)]) -> Self {
        let is_finite = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let points: Vec<(f64, f64)> = points.iter().copied().filter(is_finite).collect();
        self.series.push(Series {
            name: name.into(),
            kind,
            points: thinned(&points),
        });
        self
    }

    /// Names the horizontal axis and its unit, if they differ from the chart's.
    #[must_use]
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = Some(label.into());
        self
    }

    /// Labels the horizontal axis with words: the first is at 0, the next at 1, and so on.
    #[must_use]
    pub fn x_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes the vertical axis logarithmic. Values of 0 and below are left out.
    ///
    /// Without this, the axis begins at 0.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.log_y = true;
        self
    }

    /// Adds a dotted horizontal line at height `y`.
    #[must_use]
    pub fn mark_y(self, text: impl Into<String>, y: f64) -> Self {
        self.mark(text, y, false)
    }

    /// Adds a dotted vertical line at `x`.
    #[must_use]
    pub fn mark_x(self, text: impl Into<String>, x: f64) -> Self {
        self.mark(text, x, true)
    }

    fn mark(mut self, text: impl Into<String>, at: f64, is_vertical: bool) -> Self {
        if at.is_finite() {
            self.marks.push(Mark {
                text: text.into(),
                at,
                is_vertical,
            });
        }
        self
    }

    /// Extends the horizontal axis at least to `x`.
    #[must_use]
    pub fn x_to(mut self, x: f64) -> Self {
        if x.is_finite() {
            self.min_x_range = self.min_x_range.with(x);
        }
        self
    }

    /// Sets the height in pixels; the default is 180.
    #[must_use]
    pub fn height(mut self, pixels: u32) -> Self {
        self.height = f64::from(pixels.max(40));
        self
    }

    /// The range of the horizontal axis.
    pub(super) fn x_range(&self) -> Range {
        let half = self.bar_width() / 2.0;
        let mut range = self.min_x_range;
        if !self.names.is_empty() {
            range = range.with(-0.5).with(count(self.names.len()) - 0.5);
        }
        for series in &self.series {
            let half = if series.kind == Kind::Bars { half } else { 0.0 };
            for (x, _) in &series.points {
                range = range.with(x - half).with(x + half);
            }
        }
        let marks = self.marks.iter().filter(|mark| mark.is_vertical);
        marks.fold(range, |range, mark| range.with(mark.at))
    }

    /// The range of the vertical axis.
    pub(super) fn y_range(&self) -> Range {
        let mut range = Range::NONE;
        if !self.log_y {
            range = range.with(0.0);
        }
        let points = self.series.iter().flat_map(|series| &series.points);
        let marks = self.marks.iter().filter(|mark| !mark.is_vertical);
        let heights = points.map(|point| point.1).chain(marks.map(|mark| mark.at));
        let range = heights
            .filter(|y| self.can_draw(*y))
            .fold(range, Range::with);
        // The smallest bar must be visible too.
        if self.log_y && self.series.iter().any(|series| series.kind == Kind::Bars) {
            range.with(range.low / 2.0)
        } else {
            range
        }
    }

    /// Returns whether a height is on the axis.
    pub(super) fn can_draw(&self, y: f64) -> bool {
        !self.log_y || y > 0.0
    }

    /// Returns the width of a group of bars: the smallest distance between two points, in values.
    pub(super) fn bar_width(&self) -> f64 {
        let bars = self
            .series
            .iter()
            .filter(|series| series.kind == Kind::Bars);
        let mut positions: Vec<f64> = bars.flat_map(|bars| &bars.points).map(|at| at.0).collect();
        positions.sort_by(f64::total_cmp);
        let gaps = positions.windows(2).map(|pair| pair[1] - pair[0]);
        let least = gaps.filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 1.0 }
    }
}
