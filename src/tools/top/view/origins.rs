//! The origins, and the state of their servers.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::View;
use crate::admin::views::{Origin, Server};
use crate::tools::top::page::Panel;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let mut lines = Vec::new();
    for origin in view.shown().origins() {
        lines.push(Line::raw(name(origin)));
        lines.extend(origin.servers.iter().map(|at| server(view, at)));
    }
    let scrolled = match view.page.panel {
        Panel::Origins => view.page.scroll.min(lines.len().saturating_sub(1)),
        _ => 0,
    };
    let lines: Vec<Line> = lines.into_iter().skip(scrolled).collect();
    let block = view.block("origins", Some(Panel::Origins));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn name(origin: &Origin) -> String {
    let most = origin
        .max_in_flight
        .map_or_else(String::new, |most| format!(" of {most}"));
    format!("{}: {}{most} in flight", origin.name, origin.in_flight)
}

fn server(view: &View, server: &Server) -> Line<'static> {
    let (health, style) = if server.healthy {
        ("healthy", view.paint.good())
    } else {
        ("DOWN   ", view.paint.bad())
    };
    let counts = format!(
        "  {}  {} in flight, {} answered, {} failed",
        server.url, server.in_flight, server.answered, server.failed
    );
    Line::from(vec![
        Span::styled(format!("  {health}"), style),
        Span::raw(counts),
    ])
}
