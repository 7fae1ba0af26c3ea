//! The origins: their gates, their waiting rooms, and the state of their servers.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::View;
use super::numbers::wait;
use super::overridden;
use super::places;
use super::room;
use super::shared;
use super::trouble::{latency, of_server};
use crate::status::views::{GateKey, Origin, OriginSample, Places, RoomSample, Server};
use crate::tools::top::model::{GateNow, OriginLine, SharedNow};
use crate::tools::top::page::Panel;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let lines = view.shown().origin_lines();
    let scrolled = match view.page.panel {
        Panel::Origins => view.page.scroll.min(lines.len().saturating_sub(1)),
        _ => 0,
    };
    let lines: Vec<Line> = lines
        .into_iter()
        .skip(scrolled)
        .map(|it| line(view, it))
        .collect();
    let block = view.block("origins", Some(Panel::Origins));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn line(view: &View, line: OriginLine) -> Line<'static> {
    match line {
        OriginLine::Origin(origin) => Line::raw(name(origin)),
        OriginLine::Shared(now) => shares(view, now),
        OriginLine::Waiting(gate) => waiting(view, gate),
        OriginLine::Limits(gate) => limits(view, gate),
        OriginLine::Places(shared) => borrowed(view, shared),
        OriginLine::Answers(second) => answers(view, second),
        OriginLine::Room(of) => Line::raw(format!("  room: {}", room::visitors(&of.room))),
        OriginLine::Calls(of) => calls(view, of),
        OriginLine::Server(at) => server(view, at),
        OriginLine::Trouble(at) => {
            let text = of_server(at).unwrap_or_default();
            Line::styled(format!("           {text}"), view.paint.bad())
        }
        OriginLine::Key(waits) => Line::raw(key(waits)),
    }
}

fn name(origin: &Origin) -> String {
    let now = origin.gate.as_ref().map(|gate| &gate.max_in_flight);
    let most = now.and_then(|most| most.now).or(origin.max_in_flight);
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    format!("{}: {}{most} in flight", origin.name, origin.in_flight)
}

fn waiting(view: &View, gate: GateNow) -> Line<'static> {
    let p99 = gate.p99().map(|p99| format!(", p99 {}", wait(p99)));
    let mut spans = vec![Span::raw(format!(
        "  gate: {} waiting{}{}",
        gate.depth(),
        gate.classes(),
        p99.unwrap_or_default()
    ))];
    let rejected = gate.rejected();
    let why = gate.reason().map(|why| format!(" ({why})"));
    let told = format!("{rejected} rej/s{}", why.unwrap_or_default());
    spans.push(Span::raw(", "));
    spans.push(match rejected {
        0 => Span::raw(told),
        _ => Span::styled(told, view.paint.bad()),
    });
    Line::from(spans)
}

fn limits(view: &View, gate: GateNow) -> Line<'static> {
    let rate = gate.rate().map(|rate| format!("rate {rate}"));
    let is_lower = gate.gate.backing_off.is_some() || gate.overridden().is_some();
    let places = gate.places().filter(|_| is_lower);
    let places = places.map(|places| format!("places {places}"));
    let parts: Vec<String> = rate.into_iter().chain(places).collect();
    let mut spans = vec![Span::raw(format!("  {}", parts.join(", ")))];
    if let Some(down) = gate.outage() {
        let apart = if parts.is_empty() { "" } else { "; " };
        spans.push(Span::styled(format!("{apart}{down}"), view.paint.bad()));
    }
    if let Some(it) = gate.overridden() {
        let apart = if parts.is_empty() { "" } else { "; " };
        let told = overridden::of_gate(it);
        spans.push(Span::styled(format!("{apart}{told}"), view.paint.bad()));
    }
    if let Some(why) = gate.backing_off() {
        spans.push(Span::styled(
            format!("; backs off: {why}"),
            view.paint.bad(),
        ));
    }
    Line::from(spans)
}

fn borrowed(view: &View, shared: &Places) -> Line<'static> {
    if let Some(why) = places::why_alone(shared) {
        return Line::styled(format!("  places: {why}"), view.paint.bad());
    }
    let mut spans = vec![Span::raw(format!(
        "  places: {}",
        places::of_gateway(shared)
    ))];
    let withheld = places::withheld(shared).map(|text| format!(", {text}"));
    spans.extend(withheld.map(|text| Span::styled(text, view.paint.bad())));
    Line::from(spans)
}

fn shares(view: &View, now: SharedNow) -> Line<'static> {
    let mut spans = vec![Span::raw(format!("  {}", shared::asked(&now)))];
    if now.stale > 0.0 {
        let stale = format!(", {} r/s stale", shared::pace(now.stale));
        spans.push(Span::styled(stale, view.paint.bad()));
    }
    let kept = view.shown().shared_answers().map(shared::kept);
    spans.extend(kept.map(|kept| Span::raw(format!("; {kept}"))));
    Line::from(spans)
}

fn calls(view: &View, of: &RoomSample) -> Line<'static> {
    let mut spans = vec![Span::raw(format!("  {}", room::calls(of)))];
    let special = room::special(&of.room).map(|text| format!("; {text}"));
    spans.extend(special.map(|text| Span::styled(text, view.paint.bad())));
    Line::from(spans)
}

/// The answers and errors of the last second, those of the servers' trouble in red.
fn answers(view: &View, second: &OriginSample) -> Line<'static> {
    let mut spans = vec![Span::raw("  ")];
    let mut tell = |text: String, is_bad: bool| {
        if spans.len() > 1 {
            spans.push(Span::raw(", "));
        }
        spans.push(if is_bad {
            Span::styled(text, view.paint.bad())
        } else {
            Span::raw(text)
        });
    };
    for (code, count) in &second.codes {
        tell(format!("{count} {code}/s"), code.as_str() == "5xx");
    }
    for (error, count) in &second.errors {
        tell(format!("{count} {error}/s"), true);
    }
    if let Some(text) = latency(&second.latency) {
        tell(text, false);
    }
    Line::from(spans)
}

fn server(view: &View, server: &Server) -> Line<'static> {
    let (state, style) = match server.availability() {
        "asked" => ("asked".to_owned(), view.paint.good()),
        state => (state.to_uppercase(), view.paint.bad()),
    };
    let counts = format!(
        "  {}  {} in flight, {} answered, {} failed",
        server.url, server.in_flight, server.answered, server.failed
    );
    Line::from(vec![
        Span::styled(format!("  {state:<7}"), style),
        Span::raw(counts),
    ])
}

fn key(key: &GateKey) -> String {
    let name = match key.key.as_str() {
        "" => "(no key)",
        name => name,
    };
    let depth = key.queue_depth;
    // Before the key, which may be long.
    let plan = key.plan.as_ref().map(|plan| format!("({plan}) "));
    let plan = plan.unwrap_or_default();
    format!("  {depth:>6} {:>4.0}%  {plan}{name}", key.share * 100.0)
}
