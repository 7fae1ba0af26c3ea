//! The header: the gateway, and its state.

use std::fmt::Write as _;

use ratatui::text::{Line, Span};

use super::numbers::{moment, span};
use super::{Paint, View, trouble};
use crate::status::views::Config;
use crate::tools::top::model::Link;

/// `whole`: with the evidence and the remedy of the headline.
pub(super) fn lines(view: &View, width: u16, whole: bool) -> Vec<Line<'static>> {
    let mut lines = vec![gateway(view), settings(view)];
    lines.extend(trouble::lines(view, width, whole));
    lines
}

fn gateway(view: &View) -> Line<'static> {
    let paint = view.paint;
    let config = view.shown().config.as_ref();
    let version = config.map_or_else(String::new, |config| format!(" {}", config.version));
    let name = config.map(|config| config.gateway.as_str());
    // A gateway of before it had a name sends none.
    let name = name.filter(|name| !name.is_empty());
    let name = name.map_or_else(String::new, |name| format!("  {name}"));
    let mut line = vec![
        Span::styled(format!(" drip{version}"), Paint::strong()),
        Span::raw(format!("{name}  {}  ", view.address)),
    ];
    if view.page.is_frozen() {
        line.push(Span::styled("frozen  ", paint.mark()));
    }
    if view.model.is_stopping() && !matches!(view.model.link, Link::Lost { .. }) {
        line.push(Span::styled("stopping  ", paint.mark()));
    }
    // Comes last: the reason may be long, and the end of a line is cut off.
    line.push(link(view));
    Line::from(line)
}

fn link(view: &View) -> Span<'static> {
    match &view.model.link {
        Link::Opening => Span::raw("connecting"),
        Link::Open { since } => {
            let text = format!("connected {}", span(view.now.since(*since)));
            Span::styled(text, view.paint.good())
        }
        Link::Lost { since, why } => {
            let since = span(view.now.since(*since));
            Span::styled(
                format!("lost {since} ago, trying again: {why}"),
                view.paint.bad(),
            )
        }
    }
}

fn settings(view: &View) -> Line<'static> {
    let Some(config) = view.shown().config.as_ref() else {
        return Line::default();
    };
    let text = format!(" {}", file(config));
    match config.error {
        None => Line::raw(text),
        Some(_) => Line::styled(text, view.paint.bad()),
    }
}

/// The state of the file, in one line.
pub(in crate::tools::top) fn file(config: &Config) -> String {
    let file = &config.file;
    let Some(error) = &config.error else {
        return format!("{file}: ok, loaded {}", moment(config.loaded_at.as_str()));
    };
    let mut text = format!("{file}: broken since {}", moment(error.since.as_str()));
    if let Some(first) = error.problems.first() {
        let place = first.place();
        if !place.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, ", {place}");
        }
        let _ = write!(text, ": {}", first.message);
    }
    match error.problems.len() {
        0 | 1 => text,
        more => format!("{text} (and {} more)", more - 1),
    }
}
