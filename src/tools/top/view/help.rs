//! The help: one line of keys, and a box of all keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::{Paint, View};
use crate::tools::top::keys::HELP;

/// What became of the last change, or else the keys.
pub(super) fn footer(view: &View, frame: &mut Frame, area: Rect) {
    let line = match &view.page.told {
        Some(told) if told.is_bad => Line::styled(format!(" {}", told.text), view.paint.bad()),
        Some(told) => Line::styled(format!(" {}", told.text), Paint::strong()),
        None => {
            let text = " q quit  ↑↓ select  Tab panel  s sort  p pause  ? help";
            Line::styled(text, Paint::faint())
        }
    };
    frame.render_widget(line, area);
}

pub(super) fn draw(frame: &mut Frame, area: Rect) {
    let lines = HELP.map(|(key, does)| Line::raw(format!(" {key:<15} {does}")));
    let height = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX);
    let place = area.centered(Constraint::Max(64), Constraint::Max(height));
    let block = Block::bordered()
        .title(" keys ")
        .border_style(Paint::strong());
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(block), place);
}
