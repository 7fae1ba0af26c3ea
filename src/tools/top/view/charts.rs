//! Charts of the selected zone over time: requests waiting, and the rate at which they leave.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::numbers::span;
use super::{Paint, View};
use crate::tools::top::model::ZoneSeries;

/// The shortest time axis, in seconds.
const MIN_SPAN: f64 = 60.0;

/// Minimum height. A lower chart has no room for its marks.
const LOWEST: u16 = 5;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let zones = view.shown().zones();
    let course = match zones.get(view.page.selected(zones)) {
        Some(zone) => view.shown().course(&zone.name),
        None => ZoneSeries::default(),
    };
    let (depth, rate) = (view.paint.water(), view.paint.good());
    let depths = [("depth", course.depth.as_slice(), depth, Marker::Braille)];
    let rates = [
        ("rate", course.rate.as_slice(), Paint::faint(), Marker::Dot),
        ("out", course.out.as_slice(), rate, Marker::Braille),
    ];
    let mark = if course.retunes.is_empty() {
        ""
    } else {
        ", │ new file"
    };
    let depth_title = format!("depth{mark}");
    let rate_title = format!("out/s of all keys, • rate of each{mark}");
    if area.height >= 2 * LOWEST {
        let halves = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]);
        let [upper, lower] = halves.areas(area);
        chart(view, frame, upper, &depth_title, &depths, &course.retunes);
        chart(view, frame, lower, &rate_title, &rates, &course.retunes);
    } else {
        let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
        let [left, right] = halves.areas(area);
        chart(view, frame, left, &depth_title, &depths, &course.retunes);
        chart(view, frame, right, &rate_title, &rates, &course.retunes);
    }
}

type Series<'a> = (&'a str, &'a [(f64, f64)], Style, Marker);

fn chart(
    view: &View,
    frame: &mut Frame,
    area: Rect,
    title: &str,
    series: &[Series],
    retunes: &[f64],
) {
    let points = || series.iter().flat_map(|(_, points, ..)| points.iter());
    let from = points().fold(-MIN_SPAN, |from, (at, _)| from.min(*at));
    let top = points().fold(0.0_f64, |top, (_, value)| top.max(*value));
    let top = if top > 0.0 { top } else { 1.0 };
    let stems: Vec<[(f64, f64); 2]> = retunes.iter().map(|at| [(*at, 0.0), (*at, top)]).collect();
    let line = |points, style, marker| {
        Dataset::default()
            .data(points)
            .style(style)
            .marker(marker)
            .graph_type(GraphType::Line)
    };
    let stems = stems
        .iter()
        .map(|stem| line(stem.as_slice(), view.paint.mark(), Marker::Custom('│')));
    let lines = series
        .iter()
        .map(|(_, points, style, marker)| line(points, *style, *marker));
    let ago = span(std::time::Duration::from_secs_f64(-from));
    let x = Axis::default().bounds([from, 0.0]).style(Paint::faint());
    let y = Axis::default().bounds([0.0, top]).style(Paint::faint());
    let x = x.labels([Line::raw(format!("-{ago}")), Line::raw("now")]);
    let y = y.labels([Line::raw("0"), Line::raw(label(top))]);
    let chart = Chart::new(lines.chain(stems).collect())
        .block(view.block(title, None))
        .x_axis(x)
        .y_axis(y);
    frame.render_widget(chart, area);
}

fn label(top: f64) -> String {
    if top < 10.0 && top.fract() != 0.0 {
        format!("{top:.1}")
    } else {
        format!("{top:.0}")
    }
}
