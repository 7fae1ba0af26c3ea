//! Draws the page.

mod charts;
mod deepest;
mod header;
mod help;
pub(super) mod numbers;
mod origins;
pub(super) mod overridden;
mod paint;
pub(super) mod places;
mod question;
pub(super) mod room;
mod settings;
pub(super) mod shared;
pub(super) mod trouble;
pub(super) mod wrap;
pub(super) mod zones;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::{Block, Paragraph};

pub(super) use self::header::file;
pub(super) use self::paint::Paint;
use super::model::Model;
use super::page::{Page, Panel};
use crate::config::AdminAddress;
use crate::limit::Moment;

/// Columns and lines at which all panels fit.
///
/// Smaller pages show only the zones and the selected panel.
const LARGE: (u16, u16) = (90, 26);

/// Lines below which only the title of the headline is shown.
const TALL: u16 = 20;

/// What is drawn.
pub(super) struct View<'a> {
    pub(super) address: &'a AdminAddress,
    /// The live model. The header shows its connection even while the page is frozen.
    pub(super) model: &'a Model,
    pub(super) page: &'a Page,
    pub(super) paint: Paint,
    pub(super) now: Moment,
}

impl View<'_> {
    pub(super) fn draw(&self, frame: &mut Frame) {
        let area = frame.area();
        let header = header::lines(self, area.width, area.height >= TALL);
        let tall = u16::try_from(header.len()).unwrap_or(u16::MAX);
        let [top, rest, footer] = Layout::vertical([
            Constraint::Length(tall),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(header), top);
        let zones = u16::try_from(self.shown().zones().len()).unwrap_or(u16::MAX);
        let zones = zones.max(1).saturating_add(3);
        if area.width >= LARGE.0 && area.height >= LARGE.1 {
            self.all(frame, rest, zones);
        } else {
            self.one(frame, rest, zones);
        }
        help::footer(self, frame, footer);
        if self.page.help {
            help::draw(frame, rest);
        }
        if let Some(question) = &self.page.question {
            question::draw(self, question, frame, rest);
        }
    }

    fn all(&self, frame: &mut Frame, area: Rect, zones: u16) {
        let [table, middle, lower] = Layout::vertical([
            Constraint::Length(zones.min(area.height / 3)),
            Constraint::Fill(3),
            Constraint::Fill(2),
        ])
        .areas(area);
        let [left, right] =
            Layout::horizontal([Constraint::Length(40), Constraint::Fill(1)]).areas(middle);
        let halves = [Constraint::Fill(1), Constraint::Fill(1)];
        let [keys, servers] = Layout::horizontal(halves).areas(lower);
        zones::draw(self, frame, table);
        settings::draw(self, frame, left);
        charts::draw(self, frame, right);
        deepest::draw(self, frame, keys);
        origins::draw(self, frame, servers);
    }

    fn one(&self, frame: &mut Frame, area: Rect, zones: u16) {
        let most = (area.height / 2).max(4);
        let [table, panel] =
            Layout::vertical([Constraint::Length(zones.min(most)), Constraint::Fill(1)])
                .areas(area);
        zones::draw(self, frame, table);
        match self.page.panel {
            Panel::Zones => charts::draw(self, frame, panel),
            Panel::Settings => settings::draw(self, frame, panel),
            Panel::Keys => deepest::draw(self, frame, panel),
            Panel::Origins => origins::draw(self, frame, panel),
        }
    }

    fn shown(&self) -> &Model {
        self.page.shown(self.model)
    }

    /// The frame of a panel. The frame of the selected panel stands out.
    fn block(&self, title: &str, panel: Option<Panel>) -> Block<'static> {
        let here = panel == Some(self.page.panel);
        let title = if here {
            format!(" ▸ {title} ")
        } else {
            format!(" {title} ")
        };
        let block = Block::bordered().title(title);
        if here {
            block.title_style(Paint::strong())
        } else {
            block.border_style(Paint::faint())
        }
    }
}

#[cfg(test)]
mod tests;
