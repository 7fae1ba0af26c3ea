//! The keys with the most waiting requests, or the most rejections, over all zones.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::numbers::wait;
use super::{Paint, View};
use crate::status::views::Plain;
use crate::tools::top::model::{Model, Sort};
use crate::tools::top::page::Panel;

/// What the panel lists.
struct List {
    title: String,
    heading: &'static str,
    /// What stands there if no key is listed.
    empty: &'static str,
    /// A key each.
    lines: Vec<String>,
}

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let list = match view.page.sort {
        Sort::Rejections => rejected(view.shown()),
        sort => deepest(view.shown(), sort),
    };
    let is_selected = view.page.panel == Panel::Keys;
    let mut lines = if list.lines.is_empty() {
        vec![Line::styled(list.empty, Paint::faint())]
    } else {
        vec![Line::styled(list.heading, Paint::faint())]
    };
    // The position may come from a longer list.
    let scrolled = view.page.scroll.min(list.lines.len().saturating_sub(1));
    let scrolled = if is_selected { scrolled } else { 0 };
    let shown = list.lines.iter().skip(scrolled).enumerate();
    lines.extend(shown.map(|(at, text)| {
        let mark = if at == 0 && is_selected { '>' } else { ' ' };
        Line::raw(format!("{mark}{text}"))
    }));
    let block = view.block(&list.title, Some(Panel::Keys));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn deepest(model: &Model, sort: Sort) -> List {
    let keys = model.deepest(sort);
    let has_plans = keys.iter().any(|key| key.plan.is_some());
    let lines = keys.iter().map(|key| {
        let (oldest, plan) = (wait(key.oldest_wait), plan(key.plan.as_ref()));
        let (depth, zone, key) = (key.depth, &key.zone, &key.key);
        format!("{depth:>5} {oldest:>7}  {zone}{plan}, {key}")
    });
    List {
        title: format!("deepest keys, by {}", sort.name()),
        heading: if has_plans {
            " depth  oldest  zone (plan), key"
        } else {
            " depth  oldest  zone, key"
        },
        empty: "nobody waits",
        lines: lines.collect(),
    }
}

/// The keys with the most rejections in the last minute.
fn rejected(model: &Model) -> List {
    let lines = model.rejected().into_iter().map(|(zone, key)| {
        let (share, plan) = (key.share * 100.0, plan(key.plan.as_ref()));
        let (rejections, key) = (key.rejections, &key.key);
        format!("{rejections:>7} {share:>4.0} %  {zone}{plan}, {key}")
    });
    List {
        title: "keys, by rejections in the last minute".to_owned(),
        heading: "rejected  share  zone, key",
        empty: "nobody was rejected in the last minute",
        lines: lines.collect(),
    }
}

/// A key's plan, if it has one. It comes before the key, which may be long.
fn plan(plan: Option<&Plain>) -> String {
    plan.map(|plan| format!(" ({plan})")).unwrap_or_default()
}
