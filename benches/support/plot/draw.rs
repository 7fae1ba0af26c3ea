//! Draws a panel.

use std::fmt::Write;

use svg::Node;
use svg::node::Text;
use svg::node::element::Element;

use super::panel::{Kind, Panel, Series};
use super::scale::{Range, Scale, count, format_value, without_zeros};

/// Approximate width of a letter, in pixels: the reader's font is not known.
const LETTER: f64 = 6.6;
const ROW: f64 = 18.0;
const COLOURS: usize = 8;

/// Position of a panel, and the parts that it shares with others.
pub(super) struct Frame<'a> {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) x_range: Range,
    pub(super) x_label: Option<&'a str>,
}

/// The axes of a panel.
struct Axes<'a> {
    panel: &'a Panel,
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Draws `panel`. Returns its lower end.
pub(super) fn draw(panel: &Panel, frame: &Frame, body: &mut Vec<Element>) -> f64 {
    let legend = legend(panel, frame, body);
    // The room for numbers at the left is the same in all panels, so that their axes line up.
    let (left, right) = (frame.left + 44.0, frame.right - 8.0);
    let (top, bottom) = (legend, legend + panel.height);
    let x = Scale::new(frame.x_range, false, left, right);
    let y = Scale::new(panel.y_range(), panel.log_y, bottom, top).rounded();
    let axes = Axes {
        panel,
        x,
        y,
        left,
        right,
        top,
        bottom,
    };
    axes.draw_y_axis(body);
    let mut below = axes.draw_x_axis(body);
    for (index, series) in panel.series.iter().enumerate() {
        match series.kind {
            Kind::Bars => axes.draw_bars(index, series, body),
            Kind::Line | Kind::Step => axes.draw_line(index, series, body),
        }
    }
    axes.draw_marks(body);
    if let Some(label) = frame.x_label {
        below += 16.0;
        body.push(text(
            "sub",
            f64::midpoint(left, right),
            below,
            "middle",
            label,
        ));
    }
    below
}

/// Draws the panel's name and the legend of its colours. Returns their lower end.
fn legend(panel: &Panel, frame: &Frame, body: &mut Vec<Element>) -> f64 {
    let mut y = frame.top + 10.0;
    body.push(text("name", frame.left, y, "start", &panel.y_label));
    let begin = frame.left + 44.0;
    let mut x = frame.left + width(&panel.y_label) * 1.08 + 24.0;
    let named = panel.series.iter().enumerate();
    for (index, series) in named.filter(|(_, series)| !series.name.is_empty()) {
        let needed = 18.0 + width(&series.name) + 16.0;
        if x + needed > frame.right && x > begin {
            x = begin;
            y += ROW;
        }
        let (top, high) = match series.kind {
            Kind::Bars => (y - 9.0, 10.0),
            Kind::Line | Kind::Step => (y - 5.5, 3.0),
        };
        body.push(rectangle_of(index, (x, top), (12.0, high)));
        body.push(text("sub", x + 18.0, y, "start", &series.name));
        x += needed;
    }
    y + 12.0
}

impl Axes<'_> {
    /// Draws the horizontal grid and the numbers at the left.
    fn draw_y_axis(&self, body: &mut Vec<Element>) {
        for value in self.y.ticks() {
            let Some(y) = self.y.position(value) else {
                continue;
            };
            body.push(straight_line("grid", (self.left, y), (self.right, y)));
            body.push(text(
                "sub",
                self.left - 6.0,
                y + 4.0,
                "end",
                &format_value(value),
            ));
        }
    }

    /// Draws the horizontal axis. Returns the lower end of the axis and its numbers.
    fn draw_x_axis(&self, body: &mut Vec<Element>) -> f64 {
        let base = self.bottom;
        body.push(straight_line("axis", (self.left, base), (self.right, base)));
        let ticks: Vec<(f64, String)> = if self.panel.names.is_empty() {
            self.x
                .ticks()
                .into_iter()
                .map(|at| (at, format_value(at)))
                .collect()
        } else {
            let names = self.panel.names.iter().cloned();
            names
                .enumerate()
                .map(|(at, name)| (count(at), name))
                .collect()
        };
        // Right end of the last name.
        let mut free = f64::NEG_INFINITY;
        for (value, written) in ticks {
            let Some(x) = self.x.position(value) else {
                continue;
            };
            if x < self.left - 1.0 || x > self.right + 1.0 {
                continue;
            }
            body.push(straight_line("axis", (x, base), (x, base + 4.0)));
            // Names that would overlap the previous one are left out.
            let half = width(&written) / 2.0;
            if x - half > free {
                body.push(text("sub", x, base + 17.0, "middle", &written));
                free = x + half + 4.0;
            }
        }
        base + 17.0
    }

    /// Draws a series as a line or as steps.
    fn draw_line(&self, index: usize, series: &Series, body: &mut Vec<Element>) {
        let mut path = String::new();
        // The last point, and how far right a step has reached that is not drawn yet.
        let (mut last, mut flat): (Option<f64>, Option<f64>) = (None, None);
        for &(x, y) in &series.points {
            let taken = self.panel.can_draw(y);
            let (true, Some(x), Some(y)) = (taken, self.x.position(x), self.y.position(y)) else {
                continue;
            };
            let (right, up) = (number(x), number(y));
            // Writing to a String cannot fail.
            let _ = match (last, series.kind) {
                (None, _) => write!(path, "M{right} {up}"),
                (Some(before), Kind::Step) if before.to_bits() == y.to_bits() => {
                    flat = Some(x);
                    continue;
                }
                (Some(_), Kind::Step) => write!(path, "H{right}V{up}"),
                (Some(_), _) => write!(path, "L{right} {up}"),
            };
            (last, flat) = (Some(y), None);
        }
        if let Some(x) = flat {
            path.push('H');
            path.push_str(&number(x));
        }
        if path.is_empty() {
            return;
        }
        let mut line = Element::new("path");
        // After the last colour the colours repeat, with dashes to tell them apart.
        let again = if index < COLOURS { "" } else { " again" };
        line.assign("class", format!("line c{}{again}", index % COLOURS));
        line.assign("d", path);
        body.push(line);
    }

    /// Draws a series as bars.
    fn draw_bars(&self, index: usize, series: &Series, body: &mut Vec<Element>) {
        let is_bars = |series: &&Series| series.kind == Kind::Bars;
        let beside = self.panel.series.iter().filter(is_bars).count();
        let before = self.panel.series[..index].iter().filter(is_bars).count();
        let whole = self.panel.bar_width();
        for &(x, y) in &series.points {
            if !self.panel.can_draw(y) {
                continue;
            }
            let (Some(middle), Some(next)) = (self.x.position(x), self.x.position(x + whole))
            else {
                continue;
            };
            let group_width = (next - middle) * 0.8;
            let Some(y) = self.y.position(y) else {
                continue;
            };
            let bar_width = group_width / count(beside);
            let base = self.y.base();
            let left = middle - group_width / 2.0 + bar_width * count(before);
            let size = (bar_width.max(0.5), (y - base).abs());
            body.push(rectangle_of(index, (left, y.min(base)), size));
        }
    }

    /// Draws the dotted lines with their texts.
    fn draw_marks(&self, body: &mut Vec<Element>) {
        for mark in &self.panel.marks {
            if mark.is_vertical {
                let Some(x) = self.x.position(mark.at) else {
                    continue;
                };
                body.push(straight_line("mark", (x, self.top), (x, self.bottom)));
                let fits_right = x + 4.0 + width(&mark.text) < self.right;
                let (text_x, anchor) = if fits_right {
                    (x + 4.0, "start")
                } else {
                    (x - 4.0, "end")
                };
                body.push(text("sub", text_x, self.top + 10.0, anchor, &mark.text));
            } else if let Some(y) = self.y.position(mark.at) {
                body.push(straight_line("mark", (self.left, y), (self.right, y)));
                body.push(text("sub", self.right - 4.0, y - 4.0, "end", &mark.text));
            }
        }
    }
}

/// A line of text. `class` is its style.
pub(super) fn text(class: &str, x: f64, y: f64, anchor: &str, content: &str) -> Element {
    let mut element = Element::new("text");
    if class != "sub" {
        element.assign("class", class);
    }
    element.assign("x", number(x));
    element.assign("y", number(y));
    if anchor != "start" {
        element.assign("text-anchor", anchor);
    }
    element.append(Text::new(content));
    element
}

/// `content` broken into lines that are no wider than `wide`.
pub(super) fn break_lines(content: &str, wide: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in content.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + width(word) + LETTER <= wide => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A straight line between two points.
fn straight_line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Element {
    let mut element = Element::new("path");
    element.assign("class", class);
    let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
    let path = format!("M{x1} {y1}L{x2} {y2}");
    element.assign("d", path);
    element
}

/// Returns the approximate width of a text.
fn width(text: &str) -> f64 {
    count(text.chars().count()) * LETTER
}

/// A rectangle in the colour of a series.
fn rectangle_of(index: usize, (x, y): (f64, f64), (width, height): (f64, f64)) -> Element {
    let mut rectangle = Element::new("rect");
    rectangle.assign("x", number(x));
    rectangle.assign("y", number(y));
    rectangle.assign("width", number(width));
    rectangle.assign("height", number(height));
    rectangle.assign("class", format!("f{}", index % COLOURS));
    rectangle
}

/// A number with at most two decimals: a hundredth of a pixel is fine enough.
pub(super) fn number(value: f64) -> String {
    without_zeros(&format!("{value:.2}")).to_owned()
}
