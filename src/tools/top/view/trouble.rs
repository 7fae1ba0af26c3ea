//! What is wrong: the headline, the store, and servers that are out or failing.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::Line;

use super::numbers::{clock, moment, span, wait};
use super::wrap::wrap;
use super::{Paint, View};
use crate::status::views::{Latency, Sample, Server, StoreSample};

/// The headline with its evidence and remedy, and the store; nothing where there is neither.
///
/// Texts of the headline are wrapped to `width` columns. Without `whole`, only its title.
pub(super) fn lines(view: &View, width: u16, whole: bool) -> Vec<Line<'static>> {
    let Some(sample) = view.shown().now() else {
        return Vec::new();
    };
    let paint = view.paint;
    let mut texts = headline(sample).into_iter();
    let style = match sample.headline.severity.as_str() {
        "bad" => paint.bad(),
        "warn" => paint.mark(),
        "fine" => paint.good(),
        _ => Style::new(),
    };
    let width = usize::from(width);
    let title = texts
        .next()
        .map(|text| wrap(&text, width.saturating_sub(1)));
    let title = title.into_iter().flatten();
    let mut lines: Vec<Line> = title
        .map(|text| Line::styled(format!(" {text}"), style.patch(Paint::strong())))
        .collect();
    let texts = texts.filter(|_| whole);
    let texts = texts.flat_map(|text| wrap(&text, width.saturating_sub(3)));
    lines.extend(texts.map(|text| Line::raw(format!("   {text}"))));
    lines.extend(sample.store.as_ref().map(|it| {
        let style = if it.up { Style::new() } else { paint.bad() };
        Line::styled(format!(" {}", store(it)), style)
    }));
    lines
}

/// The title, the evidence, the remedy and what has ended lately, as far as there are any.
pub(in crate::tools::top) fn headline(sample: &Sample) -> Vec<String> {
    let headline = &sample.headline;
    if headline.cause.as_str().is_empty() {
        return Vec::new();
    }
    let since = headline.since.and_then(clock);
    let since = since.map_or(String::new(), |since| format!(" (since {since})"));
    let title = format!("{}{since}", headline.title);
    let ended = headline.ended.as_ref().map(|it| {
        let ago = Duration::try_from_secs_f64(sample.time - it.at).unwrap_or_default();
        format!("Ended {} ago: {}", span(ago), it.title)
    });
    let parts = [
        title,
        headline.evidence.to_string(),
        headline.remedy.to_string(),
    ];
    let told = parts.into_iter().chain(ended);
    told.filter(|text| !text.is_empty()).collect()
}

/// The state of the store, in one line.
pub(in crate::tools::top) fn store(store: &StoreSample) -> String {
    let state = match (&store.out_for, &store.reason) {
        _ if store.up => "up".to_owned(),
        (out_for, reason) => {
            let span = out_for.map(|span| format!(" for {}", wait(span)));
            let why = reason.as_ref().map(|reason| format!(": {reason}"));
            format!("OUT{}{}", span.unwrap_or_default(), why.unwrap_or_default())
        }
    };
    let mut parts = vec![format!("store {state}")];
    let operations = store.operations.iter();
    parts.extend(operations.map(|(result, count)| format!("{count} {result}/s")));
    parts.extend(latency(&store.latency));
    if !store.differs.is_empty() {
        let zones = store.differs.iter().map(ToString::to_string);
        let zones: Vec<String> = zones.collect();
        parts.push(format!(
            "other gateways have another rate for {}",
            zones.join(", ")
        ));
    }
    parts.join(", ")
}

/// The quantiles of a latency, in one text; `None` without any.
pub(in crate::tools::top) fn latency(latency: &Latency) -> Option<String> {
    let millis = |seconds: f64| format!("{:.1}ms", seconds * 1e3);
    let (p50, p95, p99) = (latency.p50?, latency.p95?, latency.p99?);
    Some(format!(
        "p50 {} p95 {} p99 {}",
        millis(p50),
        millis(p95),
        millis(p99)
    ))
}

/// Why a server is out or failing, in one line; `None` if it is neither.
pub(in crate::tools::top) fn of_server(server: &Server) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(out) = &server.out {
        let since = moment(out.since.as_str());
        parts.push(match &out.until {
            Some(until) => format!(
                "out by {} since {since}, until {}",
                out.by,
                moment(until.as_str())
            ),
            None => format!("out by {} since {since}", out.by),
        });
    }
    if server.availability() != "asked" {
        let failure = server.last_failure.as_ref();
        parts.extend(failure.map(|last| {
            let at = moment(last.at.as_str());
            format!("last failure {at}: {}", last.text)
        }));
        let check = server.last_check.as_ref().filter(|check| !check.healthy);
        parts.extend(check.map(|last| {
            let at = moment(last.at.as_str());
            format!("last check {at}: {}", last.text)
        }));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
