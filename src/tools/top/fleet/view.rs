use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::lines::{Aligned, counts, headline, sections};
use super::page::Page;
use crate::tools::top::view::{Paint, wrap::wrap};

/// Lines of a terminal below which only the title of the headline is shown.
const TALL: u16 = 20;

const KEYS: &str = " q quit  ↑↓ select  Tab next table  Space keep what is shown";

/// Draws the page. Scrolls so that what is selected is visible.
pub(super) fn draw(page: &mut Page, paint: Paint, frame: &mut Frame) {
    let area = frame.area();
    let header = header(page, paint, area.width, area.height >= TALL);
    let tall = u16::try_from(header.len()).unwrap_or(u16::MAX);
    let [top, body, footer] = Layout::vertical([
        Constraint::Length(tall),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(header), top);
    let (lines, selected) = lines(page, paint);
    page.scroll = scroll(
        page.scroll,
        &selected,
        usize::from(body.height),
        lines.len(),
    );
    let shown: Vec<Line> = lines.into_iter().skip(page.scroll).collect();
    frame.render_widget(Paragraph::new(shown), body);
    let line = match page.notice {
        Some(notice) => Line::styled(format!(" {notice}"), paint.bad()),
        None => Line::styled(KEYS, Paint::faint()),
    };
    frame.render_widget(line, footer);
}

fn header(page: &Page, paint: Paint, width: u16, whole: bool) -> Vec<Line<'static>> {
    let mut first = vec![
        Span::styled(" drip top", Paint::strong()),
        Span::raw(format!("  {}", counts(&page.fleet))),
    ];
    if page.is_frozen {
        first.push(Span::styled("  frozen", paint.mark()));
    }
    let mut lines = vec![Line::from(first)];
    let style = match page.fleet.headline.severity.as_str() {
        "bad" => paint.bad(),
        "warn" => paint.mark(),
        "fine" => paint.good(),
        _ => Style::new(),
    };
    let width = usize::from(width);
    let texts = headline(&page.fleet.headline).into_iter().enumerate();
    for (nth, text) in texts.filter(|(nth, _)| whole || *nth == 0) {
        let (indent, style) = match nth {
            0 => (" ", style.patch(Paint::strong())),
            _ => ("   ", Style::new()),
        };
        let wrapped = wrap(&text, width.saturating_sub(indent.len())).into_iter();
        lines.extend(wrapped.map(|text| Line::styled(format!("{indent}{text}"), style)));
    }
    lines
}

/// All lines of the tables, and which of them are the selected item. Its parts are shown alone.
fn lines(page: &Page, paint: Paint) -> (Vec<Line<'static>>, std::ops::Range<usize>) {
    let (mut lines, mut selected, mut nth) = (Vec::new(), 0..0, 0);
    for section in sections(&page.fleet) {
        let Aligned { titles, items } = section.aligned();
        lines.push(Line::default());
        lines.push(Line::styled(format!("  {titles}"), Paint::faint()));
        for ((text, parts), item) in items.into_iter().zip(&section.items) {
            let begin = lines.len();
            let is_selected = nth == page.selected;
            let mark = if is_selected { ">" } else { " " };
            let style = if item.is_bad {
                paint.bad()
            } else {
                Style::new()
            };
            let style = if is_selected {
                style.patch(Paint::strong())
            } else {
                style
            };
            lines.push(Line::styled(format!("{mark} {text}"), style));
            if is_selected {
                lines.extend(parts.into_iter().map(|part| Line::raw(format!("  {part}"))));
                selected = begin..lines.len();
            }
            nth += 1;
        }
    }
    (lines, selected)
}

/// How many lines are scrolled away, so that the selected ones are among `height` lines.
fn scroll(now: usize, selected: &std::ops::Range<usize>, height: usize, all: usize) -> usize {
    let last = selected.end.saturating_sub(height);
    // The titles stay visible above the first item of a table.
    let first = selected.start.saturating_sub(2);
    now.max(last).min(first).min(all.saturating_sub(height))
}
