//! The keys with the most waiting requests, over all zones.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::numbers::wait;
use super::{Paint, View};
use crate::tools::top::page::Panel;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let sort = view.page.sort;
    let title = format!("deepest keys, by {}", sort.name());
    let keys = view.shown().deepest(sort);
    let has_plans = keys.iter().any(|key| key.plan.is_some());
    let heading = if has_plans {
        " depth  oldest  zone (plan), key"
    } else {
        " depth  oldest  zone, key"
    };
    let mut lines = vec![Line::styled(heading, Paint::faint())];
    if keys.is_empty() {
        lines = vec![Line::styled("nobody waits", Paint::faint())];
    }
    // The scroll position may come from a longer list.
    let scrolled = match view.page.panel {
        Panel::Keys => view.page.scroll.min(keys.len().saturating_sub(1)),
        _ => 0,
    };
    lines.extend(keys.iter().skip(scrolled).map(|key| {
        let oldest = wait(key.oldest_wait);
        // Before the key, which may be long.
        let plan = key.plan.as_ref().map(|plan| format!(" ({plan})"));
        let plan = plan.unwrap_or_default();
        Line::raw(format!(
            "{:>6} {oldest:>7}  {}{plan}, {}",
            key.depth, key.zone, key.key
        ))
    }));
    let widget = Paragraph::new(lines).block(view.block(&title, Some(Panel::Keys)));
    frame.render_widget(widget, area);
}
