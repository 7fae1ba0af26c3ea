//! The keys with the most waiting requests, or the most rejections, over all zones.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::numbers::wait;
use super::{Paint, View};
use crate::status::views::Plain;
use crate::tools::top::model::Sort;
use crate::tools::top::page::Panel;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let sort = view.page.sort;
    if sort == Sort::Rejections {
        return rejected(view, frame, area);
    }
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
    let shown = keys.iter().skip(scrolled(view, keys.len())).enumerate();
    lines.extend(shown.map(|(at, key)| {
        let mark = mark(view, at);
        let oldest = wait(key.oldest_wait);
        let plan = plan(key.plan.as_ref());
        Line::raw(format!(
            "{mark}{:>5} {oldest:>7}  {}{plan}, {}",
            key.depth, key.zone, key.key
        ))
    }));
    let widget = Paragraph::new(lines).block(view.block(&title, Some(Panel::Keys)));
    frame.render_widget(widget, area);
}

/// The keys with the most rejections in the last minute.
fn rejected(view: &View, frame: &mut Frame, area: Rect) {
    let keys = view.shown().rejected();
    let mut lines = vec![Line::styled("rejected  share  zone, key", Paint::faint())];
    if keys.is_empty() {
        lines = vec![Line::styled(
            "nobody was rejected in the last minute",
            Paint::faint(),
        )];
    }
    let shown = keys.iter().skip(scrolled(view, keys.len())).enumerate();
    lines.extend(shown.map(|(at, (zone, key))| {
        let mark = mark(view, at);
        let (share, plan) = (key.share * 100.0, plan(key.plan.as_ref()));
        Line::raw(format!(
            "{mark}{:>7} {share:>4.0} %  {zone}{plan}, {}",
            key.rejections, key.key
        ))
    }));
    let title = "keys, by rejections in the last minute";
    let widget = Paragraph::new(lines).block(view.block(title, Some(Panel::Keys)));
    frame.render_widget(widget, area);
}

/// How many keys are scrolled past. The position may come from a longer list.
fn scrolled(view: &View, keys: usize) -> usize {
    match view.page.panel {
        Panel::Keys => view.page.scroll.min(keys.saturating_sub(1)),
        _ => 0,
    }
}

/// The mark of the selected key: the first one that is shown.
fn mark(view: &View, at: usize) -> char {
    if at == 0 && view.page.panel == Panel::Keys {
        '>'
    } else {
        ' '
    }
}

/// A key's plan, if it has one. It comes before the key, which may be long.
fn plan(plan: Option<&Plain>) -> String {
    plan.map(|plan| format!(" ({plan})")).unwrap_or_default()
}
