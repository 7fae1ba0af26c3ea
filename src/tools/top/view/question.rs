//! The open question, in a box, and what became of the last change.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::{Paint, View};
use crate::tools::top::question::{Question, State, Wants};

pub(super) fn draw(view: &View, question: &Question, frame: &mut Frame, area: Rect) {
    let lines = match &question.state {
        State::Typing { wants, text, wrong } => {
            let asks = match wants {
                Wants::Rate => "Which rate, and for how long? Such as 20r/s 10m",
                Wants::Places => "How many requests at once, and for how long? Such as 24 10m",
                Wants::Span(_) => "For how long? Such as 30s, 10m, 2h",
            };
            let wrong = wrong.as_deref().unwrap_or_default();
            vec![
                Line::raw(asks),
                Line::styled(format!("> {text}_"), Paint::strong()),
                Line::styled(wrong.to_owned(), view.paint.bad()),
                Line::styled("Enter: go on   Esc: leave it", Paint::faint()),
            ]
        }
        State::Asking(change) => vec![
            Line::raw(change.will(&question.target)),
            Line::raw(""),
            Line::styled(format!("{}? y / n", change.verb()), Paint::strong()),
        ],
    };
    let place = area.centered(Constraint::Max(64), Constraint::Max(8));
    let block = Block::bordered()
        .title(format!(" {} ", question.target.name()))
        .border_style(Paint::strong());
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(Clear, place);
    frame.render_widget(text.block(block), place);
}
