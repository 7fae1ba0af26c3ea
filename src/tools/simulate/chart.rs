//! Draws step lines over time as SVG, in panels one below the other.
//!
//! The same lines give the same bytes. Colours follow the reader's system, light or dark. Positions
//! are in pixels, to the right and down. Numbers without a name are small distances between texts,
//! lines and edges.

use std::fmt::Write;

use svg::Document;
use svg::node::element::{Path, Rectangle, Style, Text, Title};

/// Width of the picture.
const WIDTH: f64 = 900.0;
/// Horizontal positions at which the axis of time begins and ends.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 876.0;
/// Height of a panel, without the space above it for name and legend and below it for the times.
const HEIGHT: f64 = 180.0;
const ABOVE: f64 = 28.0;
const BELOW: f64 = 24.0;
/// Distance of titles from the left edge.
const MARGIN: f64 = 16.0;
/// Approximate width of a letter in the legend. SVG cannot measure a text.
const LETTER: f64 = 6.2;
/// Approximate number of labelled values at an axis.
const TICKS: f64 = 6.0;

/// A diagram: lines above an axis of time.
pub(super) struct Panel<'a> {
    /// Name above the diagram.
    pub(super) name: &'a str,
    /// Lines, each with its name in the legend.
    pub(super) lines: Vec<(&'a str, Line)>,
}

/// A step line: each value holds for one column, which is a part of the time.
pub(super) struct Line {
    values: Vec<f64>,
    /// Width of a column, in seconds.
    width: f64,
}

impl Line {
    /// Creates a line of columns that are `width` seconds wide.
    pub(super) fn new(values: impl Iterator<Item = f64>, width: f64) -> Self {
        let values = values.collect();
        Self { values, width }
    }

    /// Returns the highest value.
    fn peak(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the value at a time, in seconds.
    #[cfg(test)]
    pub(super) fn at(&self, time: f64) -> f64 {
        let column = usize::try_from(limit::to_whole(time / self.width)).unwrap();
        self.values[column.min(self.values.len() - 1)]
    }
}

/// Returns an SVG file of these panels, from 0 to `end` seconds.
pub(super) fn draw(title: &str, end: f64, panels: &[Panel]) -> String {
    // Without any time, the axis shows a second.
    let end = if end > 0.0 { end } else { 1.0 };
    let mut top = 40.0;
    let mut texts = vec![text("title", MARGIN, 30.0, "start", title)];
    let mut paths = Vec::new();
    for panel in panels {
        top += ABOVE;
        panel.draw(top, end, &mut texts, &mut paths);
        top += HEIGHT + BELOW;
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    texts.push(text("", middle, top + 12.0, "middle", "seconds"));
    let height = top + 24.0;
    let paper = Rectangle::new().set("class", "paper").set("rx", 6);
    let mut document = Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height}"))
        .set("width", WIDTH)
        .set("height", height)
        .set("role", "img")
        .add(Title::new(title))
        .add(Style::new(include_str!("style.css").trim_end()))
        .add(paper.set("width", WIDTH).set("height", height));
    for path in paths {
        document = document.add(path);
    }
    // Texts come last, so no line covers them.
    for text in texts {
        document = document.add(text);
    }
    format!("{document}\n")
}

impl Panel<'_> {
    /// Adds the panel, whose upper edge is at `top`, for times from 0 to `end`.
    fn draw(&self, top: f64, end: f64, texts: &mut Vec<Text>, paths: &mut Vec<Path>) {
        let bottom = top + HEIGHT;
        texts.push(text("name", MARGIN, top - 14.0, "start", self.name));
        let highest = self.lines.iter().map(|(_, line)| line.peak());
        let highest = highest.fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        // Positions of a time and of a value in the picture.
        let x = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / end).min(1.0);
        let y = |value: f64| bottom - HEIGHT * value / highest;
        for (value, label) in ticks(highest) {
            let y = y(value);
            paths.push(path("grid", format!("M{LEFT} {y:.1}H{RIGHT}")));
            texts.push(text("", LEFT - 6.0, y + 4.0, "end", &label));
        }
        for (value, label) in ticks(end) {
            let x = x(value);
            paths.push(path("axis", format!("M{x:.1} {bottom}v4")));
            texts.push(text("", x, bottom + 17.0, "middle", &label));
        }
        // The legend is written from right to left: each name, and a dash in the line's colour.
        let mut legend_end = RIGHT;
        for (nth, (name, line)) in self.lines.iter().enumerate().rev() {
            let mut steps = format!("M{LEFT} {bottom}");
            for (number, value) in (1u32..).zip(&line.values) {
                let column_end = x(f64::from(number) * line.width);
                // Writing to a String cannot fail.
                let _ = write!(steps, "V{:.1}H{column_end:.1}", y(*value));
            }
            paths.push(path(&format!("line c{nth}"), steps));
            if !name.is_empty() {
                texts.push(text("", legend_end, top - 14.0, "end", name));
                let width = LETTER * f64::from(u8::try_from(name.len()).unwrap_or(u8::MAX));
                legend_end -= width + 18.0;
                let dash = format!("M{legend_end:.1} {}h12", top - 18.0);
                paths.push(path(&format!("line c{nth}"), dash));
                legend_end -= 14.0;
            }
        }
    }
}

/// Returns values from 0 to `end` with their labels.
///
/// They are multiples of a step, which is 1, 2 or 5 times a power of ten.
fn ticks(end: f64) -> impl Iterator<Item = (f64, String)> {
    let min_step = end / TICKS;
    let power = 10f64.powf(min_step.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| *step >= min_step);
    let step = step.unwrap_or(10.0 * power);
    let values = (0u32..).map(move |nth| f64::from(nth) * step);
    // A value at the very end may exceed it by an error of floating-point numbers.
    let values = values.take_while(move |value| *value <= end * 1.001);
    // Enough digits after the point for the step, and so for all its multiples.
    let digits = (0..9).find(|digits| step * 10f64.powi(*digits) >= 1.0);
    let digits = usize::try_from(digits.unwrap_or(9)).unwrap_or(9);
    values.map(move |value| (value, format!("{value:.digits$}")))
}

/// Returns a path. `data`: drawing commands of SVG.
fn path(class: &str, data: String) -> Path {
    Path::new().set("class", class).set("d", data)
}

/// Returns a text. `anchor`: whether its start, middle or end is at `x`.
fn text(class: &str, x: f64, y: f64, anchor: &str, content: &str) -> Text {
    let text = Text::new(content)
        .set("class", class)
        .set("text-anchor", anchor);
    text.set("x", format!("{x:.1}")).set("y", format!("{y:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_values_and_titles_give_a_well_formed_picture() {
        for values in [vec![], vec![0.0], vec![1.0, 3.0, f64::from(u32::MAX)]] {
            let line = Line::new(values.into_iter(), 0.5);
            let lines = vec![("came", line)];
            let svg = draw("a < b & \"c\"", 0.0, &[Panel { name: "x", lines }]);
            for event in svg::read(&svg).unwrap() {
                assert!(!matches!(event, svg::parser::Event::Error(_)), "{svg}");
            }
            assert!(svg.contains("a &lt; b &amp;") && !svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
